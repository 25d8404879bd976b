#include "infer/unknowns.h"

#include <algorithm>

#include "base/checked.h"

namespace sardonyx::infer {

void name_elements(ValueFacts& value, ir::SymbolTable& symbols) {
  constexpr int64_t most = 16;
  if (value.elements || !value.type.is_tensor()) return;
  if (value.type.element != ElementType::int64 && value.type.element != ElementType::int32) return;
  const auto shape = value.type.concrete_shape();
  const auto count = shape ? checked_count(*shape) : std::nullopt;
  if (!count || *count > most) return;
  ir::Dims elements;
  elements.reserve(static_cast<size_t>(*count));
  for (int64_t i = 0; i < *count; ++i) elements.push_back(ir::Dim(symbols.unknown_value()));
  value.elements = std::make_shared<const ir::Dims>(std::move(elements));
}

namespace {

std::string reason_for(const ops::InferContext& context) {
  for (int i = 0; i < context.input_count(); ++i) {
    if (!context.has_input(i)) continue;
    const ops::ValueType& type = context.type(i);
    if (!type.is_known() || (type.is_tensor() && !type.shape))
      return fmt::format("{} of {} is unknown", type.is_known() ? "the rank" : "the type",
                         context.input_name(i));
  }
  for (int i = 1; i < context.input_count(); ++i) {
    if (!context.has_input(i) || context.constant(i) != nullptr) continue;
    const auto* elements = context.elements(i);
    const bool open =
        elements == nullptr || std::any_of(elements->begin(), elements->end(),
                                           [](const ir::Dim& e) { return e.depends_on_run(); });
    if (open && is_integer(context.element(i)))
      return fmt::format("the elements of {} are known only to the run", context.input_name(i));
  }
  return "its data decide";
}

}  // namespace

std::string shortened(std::string text) {
  constexpr size_t most = 1024;
  if (text.size() > most) text.replace(most, std::string::npos, "...");
  return text;
}

void note_unknowns(const ops::InferContext& context, int first, const InferenceContext& inference) {
  if (inference.unknowns == nullptr || inference.symbols->size() == first) return;
  const auto unknown =
      std::make_shared<const Unknown>(shortened(context.place()), shortened(reason_for(context)));
  for (int id = first; id < inference.symbols->size(); ++id)
    inference.unknowns->emplace(id, unknown);
}

}  // namespace sardonyx::infer
