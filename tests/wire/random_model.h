// Models with random content in every field that the table of fields knows.
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
#include "wire/tensor.h"

namespace sardonyx::wire_test {

enum class Content {
  any,      // no sense: what only the forms that know nothing of the meaning can hold
  unknown,  // that, with fields of no number that the standard gives
  sound,  // tensors that have the elements their shape asks for, attributes of one value: what text
          // says
};

class RandomFiller {
 public:
  explicit RandomFiller(uint32_t seed, Content content = Content::any)
      : random_(seed), content_(content) {}

  template <class M>
  void fill(M& message) {
    ++depth_;
    if constexpr (std::is_same_v<M, ir::TensorProto> || std::is_same_v<M, ir::SparseTensorProto> ||
                  std::is_same_v<M, ir::Attribute>) {
      if (content_ == Content::sound) {
        sound(message);
      } else {
        wire::fields(*this, message);
      }
    } else {
      wire::fields(*this, message);
    }
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
  void unknown(ir::UnknownFields& unknown) {
    if (content_ != Content::unknown || !chance(3)) return;
    for (size_t i = random_() % 3; i > 0; --i) {
      const uint32_t number = 100 + random_() % 1000;
      switch (random_() % 5) {
        case 0: unknown.bytes += wire_test::number(number, random_()); break;
        case 1: unknown.bytes += text(number, any_bytes()); break;
        case 2: unknown.bytes += tag(number, 5) + plain(real()); break;
        case 3: unknown.bytes += tag(number, 1) + plain(double{real()}); break;
        default:
          unknown.bytes += tag(number, 3) + text(1, any_bytes()) + wire_test::number(2, random_()) +
                           tag(number, 4);
      }
    }
  }

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

  // ---- sound content

  std::vector<std::byte> random_bytes(size_t size) {
    std::vector<std::byte> bytes(size);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
    return bytes;
  }
  void sound(ir::TensorProto& tensor) {
    const auto type = static_cast<ElementType>(1 + random_() % (element_type_count - 1));
    sound(tensor, type, {});
    if (chance(2)) value(tensor.doc_string);
    field(16, "metadata_props", tensor.metadata_props);
  }
  void sound(ir::TensorProto& tensor, ElementType type, std::optional<int64_t> length) {
    tensor.data_type = static_cast<int32_t>(type);
    int64_t count = 1;
    if (length) tensor.dims = {count = *length};
    for (size_t i = length ? 0 : random_() % 4; i > 0; --i) {
      tensor.dims.push_back(random_() % 4);
      count *= tensor.dims.back();
    }
    value(tensor.name);
    if (type == ElementType::string) {
      tensor.string_data.resize(static_cast<size_t>(count));
      for (std::string& text : tensor.string_data) value(text);
      return;
    }
    if (!length && chance(4)) {
      tensor.data_location = 1;
      tensor.external_data.push_back({"location", "w.bin", {}});
      if (chance(2)) tensor.external_data.push_back({"offset", std::to_string(random_()), {}});
      return;
    }
    const auto size = static_cast<size_t>(byte_size(type, count));
    std::vector<std::byte> bytes = random_bytes(size);
    if (type == ElementType::boolean) {
      for (std::byte& byte : bytes) byte &= std::byte{1};
    }
    const auto used = static_cast<size_t>(count * bit_width(type) % 8);
    if (used != 0) bytes.back() &= static_cast<std::byte>((1 << used) - 1);
    if (bit_width(type) >= 32) {  // NaNs keep no payload in text
      for (size_t i = 3; i < size; i += 4) bytes[i] &= std::byte{0xbf};
    }
    tensor.has_raw_data = true;
    tensor.raw_data = Bytes::copy_of(bytes);
    if (chance(2)) return;
    const std::string name = tensor.name;  // the same in the field of its type
    tensor = wire::to_proto(wire::to_tensor(tensor), name);
  }
  void sound(ir::SparseTensorProto& sparse) {
    const int64_t count = random_() % 3;
    sound(sparse.values, ElementType::float32, count);
    sound(sparse.indices, ElementType::int64, count);
    sparse.dims = {100};
  }
  void sound(ir::Attribute& attribute) {
    value(attribute.name);
    if (chance(2)) value(attribute.doc_string);
    attribute.kind = static_cast<ir::AttributeKind>(1 + random_() % 14);
    if (chance(6)) {
      attribute.ref_attr_name = "p";
      return;
    }
    const auto list = [&](auto& values) {
      for (size_t i = random_() % 3; i > 0; --i) value(values.emplace_back());
    };
    switch (attribute.kind) {
      case ir::AttributeKind::float_: return value(attribute.f.emplace());
      case ir::AttributeKind::int_: return value(attribute.i.emplace());
      case ir::AttributeKind::string: return value(attribute.s.emplace());
      case ir::AttributeKind::tensor: attribute.t = made<ir::TensorProto>(); return;
      case ir::AttributeKind::graph:
        if (depth_ < 7) attribute.g = made<ir::Graph>();
        return;
      case ir::AttributeKind::floats: return list(attribute.floats);
      case ir::AttributeKind::ints: return list(attribute.ints);
      case ir::AttributeKind::strings: return list(attribute.strings);
      case ir::AttributeKind::tensors: return list(attribute.tensors);
      case ir::AttributeKind::graphs:
        if (depth_ < 7) list(attribute.graphs);
        return;
      case ir::AttributeKind::sparse_tensor:
        attribute.sparse_tensor = made<ir::SparseTensorProto>();
        return;
      case ir::AttributeKind::sparse_tensors: return list(attribute.sparse_tensors);
      case ir::AttributeKind::type_proto: attribute.tp = made<ir::TypeProto>(); return;
      default: return list(attribute.type_protos);
    }
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
  Content content_;
  int depth_ = 0;
};

inline ir::Model random_model(uint32_t seed, Content content = Content::any) {
  ir::Model model;
  RandomFiller filler(seed, content);
  filler.fill(model);
  if (content == Content::sound && !model.graph) filler.fill(model.graph.emplace());
  model.ir_version = 8;  // without it and more, bytes are not taken for a model
  return model;
}

}  // namespace sardonyx::wire_test
