#include "infer/budget.h"

#include <algorithm>

namespace sardonyx::infer {

bool is_large(const ValueFacts& value) {
  return (value.type.shape && value.type.shape->size() > usual_rank) ||
         (value.elements && value.elements->size() > usual_elements) ||
         (value.constant && value.constant->size() > static_cast<int64_t>(usual_elements));
}

void make_small(ValueFacts& value) {
  if (value.type.shape && value.type.shape->size() > usual_rank) value.type.shape.reset();
  if (value.elements && value.elements->size() > usual_elements) value.elements = nullptr;
  if (value.constant && value.constant->size() > static_cast<int64_t>(usual_elements))
    value.constant.reset();
}

namespace {

// Of a large value, its place in the report included.
int64_t bytes_of(const ValueFacts& value) {
  constexpr int64_t expression = 400, size = 250, element = 32;
  const auto bytes = [](const ir::Dims& dims, size_t usual, int64_t each) {
    if (dims.size() <= usual) return int64_t{0};
    int64_t total = 0;
    for (const ir::Dim& dim : dims)
      total += each + (dim.is_constant() || dim.as_symbol() ? 0 : expression);
    return total;
  };
  return (value.type.shape ? bytes(*value.type.shape, usual_rank, size) : 0) +
         (value.elements ? bytes(*value.elements, usual_elements, element) : 0);
}

// Charges what an output takes of memory; leaves nothing large where that is spent.
void charge_bytes(ValueFacts& output, Budget& budget) {
  budget.bytes -= bytes_of(output);
  if (budget.bytes >= 0) return;
  budget.bytes = -1;
  make_small(output);
}

// Charges what an output holds of expressions; leaves none where the budget is spent.
void charge_expressions(ops::InferContext& context, ValueFacts& output, Budget& budget) {
  const auto cost_of = [](const ir::Dims& dims) {
    int64_t cost = 0;
    for (const ir::Dim& dim : dims) {
      if (!dim.is_constant()) cost += dim.complexity();
    }
    return cost;
  };
  if (output.type.shape) budget.symbols -= cost_of(*output.type.shape);
  if (output.elements) budget.symbols -= cost_of(*output.elements);
  if (budget.symbols >= 0) return;
  budget.symbols = -1;
  const auto simple = [](const ir::Dim& dim) { return dim.is_constant() || dim.as_symbol(); };
  if (output.type.shape) {
    for (ir::Dim& dim : *output.type.shape) {
      if (!simple(dim)) dim = context.unknown();
    }
  }
  if (output.elements && !std::all_of(output.elements->begin(), output.elements->end(), simple))
    output.elements = nullptr;
}

}  // namespace

void charge(ops::InferContext& context, ValueFacts& output, bool symbolic_values, Budget& budget) {
  if (symbolic_values) charge_bytes(output, budget);
  charge_expressions(context, output, budget);
}

void charge_symbols(int64_t count, Budget& budget) {
  constexpr int64_t bytes = 1000;
  if (count > static_cast<int64_t>(usual_rank))
    budget.bytes = std::max<int64_t>(budget.bytes - count * bytes, -1);
}

}  // namespace sardonyx::infer
