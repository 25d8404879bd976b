// com.microsoft: biases by the distance of two positions, and attention to what is near
// (LongformerAttention).
#include <cmath>
#include <limits>

#include "ops/contrib/padding.h"
#include "ops/contrib/projection.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace contrib_position_biases_unit {
namespace {

std::string counting(Body& body, const std::string& count) {
  return body.op("Range",
                 {body.context().constant(Tensor::scalar<int64_t>(0)), body.op("Squeeze", {count}),
                  body.context().constant(Tensor::scalar<int64_t>(1))});
}

std::string floating(Body& body, float value) {
  return body.context().constant(Tensor::scalar<float>(value), "number");
}

// --- RelativePositionBias -----------------------------------------------------------------------

// Which of `buckets` a distance, not negative and float32, falls in: each has its own up to the
// half of them, the others grow with its logarithm up to `most`.
std::string bucket(Body& body, const std::string& distance, int64_t buckets, int64_t most) {
  const int64_t exact = buckets / 2;
  // In this order of roundings, which decides about distances at the border of two buckets.
  const auto span =
      static_cast<float>(std::log(static_cast<double>(most) / static_cast<double>(exact)));
  const std::string at_least = body.op("Max", {distance, floating(body, 1)});
  const std::string logarithm =
      body.op("Log", {body.op("Div", {at_least, floating(body, static_cast<float>(exact))})});
  const std::string share = body.op("Div", {logarithm, floating(body, span)});
  const std::string more = body.op(
      "Floor", {body.op("Mul", {share, floating(body, static_cast<float>(buckets - exact))})});
  const std::string far =
      body.op("Min", {body.op("Add", {more, floating(body, static_cast<float>(exact))}),
                      floating(body, static_cast<float>(buckets - 1))});
  const std::string is_near =
      body.op("Less", {distance, floating(body, static_cast<float>(exact))});
  return body.op("Where", {is_near, distance, far});
}

void relative_position_bias(UpgradeContext& ctx) {
  Body body(ctx);
  const bool both = ctx.old().attr_int("is_bidirectional", 0) != 0;
  const int64_t most = ctx.old().attr_int("max_distance");
  const ir::Dim* rows = body.dim(0, 0);
  if (rows == nullptr || !rows->value())
    ctx.fail(ErrorCode::unsupported, "the number of buckets in bias_table must be known");
  const int64_t count = *rows->value(), buckets = both ? count / 2 : count;
  if (buckets < 2 || (both && count % 2 != 0) || count > 1 << 20)
    ctx.fail(ErrorCode::invalid_model, "there must be from {} buckets to 2^20{}; there are {}",
             both ? 4 : 2, both ? ", an even number" : "", count);
  if (most <= buckets / 2)
    ctx.fail(ErrorCode::invalid_model,
             "max_distance must be more than {}, half of the buckets; got {}", buckets / 2, most);
  const auto length = [&](size_t i) { return body.reshape(body.input(i), {1}); };
  const std::string queries = body.unsqueeze(counting(body, length(1)), {1});
  const std::string difference =
      body.cast(body.op("Sub", {counting(body, length(2)), queries}), ElementType::float32);
  std::string chosen;
  if (both) {
    const std::string later = body.op("Greater", {difference, floating(body, 0)});
    const std::string offset =
        body.op("Where", {later, floating(body, static_cast<float>(buckets)), floating(body, 0)});
    chosen = body.op("Add", {bucket(body, body.op("Abs", {difference}), buckets, most), offset});
  } else {
    const std::string before = body.op("Max", {body.op("Neg", {difference}), floating(body, 0)});
    chosen = bucket(body, before, buckets, most);
  }
  // Its shape says buckets first, its elements lie head by head.
  const std::string table = body.reshape(body.input(0), {-1, count});
  const std::string bias =
      body.op("Gather", {table, body.cast(chosen, ElementType::int64)}, {int_attribute("axis", 1)});
  body.give(0, "Unsqueeze", {bias, body.ints({0})});
}

// --- GatedRelativePositionBias ------------------------------------------------------------------

void gated_bias(UpgradeContext& ctx) {
  Body body(ctx);
  const int64_t heads = head_count(ctx);
  const bool packed = body.has(6);
  if (body.rank(0) != (packed ? 2 : 3))
    ctx.fail(ErrorCode::invalid_model,
             "query_layer must be [batch, length, hidden], with token_offset [tokens, hidden]; its "
             "rank is {}",
             body.rank(0));
  const std::string rows = packed ? with_padding(body, body.input(0), 6) : body.input(0);
  const std::string query = four_dimensional(body, body.op("Add", {rows, body.input(1)}), heads);
  const std::string linear =
      body.op("Add", {body.op("MatMul", {query, body.input(3)}), body.input(4)});
  const std::string halves =
      body.op("ReduceSum", {body.reshape(linear, {0, 0, 0, 2, -1}), body.ints({-1})},
              {int_attribute("keepdims", 0)});
  const std::string gates = body.op("Sigmoid", {halves});
  const std::string u = body.slice(gates, 0, 1, 3), r = body.slice(gates, 1, 2, 3);
  const std::string inner = body.op("Sub", {body.op("Mul", {r, body.input(5)}), body.number(1, 0)});
  const std::string gate = body.op("Add", {body.op("Mul", {u, inner}), body.number(2, 0)});
  body.give(0, "Mul", {gate, body.input(2)});
}

// --- GemmaRotaryEmbedding -----------------------------------------------------------------------

void gemma_rotary(UpgradeContext& ctx) {
  Body body(ctx);
  const auto part = [&](std::string_view op) {
    return body.unsqueeze(body.op("CastLike", {body.op(op, {body.input(0)}), body.input(1)}), {1});
  };
  const std::string sine = part("Sin"), cosine = part("Cos");
  for (const size_t i : {0, 1})
    body.give(i, "Add",
              {body.op("Mul", {body.input(1 + 2 * i), cosine}),
               body.op("Mul", {body.input(2 + 2 * i), sine})});
}

// --- LongformerAttention ------------------------------------------------------------------------

// Y of the product of the input with weights at `weights` and the bias behind them.
std::string attended(Body& body, size_t weights, const std::string& mask) {
  Projection p;
  p.q = p.k = p.v = third_of_last(body, weights, 2);
  p.value = body.op(
      "Add", {body.op("MatMul", {body.input(0), body.input(weights)}), body.input(weights + 1)});
  const std::string y = body.fresh_name();
  attend(body, split_projection(body, p, 0), 3, mask, {y});
  return y;
}

// Tokens attend to those near them and to the global ones; these, with weights of their own, to
// all.
void longformer(UpgradeContext& ctx) {
  constexpr size_t weights = 1, mask = 3, global_weights = 4, global = 6;
  Body body(ctx);
  const int64_t window = ctx.old().attr_int("window");
  if (window < 1) ctx.fail(ErrorCode::invalid_model, "window must be at least 1; got {}", window);
  if (body.rank(mask) != 2 || body.rank(global) != 2)
    ctx.fail(ErrorCode::invalid_model,
             "mask and global must be [batch, length]; their ranks are {} and {}", body.rank(mask),
             body.rank(global));
  const std::string all = body.unsqueeze(body.input(mask), {1, 2});
  const std::string is_global = body.cast(body.input(global), ElementType::boolean);
  const std::string at = counting(body, body.size_of(body.input(0), 1));
  const std::string distance = body.op("Abs", {body.op("Sub", {at, body.unsqueeze(at, {1})})});
  const std::string near =
      body.op("LessOrEqual", {distance, ctx.constant(Tensor::scalar<int64_t>(window), "window")});
  const std::string seen = body.op("Or", {near, body.unsqueeze(is_global, {1, 2})});
  const std::string some =
      body.op("Where", {seen, all, body.number(-std::numeric_limits<float>::infinity(), mask)});
  body.give(0, "Where",
            {body.unsqueeze(is_global, {2}), attended(body, global_weights, all),
             attended(body, weights, some)});
}

constexpr Operator operators[] = {
    {.name = "GatedRelativePositionBias", .domain = "com.microsoft", .upgrade = gated_bias},
    {.name = "GemmaRotaryEmbedding", .domain = "com.microsoft", .upgrade = gemma_rotary},
    {.name = "LongformerAttention", .domain = "com.microsoft", .upgrade = longformer},
    {.name = "RelativePositionBias", .domain = "com.microsoft", .upgrade = relative_position_bias},
};

}  // namespace
}  // namespace contrib_position_biases_unit

std::span<const Operator> contrib_position_biases_operators() {
  return contrib_position_biases_unit::operators;
}

}  // namespace sardonyx::ops
