// What inference knows of values that may be one or another: how many a sequence or an optional
// holds, elements of one of two tensors.
#pragma once

#include "ops/infer_context.h"

namespace sardonyx::ops {

inline bool is_container(const ValueType& type) {
  return type.kind == ir::TypeProto::Kind::sequence || type.kind == ir::TypeProto::Kind::optional;
}

// The number of items of a sequence; 1 or 0 for an optional. Null: not known. Of an optional that
// holds a sequence, the element after the first is the sequence's.
inline const Dim* held_count(const ValueFacts& known) {
  return is_container(known.type) && known.elements && !known.elements->empty()
             ? &known.elements->front()
             : nullptr;
}

// Surely holds nothing: its type says what it could hold, and is that of no value.
inline bool is_surely_empty(const ValueFacts& known) {
  const Dim* count = held_count(known);
  return count != nullptr && *count == 0;
}

// A sequence or an optional with `count` values.
inline ValueFacts holding(ValueType type, Dim count) {
  ValueFacts known = ValueFacts::of(std::move(type));
  known.elements = std::make_shared<const Dims>(Dims{std::move(count)});
  return known;
}

// One of two elements, which the run decides: a size with a bound where both are sizes. Nullopt
// where such are not named.
inline std::optional<Dim> either_element(InferContext& ctx, const Dim& a, const Dim& b) {
  if (a == b) return a;
  const auto is_size = [](const Dim& dim) { return dim.lower().value_or(-1) >= 0; };
  if (ctx.mode().symbolic_values && is_size(a) && is_size(b)) return ctx.unknown(max(a, b));
  return ctx.unknown_element();
}

}  // namespace sardonyx::ops
