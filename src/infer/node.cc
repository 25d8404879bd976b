// Inference of one node.
#include <algorithm>
#include <forward_list>

#include "base/fail.h"
#include "base/small_vector.h"
#include "infer/budget.h"
#include "infer/evaluations.h"
#include "infer/infer.h"
#include "infer/signature_check.h"
#include "infer/unknowns.h"
#include "ir/origin.h"
#include "ops/custom.h"
#include "ops/objections.h"

namespace sardonyx::infer {
namespace {

thread_local int64_t evaluated = 0;

// Inputs with what has been learned of their sizes put in its place.
class Resolved {
 public:
  Resolved(std::span<const ValueFacts* const> inputs, const ir::SymbolTable& symbols)
      : symbols_(symbols), pointers_(inputs) {
    for (const ValueFacts*& input : pointers_) {
      if (input != nullptr) input = resolved(*input);
    }
  }
  std::span<const ValueFacts* const> inputs() const { return pointers_; }

 private:
  const ValueFacts* resolved(const ValueFacts& known) {
    ir::Dims shape, elements;
    const bool other_shape = known.type.shape && differ(*known.type.shape, shape);
    const bool other_elements =
        known.elements && !known.constant && differ(*known.elements, elements);
    if (!other_shape && !other_elements) return &known;
    ValueFacts& copy = copies_.emplace_front(known);
    if (other_shape) copy.type.shape = std::move(shape);
    if (other_elements) copy.elements = std::make_shared<const ir::Dims>(std::move(elements));
    return &copy;
  }

  // Nearly all are as they were.
  bool differ(const ir::Dims& dims, ir::Dims& resolved) const {
    for (size_t i = 0; i < dims.size(); ++i) {
      if (dims[i].is_constant()) continue;
      ir::Dim now = symbols_.resolved(dims[i]);
      if (now == dims[i]) continue;
      if (resolved.empty()) resolved = dims;
      resolved[i] = std::move(now);
    }
    return !resolved.empty();
  }

