// The visitor that turns messages into protobuf bytes. Internal to wire.
//
// A message's length stands before it, so it walks twice: the first walk measures every embedded
// message and packed list, the second writes and takes the measures in the same order.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/fail.h"
#include "wire/fields.h"
#include "wire/sink.h"

namespace sardonyx::wire {

constexpr uint64_t varint_size(uint64_t value) {
  return (static_cast<uint64_t>(std::bit_width(value | 1)) + 6) / 7;
}

class ProtoWriter {
 public:
  // Writes the message; the sink gets serialized_size bytes.
  template <class M>
  static void write(const M& message, Sink& sink) {
    ProtoWriter writer;
    writer.put_fields(message);
    writer.sink_ = &sink;
    sink.expect(writer.written_);
    writer.put_fields(message);
    writer.flush();
  }

  template <class M>
  static uint64_t size_of(const M& message) {
    ProtoWriter writer;
    writer.put_fields(message);
    return writer.written_;
  }

  template <class M>
  static std::string text_of(const M& message) {
    StringSink sink;
    write(message, sink);
    return sink.take();
  }

  // What the field tables call. Values that are the default of their type are left out, unless
  // the message was read from bytes that had them; lists of numbers are packed as declared, unless
  // they were read the other way.
  template <class T>
  void field(uint32_t number, const char*, const T& member) {
    if constexpr (is_number<T>) {
      if (member != T{} || was_written(number)) put_number(number, static_cast<int64_t>(member));
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!member.empty() || was_written(number)) put_text(number, member);
    } else {
      put_message(number, member, was_written(number));
    }
  }

  template <class T>
  void field(uint32_t number, const char*, const std::optional<T>& member) {
    if (member) put_one(number, *member);
  }
  template <class T>
  void field(uint32_t number, const char*, const std::shared_ptr<const T>& member) {
    if (member) put_one(number, *member);
  }
  template <class T>
  void field(uint32_t number, const char*, const std::vector<T>& list) {
    if constexpr (is_number<T> || std::is_same_v<T, float>) {
      if (was_written(number)) return put_packed(number, list);
    }
    for (const T& item : list) put_one(number, item);
  }

  template <class T>
  void packed(uint32_t number, const char*, const std::vector<T>& list) {
    if (!was_written(number)) return put_packed(number, list);
    for (const T& item : list) put_one(number, item);
  }

  void fixed(uint32_t number, const char*, const Bytes& bytes, size_t width) {
    if (bytes.empty()) return;
    if (!was_written(number)) return put_text(number, bytes.text());
    for (size_t at = 0; at + width <= bytes.size(); at += width) {
      put_tag(number, width == 4 ? 5 : 1);
      put_bytes(bytes.text().substr(at, width));
    }
  }
  void raw(uint32_t number, const char*, bool present, const Bytes& bytes) {
    if (present || !bytes.empty()) put_text(number, bytes.text());
  }
  template <class T>
  void flagged(uint32_t number, const char*, bool present, const T& member) {
    if (present) put_one(number, member);
  }
  template <class A, class B>
  void either(uint32_t first, const char*, const std::optional<A>& a, uint32_t second, const char*,
              const std::optional<B>& b) {
    if (a) put_one(first, *a);
    if (b && !a) put_one(second, *b);
  }
  template <class Visit>
  void choice(uint32_t number, const char*, const ir::TypeProto& type, ir::TypeProto::Kind kind,
              const Visit& visit) {
    if (type.kind != kind) return;
    put_tag(number, 2);
    deeper(
        [&] { enclosed(true, [&] { with_defaults(type.inner_unknown, [&] { visit(*this); }); }); });
  }
  void unknown(const ir::UnknownFields& kept) { put_bytes(kept.bytes); }

 private:
  template <class T>
  static constexpr bool is_number = std::is_integral_v<T> || std::is_enum_v<T>;
  static constexpr int max_depth = 100;  // what readers accept

  bool was_written(uint32_t number) const { return (written_defaults_ >> number & 1) != 0; }

  template <class Body>
  void with_defaults(const ir::UnknownFields& of, const Body& body) {
    const uint32_t outer = std::exchange(written_defaults_, of.written_defaults);
    body();
    written_defaults_ = outer;
  }
  template <class M>
  void put_fields(const M& message) {
    with_defaults(message.unknown, [&] { fields(*this, message); });
  }

