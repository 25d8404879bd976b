#include "infer/signature_check.h"

#include <algorithm>
#include <array>
#include <vector>

namespace sardonyx::infer {
namespace {

std::string any_of(std::span<const schema::TypeId> types) {
  std::string text;
  for (size_t i = 0; i < types.size(); ++i) {
    text += i == 0 ? "" : i + 1 < types.size() ? ", " : " or ";
    text += schema::to_string(types[i]);
  }
  return text;
}

// Types nest through what graphs put into each other: a chain of nodes would make texts and copies
// of types that grow with its square.
bool nests_too_deep(const ops::ValueType& type) {
  constexpr int most = 3;  // the standard's: an optional of a sequence, a sequence of maps
  int depth = 0;
  for (const ops::ValueType* at = type.nested.get(); at != nullptr; at = at->nested.get()) ++depth;
  return depth > most;
}

schema::TypeKind kind_of(const ops::ValueType& type) {
  using Kind = ir::TypeProto::Kind;
  switch (type.kind) {
    case Kind::tensor: return schema::TypeKind::tensor;
    case Kind::sparse_tensor: return schema::TypeKind::sparse_tensor;
    case Kind::sequence: return schema::TypeKind::sequence;
    case Kind::optional: return schema::TypeKind::optional;
    case Kind::map: return schema::TypeKind::map;
    case Kind::opaque: return schema::TypeKind::opaque;
    case Kind::none: break;
  }
  return schema::TypeKind::none;
}

// Whether a value of which only the outer layers are known (an empty sequence, an optional without
// an element) may have this type.
bool may_be(const ops::ValueType& given, schema::TypeId type) {
  const ops::ValueType* layer = &given;
  for (; layer != nullptr && layer->is_known(); layer = layer->nested.get(), type = type.inner()) {
    if (kind_of(*layer) != type.kind()) return false;
  }
  return true;
}

void check_kind(const ops::InferContext& context, int i, const schema::Formal& formal) {
  const ops::ValueType& given = context.type(i);
  const auto fits = [&](schema::TypeId type) { return may_be(given, type); };
  if (std::ranges::any_of(formal.types, fits)) return;
  context.fail("{} ('{}') must be {}; it is {}", context.input_name(i), formal.name,
               any_of(formal.types), given.to_string());
}

void check_counts(const ops::InferContext& context, const schema::Signature& signature) {
  const int given = context.input_count(), made = context.output_count();
  if (given > signature.max_inputs || given < signature.min_inputs) {
    context.fail("takes {} to {} inputs; the node has {}", signature.min_inputs,
                 signature.max_inputs, given);
  }
  if (made > signature.max_outputs) {
    context.fail("gives at most {} outputs; the node names {}", signature.max_outputs, made);
  }
  for (int i = 0; i < given || i < signature.min_inputs; ++i) {
    if (context.has_input(i)) continue;
    const schema::Formal* formal = signature.input(static_cast<size_t>(i));
    if (formal && formal->option != schema::FormalOption::optional) {
      context.fail("input {} '{}' is required and absent", i, formal->name);
    }
  }
}

void check_types(const ops::InferContext& context, const schema::Signature& signature) {
  // By constraint: the first input that it holds for, counted from 1.
  std::array<int, 16> few{};
  std::vector<int> many;
  std::span<int> first = few;
  if (signature.constraints.size() > few.size()) {
    many.resize(signature.constraints.size());
    first = many;
  }
  for (int i = 0; i < context.input_count(); ++i) {
    const ops::ValueType& given = context.type(i);
    if (!given.is_known()) continue;
    if (given.nested != nullptr && nests_too_deep(given))
      context.fail("{} nests deeper than any type of the standard", context.input_name(i));
    const schema::Formal* formal = signature.input(static_cast<size_t>(i));
    const schema::TypeId type =
        given.is_tensor() ? schema::TypeId::tensor(given.element) : schema::type_id(given);
    if (formal == nullptr) continue;
    if (!type.valid() || type.element() == ElementType::undefined) {
      check_kind(context, i, *formal);
      continue;
    }
    if (!schema::allows(*formal, type)) {
      context.fail("{} ('{}') must be {}; it is {}", context.input_name(i), formal->name,
                   any_of(formal->types), schema::to_string(type));
    }
    if (formal->constraint < 0 || !formal->homogeneous) continue;
    int& with = first[static_cast<size_t>(formal->constraint)];
    if (with == 0) {
      with = i + 1;
    } else if (const schema::TypeId other = schema::type_id(context.type(with - 1));
               other != type) {
      context.fail("{} and {} must have one type; they have {} and {}",
                   context.input_name(with - 1), context.input_name(i), schema::to_string(other),
                   schema::to_string(type));
    }
  }
}

}  // namespace

void check_signature(const ops::InferContext& context, const schema::Signature& signature) {
  check_counts(context, signature);
  check_types(context, signature);
}

}  // namespace sardonyx::infer
