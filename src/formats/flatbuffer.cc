#include "formats/flatbuffer.h"

#include <cstring>

#include "base/fail.h"
#include "wire/utf.h"

namespace sardonyx::formats {

void FlatBuffer::refuse(uint64_t at, std::string_view what) const {
  fail_at(name_, ErrorCode::unreadable, "at byte {}: {}; the file is broken or something else", at,
          what);
}

template <class Number>
Number FlatBuffer::number(uint64_t at) const {
  if (at > bytes_.size() || bytes_.size() - at < sizeof(Number))
    refuse(at, fmt::format("a number would end beyond the {} bytes", bytes_.size()));
  Number value;
  std::memcpy(&value, bytes_.data() + at, sizeof value);
  return value;
}

uint64_t FlatBuffer::follow(uint64_t at) const { return at + number<uint32_t>(at); }

Bytes FlatBuffer::elements(uint64_t at, uint64_t element_size) {
  const uint64_t start = follow(at), count = number<uint32_t>(start), first = start + 4;
  if (count * element_size > bytes_.size() - first)
    refuse(start, fmt::format("a vector of {} elements would end beyond the {} bytes", count,
                              bytes_.size()));
  taken_ += count * element_size + 4;
  if (taken_ > bytes_.size()) refuse(start, "its parts overlap");
  return bytes_.slice(first, count * element_size);
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
  if (fields < 0) buffer.refuse(at, "the offsets of a table would stand before the file");
  fields_ = static_cast<uint64_t>(fields);
  size_ = buffer.number<uint16_t>(fields_);
  buffer.taken_ += 4;
  if (buffer.taken_ > buffer.bytes_.size()) buffer.refuse(at, "its parts overlap");
}

std::optional<uint64_t> FlatBuffer::Table::place(int field) const {
  const uint64_t entry = 4 + 2 * static_cast<uint64_t>(field);
  if (entry + 2 > size_) return {};
  const uint16_t offset = buffer_->number<uint16_t>(fields_ + entry);
  if (offset == 0) return {};
  return at_ + offset;
}

template <class Number>
Number FlatBuffer::Table::number(int field, Number otherwise) const {
  const auto at = place(field);
  return at ? buffer_->number<Number>(*at) : otherwise;
}

int32_t FlatBuffer::Table::int32(int field, int32_t otherwise) const {
  return number(field, otherwise);
}
int64_t FlatBuffer::Table::int64(int field, int64_t otherwise) const {
  return number(field, otherwise);
}
float FlatBuffer::Table::float32(int field, float otherwise) const {
  return number(field, otherwise);
}
bool FlatBuffer::Table::truth(int field) const { return number<uint8_t>(field, 0) != 0; }

std::string FlatBuffer::Table::text(int field) const {
  const std::string text(bytes(field).text());
  if (!wire::code_points(text)) buffer_->refuse(at_, "a text of its table is no UTF-8");
  return text;
}

Bytes FlatBuffer::Table::bytes(int field) const {
  const auto at = place(field);
  return at ? buffer_->elements(*at, 1) : Bytes();
}

std::vector<int64_t> FlatBuffer::Table::int64s(int field) const {
  const auto at = place(field);
  if (!at) return {};
  const Bytes elements = buffer_->elements(*at, 8);
  std::vector<int64_t> values(elements.size() / 8);
  if (!values.empty()) std::memcpy(values.data(), elements.data(), elements.size());
  return values;
}

std::optional<FlatBuffer::Table> FlatBuffer::Table::table(int field) const {
  const auto at = place(field);
  if (!at) return {};
  return Table(*buffer_, buffer_->follow(*at));
}

std::vector<FlatBuffer::Table> FlatBuffer::Table::tables(int field) const {
  const auto at = place(field);
  if (!at) return {};
  const uint64_t first = buffer_->follow(*at) + 4;
  const uint64_t count = buffer_->elements(*at, 4).size() / 4;
  std::vector<Table> tables;
  tables.reserve(count);
  for (uint64_t i = 0; i < count; ++i)
    tables.push_back(Table(*buffer_, buffer_->follow(first + 4 * i)));
  return tables;
}

}  // namespace sardonyx::formats
