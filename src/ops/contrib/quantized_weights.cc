// com.microsoft: products with weights of few bits that other products, normalisations and
// activations were fused with, and with weights of float8 and of 4-bit floats in blocks.
#include <array>
#include <cmath>
#include <limits>

#include "ops/contrib/body.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace contrib_quantized_weights_unit {
namespace {

// --- MatMulNBits with what stands around it -----------------------------------------------------

// The input, plus `skip` and normalised where these are there; makes output `sum`, which is that
// sum.
std::string normalised(Body& body, size_t skip, size_t scale, size_t sum, float epsilon) {
  UpgradeContext& ctx = body.context();
  std::string x = body.input(0);
  if (body.has(skip)) {
    const std::string made = body.wants(sum) ? ctx.node().outputs[sum] : body.fresh_name();
    body.node_for("Add", {x, body.input(skip)}, {made});
    x = made;
  } else if (body.wants(sum)) {
    ctx.fail(ErrorCode::invalid_model, "the output input_skip_bias_sum needs the input skip");
  }
  if (!body.has(scale)) {
    if (body.has(skip)) ctx.fail(ErrorCode::invalid_model, "skip needs the input norm_scale");
    return x;
  }
  return body.op("RMSNormalization", {x, body.input(scale)},
                 {int_attribute("axis", -1),
                  float_attribute("epsilon", ctx.old().attr_float("epsilon", epsilon))});
}

// The product of x with the weights of input `first`, whose scales and bias stand behind it.
std::string product(Body& body, const std::string& x, size_t first, int64_t columns) {
  const NodeView node = body.node();
  ir::Node made;
  made.domain = "com.microsoft", made.op_type = "MatMulNBits";
  made.inputs = {x, body.input(first), body.input(first + 1)};
  if (body.has(first + 2)) made.inputs.insert(made.inputs.end(), {"", "", body.input(first + 2)});
  made.outputs = {body.fresh_name()};
  made.attributes = {int_attribute("K", node.attr_int("K")), int_attribute("N", columns),
                     int_attribute("bits", node.attr_int("bits", 4)),
                     int_attribute("block_size", node.attr_int("block_size")),
                     int_attribute("accuracy_level", node.attr_int("accuracy_level", 0))};
  const std::string name = made.outputs[0];
  body.context().before(std::move(made));
  return name;
}

void projections(UpgradeContext& ctx) {
  Body body(ctx);
  const std::string x = normalised(body, 1, 2, 3, 1e-6f);
  const int64_t of_queries = ctx.old().attr_int("Nq"), of_keys = ctx.old().attr_int("Nkv");
  for (const size_t i : {0, 1, 2})
    body.give(i, "Identity", {product(body, x, 3 + 3 * i, i == 0 ? of_queries : of_keys)});
}

void gated_products(UpgradeContext& ctx) {
  Body body(ctx);
  const std::string activation = ctx.old().attr_string("activation", "");
  const bool swish = activation == "silu" || activation == "swish";
  if (!swish && activation != "gelu" && activation != "relu")
    ctx.fail(ErrorCode::unsupported, "activation must be silu, swish, gelu or relu; got '{}'",
             activation);
  const std::string x = normalised(body, 1, 2, 1, 1e-5f);
  const int64_t columns = ctx.old().attr_int("N");
  const std::string gate = product(body, x, 3, columns), up = product(body, x, 6, columns);
  const std::string open = body.op(swish                  ? "Swish"
                                   : activation == "gelu" ? "Gelu"
                                                          : "Relu",
                                   {gate});
  body.give(0, "Mul", {open, up});
}

// --- weights of float8 and of 4-bit floats ------------------------------------------------------

int64_t block_size(const UpgradeContext& ctx, int64_t otherwise) {
  const int64_t size = ctx.old().attr_int("block_size", otherwise);
  if (size < 1) ctx.fail(ErrorCode::invalid_model, "block_size must be at least 1; got {}", size);
  return size;
}

// Makes output 0: A, in float32, times the weights [N, K] transposed, and the bias.
void give_product(Body& body, const std::string& a, const std::string& weights, size_t bias) {
  std::string y = body.op("MatMul", {a, body.transpose(weights, {1, 0})});
  if (body.has(bias)) y = body.op("Add", {y, body.cast(body.input(bias), ElementType::float32)});
  body.give(0, "CastLike", {y, body.input(0)});
}

// A scale for each block of each row, repeated for the `columns` (a vector of one) of them.
std::string of_columns(Body& body, const std::string& scales, int64_t block,
                       const std::string& columns) {
  const std::string place =
      body.op("Div", {body.op("Range", {body.context().constant(Tensor::scalar<int64_t>(0)),
                                        body.op("Squeeze", {columns}),
                                        body.context().constant(Tensor::scalar<int64_t>(1))}),
                      body.context().constant(Tensor::scalar<int64_t>(block))});
  return body.op("Gather", {scales, place}, {int_attribute("axis", 1)});
}

void float8_weights(UpgradeContext& ctx) {
  Body body(ctx);
  const int64_t block = block_size(ctx, 128);
  const std::string weights =
      body.op("Mul", {body.cast(body.input(1), ElementType::float32),
                      of_columns(body, body.input(2), block, body.size_of(body.input(1), 1))});
  std::string a = body.cast(body.input(0), ElementType::float32);
  if (body.has(3)) {
    const std::string scale = body.op("Reshape", {body.input(3), body.ints({})});
    const std::string small = body.cast(body.op("Div", {a, scale}), ElementType::float8e4m3fn);
    a = body.op("Mul", {body.cast(small, ElementType::float32), scale});
  }
  give_product(body, a, weights, 4);
}

// Two halves of a byte stand for these.
constexpr std::array<float, 16> small_floats = {0,     0.5f,  1,  1.5f,  2,  3,  4,  6,
                                                -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};

// What a byte is as float8e4m3fn.
float float8_of(int byte) {
  const int exponent = byte >> 3 & 15, digits = byte & 7;
  const float sign = byte >= 128 ? -1.0f : 1.0f;
  if (exponent == 15 && digits == 7) return std::numeric_limits<float>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(digits), -9);
  return sign * std::ldexp(static_cast<float>(8 + digits), exponent - 10);
}

