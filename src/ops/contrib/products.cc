// com.microsoft: FusedConv, FusedGemm, FusedMatMul and TransposeMatMul, decomposed in operators of
// the standard; the fuser brings together again what one kernel does.
#include "ops/contrib/body.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace contrib_products_unit {
namespace {

void keep(const UpgradeContext& ctx, std::initializer_list<std::string_view> names,
          Attributes& attributes) {
  for (const std::string_view name : names) {
    const ir::Attribute* found = std::as_const(ctx).old().node().find(name);
    if (found != nullptr) attributes.push_back(*found);
  }
}

void fused_conv(UpgradeContext& ctx) {
  Body body(ctx);
  Attributes attributes;
  keep(ctx, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}, attributes);
  Names inputs{body.input(0), body.input(1)};
  if (body.has(2)) inputs.push_back(body.input(2));
  std::string y = body.op("Conv", inputs, attributes);
  if (body.has(3)) y = body.op("Add", {y, body.input(3)});
  const NodeView node = ctx.old();
  y = activate(body, y, node.attr_string("activation", ""),
               node.attr_floats("activation_params").value_or(std::vector<float>()));
  body.give(0, "Identity", {y});
}

std::vector<float> activation_numbers(const UpgradeContext& ctx) {
  std::vector<float> numbers;
  for (const char* name : {"activation_alpha", "activation_beta"}) {
    if (!ctx.old().has_attribute(name)) break;
    numbers.push_back(ctx.old().attr_float(name));
  }
  return numbers;
}

void fused_gemm(UpgradeContext& ctx) {
  Body body(ctx);
  Attributes attributes;
  keep(ctx, {"alpha", "beta", "transA", "transB"}, attributes);
  Names inputs{body.input(0), body.input(1)};
  if (body.has(2)) inputs.push_back(body.input(2));
  const std::string y = body.op("Gemm", inputs, attributes);
  body.give(0, "Identity",
            {activate(body, y, ctx.old().attr_string("activation", ""), activation_numbers(ctx))});
}

// The operand with the dimensions the product wants: its batch dimensions and rows trade places
// (transBatch: dimension 0 moves behind them), then rows and columns.
std::string arranged(Body& body, size_t input, bool transposed, bool batch_transposed) {
  if (!transposed && !batch_transposed) return body.input(input);
  const int64_t rank = body.rank(input);
  if (rank < 2) return body.input(input);  // a vector has nothing to turn
  std::vector<int64_t> order;
  for (int64_t i = 0; i < rank; ++i) order.push_back(i);
  if (batch_transposed) {
    if (rank < 3)
      body.context().fail(ErrorCode::invalid_model,
                          "{} needs three dimensions or more to move its "
                          "batch; it has {}",
                          body.node().input_name(static_cast<int>(input)), rank);
    order.erase(order.begin());
    order.insert(order.end() - 1, 0);
  }
  if (transposed) std::swap(order[order.size() - 1], order[order.size() - 2]);
  return body.transpose(body.input(input), order);
}

// The product of two arrangements, times alpha.
std::string matmul(Body& body) {
  const NodeView node = body.node();
  const auto flag = [&](const char* name) { return node.attr_int(name, 0) != 0; };
  const std::string a = arranged(body, 0, flag("transA"), flag("transBatchA")),
                    b = arranged(body, 1, flag("transB"), flag("transBatchB"));
  const float alpha = node.attr_float("alpha", 1);
  const std::string y = body.op("MatMul", {a, b});
  return alpha == 1 ? y : body.op("Mul", {y, body.number(alpha, 0)});
}

void fused_matmul(UpgradeContext& ctx) {
  Body body(ctx);
  body.give(0, "Identity", {matmul(body)});
}

void fused_matmul_activation(UpgradeContext& ctx) {
  Body body(ctx);
  const std::string y = matmul(body);
  body.give(0, "Identity",
            {activate(body, y, ctx.old().attr_string("activation"), activation_numbers(ctx))});
}

constexpr Operator operators[] = {
    {.name = "FusedConv", .domain = "com.microsoft", .upgrade = fused_conv},
    {.name = "FusedGemm", .domain = "com.microsoft", .upgrade = fused_gemm},
    {.name = "FusedMatMul", .domain = "com.microsoft", .upgrade = fused_matmul},
    {.name = "FusedMatMulActivation",
     .domain = "com.microsoft",
     .upgrade = fused_matmul_activation},
    {.name = "TransposeMatMul", .domain = "com.microsoft", .upgrade = fused_matmul},
};

}  // namespace
}  // namespace contrib_products_unit

std::span<const Operator> contrib_products_operators() { return contrib_products_unit::operators; }

}  // namespace sardonyx::ops
