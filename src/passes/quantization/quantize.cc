#include "passes/quantization/quantize.h"

#include <algorithm>

#include "ops/traits.h"
#include "passes/quantization/convolutions.h"
#include "passes/quantization/products.h"
#include "passes/quantization/quantized_graph.h"

namespace sardonyx::passes {
namespace {

// Operators that move bytes, or pick the largest, give the same before and after scaling.
void pass_through(QuantizedGraph& graph, size_t i) {
  const auto to = graph.quantized(graph.index.node(i));
  if (!to) return;
  const size_t at = graph.sole_producer(to->value);
  if (at == graph.index.size()) return;
  const ir::Node& moved = graph.index.node(at);
  if (!ops::has_trait(moved, ops::keeps_quantization) || moved.outputs.size() != 1) return;
  const auto from = graph.dequantized_by_one(moved.inputs[0]);
  if (!from || !graph.same_parameters(*from, *to)) return;
  ir::Node node = moved;
  node.inputs[0] = from->value;
  node.outputs = graph.index.node(i).outputs;
  graph.replace(i, std::move(node), {at}, {moved.inputs[0]});
}

}  // namespace

bool has_quantized_nodes(const ir::Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const ir::Node& node) {
    return is_op(&node, "DequantizeLinear") || is_op(&node, "MatMulInteger") ||
           is_op(&node, "QLinearMatMul") || is_op(&node, "ConvInteger");
  });
}

void fuse_quantized(GraphIndex& index) {
  QuantizedGraph quantized(index);
  for (size_t i = 0; i < index.size(); ++i) {
    if (!index.is_dead(i)) pass_through(quantized, i);
  }
  for (size_t i = 0; i < index.size(); ++i) {
    if (!index.is_dead(i)) {
      quantize_conv(quantized, i) || scale_conv_integer(quantized, i) ||
          quantize_product_to_bytes(quantized, i);
    }
  }
  for (size_t i = 0; i < index.size(); ++i) {
    if (!index.is_dead(i)) quantize_product(quantized, i);
  }
}

}  // namespace sardonyx::passes