  const ir::SymbolTable& symbols_;
  SmallVector<const ValueFacts*, 8> pointers_;
  std::forward_list<ValueFacts> copies_;
};

bool is_fixed(const std::optional<ir::Dims>& shape) {
  return shape && std::ranges::all_of(*shape, &ir::Dim::is_constant);
}

// Sizes that fixed inputs make, and that no tensor can have.
void object_to_overflows(const ops::InferContext& context,
                         std::span<const ValueFacts* const> inputs,
                         std::span<const ValueFacts> outputs) {
  for (const ValueFacts* input : inputs) {
    if (input == nullptr || !is_fixed(input->type.shape) ||
        (input->elements && !std::ranges::all_of(*input->elements, &ir::Dim::is_constant)))
      return;
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto& shape = outputs[i].type.shape;
    if (!shape) continue;
    int64_t product = 1;
    bool overflows = false, is_empty = false;
    for (const ir::Dim& dim : *shape) {
      const auto size = dim.value();
      overflows |=
          dim.is_indefinite() || (size && __builtin_mul_overflow(product, *size, &product));
      is_empty |= size == 0;
    }
    if (overflows && !is_empty)
      ops::object(context, "the sizes of output {} overflow: they do not fit 63 bits", i);
  }
}

// Infers the node from these inputs as they are.
void infer_from(std::span<const ValueFacts* const> inputs, const ir::Node& node,
                const Binding& binding, const InferenceContext& inference,
                const ops::InferSubgraph* subgraph, std::vector<ValueFacts>& outputs) {
  const int first_symbol = inference.symbols->size();
  Budget& budget = *inference.budget;
  ops::InferContext context(node, binding.signature, inputs, *inference.symbols,
                            inference.constraints, subgraph, outputs,
                            {.symbolic_values = inference.symbolic_values,
                             .fold_predicates = inference.fold_predicates,
                             .budget = &budget.nodes,
                             .bytes = inference.symbolic_values ? &budget.bytes : nullptr});
  if (binding.signature != nullptr) check_signature(context, *binding.signature);
  if (binding.op->infer == nullptr) context.fail(ErrorCode::unsupported, "has no inference");
  ++evaluated;
  binding.op->infer(context);
  if (ops::wants_objections()) object_to_overflows(context, inputs, outputs);
  context.settle_outputs();
  for (ValueFacts& output : outputs) {
    if (inference.symbolic_values) name_elements(output, *inference.symbols);
    charge(context, output, inference.symbolic_values, budget);
    if (!output.constant && !inference.symbolic_values) {
      if (auto constant = ops::tensor_of_elements(output))
        output.constant = std::make_shared<const Tensor>(std::move(*constant));
    }
  }
  note_unknowns(context, first_symbol, inference);
  if (inference.symbolic_values) charge_symbols(inference.symbols->size() - first_symbol, budget);
}

}  // namespace

Binding bind_node(const ir::Node& node) {
  if (node.custom) return {ops::custom_signature(node), &ops::custom_operator()};
  const ops::Operator* op = ops::find_operator(node.domain, node.op_type);
  const schema::Signature* signature = schema::newest(node.domain, node.op_type);
  if (op != nullptr) return {signature, op};
  std::string advice;
  if (signature != nullptr) {
    advice =
        "either the model does not import its domain, or no kernel and no function body of it is "
        "known here";
  } else if (schema::latest_opset(node.domain) > 0 && !schema::is_standard_domain(node.domain)) {
    advice = fmt::format("it is not among the operators of {} that Sardonyx knows", node.domain);
  } else if (!schema::is_standard_domain(node.domain)) {
    advice = fmt::format(
        "domain '{}' is neither of the standard nor of a function in the model; a library with the "
        "operator can be named when the model is loaded (--library FILE)",
        node.domain);
  } else {
    const auto close = schema::closest_name(node.domain, node.op_type);
    advice = close.empty() ? "no operator of the standard has this name"
                           : fmt::format("did you mean {}?", close);
  }
  const std::string place = node.origin.empty()
                                ? ir::identify(node)
                                : fmt::format("{} ({})", ir::identify(node), node.origin);
  fail_at(place, ErrorCode::unsupported, "operator {} cannot run: {}", node.op_type, advice);
}

int64_t formulas_evaluated() { return evaluated; }

std::vector<ValueFacts> infer_node(const ir::Node& node, const Binding& binding,
                                   std::span<const ValueFacts* const> inputs,
                                   const InferenceContext& inference,
                                   const ops::InferSubgraph* subgraph) {
  std::vector<ValueFacts> outputs;
  infer_node(node, binding, inputs, inference, subgraph, outputs);
  return outputs;
}

void infer_node(const ir::Node& node, const Binding& binding,
                std::span<const ValueFacts* const> inputs, const InferenceContext& inference,
                const ops::InferSubgraph* subgraph, std::vector<ValueFacts>& outputs) {
  // Formulas speak of a node's first output. A file may leave it out, though the standard forbids
  // that: it then is one without a name.
  if (node.outputs.empty()) {
    ir::Node named = node;  // graphs are shared, not copied
    named.outputs.emplace_back();
    infer_node(named, binding, inputs, inference, subgraph, outputs);
    return outputs.clear();
  }
  const bool is_spent = inference.budget->bytes < 0;
  if (!inference.symbolic_values || (!inference.symbols->has_learned() && !is_spent))
    return infer_from(inputs, node, binding, inference, subgraph, outputs);
  const Resolved resolved(inputs, *inference.symbols);
  if (!is_spent) return infer_from(resolved.inputs(), node, binding, inference, subgraph, outputs);
  const SmallInputs small(resolved.inputs());
  infer_from(small.inputs(), node, binding, inference, subgraph, outputs);
}

}  // namespace sardonyx::infer
