// The visitor that fills messages from protobuf bytes. Internal to wire.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/fail.h"
#include "base/memory_account.h"
#include "wire/fields.h"
#include "wire/window.h"

namespace sardonyx::wire {

enum class WireType : uint32_t { varint = 0, fixed64 = 1, length = 2, group = 3, fixed32 = 5 };

template <class T>
concept Message = requires(T& message) {
  message.unknown;
};

// Reads one field at a time: its tag, then its value whole, then asks the field table who takes
// it. Lengths are 64 bits wide and checked against the enclosing message before use.
class ProtoReader {
 public:
  // `root` names the outermost message in errors. `descriptor`: of the file that `bytes` map, if
  // they do; it is used while the reader is.
  ProtoReader(Bytes bytes, std::string_view root, int descriptor = -1)
      : bytes_(std::move(bytes)),
        window_(bytes_, descriptor),
        root_(root),
        pos_(bytes_.data()),
        end_(bytes_.data() + bytes_.size()),
        budget_(structs_always_allowed + bytes_.size() / 8 * (8 * structs_per_byte)) {}

  template <class M>
  void read(M& message) {
    parse([&](FieldAtHand& field) { fields(field, message); });
    if (depth_ == 0) settle();
  }

  // A message in a list that was put off.
  struct Item {
    const std::byte* start;
    size_t size;
    size_t index;  // in the list
  };
  // The nodes of a model's main graph are not read, but noted here.
  void put_nodes_off(std::vector<Item>& items) { put_off_ = &items; }
  // For those who are about to read these one after another.
  void bring(const Item& first, const Item& last) {
    window_.bring(first.start, static_cast<size_t>(last.start - first.start) + last.size);
  }
  // Reads one of them.
  void read_item(const Item& item, ir::Node& node);
  // Attributes of such a node that are nothing but long lists of numbers or texts are left out
  // where `unread`, given the node's operator and the attribute's name, says so.
  using Unread = bool (*)(std::string_view domain, std::string_view op_type,
                          std::string_view attribute);
  void leave_out(Unread unread) { unread_ = unread; }

 private:
  // What the field tables are shown: a field whose number is a constant there, so that they become
  // a jump to the member that has it.
  class FieldAtHand {
   public:
    explicit FieldAtHand(ProtoReader& reader) : reader_(reader), number_(reader.number_) {}

    template <class T>
    [[gnu::always_inline]] void field(uint32_t number, const char* name, T& member) {
      if (number == number_) reader_.take_field(number, name, member);
    }
    template <class T>
    [[gnu::always_inline]] void packed(uint32_t number, const char* name, std::vector<T>& list) {
      if (number == number_) reader_.take_packed(number, name, list);
    }
    [[gnu::always_inline]] void fixed(uint32_t number, const char* name, Bytes& bytes,
                                      size_t width) {
      if (number == number_) reader_.take_fixed(number, name, bytes, width);
    }
    [[gnu::always_inline]] void raw(uint32_t number, const char* name, bool& present,
                                    Bytes& bytes) {
      if (number == number_) reader_.take_raw(name, present, bytes);
    }
    template <class T>
    [[gnu::always_inline]] void flagged(uint32_t number, const char* name, bool& present,
                                        T& member) {
      if (number == number_) reader_.take_flagged(name, present, member);
    }
    template <class A, class B>
    [[gnu::always_inline]] void either(uint32_t first, const char* first_name, std::optional<A>& a,
                                       uint32_t second, const char* second_name,
                                       std::optional<B>& b) {
      if (first == number_) {
        if (reader_.take_named(first_name, a)) b.reset();
      } else if (second == number_) {
        if (reader_.take_named(second_name, b)) a.reset();
      }
    }
    template <class Visit>
    [[gnu::always_inline]] void choice(uint32_t number, const char* name, ir::TypeProto& type,
                                       ir::TypeProto::Kind kind, const Visit& visit) {
      if (number == number_) reader_.take_choice(name, type, kind, visit);
    }
    [[gnu::always_inline]] void unknown(ir::UnknownFields& kept) { reader_.finish_field(kept); }

   private:
    ProtoReader& reader_;
    const uint32_t number_;
  };

  // What no member took is kept.
  void finish_field(ir::UnknownFields& kept) {
    if (naming_) return;
    kept.written_defaults |= std::exchange(written_default_, 0);
    if (!taken_) keep(kept.bytes);
  }

