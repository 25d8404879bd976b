// The visitor that writes messages by the names of their fields. Internal to wire.
#pragma once

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/bytes.h"
#include "base/fail.h"
#include "wire/fields.h"
#include "wire/named_fields.h"
#include "wire/proto_writer.h"

namespace sardonyx::wire {

// `Form` offers open, close, open_list, close_list, key(name, is_message), integer, word, number,
// text and bytes: JsonWriter and TextFormatWriter.
template <class Form>
class NamedWriter {
 public:
  explicit NamedWriter(Form& form) : form_(form) {}

  template <class M>
  void write(const M& message) {
    if (++depth_ > max_depth)
      fail(ErrorCode::unsupported, "messages nested more than 100 deep cannot be written");
    written_defaults_.push_back(message.unknown.written_defaults);
    fields(*this, message);
    written_defaults_.pop_back();
    --depth_;
  }

  template <class T>
  void field(uint32_t number, const char* name, const T& member) {
    if constexpr (is_scalar<T>) {
      if (member != T{} || was_written(number)) single(name, member);
    } else if (was_written(number) || ProtoWriter::size_of(member) > 0) {
      single(name, member);
    }
  }
  template <class T>
  void field(uint32_t, const char* name, const std::optional<T>& member) {
    if (member) single(name, *member);
  }
  template <class T>
  void field(uint32_t, const char* name, const std::shared_ptr<const T>& member) {
    if (member) single(name, *member);
  }
  template <class T>
  void field(uint32_t, const char* name, const std::vector<T>& list) {
    if (list.empty()) return;
    form_.open_list(name, !is_scalar<T>);
    for (const T& item : list) element(name, item);
    form_.close_list();
  }
  template <class T>
  void packed(uint32_t number, const char* name, const std::vector<T>& list) {
    field(number, name, list);
  }
  void fixed(uint32_t, const char* name, const Bytes& bytes, size_t width) {
    if (bytes.empty()) return;
    form_.open_list(name, false);
    for (size_t at = 0; at + width <= bytes.size(); at += width) {
      form_.item(name);
      if (width == 4) {
        form_.number(load<float>(bytes, at));
      } else {
        form_.number(load<double>(bytes, at));
      }
      form_.end_item();
    }
    form_.close_list();
  }
  void raw(uint32_t, const char* name, bool present, const Bytes& bytes) {
    if (!present && bytes.empty()) return;
    form_.key(name, false);
    form_.bytes(bytes.text());
    form_.end_field();
  }
  template <class T>
  void flagged(uint32_t, const char* name, bool present, const T& member) {
    if (present) single(name, member);
  }
  template <class A, class B>
  void either(uint32_t, const char* first_name, const std::optional<A>& a, uint32_t,
              const char* second_name, const std::optional<B>& b) {
    if (a) single(first_name, *a);
    if (b && !a) single(second_name, *b);
  }
  template <class Visit>
  void choice(uint32_t, const char* name, const ir::TypeProto& type, ir::TypeProto::Kind kind,
              const Visit& visit) {
    if (type.kind != kind) return;
    form_.key(name, true);
    form_.open();
    written_defaults_.push_back(type.inner_unknown.written_defaults);
    visit(*this);
    written_defaults_.pop_back();
    form_.close();
    form_.end_field();
  }
  void unknown(const ir::UnknownFields&) {}

 private:
  static constexpr int max_depth = 100;
  template <class T>
  static constexpr bool is_scalar =
      std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::string>;

  bool was_written(uint32_t number) const { return (written_defaults_.back() >> number & 1) != 0; }
  template <class T>
  static T load(const Bytes& bytes, size_t at) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
  }

  template <class T>
  void single(const char* name, const T& member) {
    form_.key(name, !is_scalar<T>);
    value(name, member);
    form_.end_field();
  }
  template <class T>
  void element(const char* name, const T& item) {
    form_.item(name);
    value(name, item);
    form_.end_item();
  }
  template <class T>
  void element(const char* name, const std::shared_ptr<const T>& item) {
    static const T nothing{};
    element(name, item ? *item : nothing);
  }

  template <class T>
  void value(const char* name, const T& member) {
    if constexpr (std::is_floating_point_v<T>) {
      form_.number(member);
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (holds_bytes(name)) {
        form_.bytes(member);
      } else {
        form_.text(member);
      }
    } else if constexpr (std::is_enum_v<T> || std::is_integral_v<T>) {
      const auto words = words_of(name);
      const auto number = static_cast<int64_t>(member);
      if (number >= 0 && static_cast<size_t>(number) < words.size()) {
        form_.word(words[static_cast<size_t>(number)]);
      } else if constexpr (std::is_same_v<T, uint64_t>) {
        form_.integer(member);
      } else {
        form_.integer(number, sizeof(T) == 8);
      }
    } else {
      form_.open();
      write(member);
      form_.close();
    }
  }

  Form& form_;
  int depth_ = 0;
  std::vector<uint32_t> written_defaults_;  // of the messages from the outermost to this one
};

}  // namespace sardonyx::wire
