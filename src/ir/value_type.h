// The type of a value as inference knows it: TypeProto with dimensions as expressions.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/dim.h"
#include "ir/model.h"
#include "sardonyx/value.h"

namespace sardonyx::ir {

struct ValueType {
  TypeProto::Kind kind = TypeProto::Kind::none;  // none: nothing is known
  ElementType element = ElementType::undefined;  // of a (sparse) tensor; key type of a map
  std::optional<Dims> shape;                     // nullopt: the rank is unknown
  std::shared_ptr<const ValueType> nested;       // of a sequence, optional or map

  static ValueType tensor(ElementType element) {
    return {TypeProto::Kind::tensor, element, {}, {}};
  }
  static ValueType tensor(ElementType element, Dims shape) {
    return {TypeProto::Kind::tensor, element, std::move(shape), {}};
  }
  static ValueType sequence_of(ValueType element);
  static ValueType optional_of(ValueType element);

  bool is_known() const { return kind != TypeProto::Kind::none; }
  bool is_tensor() const { return kind == TypeProto::Kind::tensor; }
  std::optional<size_t> rank() const { return shape ? std::optional(shape->size()) : std::nullopt; }
  // The shape as numbers; nullopt where a dimension is not known.
  std::optional<Shape> concrete_shape() const;
  // Product of the dimensions; nullopt where the rank is unknown.
  std::optional<Dim> element_count() const;

  std::string to_string() const;  // "float[batch,3]", "seq(int64[?])"
};

// Names become symbols of `symbols`; dimensions that say nothing (ir/dimension.h) become fresh
// unknowns.
ValueType value_type(const TypeProto& proto, SymbolTable& symbols);
// The same type with a fresh unknown for every size that is no number: for items of sequences,
// which need not agree in them, and where a type passes from one symbol table to another.
ValueType with_open_sizes(ValueType type, SymbolTable& symbols);
TypeProto::Kind kind_of(const Value& value);
// The type of a concrete value.
ValueType type_of(const Value& value);
// Back to the specification's form; expressions become dim_params with their text.
TypeProto to_proto(const ValueType& type);

}  // namespace sardonyx::ir