std::string looked_up(Body& body, const Tensor& table, const std::string& bytes) {
  return body.op("Gather",
                 {body.context().constant(table, "table"), body.cast(bytes, ElementType::int32)});
}

void float4_weights(UpgradeContext& ctx) {
  Body body(ctx);
  const int64_t block = block_size(ctx, 16);
  const auto byte = [&](uint8_t value) { return ctx.constant(Tensor::scalar<uint8_t>(value)); };
  const std::string low = body.op("BitwiseAnd", {body.input(1), byte(15)});
  const std::string high =
      body.op("BitShift", {body.input(1), byte(4)}, {string_attribute("direction", "RIGHT")});
  const std::string both = body.op("Concat", {body.unsqueeze(low, {2}), body.unsqueeze(high, {2})},
                                   {int_attribute("axis", 2)});
  const Tensor floats = Tensor::of<float>(small_floats, {16});
  std::array<float, 256> wide{};
  for (int i = 0; i < 256; ++i) wide[static_cast<size_t>(i)] = float8_of(i);
  const Tensor scales = Tensor::of<float>(wide, {256});
  const std::string numbers = body.reshape(looked_up(body, floats, both), {0, -1});
  const std::string each =
      of_columns(body, looked_up(body, scales, body.input(2)), block, body.size_of(numbers, 1));
  const std::string all = body.op("Reshape", {body.input(3), body.ints({})});
  const std::string weights = body.op("Mul", {body.op("Mul", {numbers, each}), all});
  // As the documentation says, they are rounded to the type of A.
  const std::string rounded =
      body.cast(body.op("CastLike", {weights, body.input(0)}), ElementType::float32);
  give_product(body, body.cast(body.input(0), ElementType::float32), rounded, 5);
}

constexpr Operator operators[] = {
    {.name = "MatMulBlockQuantizedFp4Weight", .domain = "com.microsoft", .upgrade = float4_weights},
    {.name = "MatMulBlockQuantizedFp8Weight", .domain = "com.microsoft", .upgrade = float8_weights},
    {.name = "MatMulNBitsMlp", .domain = "com.microsoft", .upgrade = gated_products},
    {.name = "MatMulNBitsQkv", .domain = "com.microsoft", .upgrade = projections},
};

}  // namespace
}  // namespace contrib_quantized_weights_unit

std::span<const Operator> contrib_quantized_weights_operators() {
  return contrib_quantized_weights_unit::operators;
}

}  // namespace sardonyx::ops
