#include "ops/prepare_context.h"

#include "ir/tensor.h"

namespace sardonyx::ops {
namespace {

const ValueFacts nothing_known;

const ValueFacts& at(std::span<const ValueFacts* const> values, int i) {
  const auto index = static_cast<size_t>(i);
  return i >= 0 && index < values.size() && values[index] != nullptr ? *values[index]
                                                                     : nothing_known;
}

}  // namespace

const ValueType& PrepareContext::in_type(int i) const { return at(inputs_, i).type; }
const ValueType& PrepareContext::out_type(int i) const { return at(outputs_, i).type; }
const ValueFacts& PrepareContext::known(int i) const { return at(inputs_, i); }

std::optional<int64_t> PrepareContext::in_rank(int i) const {
  const auto& shape = in_type(i).shape;
  return shape ? std::optional(static_cast<int64_t>(shape->size())) : std::nullopt;
}

const Tensor* PrepareContext::constant(int i) const {
  const ValueFacts& value = at(inputs_, i);
  return value.constant.get();
}

Tensor PrepareContext::tensor_attribute(std::string_view name) const {
  const ir::TensorProto* proto = attr_tensor(name);
  if (proto == nullptr) fail("attribute '{}' is required and absent; add it to the node", name);
  return ir::to_tensor(*proto);
}

std::unique_ptr<PreparedGraph> PrepareContext::prepare_graph(
    const ir::Graph& graph, std::span<const ValueFacts> inputs) const {
  if (!services_.prepare_graph) fail("a subgraph cannot be prepared here");
  return services_.prepare_graph(graph, inputs);
}

}  // namespace sardonyx::ops
