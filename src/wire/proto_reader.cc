#include "wire/proto_reader.h"

#include <algorithm>

namespace sardonyx::wire {
namespace {

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Appends to bytes that this reader gathered before, or that are still a view of the file. The
// room of a gathered block follows from its size, so that nothing else has to remember it.
void append(Bytes& gathered, const Bytes& more, const std::shared_ptr<const void>& file) {
  const auto room_for = [](size_t size) { return std::bit_ceil(std::max<size_t>(size, 64)); };
  const size_t size = gathered.size() + more.size();
  const bool ours = gathered.owner() != nullptr && gathered.owner() != file;
  if (!ours || size > room_for(gathered.size())) {
    Bytes larger = Bytes::allocate(room_for(size));
    if (!gathered.empty()) std::memcpy(larger.mutable_data(), gathered.data(), gathered.size());
    gathered = larger.slice(0, gathered.size());
  }
  if (!more.empty())
    std::memcpy(gathered.mutable_data() + gathered.size(), more.data(), more.size());
  gathered = Bytes(gathered.owner(), gathered.data(), size);
}

}  // namespace

bool ProtoReader::parse_long_varint(uint64_t& value) {
  const auto left = std::min(longest_varint, static_cast<size_t>(end_ - pos_));
  const size_t size = varint_at(window_.look(pos_, left), left, value);
  pos_ += size;
  return size != 0;
}

// How many fields with the tag of the one at hand follow it: not looked further than what costs
// nothing, since it is a guess that saves moving what lists hold.
size_t ProtoReader::alike_in_sight() const {
  if (tag_ >= 0x80 || !is(WireType::length)) return 0;
  size_t count = 0;
  for (const std::byte* place = pos_; count < most_reserved && place < end_; ++count) {
    // A tag of one byte and a length of one or two.
    const auto left = static_cast<size_t>(end_ - place);
    const std::byte* seen = window_.glance(place, std::min<size_t>(left, 3));
    if (seen == nullptr) return count + reserved_blindly;
    if (static_cast<uint64_t>(seen[0]) != tag_ || left < 3) return count;
    size_t length = static_cast<size_t>(seen[1]), size = 2;
    if (length >= 0x80) {
      if (seen[2] >= std::byte{0x80}) return count;
      length = (length & 0x7f) | static_cast<size_t>(seen[2]) << 7;
      size = 3;
    }
    if (length > left - size) return count;
    place += size + length;
  }
  return count;
}

void ProtoReader::take_in_sight(std::vector<std::string>& list) {
  const std::span<const std::byte> seen = in_sight();
  size_t at = 0, count = 0;
  while (seen.size() - at >= 2 && static_cast<uint64_t>(seen[at]) == tag_) {
    const auto length = static_cast<size_t>(seen[at + 1]);
    if (length >= 0x80 || length > seen.size() - at - 2) break;
    charge(sizeof(std::string));
    make_room(list, ++count, at + 2 + length);
    list.emplace_back(reinterpret_cast<const char*>(&seen[at]) + 2, length);
    at += 2 + length;
  }
  pos_ += at;
}

const char* ProtoReader::parse_any_field() {
  uint64_t tag = 0;
  if (!parse_varint(tag)) return "the tag of a field is cut off or too long";
  if (tag >> 32 != 0 || tag >> 3 == 0) return "the field number is outside 1 to 536870911";
  number_ = static_cast<uint32_t>(tag >> 3);
  type_ = static_cast<WireType>(tag & 7);
  tag_ = tag;
  value_start_ = pos_;
  const auto left = static_cast<size_t>(end_ - pos_);
  switch (type_) {
    case WireType::varint:
      return parse_varint(value_) ? nullptr : "a number is cut off or longer than 10 bytes";
    case WireType::fixed64:
      if (left < 8) return "an 8-byte number is cut off";
      value_ = load<uint64_t>(window_.look(pos_, 8));
      pos_ += 8;
      return nullptr;
    case WireType::fixed32:
      if (left < 4) return "a 4-byte number is cut off";
      value_ = load<uint32_t>(window_.look(pos_, 4));
      pos_ += 4;
      return nullptr;
    case WireType::length: {
      uint64_t length = 0;
      if (!parse_varint(length)) return "a length is cut off or longer than 10 bytes";
      length_ = length;
      value_start_ = pos_;
      if (length > static_cast<uint64_t>(end_ - pos_)) return "a length runs past the end";
      pos_ += length;
      return nullptr;
    }
    case WireType::group: return skip_group(number_);
  }
  return "the wire type is none of 0, 1, 2, 3 and 5";
}

// Groups are no part of the standard's messages; a field of a newer edition might be one.
const char* ProtoReader::skip_group(uint32_t number) {
  std::vector<uint32_t> open{number};
  while (!open.empty()) {
    uint64_t tag = 0, value = 0;
    if (!parse_varint(tag) || tag >> 32 != 0 || tag >> 3 == 0) return "a group does not end";
    switch (tag & 7) {
      case 0:
        if (!parse_varint(value)) return "a number in a group is cut off";
        continue;
      case 1: value = 8; break;
      case 2:
        if (!parse_varint(value)) return "a length in a group is cut off";
        break;
      case 3:
        if (open.size() >= max_depth) return "groups are nested more than 100 deep";
        open.push_back(static_cast<uint32_t>(tag >> 3));
        continue;
      case 4:
        if (open.back() != tag >> 3) return "a group ends with the number of another";
        open.pop_back();
        continue;
      case 5: value = 4; break;
      default: return "the wire type of a field in a group is 6 or 7";
    }
    if (value > static_cast<uint64_t>(end_ - pos_)) return "a length in a group runs past the end";
    pos_ += value;
  }
  return nullptr;
}

void ProtoReader::take_fixed(uint32_t number, const char* name, Bytes& bytes, size_t width) {
  if (!is_wanted(name)) return;
  const auto single = width == 4 ? WireType::fixed32 : WireType::fixed64;
  Bytes more;
  if (is(single)) {
    more = bytes_.slice(static_cast<size_t>(value_start_ - bytes_.data()), width);
  } else if (is(WireType::length)) {
    more = payload();
    if (length_ % width != 0)
      broken(fmt::format("{} bytes of '{}' are no multiple of {}", length_, name, width));
  } else {
    return;
  }
  taken_ = true;
  if (is(single)) note(number);
  // A lone number may be followed by more of them; those come out as one block.
  if (bytes.empty() && !is(single)) {
    bytes = more;
  } else {
    append(bytes, more, bytes_.owner());
  }
}

void ProtoReader::take_floats(std::vector<float>& list) {
  if (is(WireType::fixed32)) {
    do {
      list.push_back(std::bit_cast<float>(static_cast<uint32_t>(value_)));
      take_in_sight(list, [](const std::byte* bytes, size_t left, float& value) {
        if (left < sizeof value) return size_t{0};
        std::memcpy(&value, bytes, sizeof value);
        return sizeof value;
      });
    } while (next_alike());
    taken_ = true;
  } else if (is(WireType::length)) {
    if (length_ % 4 != 0)
      broken(fmt::format("{} bytes of packed floats are no multiple of 4", length_));
    const size_t before = list.size();
    list.resize(before + length_ / 4);
    if (length_ != 0) std::memcpy(list.data() + before, text().data(), length_);
    taken_ = true;
  }
}

size_t ProtoReader::varints_in(std::span<const std::byte> bytes) {
  return static_cast<size_t>(std::ranges::count_if(
      bytes, [](std::byte b) { return (b & std::byte{0x80}) == std::byte{0}; }));
}

void ProtoReader::keep(std::string& unknown) {
  const auto size = static_cast<size_t>(pos_ - field_start_);
  unknown.append(reinterpret_cast<const char*>(window_.look(field_start_, size)), size);
}

void ProtoReader::broken_list() {
  broken("a number in a packed list is cut off or longer than 10 bytes");
}

std::string ProtoReader::path() const {
  std::vector<const Frame*> frames;
  for (const Frame* frame = frame_; frame != nullptr; frame = frame->outer) frames.push_back(frame);
  std::string text(root_);
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    text += fmt::format(".{}", (*frame)->name);
    if ((*frame)->index != no_index) text += fmt::format("[{}]", (*frame)->index);
  }
  if (field_name_ != nullptr) {
    text += fmt::format(".{}", field_name_);
  } else if (naming_ && number_ != 0) {  // not one of the fields this version knows
    text += fmt::format(".(field {})", number_);
  }
  return text;
}

void ProtoReader::broken(std::string_view trouble) const {
  const auto offset = static_cast<size_t>(field_start_ - bytes_.data());
  std::string found;
  if (number_ != 0)
    found = fmt::format(" (field {}, wire type {}", number_, static_cast<uint32_t>(type_));
  if (number_ != 0 && is(WireType::length)) {
    found += fmt::format(", length {}, {} bytes left in its message", length_,
                         end_ - std::min(value_start_, end_));
  }
  if (number_ != 0) found += ")";
  fail_at(path(), ErrorCode::unreadable,
          "byte {}: {}{}; the file is cut off, damaged, or not what its name says", offset, trouble,
          found);
}

}  // namespace sardonyx::wire
