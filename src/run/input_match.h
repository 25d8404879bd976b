// Holding what a caller gives against what a model declares of its inputs.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "ir/value_type.h"

namespace sardonyx::run {

// Throws ShapeMismatch where the value is of another kind, or holds another element type, than the
// input takes. A value of kind none fits all.
void match_kind(std::string_view input, const ir::ValueType& wanted, const Value& given);

// Throws ShapeMismatch where a sequence, an optional or a map, of which kind the input is, holds
// values of another kind or element type than its type says.
void match_held(std::string_view input, const ir::ValueType& wanted, const Value& given);

// Throws ShapeMismatch where the shape is not one that `wanted`, a type with a rank, allows,
// SizesDiffer where only a size is not the one that its name has. Binds
// the sizes that it names: sizes[id], negative where unbound. `bound_by` says what gave a symbol
// its size: "dimension 0 of input 'x'".
using BoundBy = std::function<std::string(const ir::Symbol&)>;
void match_shape(std::string_view input, const ir::ValueType& wanted,
                 std::span<const int64_t> shape, std::span<int64_t> sizes, const BoundBy& bound_by);

// The first dimension of these inputs that is the symbol; "elsewhere" where none is. `name` and
// `type` give the name and the type of the input at an index.
template <class Name, class Type>
std::string first_use(const ir::Symbol& symbol, size_t inputs, Name name, Type type);

// All of it for the inputs of a graph by their declarations: for runs without a plan.
void match_inputs(std::span<const ir::ValueInfo> inputs, std::span<const Value> given);

// "dimension 0 of input 'x'".
std::string place_of(std::string_view input, size_t dimension);

template <class Name, class Type>
std::string first_use(const ir::Symbol& symbol, size_t inputs, Name name, Type type) {
  for (size_t i = 0; i < inputs; ++i) {
    const ir::ValueType& one = type(i);
    if (!one.is_tensor() || !one.shape) continue;
    for (size_t d = 0; d < one.shape->size(); ++d) {
      if ((*one.shape)[d].as_symbol() == &symbol) return place_of(name(i), d);
    }
  }
  return "elsewhere";
}

}  // namespace sardonyx::run