  // Whether the field was one of the kind that the member holds.
  template <class T>
  bool take_named(const char* name, T& member) {
    if (!is_wanted(name)) return false;
    take(name, member);
    return taken_;
  }

  template <class T>
  void take_field(uint32_t number, const char* name, T& member) {
    if (!is_wanted(name)) return;
    take(name, member);
    if (!taken_) return;
    if constexpr (is_number<T> || std::is_same_v<T, std::string>) {
      if (member == T{}) note(number);
    } else if constexpr (Message<T>) {
      note(number);
    } else if constexpr (IsListOfNumbers<T>::value) {
      if (is(WireType::length)) note(number);
    }
  }

  template <class T>
  void take_packed(uint32_t number, const char* name, std::vector<T>& list) {
    if (take_named(name, list) && !is(WireType::length)) note(number);
  }

  void take_fixed(uint32_t number, const char* name, Bytes& bytes, size_t width);

  void take_raw(const char* name, bool& present, Bytes& bytes) {
    if (!is_wanted(name) || !is(WireType::length)) return;
    present = true;
    bytes = payload();
    taken_ = true;
  }

  template <class T>
  void take_flagged(const char* name, bool& present, T& member) {
    present |= take_named(name, member);
  }

  template <class Visit>
  void take_choice(const char* name, ir::TypeProto& type, ir::TypeProto::Kind kind,
                   const Visit& visit) {
    if (!is_wanted(name) || !is(WireType::length)) return;
    if (type.kind != kind) {
      type.kind = kind;
      type.elem_type = 0;
      type.shape.reset();
      type.nested.reset();
      type.opaque_domain.clear();
      type.opaque_name.clear();
      type.inner_unknown = {};
    }
    nested(name, no_index, [&] { parse(visit); });
  }

  struct Frame {
    const Frame* outer;
    const char* name;
    size_t index;
  };
  static constexpr size_t no_index = std::numeric_limits<size_t>::max();
  static constexpr size_t no_length = std::numeric_limits<size_t>::max();  // it could not be read
  static constexpr int max_depth = 100;
  static constexpr size_t longest_varint = 10;
  static constexpr size_t max_reserved = 256;
  static constexpr size_t reserved_blindly = 7;
  static constexpr size_t max_foreseen = size_t{1} << 20;
  // Structs are larger than the bytes that ask for them: an empty message is two bytes. What real
  // files need stays far below this.
  static constexpr size_t structs_always_allowed = size_t{64} << 20;
  static constexpr size_t structs_per_byte = 64;

  // Shows `visit` each field of the message at hand.
  template <class Visit>
  void parse(const Visit& visit) {
    while (pos_ < end_) {
      field_start_ = pos_;
      field_name_ = nullptr;
      number_ = 0;
      taken_ = false;
      const char* trouble = parse_field();
      naming_ = trouble != nullptr;
      if (!naming_ || number_ != 0) {
        FieldAtHand field(*this);
        visit(field);
      }
      if (naming_) broken(trouble);
    }
  }

  // Of the member that has the number of the field at hand.
  bool is_wanted(const char* name) {
    field_name_ = name;
    return !naming_;
  }

  bool is(WireType type) const { return type_ == type; }
  // The field holds its default, or its numbers are packed otherwise than declared (UnknownFields).
  void note(uint32_t number) { written_default_ = uint32_t{1} << number; }
  Bytes payload() const {
    return bytes_.slice(static_cast<size_t>(value_start_ - bytes_.data()), length_);
  }
  // Of a length-delimited field; good until the reader moves.
  std::string_view text() {
    return {reinterpret_cast<const char*>(window_.look(value_start_, length_)), length_};
  }

  // Makes room for the items of a list, of which this is the first: as many as are in sight, and
  // some for those that may be beyond weights.
  template <class T>
  void reserve(std::vector<T>& list) {
    if (list.capacity() != 0) return;
    list.reserve(1 + alike_in_sight());
    take_room(list, 0);
  }
  size_t alike_in_sight() const;

  // The rest of the message at hand, as far as it is in sight.
  std::span<const std::byte> in_sight() const {
    const std::span<const std::byte> seen = window_.sight(pos_);
    return seen.first(std::min(seen.size(), static_cast<size_t>(end_ - pos_)));
  }

  // Whether a field in sight follows with the same tag, which is one byte.
  bool goes_on() const {
    const std::byte* seen = pos_ == end_ || tag_ >= 0x80 ? nullptr : window_.glance(pos_, 1);
    return seen != nullptr && static_cast<uint64_t>(*seen) == tag_;
  }

