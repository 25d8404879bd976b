// Value types as operator signatures name them: no shapes, no denotations, 32 bits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sardonyx/element_type.h"

namespace sardonyx::ir {
struct TypeProto;
struct ValueType;
}  // namespace sardonyx::ir

namespace sardonyx::schema {

enum class TypeKind : uint8_t { none, tensor, sparse_tensor, sequence, optional, map, opaque };

// A type such as tensor(float), seq(map(int64, tensor(float))) or optional(seq(tensor(int4))).
// Holds up to six layers and one map; what is deeper occurs in no signature and is `none`.
// A map's value written as a scalar, map(int64, float), is the same type as
// map(int64, tensor(float)): models use both for the same values.
class TypeId {
 public:
  constexpr TypeId() = default;
  static constexpr TypeId from_bits(uint32_t bits) { return TypeId(bits); }

  static constexpr TypeId tensor(ElementType element) { return leaf(TypeKind::tensor, element); }
  static constexpr TypeId sparse_tensor(ElementType element) {
    return leaf(TypeKind::sparse_tensor, element);
  }
  static constexpr TypeId opaque() { return leaf(TypeKind::opaque, ElementType::undefined); }
  static constexpr TypeId sequence(TypeId item) { return item.wrapped(TypeKind::sequence); }
  static constexpr TypeId optional(TypeId item) { return item.wrapped(TypeKind::optional); }
  static constexpr TypeId map(ElementType key, TypeId value) {
    if (value.key() != ElementType::undefined) return {};
    TypeId result = value.wrapped(TypeKind::map);
    const auto number = static_cast<uint32_t>(key) < 128 ? static_cast<uint32_t>(key) : 127;
    if (result.valid()) result.bits_ |= number << key_shift;
    return result;
  }

  constexpr bool valid() const { return kind() != TypeKind::none; }
  // The outermost layer.
  constexpr TypeKind kind() const { return static_cast<TypeKind>(bits_ & 7u); }
  // What a sequence or an optional holds, the value of a map; `none` for the others.
  constexpr TypeId inner() const {
    const uint32_t layers = (bits_ & layers_mask) >> 3;
    if (layers == 0) return {};
    const bool drops_key = kind() == TypeKind::map;
    return TypeId(layers | (bits_ & (drops_key ? element_mask : element_mask | key_mask)));
  }
  // Element type of the innermost tensor.
  constexpr ElementType element() const {
    return static_cast<ElementType>((bits_ & element_mask) >> element_shift);
  }
  // Key type of the map in it; undefined without one.
  constexpr ElementType key() const {
    return static_cast<ElementType>((bits_ & key_mask) >> key_shift);
  }
  constexpr uint32_t bits() const { return bits_; }

  friend constexpr bool operator==(TypeId, TypeId) = default;
  friend constexpr auto operator<=>(TypeId, TypeId) = default;

 private:
  static constexpr int element_shift = 18, key_shift = 25;
  static constexpr uint32_t layers_mask = (1u << 18) - 1;
  static constexpr uint32_t element_mask = 127u << element_shift;
  static constexpr uint32_t key_mask = 127u << key_shift;

  explicit constexpr TypeId(uint32_t bits) : bits_(bits) {}
  static constexpr TypeId leaf(TypeKind kind, ElementType element) {
    // Unknown numbers, which files may hold, stay apart from all known types.
    const auto number = static_cast<uint32_t>(element) < 128 ? static_cast<uint32_t>(element) : 127;
    return TypeId(static_cast<uint32_t>(kind) | number << element_shift);
  }
  constexpr TypeId wrapped(TypeKind kind) const {
    const uint32_t layers = (bits_ & layers_mask) << 3;
    if (!valid() || layers > layers_mask) return {};
    return TypeId((bits_ & ~layers_mask) | layers | static_cast<uint32_t>(kind));
  }

  uint32_t bits_ = 0;
};

// Reads "tensor(float)", "seq(tensor(int64))", "optional(seq(tensor(bool)))", "map(int64, float)",
// "sparse_tensor(double)". Spaces are free. nullopt for anything else.
std::optional<TypeId> parse_type(std::string_view text);

// The text that parse_type reads; "none" for an invalid type.
std::string to_string(TypeId type);

// What a type of a model is without its shapes; `none` where it is not known or too deep.
TypeId type_id(const ir::TypeProto& type);
TypeId type_id(const ir::ValueType& type);

}  // namespace sardonyx::schema
