#include "wire/proto_reader.h"

#include <algorithm>

#include "ir/walk.h"
#include "wire/gathered.h"

namespace sardonyx::wire {
namespace {

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// How many bytes the fields with this tag, of one byte, take that these bytes begin with. 0: one of
// them is broken.
template <class Size>
size_t run_of(std::byte tag, std::span<const std::byte> bytes, const Size& size_at) {
  size_t at = 0;
  while (at < bytes.size() && bytes[at] == tag) {
    const size_t left = bytes.size() - at - 1, size = size_at(&bytes[at + 1], left);
    if (size == 0 || size > left) return 0;
    at += 1 + size;
  }
  return at;
}

// Of a number, by where its last byte is; 0: there is none.
size_t varint_size(const std::byte* at, size_t left) {
  constexpr size_t longest = 10;
  for (size_t i = 0; i < std::min(left, longest); ++i) {
    if (at[i] < std::byte{0x80}) return i + 1;
  }
  return 0;
}

// A text or list of 16 KiB at most: longer ones in lists are rare.
size_t text_size(const std::byte* at, size_t left) {
  if (left == 0) return 0;
  const auto first = static_cast<size_t>(at[0]);
  if (first < 0x80) return 1 + first;
  if (left < 2 || at[1] >= std::byte{0x80}) return 0;
  return 2 + ((first & 0x7f) | static_cast<size_t>(at[1]) << 7);
}

// Whether an AttributeProto is sound and nothing but a name, a type and lists, each number of which
// is a field of its own.
bool is_plain_list(std::span<const std::byte> bytes) {
  constexpr std::byte name{0x0a}, floats{0x3d}, ints{0x40}, strings{0x4a};
  constexpr std::byte type[] = {std::byte{0xa0}, std::byte{0x01}};
  while (!bytes.empty()) {
    size_t size = 0;
    switch (bytes[0]) {
      case name: size = run_of(name, bytes, text_size); break;
      case strings: size = run_of(strings, bytes, text_size); break;
      case ints: size = run_of(ints, bytes, varint_size); break;
      case floats:
        size = run_of(floats, bytes, [](const std::byte*, size_t) { return sizeof(float); });
        break;
      case type[0]: {
        if (bytes.size() < 3 || bytes[1] != type[1]) return false;
        const size_t number = varint_size(&bytes[2], bytes.size() - 2);
        size = number == 0 ? 0 : 2 + number;
        break;
      }
      default: return false;
    }
    if (size == 0) return false;
    bytes = bytes.subspan(size);
  }
  return true;
}

}  // namespace

bool ProtoReader::is_unread() {
  if (item_type_.empty()) find_operator_of(*item_);
  const auto* start = window_.look(value_start_, 128);
  const auto size = static_cast<size_t>(start[1]);  // of the name, which comes first
  if (start[0] != std::byte{0x0a} || size > 126) return false;
  const std::string_view name(reinterpret_cast<const char*>(start) + 2, size);
  return unread_(item_domain_, item_type_, name) &&
         is_plain_list({window_.look(value_start_, length_), length_});
}

// Most files have them behind the attributes.
void ProtoReader::find_operator_of(const Item& item) {
  constexpr std::byte op_type{0x22}, domain{0x3a};
  constexpr size_t longest_head = 1 + longest_varint;
  item_domain_.clear();
  for (size_t at = 0; at < item.size;) {
    const size_t left = item.size - at;
    const std::byte* seen = window_.look(item.start + at, std::min(left, longest_head));
    const std::byte tag = seen[0];
    uint64_t length = 0;
    const size_t head = 1 + varint_at(seen + 1, left - 1, length);
    if ((tag & std::byte{7}) != std::byte{2} || head == 1 || length > left - head) return;
    at += head + length;
    if (tag != op_type && tag != domain) continue;
    const std::byte* text = window_.look(item.start + (at - length), length);
    (tag == domain ? item_domain_ : item_type_).assign(reinterpret_cast<const char*>(text), length);
  }
}

void ProtoReader::settle() {
  const auto bytes = static_cast<int64_t>(std::exchange(uncharged_, 0));
  try {
    if (item_ != nullptr) {
      item_memory_.add(bytes);
    } else {
      charge_memory(bytes);
    }
  } catch (MemoryLimitReached& reached) {
    reached.locate(path());
    throw;
  }
}

void ProtoReader::read_item(const Item& item, ir::Node& node) {
  const Frame graph{nullptr, main_graph.data(), no_index};
  frame_ = &graph;
  depth_ = 1;
  value_start_ = item.start;
  length_ = item.size;
  item_ = &item;
  item_type_.clear();
  if (!item_is_kept_) {
    item_memory_.clear();
    uncharged_ = 0;
  } else if (uncharged_ == 0) {
    kept_items_.push_back(std::exchange(item_memory_, MemoryCharge()));
  }
  nested("node", item.index, [&] { read(node); });
  item_is_kept_ = ir::has_graphs(node);
  frame_ = nullptr;
  depth_ = 0;
}

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
  for (const std::byte* place = pos_; count < max_reserved && place < end_; ++count) {
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
  const std::byte* const start = pos_;
  size_t at = 0, count = 0;
  while (seen.size() - at >= 2 && static_cast<uint64_t>(seen[at]) == tag_) {
    const auto length = static_cast<size_t>(seen[at + 1]);
    if (length >= 0x80 || length > seen.size() - at - 2) break;
    charge(sizeof(std::string));
    if (length > 15) take_memory(length);
    if (list.size() == list.capacity()) make_room(list, count + 1, at + 2 + length);
    list.emplace_back(reinterpret_cast<const char*>(&seen[at]) + 2, length);
    at += 2 + length;
    ++count;
    pos_ = start + at;
  }
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
      length_ = no_length;
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
    take_memory(more.size());
    gather(bytes, more.span(), bytes_.owner());
  }
}

void ProtoReader::take_floats(std::vector<float>& list) {
  if (is(WireType::fixed32)) {
    size_t before = list.capacity();
    do {
      take_room(list, std::exchange(before, list.capacity()));
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
    take_memory(length_);
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
  take_memory(size);
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
  if (number_ != 0 && is(WireType::length) && length_ != no_length) {
    found += fmt::format(", length {}, {} bytes left in its message", length_,
                         end_ - std::min(value_start_, end_));
  }
  if (number_ != 0) found += ")";
  fail_at(path(), ErrorCode::unreadable,
          "byte {}: {}{}; the file is cut off, damaged, or not what its name says", offset, trouble,
          found);
}

}  // namespace sardonyx::wire