  // Takes the numbers in sight that follow the one at hand as fields of their own, with the same
  // tag. Whatever is odd about one is left to next_alike. `parse`: a number from the bytes behind
  // its tag; it returns how many they are, or 0.
  template <class T, class Parse>
  void take_in_sight(std::vector<T>& list, const Parse& parse) {
    if (!goes_on()) return;
    const auto tag = static_cast<std::byte>(tag_);
    const std::span<const std::byte> seen = in_sight();
    const std::byte* at = seen.data();
    const std::byte* const last = at + seen.size();
    std::array<T, 64> some;
    for (size_t count = some.size(); count == some.size();) {
      const std::byte* const first = at;
      for (count = 0; count < some.size() && at != last && *at == tag; ++count) {
        const size_t size = parse(at + 1, static_cast<size_t>(last - at) - 1, some[count]);
        if (size == 0) break;
        at += 1 + size;
      }
      make_room(list, count, static_cast<size_t>(at - first));
      list.insert(list.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(count));
      pos_ += at - first;
    }
  }

  // The same for texts shorter than 128 bytes, where the list goes on.
  void take_in_sight(std::vector<std::string>& list);

  // For a list that gets `count` more items and has no room for them: as fields they took so many
  // bytes, and they are likely to fill the rest of the message.
  template <class T>
  void make_room(std::vector<T>& list, size_t count, size_t bytes) {
    constexpr size_t few = 32;
    if (list.size() < few || list.size() + count <= list.capacity()) return;
    const size_t left = static_cast<size_t>(end_ - pos_) * count / bytes + 1;
    const size_t room = std::max(list.size(), std::min(left, max_foreseen));
    if constexpr (std::is_same_v<T, std::string>) take_memory(room * sizeof(T));
    list.reserve(list.size() + room);
  }

  // Moves on to the next field where it has the same tag: lists of millions of numbers come as one
  // field each.
  bool next_alike() {
    if (pos_ == end_) return false;
    if (tag_ < 0x80) {
      if (static_cast<uint64_t>(*window_.look(pos_, 1)) != tag_) return false;
    } else {
      const auto start = pos_;
      uint64_t tag = 0;
      const bool alike = parse_varint(tag) && tag == tag_;
      pos_ = start;
      if (!alike) return false;
    }
    field_start_ = pos_;
    if (const char* trouble = parse_field()) broken(trouble);
    return true;
  }

  // Parses tag and value at pos_ and moves behind them. Null, or what is wrong.
  const char* parse_field() {
    // Nearly all tags are one byte long or two, and the numbers and lengths after most of them one.
    const auto left = static_cast<size_t>(end_ - pos_);
    const std::byte* seen = left < 2 ? nullptr : window_.glance(pos_, std::min<size_t>(left, 3));
    if (seen == nullptr) return parse_any_field();
    auto tag = static_cast<uint64_t>(seen[0]), after = static_cast<uint64_t>(seen[1]);
    size_t head = 1;
    if (tag >= 0x80 && after < 0x80 && left > 2) {
      tag = (tag & 0x7f) | after << 7;
      after = static_cast<uint64_t>(seen[2]);
      head = 2;
    } else if (tag >= 0x80) {
      return parse_any_field();
    }
    const auto type = static_cast<WireType>(tag & 7);
    if (after >= 0x80 || tag < 8) return parse_any_field();
    if (type == WireType::length && after <= left - head - 1) {
      length_ = after;
      value_start_ = pos_ + head + 1;
      pos_ = value_start_ + after;
    } else if (type == WireType::varint) {
      value_ = after;
      value_start_ = pos_ + head;
      pos_ = value_start_ + 1;
    } else {
      return parse_any_field();
    }
    tag_ = tag;
    number_ = static_cast<uint32_t>(tag >> 3);
    type_ = type;
    return nullptr;
  }
  const char* parse_any_field();
  const char* skip_group(uint32_t number);
  bool parse_varint(uint64_t& value) {
    if (pos_ == end_) return false;
    const std::byte first = *window_.look(pos_, 1);
    if (first >= std::byte{0x80}) return parse_long_varint(value);
    ++pos_;
    value = static_cast<uint64_t>(first);
    return true;
  }
  bool parse_long_varint(uint64_t& value);
  // The same as varint_at, faster for numbers of one or two bytes.
  static size_t short_varint_at(const std::byte* bytes, size_t left, uint64_t& value) {
    if (left < 2) return varint_at(bytes, left, value);
    const auto first = static_cast<uint64_t>(bytes[0]), second = static_cast<uint64_t>(bytes[1]);
    value = first < 0x80 ? first : (first & 0x7f) | second << 7;
    return first < 0x80 ? 1 : second < 0x80 ? 2 : varint_at(bytes, left, value);
  }
  // The number that these bytes begin with. Returns how many bytes it has; 0: it is cut off or too
  // long.
  static size_t varint_at(const std::byte* bytes, size_t left, uint64_t& value) {
    left = std::min(left, longest_varint);
    uint64_t result = 0;
    for (size_t i = 0; i < left; ++i) {
      const auto byte = static_cast<uint64_t>(bytes[i]);
      result |= (byte & 0x7f) << (7 * i);
      if (byte < 0x80) {
        value = result;
        return i + 1;
      }
    }
    return 0;
  }
  [[noreturn]] void broken(std::string_view trouble) const;
  std::string path() const;
  void keep(std::string& unknown);

