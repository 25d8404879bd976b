#include "run/input_match.h"

#include <fmt/format.h>

#include <memory>

#include "base/value_kind.h"
#include "infer/conversion_advice.h"
#include "run/plan.h"

namespace sardonyx::run {
namespace {

std::string place_of(std::string_view input) { return fmt::format("input '{}'", input); }

[[noreturn]] void refuse(std::string_view input, const std::string& why) {
  throw ShapeMismatch(ErrorCode::bad_input, why, place_of(input));
}

// The type with `open` for sizes that only inference has a name for, as those of items are.
ir::ValueType with_unnamed_sizes(ir::ValueType type, const ir::Dim& open) {
  if (type.shape) {
    for (ir::Dim& dim : *type.shape) {
      if (const ir::Symbol* symbol = dim.as_symbol(); symbol && symbol->decided_by_run) dim = open;
    }
  }
  if (type.nested)
    type.nested = std::make_shared<const ir::ValueType>(with_unnamed_sizes(*type.nested, open));
  return type;
}

std::string text_of(const ir::ValueType& wanted) {
  ir::SymbolTable symbols;
  return with_unnamed_sizes(wanted, ir::Dim(symbols.named("?"))).to_string();
}

}  // namespace

std::string place_of(std::string_view input, size_t dimension) {
  return fmt::format("dimension {} of input '{}'", dimension, input);
}

void match_kind(std::string_view input, const ir::ValueType& wanted, const Value& given) {
  if (!wanted.is_known() || given.kind() == Value::Kind::none) return;
  if (!given.is_tensor() || !wanted.is_tensor()) {
    if (ir::kind_of(given) == wanted.kind) return;
    refuse(input,
           fmt::format("is {}, the model takes {}", with_article(given.kind()), text_of(wanted)));
  }
  const ElementType type = given.tensor().element_type();
  if (wanted.element == ElementType::undefined || wanted.element == type) return;
  refuse(input, fmt::format("holds {}, the model takes {}{}", name_of(type), text_of(wanted),
                            infer::conversion_advice(type, wanted.element)));
}

namespace {

void match_parts(std::string_view input, const ir::ValueType& whole, const ir::ValueType& wanted,
                 const Value& given);

// One of the values that an input of type `whole` holds.
void match_part(std::string_view input, const ir::ValueType& whole, const ir::ValueType* wanted,
                const Value& given) {
  if (wanted == nullptr || !wanted->is_known()) return;
  if (ir::kind_of(given) != wanted->kind)
    refuse(input,
           fmt::format("holds {}, the model takes {}", with_article(given.kind()), text_of(whole)));
  if (!given.is_tensor()) return match_parts(input, whole, *wanted, given);
  const ElementType type = given.tensor().element_type();
  if (wanted->element == ElementType::undefined || wanted->element == type) return;
  refuse(input, fmt::format("holds {}, the model takes {}{}", name_of(type), text_of(whole),
                            infer::conversion_advice(type, wanted->element)));
}

void match_sparse(std::string_view input, const ir::ValueType& whole, const ir::ValueType& wanted,
                  const SparseTensor& given) {
  const ElementType type = given.values.element_type();
  if (wanted.element != ElementType::undefined && wanted.element != type)
    refuse(input, fmt::format("holds {}, the model takes {}{}", name_of(type), text_of(whole),
                              infer::conversion_advice(type, wanted.element)));
  if (!wanted.shape) return;
  bool fits = wanted.shape->size() == given.shape.size();
  for (size_t d = 0; fits && d < given.shape.size(); ++d) {
    const ir::Dim& size = (*wanted.shape)[d];
    fits = given.shape[d] >= 0 && (!size.is_constant() || *size.value() == given.shape[d]);
  }
  if (!fits)
    refuse(input,
           fmt::format("has shape {}, the model takes {}", to_string(given.shape), text_of(whole)));
}

void match_parts(std::string_view input, const ir::ValueType& whole, const ir::ValueType& wanted,
                 const Value& given) {
  const auto match_all = [&](const std::vector<Value>& values) {
    for (const Value& value : values) match_part(input, whole, wanted.nested.get(), value);
  };
  switch (given.kind()) {
    case Value::Kind::sequence: return match_all(given.sequence().items);
    case Value::Kind::optional:
      if (given.optional().held)
        match_part(input, whole, wanted.nested.get(), *given.optional().held);
      return;
    case Value::Kind::map: {
      const ElementType keys = given.map().keys.element_type();
      if (wanted.element != ElementType::undefined && wanted.element != keys)
        refuse(input,
               fmt::format("has keys of {}, the model takes {}", name_of(keys), text_of(whole)));
      return match_all(given.map().values);
    }
    case Value::Kind::sparse_tensor:
      return match_sparse(input, whole, wanted, given.sparse_tensor());
    default: return;
  }
}

}  // namespace

void match_held(std::string_view input, const ir::ValueType& wanted, const Value& given) {
  if (wanted.is_known() && ir::kind_of(given) == wanted.kind)
    match_parts(input, wanted, wanted, given);
}

void match_shape(std::string_view input, const ir::ValueType& wanted,
                 std::span<const int64_t> shape, std::span<int64_t> sizes,
                 const BoundBy& bound_by) {
  const auto message = [&](const std::string& why) {
    return fmt::format("has shape {}, the model takes {}: {}", to_string(shape), text_of(wanted),
                       why);
  };
  const auto complain = [&](const std::string& why) { refuse(input, message(why)); };
  const ir::Dims& expected = *wanted.shape;
  if (shape.size() != expected.size())
    complain(fmt::format("rank {} instead of {}", shape.size(), expected.size()));
  for (size_t d = 0; d < shape.size(); ++d) {
    if (const ir::Symbol* symbol = expected[d].as_symbol()) {
      int64_t& size = sizes[static_cast<size_t>(symbol->id)];
      if (size < 0) size = shape[d];
      if (size == shape[d]) continue;
      const std::string difference = fmt::format("dimension {} is {}, but '{}' is {} by {}", d,
                                                 shape[d], symbol->name, size, bound_by(*symbol));
      const std::string rename =
          fmt::format("sardonyx rename MODEL OUTPUT --dim {}.{}=NAME", input, d);
      throw SizesDiffer(
          message(fmt::format("{}; give sizes that agree, or, where the model should not ask for "
                              "that, another name: {}",
                              difference, rename)),
          place_of(input), difference, rename);
    } else if (expected[d].is_constant() && shape[d] != *expected[d].value()) {
      complain(
          fmt::format("dimension {} must be {}, and is {}", d, *expected[d].value(), shape[d]));
    }
  }
}

void match_inputs(std::span<const ir::ValueInfo> inputs, std::span<const Value> given) {
  ir::SymbolTable symbols;
  std::vector<ir::ValueType> types;
  types.reserve(inputs.size());
  for (const ir::ValueInfo& input : inputs)
    types.push_back(input.type ? ir::value_type(*input.type, symbols) : ir::ValueType());
  std::vector<int64_t> sizes(static_cast<size_t>(symbols.size()), -1);
  const BoundBy bound_by = [&](const ir::Symbol& symbol) {
    return first_use(
        symbol, inputs.size(), [&](size_t i) -> const std::string& { return inputs[i].name; },
        [&](size_t i) -> const ir::ValueType& { return types[i]; });
  };
  for (size_t i = 0; i < inputs.size() && i < given.size(); ++i) {
    match_kind(inputs[i].name, types[i], given[i]);
    match_held(inputs[i].name, types[i], given[i]);
  }
  for (size_t i = 0; i < inputs.size() && i < given.size(); ++i) {
    if (given[i].is_tensor() && types[i].is_tensor() && types[i].shape)
      match_shape(inputs[i].name, types[i], given[i].tensor().shape(), sizes, bound_by);
  }
}

}  // namespace sardonyx::run
