#include "passes/layout/layout.h"

#include <algorithm>
#include <utility>

#include "ir/node_values.h"
#include "ops/internal/elementwise.h"
#include "ops/internal/node.h"
#include "ops/internal/products.h"
#include "ops/internal/quantized.h"
#include "ops/traits.h"
#include "passes/layout/layout_walk.h"

namespace sardonyx::passes {
namespace {

using ops::internal::Conv;
using ops::internal::ConvTranspose;
using ops::internal::QuantizedConv;

template <class Op>
bool is_either(const ir::Node& node) {
  return ops::internal::is<Op>(node) || ops::internal::is_standard<Op>(node);
}

}  // namespace

bool LayoutWalk::run() {
  find_wanted();
  bool changed = false;
  std::vector<ir::Node> nodes = std::move(graph_.nodes);
  graph_.nodes.clear();
  for (size_t i = 0; i < nodes.size(); ++i) {
    ir::Node& node = nodes[i];
    if (size_t used = shuffle(nodes, i); used > 0) {
      i += used - 1;
      changed = true;
    } else if (convert(node)) {
      changed = true;
    } else {
      keep(std::move(node));
    }
  }
  for (const ir::ValueInfo& output : graph_.outputs) need_first(output.name);
  return changed;
}

bool LayoutWalk::wants_nhwc(const ir::Node& node) const {
  const std::string& op = node.op_type;
  if (op == "QLinearConv" || op == "Transpose" || ops::internal::is<QuantizedConv>(node))
    return true;
  if (is_either<Conv>(node)) {
    const Tensor* w = constant(ir::input(node, Conv::w));
    if (w != nullptr && w->rank() > 1 && w->shape()[1] != 1) return true;
  }
  if (is_either<ConvTranspose>(node) &&
      transposed_weights(node, ops::internal::conv_transpose_of(ops::NodeView(node, nullptr))))
    return true;
  return std::ranges::any_of(node.outputs,
                             [&](const std::string& y) { return wanted_nhwc_.contains(y); });
}

void LayoutWalk::find_wanted() {
  for (auto node = graph_.nodes.rbegin(); node != graph_.nodes.rend(); ++node) {
    if (wants_nhwc(*node)) wanted_nhwc_.insert(node->inputs.begin(), node->inputs.end());
  }
}

bool LayoutWalk::convert(ir::Node& node) {
  if (node.inputs.empty() || node.outputs.empty()) return false;
  const std::string& op = node.op_type;
  const bool standard = node.domain.empty();
  if (is_either<Conv>(node)) return conv(node);
  if (is_either<ConvTranspose>(node)) return conv_transpose(node);
  if (op == "QLinearConv" && standard) return conv_int8(node);
  if (ops::internal::is<QuantizedConv>(node)) return quantized_conv(node);
  if (ops::internal::is<ops::internal::FusedElementwise>(node))
    return is_any_nhwc(node) && fusion(node);
  if (!standard) return false;
  if (op == "Transpose") return transposed(node);
  if (!is_any_nhwc(node)) return false;
  if (ops::has_trait(node, ops::unary)) return unary(node);
  if (op == "QuantizeLinear" || op == "DequantizeLinear") return scaling(node);
  if (op == "DynamicQuantizeLinear") return dynamic_quantization(node);
  if (ops::has_trait(node, ops::broadcasts)) return broadcasting(node);
  if (!is_image(node.inputs[0])) return false;
  if (op == "MaxPool" || op == "AveragePool") return pool(node);
  if (op == "GlobalAveragePool") return global_pool(node, "ReduceMean");
  if (op == "GlobalMaxPool") return global_pool(node, "ReduceMax");
  if (op == "LRN") return is_float_image(node.inputs[0]) && nhwc_form(node);
  if (op == "InstanceNormalization" || op == "GroupNormalization")
    return is_float_image(node.inputs[0]) && nhwc_form(node);
  if (op == "BatchNormalization")
    return is_float_image(node.inputs[0]) && batch_normalization(node);
  if (op == "Concat") return concat(node);
  if (op == "Split" || op == "Softmax" || op == "LogSoftmax") return along_axis(node);
  if (op == "Slice") return slice(node);
  if (op == "Pad") return pad(node);
  if (op == "Resize") return resize(node);
  if (op == "SpaceToDepth") return nhwc_form(node);
  if (op == "DepthToSpace") return depth_to_space(node);
  if (ops::has_trait(node, ops::reduces)) return reduction(node);
  return false;
}

std::vector<int64_t> to_nhwc(int64_t rank) {
  std::vector<int64_t> perm{0};
  for (int64_t i = 2; i < rank; ++i) perm.push_back(i);
  perm.push_back(1);
  return perm;
}

std::vector<int64_t> to_channels_first(int64_t rank) {
  std::vector<int64_t> perm{0, rank - 1};
  for (int64_t i = 1; i + 1 < rank; ++i) perm.push_back(i);
  return perm;
}

bool convert_to_nhwc(ir::Graph& graph, const infer::Scope& scope) {
  return LayoutWalk(graph, scope).run();
}

}  // namespace sardonyx::passes