  void charge(size_t bytes) {
    if (bytes > budget_)
      broken("the messages in this file are empty shells that would fill the memory");
    budget_ -= bytes;
  }
  // Of what the messages hold, however long the file is. Reading goes on for some time before the
  // account is asked.
  void take_memory(size_t bytes) {
    constexpr size_t step = size_t{64} << 10;
    if ((uncharged_ += bytes) >= step) settle();
  }
  void settle();
  template <class T>
  void take_room(const std::vector<T>& list, size_t before) {
    if (list.capacity() > before) take_memory((list.capacity() - before) * sizeof(T));
  }
  // Before a list gets one more: it doubles where it is full.
  template <class T>
  void take_room(const std::vector<T>& list) {
    if (list.size() == list.capacity())
      take_memory(std::max<size_t>(list.capacity(), 1) * sizeof(T));
  }

  // Runs `read` with the field's payload as the enclosing message.
  template <class Read>
  void nested(const char* name, size_t index, const Read& read) {
    const auto saved_end = end_;
    const auto saved_pos = pos_;
    const auto saved_start = field_start_;
    const auto saved_number = number_;
    const auto saved_tag = tag_;
    const Frame frame{frame_, name, index};
    frame_ = &frame;
    field_name_ = nullptr;
    if (++depth_ > max_depth) broken("messages are nested more than 100 deep");
    pos_ = value_start_;
    end_ = value_start_ + length_;
    read();
    --depth_;
    frame_ = frame.outer;
    pos_ = saved_pos;
    end_ = saved_end;
    field_start_ = saved_start;
    number_ = saved_number;
    tag_ = saved_tag;
    field_name_ = name;
    taken_ = true;
  }

  template <class T>
  static constexpr bool is_number = std::is_integral_v<T> || std::is_enum_v<T>;
  template <class T>
  struct IsListOfNumbers : std::false_type {};
  template <class T>
  requires(is_number<T> || std::is_same_v<T, float>) struct IsListOfNumbers<std::vector<T>>
      : std::true_type {
  };

  template <class T>
  void take(const char* name, T& member) {
    if constexpr (is_number<T>) {
      if (!is(WireType::varint)) return;
      member = static_cast<T>(value_);
      taken_ = true;
    } else if constexpr (std::is_same_v<T, float>) {
      if (!is(WireType::fixed32)) return;
      member = std::bit_cast<float>(static_cast<uint32_t>(value_));
      taken_ = true;
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!is(WireType::length)) return;
      take_memory(length_);
      member.assign(text());
      taken_ = true;
    } else if (is(WireType::length)) {
      nested(name, no_index, [&] { read(member); });
    }
  }

  template <class T>
  void take(const char* name, std::optional<T>& member) {
    if (member) return take(name, *member);
    member.emplace();
    take(name, *member);
    if (!taken_) member.reset();
  }

  template <class T>
  void take(const char* name, std::shared_ptr<const T>& member) {
    if (!is(WireType::length)) return;
    if (!member) {
      charge(sizeof(T));
      take_memory(sizeof(T));
      member = std::make_shared<T>();
    }
    take(name, const_cast<T&>(*member));  // made here, and nobody else has it yet
  }

  template <class T>
  void take(const char* name, std::vector<std::shared_ptr<const T>>& list) {
    if (!is(WireType::length)) return;
    charge(sizeof(T));
    take_memory(sizeof(T) + 2 * sizeof item_);
    auto item = std::make_shared<T>();
    nested(name, list.size(), [&] { read(*item); });
    list.push_back(std::move(item));
  }

