// The visitor that fills messages from text that names their fields. Internal to wire.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/fail.h"
#include "base/memory_account.h"
#include "wire/fields.h"
#include "wire/gathered.h"
#include "wire/named_fields.h"

namespace sardonyx::wire {

// `Cursor` offers open, next_key, close_message, each, integer, unsigned_integer, number, text,
// bytes and error: JsonCursor and TextFormatCursor.
template <class Cursor>
class NamedReader {
 public:
  explicit NamedReader(Cursor& cursor) : cursor_(cursor) {}

  // The fields up to the end of the message, whose opening has been read.
  template <class M>
  void read(M& message) {
    parse([&] { fields(*this, message); });
  }

  template <class T>
  void field(uint32_t number, const char* name, T& member) {
    if (!matches(name)) return;
    if constexpr (!requires { member.emplace_back(); }) require_first(number);  // no list
    take(name, member);
    taken_ = true;
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::string>) {
      if (member == T{}) written_default_ = uint32_t{1} << number;
    } else if constexpr (requires { member.unknown; }) {
      written_default_ = uint32_t{1} << number;
    }
  }
  template <class T>
  void packed(uint32_t number, const char* name, std::vector<T>& list) {
    field(number, name, list);
  }
  void fixed(uint32_t, const char* name, Bytes& bytes, size_t width) {
    if (!matches(name)) return;
    std::string numbers;
    cursor_.each([&] {
      take_memory(2 * width);  // here, then gathered
      if (width == 4) {
        append(numbers, cursor_.template number<float>());
      } else {
        append(numbers, cursor_.template number<double>());
      }
    });
    if (!numbers.empty()) gather(bytes, std::as_bytes(std::span(numbers)));
    taken_ = true;
  }
  void raw(uint32_t number, const char* name, bool& present, Bytes& bytes) {
    if (!matches(name)) return;
    require_first(number);
    const std::string text = cursor_.bytes();
    take_memory(text.size());
    bytes = Bytes::copy_of(std::as_bytes(std::span(text.data(), text.size())));
    present = taken_ = true;
  }
  template <class T>
  void flagged(uint32_t number, const char* name, bool& present, T& member) {
    if (!matches(name)) return;
    field(number, name, member);
    present = true;
  }
  template <class A, class B>
  void either(uint32_t first, const char* first_name, std::optional<A>& a, uint32_t,
              const char* second_name, std::optional<B>& b) {
    if (matches(first_name)) {
      require_first(first);
      take(first_name, a);
      taken_ = true;
    } else if (matches(second_name)) {
      require_first(first);
      take(second_name, b);
      taken_ = true;
    }
  }
  template <class Visit>
  void choice(uint32_t, const char* name, ir::TypeProto& type, ir::TypeProto::Kind kind,
              const Visit& visit) {
    if (!matches(name)) return;
    require_first(first_choice);
    type.kind = kind;
    message([&] { parse([&] { visit(*this); }); });
    taken_ = true;
  }
  void unknown(ir::UnknownFields& kept) {
    kept.written_defaults |= std::exchange(written_default_, 0);
  }

 private:
  static constexpr int max_depth = 100;
  static constexpr uint32_t first_choice = 1;  // stands for all of them

  template <class Visit>
  void parse(const Visit& visit) {
    const uint32_t outer_seen = std::exchange(seen_, 0);
    std::string key;
    while (cursor_.next_key(key)) {
      const std::string outer = std::exchange(key_, key);
      taken_ = false;
      written_default_ = 0;
      visit();
      if (!taken_) cursor_.error(fmt::format("the message has no field '{}'", key_));
      key_ = outer;
    }
    seen_ = outer_seen;
  }

  // Lists may come in parts. Of all else one would be lost, also of two of which one may be there.
  void require_first(uint32_t number) {
    const uint32_t bit = uint32_t{1} << number;
    if ((seen_ & bit) != 0)
      cursor_.error(fmt::format("the field '{}', or another in its place, was there before", key_));
    seen_ |= bit;
  }

  template <class Body>
  void message(const Body& body) {
    if (++depth_ > max_depth) cursor_.error("messages are nested more than 100 deep");
    const std::string outer = key_;
    cursor_.open();
    body();
    key_ = outer;
    --depth_;
  }

  bool matches(const char* name) const { return !taken_ && cursor_.is_name(key_, name); }

  template <class T>
  static void append(std::string& bytes, T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }

  template <class T>
  void take(const char* name, T& member) {
    if constexpr (std::is_same_v<T, float>) {
      member = cursor_.template number<float>();
    } else if constexpr (std::is_same_v<T, std::string>) {
      member = holds_bytes(name) ? cursor_.bytes() : cursor_.text();
      take_memory(member.capacity());
    } else if constexpr (std::is_same_v<T, uint64_t>) {
      member = cursor_.unsigned_integer();
    } else if constexpr (std::is_enum_v<T>) {
      member = static_cast<T>(
          integer(name, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()));
    } else if constexpr (std::is_integral_v<T>) {
      member = static_cast<T>(
          integer(name, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
    } else {
      message([&] { read(member); });
    }
  }
  template <class T>
  void take(const char* name, std::optional<T>& member) {
    if (!member) member.emplace();
    take(name, *member);
  }
  template <class T>
  void take(const char* name, std::shared_ptr<const T>& member) {
    take_memory(sizeof(T));
    auto made = std::make_shared<T>();
    take(name, *made);
    member = std::move(made);
  }
  template <class T>
  void take(const char* name, std::vector<T>& list) {
    size_t room = list.capacity();
    cursor_.each([&] {
      if (list.size() == room) {
        room = std::max<size_t>(2 * room, 1);
        take_memory((room - list.size()) * sizeof(T));
      }
      list.emplace_back();
      take(name, list.back());
    });
  }

  void take_memory(size_t bytes) {
    charge_memory(static_cast<int64_t>(bytes), [&] { return "field '" + key_ + "'"; });
  }

  int64_t integer(const char* name, int64_t least, int64_t most) {
    if (!words_of(name).empty() && cursor_.next_is_word()) {
      const std::string word = cursor_.word();
      const auto number = number_of_word(name, word);
      if (!number) cursor_.error(fmt::format("'{}' is no value of '{}'", word, name));
      return *number;
    }
    const int64_t value = cursor_.integer();
    if (value < least || value > most)
      cursor_.error(fmt::format("{} is outside the range of '{}'", value, name));
    return value;
  }

  Cursor& cursor_;
  std::string key_;  // of the field at hand
  bool taken_ = false;
  uint32_t written_default_ = 0;
  uint32_t seen_ = 0;  // fields of the message at hand, a bit each
  int depth_ = 0;
};

}  // namespace sardonyx::wire
