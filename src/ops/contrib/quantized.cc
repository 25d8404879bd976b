// The quantised operators of com.microsoft, decomposed as DequantizeLinear, the operator of the
// standard, QuantizeLinear; or, where the sums are integers, as MatMulInteger with its scales. What
// is recognised in quantised models of the standard is then recognised here too.
#include "ops/contrib/body.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace contrib_quantized_unit {
namespace {

// Inputs i, i + 1, i + 2 are a tensor, its scale, its zero point.
std::string dequantized(Body& body, size_t i, Attributes attributes = {}) {
  Names inputs{body.input(i), body.input(i + 1)};
  if (body.has(i + 2)) inputs.push_back(body.input(i + 2));
  return body.op("DequantizeLinear", inputs, std::move(attributes));
}

// Output 0 from a float value; scale and zero point are inputs `scale` and `scale` + 1. Without a
// zero point the type is that of input `like`.
void give_quantized(Body& body, const std::string& value, size_t scale, size_t like,
                    Attributes attributes = {}) {
  Names inputs{value, body.input(scale)};
  if (body.has(scale + 1)) {
    inputs.push_back(body.input(scale + 1));
  } else if (body.context().element(like) != ElementType::undefined) {
    attributes.push_back(
        int_attribute("output_dtype", static_cast<int64_t>(body.context().element(like))));
  }
  body.give(0, "QuantizeLinear", inputs, std::move(attributes));
}

Attributes kept(const UpgradeContext& ctx, std::initializer_list<std::string_view> names) {
  Attributes attributes;
  for (const std::string_view name : names) {
    if (const ir::Attribute* found = ctx.old().node().find(name)) attributes.push_back(*found);
  }
  return attributes;
}

void binary(UpgradeContext& ctx, std::string_view op) {
  Body body(ctx);
  const std::string a = dequantized(body, 0), b = dequantized(body, 3);
  give_quantized(body, body.op(op, {a, b}), 6, 0);
}
void add(UpgradeContext& ctx) { binary(ctx, "Add"); }
void mul(UpgradeContext& ctx) { binary(ctx, "Mul"); }

void leaky_relu(UpgradeContext& ctx) {
  Body body(ctx);
  const float alpha = ctx.old().attr_float("alpha", 0.01f);
  const std::string x = dequantized(body, 0);
  give_quantized(body, body.op("LeakyRelu", {x}, {float_attribute("alpha", alpha)}), 3, 0);
}

void sigmoid(UpgradeContext& ctx) {
  Body body(ctx);
  give_quantized(body, body.op("Sigmoid", {dequantized(body, 0)}), 3, 0);
}

void reduce_mean(UpgradeContext& ctx) {
  Body body(ctx);
  const NodeView node = ctx.old();
  Names inputs{dequantized(body, 0)};
  const auto axes = node.attr_ints("axes").value_or(std::vector<int64_t>());
  if (!axes.empty()) inputs.push_back(body.ints(axes));
  const Attributes attributes{int_attribute("keepdims", node.attr_int("keepdims", 1))};
  give_quantized(body, body.op("ReduceMean", inputs, attributes), 3, 0);
}

// Up to version 12 Softmax saw its input as a matrix, cut at the axis.
void softmax(UpgradeContext& ctx) {
  Body body(ctx);
  const NodeView node = ctx.old();
  const int64_t opset = node.attr_int("opset", 13);
  const int64_t axis = node.attr_int("axis", -1);
  const std::string x = dequantized(body, 0);
  if (opset >= 13) {
    give_quantized(body, body.op("Softmax", {x}, {int_attribute("axis", axis)}), 3, 0);
    return;
  }
  const std::string flat = body.op("Flatten", {x}, {int_attribute("axis", axis)});
  const std::string y = body.op("Softmax", {flat}, {int_attribute("axis", 1)});
  const std::string shape = body.op("Shape", {x});
  give_quantized(body, body.op("Reshape", {y, shape}, {int_attribute("allowzero", 1)}), 3, 0);
}

std::vector<int64_t> channels_first(int64_t rank) {
  std::vector<int64_t> order{0, rank - 1};
  for (int64_t i = 1; i + 1 < rank; ++i) order.push_back(i);
  return order;
}
std::vector<int64_t> channels_last(int64_t rank) {
  std::vector<int64_t> order{0};
  for (int64_t i = 2; i < rank; ++i) order.push_back(i);
  order.push_back(1);
  return order;
}

void pooled(UpgradeContext& ctx, std::string_view op, Attributes attributes) {
  Body body(ctx);
  const bool last = ctx.old().attr_int("channels_last", 0) != 0;
  std::string x = dequantized(body, 0);
  if (last) x = body.transpose(x, channels_first(body.rank(0)));
  std::string y = body.op(op, {x}, std::move(attributes));
  if (last) y = body.transpose(y, channels_last(body.rank(0)));
  give_quantized(body, y, 3, 0);
}

void average_pool(UpgradeContext& ctx) {
  pooled(
      ctx, "AveragePool",
      kept(ctx, {"auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides"}));
}
void global_average_pool(UpgradeContext& ctx) { pooled(ctx, "GlobalAveragePool", {}); }

void conv(UpgradeContext& ctx) {
  Body body(ctx);
  const bool last = ctx.old().attr_int("channels_last", 0) != 0;
  Names inputs;
  for (size_t i = 0; i < 9; ++i) inputs.push_back(body.input(i));
  while (inputs.back().empty()) inputs.pop_back();
  if (last) inputs[0] = body.transpose(inputs[0], channels_first(body.rank(0)));
  const Attributes attributes =
      kept(ctx, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"});
  if (!last) return body.give(0, "QLinearConv", inputs, attributes);
  const std::string y = body.op("QLinearConv", inputs, attributes);
  body.give(0, "Transpose", {y}, {ints_attribute("perm", channels_last(body.rank(0)))});
}

void concat(UpgradeContext& ctx) {
  Body body(ctx);
  const size_t count = ctx.node().inputs.size();
  if (count < 5 || (count - 2) % 3 != 0) {
    ctx.fail(ErrorCode::invalid_model,
             "takes a scale and a zero point, then a tensor, a scale and a zero point for each "
             "part; the node has {} inputs",
             count);
  }
  Names parts;
  for (size_t i = 2; i < count; i += 3) parts.push_back(dequantized(body, i));
  const std::string y =
      body.op("Concat", parts, {int_attribute("axis", ctx.old().attr_int("axis"))});
  give_quantized(body, y, 0, 2);
}

void where(UpgradeContext& ctx) {
  Body body(ctx);
  const std::string x = dequantized(body, 1), y = dequantized(body, 4);
  give_quantized(body, body.op("Where", {body.input(0), x, y}), 7, 1);
}

void quantize(UpgradeContext& ctx) {
  Body body(ctx);
  Names inputs{body.input(0), body.input(1)};
  if (body.has(2)) inputs.push_back(body.input(2));
  body.give(0, "QuantizeLinear", inputs, kept(ctx, {"axis"}));
}

void dequantize(UpgradeContext& ctx) {
  Body body(ctx);
  Names inputs{body.input(0), body.input(1)};
  if (body.has(2)) inputs.push_back(body.input(2));
  body.give(0, "DequantizeLinear", inputs, kept(ctx, {"axis"}));
}

constexpr Operator operators[] = {
    {.name = "QLinearAdd", .domain = "com.microsoft", .upgrade = add},
    {.name = "QLinearAveragePool", .domain = "com.microsoft", .upgrade = average_pool},
    {.name = "QLinearConcat", .domain = "com.microsoft", .upgrade = concat},
    {.name = "QLinearConv", .domain = "com.microsoft", .upgrade = conv},
    {.name = "QLinearGlobalAveragePool", .domain = "com.microsoft", .upgrade = global_average_pool},
    {.name = "QLinearLeakyRelu", .domain = "com.microsoft", .upgrade = leaky_relu},
    {.name = "QLinearMul", .domain = "com.microsoft", .upgrade = mul},
    {.name = "QLinearReduceMean", .domain = "com.microsoft", .upgrade = reduce_mean},
    {.name = "QLinearSigmoid", .domain = "com.microsoft", .upgrade = sigmoid},
    {.name = "QLinearSoftmax", .domain = "com.microsoft", .upgrade = softmax},
    {.name = "QLinearWhere", .domain = "com.microsoft", .upgrade = where},
    {.name = "QuantizeLinear", .domain = "com.microsoft", .upgrade = quantize},
    {.name = "DequantizeLinear", .domain = "com.microsoft", .upgrade = dequantize},
};

}  // namespace
}  // namespace contrib_quantized_unit

std::span<const Operator> contrib_quantized_operators() {
  return contrib_quantized_unit::operators;
}

}  // namespace sardonyx::ops