  template <class T>
  void take(const char* name, std::vector<T>& list) {
    if constexpr (is_number<T>) {
      take_numbers(list);
    } else if constexpr (std::is_same_v<T, float>) {
      take_floats(list);
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!is(WireType::length)) return;
      reserve(list);
      do {
        charge(sizeof(T));
        take_room(list);
        take_memory(length_);
        list.emplace_back(text());
        if (goes_on()) take_in_sight(list);
      } while (next_alike());
      taken_ = true;
    } else if (is(WireType::length)) {
      if constexpr (std::is_same_v<T, ir::Node>) {
        if (puts_off()) return note_items();
      }
      reserve(list);
      do {
        charge(sizeof(T));
        if constexpr (std::is_same_v<T, ir::Attribute>) {
          if (leaves_out()) continue;
        }
        take_room(list);
        list.emplace_back();
        nested(name, list.size() - 1, [&] { read(list.back()); });
      } while (next_alike());
      taken_ = true;
    }
  }

  template <class T>
  void take_numbers(std::vector<T>& list) {
    if (is(WireType::varint)) {
      size_t before = list.capacity();
      do {
        take_room(list, std::exchange(before, list.capacity()));
        list.push_back(static_cast<T>(value_));
        take_in_sight(list, [](const std::byte* bytes, size_t left, T& value) {
          uint64_t number = 0;
          const size_t size = short_varint_at(bytes, left, number);
          value = static_cast<T>(number);
          return size;
        });
      } while (next_alike());
      taken_ = true;
    } else if (is(WireType::length)) {
      const std::byte* const bytes = window_.look(value_start_, length_);
      const size_t needed = list.size() + varints_in({bytes, length_});
      take_memory((needed - list.size()) * sizeof(T));
      if (needed > list.capacity()) list.reserve(std::max(needed, 2 * list.capacity()));
      uint64_t value = 0;
      for (size_t at = 0, size = 0; at < length_; at += size) {
        size = short_varint_at(bytes + at, length_ - at, value);
        if (size == 0) broken_list();
        list.push_back(static_cast<T>(value));
      }
      taken_ = true;
    }
  }

  void take_floats(std::vector<float>& list);

  // Of a list of nodes.
  bool puts_off() const {
    return put_off_ != nullptr && depth_ == 1 && std::string_view(frame_->name) == main_graph;
  }
  void note_items() {
    do {
      charge(sizeof(Item));
      take_room(*put_off_);
      put_off_->push_back({value_start_, length_, put_off_->size()});
    } while (next_alike());
    taken_ = true;
  }
  static constexpr std::string_view main_graph = "graph";  // as the table of ModelProto names it

  // Of the attribute at hand.
  bool leaves_out() {
    constexpr size_t least = 128;  // what it costs to read less is not worth asking
    return unread_ != nullptr && depth_ == 2 && length_ >= least && is_unread();
  }
  bool is_unread();
  void find_operator_of(const Item& item);

  [[noreturn]] void broken_list();
  static size_t varints_in(std::span<const std::byte> bytes);

  Bytes bytes_;
  Window window_;
  std::string_view root_;
  const std::byte* pos_;
  const std::byte* end_;  // of the message being read
  size_t budget_;
  size_t uncharged_ = 0;       // taken since the account was charged
  MemoryCharge item_memory_;   // of the one at hand of those put off
  bool item_is_kept_ = false;  // its graphs outlive it
  std::vector<MemoryCharge> kept_items_;
  std::vector<Item>* put_off_ = nullptr;
  const Item* item_ = nullptr;           // the one at hand of those put off
  std::string item_type_, item_domain_;  // its operator; empty: not looked for
  Unread unread_ = nullptr;
  int depth_ = 0;
  const Frame* frame_ = nullptr;

  // The field at hand.
  const std::byte* field_start_ = nullptr;
  uint64_t tag_ = 0;
  const std::byte* value_start_ = nullptr;
  uint32_t number_ = 0;
  WireType type_ = WireType::varint;
  uint64_t value_ = 0;  // of a varint or a fixed-size number
  size_t length_ = 0;   // of a length-delimited field
  bool taken_ = false;
  uint32_t written_default_ = 0;  // the bit of its number, where note() was called

  const char* field_name_ = nullptr;  // null where the message has no such field
  bool naming_ = false;               // the field is broken: the table is walked for its name only
};

}  // namespace sardonyx::wire
