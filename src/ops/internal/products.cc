#include "ops/internal/products.h"

#include <climits>

#include "ops/internal/node.h"
#include "ops/shared/conv_params.h"

namespace sardonyx::ops::internal {
namespace {

// A list of sizes, which must not be below 0.
void check_sizes(const NodeView& node, std::string_view name, std::span<const int64_t> sizes) {
  for (const int64_t size : sizes) {
    if (size < 0 || size > INT32_MAX)
      node.fail("every entry of '{}' must be in [0, {}]; got {}", name, INT32_MAX, size);
  }
}
std::vector<int64_t> read_sizes(const NodeView& node, std::string_view name) {
  std::vector<int64_t> sizes = node.attr_ints(name).value_or(std::vector<int64_t>());
  check_sizes(node, name, sizes);
  return sizes;
}

template <class Op>
bool is_either(const ir::Node& node) {
  return is<Op>(node) || is_standard<Op>(node);
}

}  // namespace

Conv conv_of(const NodeView& node) {
  Conv conv;
  if (ir::is_internal(node.node())) {
    conv = from_node<Conv>(node.node());
    check_window(node, conv.window);
    check_group(node, conv.group);
    return conv;
  }
  conv.window = read_window(node, WindowKind::convolution);
  conv.group = read_group(node);
  return conv;
}

ConvTranspose conv_transpose_of(const NodeView& node) {
  ConvTranspose conv;
  if (ir::is_internal(node.node())) {
    conv = from_node<ConvTranspose>(node.node());
    check_window(node, conv.window);
    check_group(node, conv.group);
    check_sizes(node, "output_padding", conv.output_padding);
    check_sizes(node, "output_shape", conv.output_shape);
    return conv;
  }
  conv.window = read_window(node, WindowKind::convolution);
  conv.group = read_group(node);
  conv.output_padding = read_sizes(node, "output_padding");
  conv.output_shape = read_sizes(node, "output_shape");
  return conv;
}

MatMul matmul_of(const NodeView& node) {
  return ir::is_internal(node.node()) ? from_node<MatMul>(node.node()) : MatMul();
}

Gemm gemm_of(const NodeView& node) {
  if (ir::is_internal(node.node())) return from_node<Gemm>(node.node());
  Gemm gemm;
  gemm.alpha = node.attr_float("alpha", gemm.alpha);
  gemm.beta = node.attr_float("beta", gemm.beta);
  gemm.trans_a = node.attr_int("transA", 0) != 0;
  gemm.trans_b = node.attr_int("transB", 0) != 0;
  return gemm;
}

std::optional<Product> product_of(const ir::Node& node) {
  const NodeView view(node, nullptr);
  if (is_either<Conv>(node)) return conv_of(view);
  if (is_either<ConvTranspose>(node)) return conv_transpose_of(view);
  if (is_either<MatMul>(node)) return matmul_of(view);
  if (is_either<Gemm>(node)) return gemm_of(view);
  return std::nullopt;
}

void write(const Product& product, ir::Node& node) {
  std::visit([&](const auto& op) { write(op, node); }, product);
}

const FusedActivation& activation_of(const Product& product) {
  return std::visit([](const auto& op) -> const FusedActivation& { return op.activation; },
                    product);
}

}  // namespace sardonyx::ops::internal
