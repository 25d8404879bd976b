#include "wire/flat_buffer.h"

#include "base/fail.h"
#include "wire/utf.h"

namespace sardonyx::wire {

void FlatBuffer::refuse(uint64_t at, std::string_view what) const {
  fail_at(place_(), ErrorCode::unreadable,
          "at byte {}: {}; the file is cut off, damaged, or something else", at, what);
}

void FlatBuffer::refuse_number(uint64_t at) const {
  refuse(at, fmt::format("a number would end beyond the {} bytes", bytes_.size()));
}

std::pair<uint64_t, uint64_t> FlatBuffer::vector(uint64_t at, uint64_t element_size) const {
  const uint64_t start = follow(at), count = number<uint32_t>(start), first = start + 4;
  if (count * element_size > bytes_.size() - first)
    refuse(start, fmt::format("a vector of {} elements would end beyond the {} bytes", count,
                              bytes_.size()));
  return {first, count * element_size};
}

void FlatBuffer::count(uint64_t at, uint64_t bytes) {
  taken_ += bytes;
  if (taken_ > bytes_.size()) refuse(at, "its parts overlap");
}

void FlatBuffer::view(uint64_t at, uint64_t bytes) {
  constexpr uint64_t most = 256;  // places of 4 bytes may all name a text of a thousand
  viewed_ += bytes;
  if (viewed_ / most > bytes_.size()) refuse(at, "its parts name the same long texts too often");
}

FlatBuffer::Table FlatBuffer::root(std::string_view identifier) {
  const uint64_t at = follow(0);
  if (bytes_.size() < 4 + identifier.size() ||
      bytes_.text().substr(4, identifier.size()) != identifier)
    refuse(4, fmt::format("expected '{}'", identifier));
  return {*this, at};
}

FlatBuffer::Table::Table(FlatBuffer& buffer, uint64_t at) : buffer_(&buffer), at_(at) {
  const int64_t back = buffer.number<int32_t>(at);
  const int64_t fields = static_cast<int64_t>(at) - back;
  if (fields < 0) buffer.refuse(at, "the offsets of a table would be before the file");
  fields_ = static_cast<uint64_t>(fields);
  size_ = buffer.number<uint16_t>(fields_);
  buffer.count(at, 4);
}

std::optional<uint64_t> FlatBuffer::Table::place(int field) const {
  const uint64_t entry = 4 + 2 * static_cast<uint64_t>(field);
  if (entry + 2 > size_) return {};
  const uint16_t offset = buffer_->number<uint16_t>(fields_ + entry);
  if (offset == 0) return {};
  return at_ + offset;
}

std::string_view FlatBuffer::Table::counted(int field, uint64_t element_size) const {
  const auto at = place(field);
  if (!at) return {};
  const auto found = buffer_->vector(*at, element_size);
  buffer_->count(found.first, 4 + found.second);
  return buffer_->bytes_.text().substr(found.first, found.second);
}

std::string FlatBuffer::Table::text(int field) const {
  const std::string text(counted(field, 1));
  if (!code_points(text)) buffer_->refuse(at_, "a text of its table is no UTF-8");
  return text;
}

std::string_view FlatBuffer::Table::text_view(int field) const {
  const auto at = place(field);
  if (!at) return {};
  const auto found = buffer_->vector(*at, 1);
  return buffer_->bytes_.text().substr(found.first, found.second);
}

Bytes FlatBuffer::Table::bytes(int field) const {
  const std::string_view view = counted(field, 1);
  if (view.empty()) return {};
  const auto* first = reinterpret_cast<const std::byte*>(view.data());
  return buffer_->bytes_.slice(static_cast<size_t>(first - buffer_->bytes_.data()), view.size());
}

std::optional<FlatBuffer::Table> FlatBuffer::Table::table(int field) const {
  const auto at = place(field);
  if (!at) return {};
  return Table(*buffer_, buffer_->follow(*at));
}

template <class Visit>
void FlatBuffer::Table::for_each_offset(int field, const Visit& visit) const {
  const auto at = place(field);
  if (!at) return;
  const auto found = buffer_->vector(*at, 4);
  buffer_->count(found.first, 4 + found.second);
  for (uint64_t i = 0; i < found.second; i += 4) visit(found.first + i);
}

std::vector<std::string_view> FlatBuffer::Table::text_views(int field) const {
  std::vector<std::string_view> texts;
  for_each_offset(field, [&](uint64_t at) {
    const auto found = buffer_->vector(at, 1);
    buffer_->view(found.first, found.second);
    texts.push_back(buffer_->bytes_.text().substr(found.first, found.second));
  });
  return texts;
}

std::vector<FlatBuffer::Table> FlatBuffer::Table::tables(int field) const {
  std::vector<Table> tables;
  for_each_offset(field,
                  [&](uint64_t at) { tables.push_back(Table(*buffer_, buffer_->follow(at))); });
  return tables;
}

}  // namespace sardonyx::wire