  template <class T>
  void put_packed(uint32_t number, const std::vector<T>& list) {
    if (list.empty()) return;
    put_tag(number, 2);
    if constexpr (std::is_same_v<T, float>) {
      put_varint(list.size() * sizeof(T));
      put_bytes({reinterpret_cast<const char*>(list.data()), list.size() * sizeof(T)});
    } else {
      enclosed(true, [&] {
        for (const T item : list) put_varint(wide(item));
      });
    }
  }

  // Negative numbers are written as 64-bit ones, also where the field is 32 bits wide.
  template <class T>
  static uint64_t wide(T value) {
    return std::is_same_v<T, uint64_t> ? static_cast<uint64_t>(value)
                                       : static_cast<uint64_t>(static_cast<int64_t>(value));
  }

  template <class T>
  void put_one(uint32_t number, const T& item) {
    if constexpr (is_number<T>) {
      put_tag(number, 0);
      put_varint(wide(item));
    } else if constexpr (std::is_same_v<T, float>) {
      put_tag(number, 5);
      put_bytes({reinterpret_cast<const char*>(&item), sizeof item});
    } else if constexpr (std::is_same_v<T, std::string>) {
      put_text(number, item);
    } else {
      put_message(number, item, true);
    }
  }
  template <class T>
  void put_one(uint32_t number, const std::shared_ptr<const T>& item) {
    if (item) put_message(number, *item, true);
  }

  void put_number(uint32_t number, int64_t value) {
    put_tag(number, 0);
    put_varint(static_cast<uint64_t>(value));
  }
  void put_text(uint32_t number, std::string_view text) {
    put_tag(number, 2);
    put_varint(text.size());
    put_bytes(text);
  }

  template <class M>
  void put_message(uint32_t number, const M& message, bool even_if_empty) {
    deeper([&] {
      if (sink_ == nullptr) {
        const uint64_t length = enclosed(even_if_empty, [&] { put_fields(message); });
        if (length != 0 || even_if_empty) put_tag(number, 2);
      } else {
        if (lengths_[next_] != 0 || even_if_empty) put_tag(number, 2);
        enclosed(even_if_empty, [&] { put_fields(message); });
      }
    });
  }

  template <class Body>
  void deeper(const Body& body) {
    if (++depth_ > max_depth)
      fail(ErrorCode::unsupported, "messages nested more than 100 deep cannot be written");
    body();
    --depth_;
  }

  // The length, then what `body` puts. Returns the length.
  template <class Body>
  uint64_t enclosed(bool even_if_empty, const Body& body) {
    if (sink_ != nullptr) {
      const uint64_t length = lengths_[next_++];
      if (length != 0 || even_if_empty) put_varint(length);
      body();
      return length;
    }
    const size_t slot = lengths_.size();
    lengths_.push_back(0);
    const uint64_t before = written_;
    body();
    const uint64_t length = lengths_[slot] = written_ - before;
    if (length != 0 || even_if_empty) put_varint(length);
    return length;
  }

  void put_tag(uint32_t number, uint32_t wire_type) { put_varint(number << 3 | wire_type); }

  void put_varint(uint64_t value) {
    if (sink_ == nullptr) {
      written_ += varint_size(value);
      return;
    }
    if (used_ + 10 > sizeof buffer_) flush();
    while (value >= 0x80) {
      buffer_[used_++] = static_cast<char>(value | 0x80);
      value >>= 7;
    }
    buffer_[used_++] = static_cast<char>(value);
  }

  void put_bytes(std::string_view bytes) {
    if (sink_ == nullptr) {
      written_ += bytes.size();
      return;
    }
    if (bytes.size() > sizeof buffer_ - used_) flush();
    if (bytes.size() > sizeof buffer_) return sink_->put(bytes.data(), bytes.size());
    if (!bytes.empty()) std::memcpy(buffer_ + used_, bytes.data(), bytes.size());
    used_ += bytes.size();
  }

  void flush() {
    sink_->put(buffer_, used_);
    used_ = 0;
  }

  Sink* sink_ = nullptr;  // null while measuring
  uint64_t written_ = 0;
  std::vector<uint64_t> lengths_;  // in the order in which messages begin
  size_t next_ = 0;
  int depth_ = 0;
  uint32_t written_defaults_ = 0;  // of the message at hand
  char buffer_[4096];
  size_t used_ = 0;
};

}  // namespace sardonyx::wire
