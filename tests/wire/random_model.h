// Models with random content in every field that the table of fields knows: no sense, all forms.
#pragma once

#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "builder.h"
#include "wire/fields.h"

namespace sardonyx::wire_test {

class RandomFiller {
 public:
  explicit RandomFiller(uint32_t seed) : random_(seed) {}

  template <class M>
  void fill(M& message) {
    ++depth_;
    wire::fields(*this, message);
    --depth_;
  }

  template <class T>
  void field(uint32_t, const char*, T& member) {
    if (chance(2)) value(member);
  }
  template <class T>
  void field(uint32_t, const char*, std::optional<T>& member) {
    if (room<T>()) value(member.emplace());
  }
  template <class T>
  void field(uint32_t, const char*, std::shared_ptr<const T>& member) {
    if (room<T>()) member = made<T>();
  }
  template <class T>
  void field(uint32_t, const char*, std::vector<T>& list) {
    if (!room<T>()) return;
    for (size_t i = random_() % 4; i > 0; --i) value(list.emplace_back());
  }
  template <class T>
  void packed(uint32_t number, const char* name, std::vector<T>& list) {
    field(number, name, list);
  }
  void fixed(uint32_t, const char*, Bytes& bytes, size_t width) {
    std::string numbers;
    for (size_t i = random_() % 4; i > 0; --i) {
      const float number = real();
      numbers += width == 4 ? plain(number) : plain(double{number} / 3);
    }
    bytes = bytes_of(numbers);
  }
  void raw(uint32_t, const char*, bool& present, Bytes& bytes) {
    present = chance(3);
    if (present) bytes = bytes_of(any_bytes());
  }
  template <class T>
  void flagged(uint32_t, const char*, bool& present, T& member) {
    present = chance(2);
    if (present) value(member);
  }
  template <class A, class B>
  void either(uint32_t, const char*, std::optional<A>& a, uint32_t, const char*,
              std::optional<B>& b) {
    if (chance(2)) {
      value(a.emplace());
    } else if (chance(2)) {
      value(b.emplace());
    }
  }
  template <class Visit>
  void choice(uint32_t, const char*, ir::TypeProto& type, ir::TypeProto::Kind kind,
              const Visit& visit) {
    if (type.kind != ir::TypeProto::Kind::none || !chance(3)) return;
    type.kind = kind;
    visit(*this);
  }
  void unknown(ir::UnknownFields&) {}

 private:
  bool chance(uint32_t of) { return random_() % of == 0; }
  template <class T>
  bool room() {
    constexpr bool is_message = requires(T & m) { m.unknown; }
    || requires(T & m) { m->unknown; };
    return chance(is_message ? 2 : 3) && (!is_message || depth_ < 7);
  }
  float real() { return static_cast<float>(random_() % 2000) / 7 - 100; }
  std::string any_bytes() {
    std::string bytes;
    for (size_t i = random_() % 6; i > 0; --i) bytes += static_cast<char>(random_());
    return bytes;
  }
  template <class T>
  std::shared_ptr<const T> made() {
    auto message = std::make_shared<T>();
    fill(*message);
    return message;
  }

  template <class T>
  void value(T& member) {
    if constexpr (std::is_same_v<T, std::string>) {
      static constexpr const char* words[] = {"", "a", "x\"y", "back\\slash", "two\nlines", "é"};
      member = words[random_() % std::size(words)];
    } else if constexpr (std::is_floating_point_v<T>) {
      member = static_cast<T>(real());
    } else if constexpr (std::is_enum_v<T>) {
      member = static_cast<T>(random_() % 15);
    } else if constexpr (std::is_integral_v<T>) {
      const auto wide = static_cast<uint64_t>(random_()) << 32 | random_();
      member = static_cast<T>(chance(2) ? wide : wide % 3);
    } else {
      fill(member);
    }
  }
  template <class T>
  void value(std::shared_ptr<const T>& member) {
    member = made<T>();
  }

  std::mt19937 random_;
  int depth_ = 0;
};

inline ir::Model random_model(uint32_t seed) {
  ir::Model model;
  RandomFiller(seed).fill(model);
  model.ir_version = 8;  // without it and more, bytes are not taken for a model
  return model;
}

}  // namespace sardonyx::wire_test
