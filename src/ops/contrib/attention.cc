// com.microsoft: Attention, QAttention, MultiHeadAttention and RotaryEmbedding, decomposed around
// the operators of the standard.
#include "ops/contrib/heads.h"
#include "ops/contrib/integer_products.h"
#include "ops/contrib/projection.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace contrib_attention_unit {
namespace {

void attention(UpgradeContext& ctx) {
  Body body(ctx);
  attend_projection(body, plain_projection(body, 0),
                    {.mask = 3, .past = 4, .bias = 5, .length = 6});
}

void quantized_attention(UpgradeContext& ctx) {
  Body body(ctx);
  if (body.has(8) && ctx.old().attr_int("past_present_share_buffer", 0) != 0)
    ctx.fail(ErrorCode::unsupported,
             "past_present_share_buffer: no input says how long the past in the buffer is");
  const bool half = ctx.element(2) == ElementType::float16;
  const auto wide = [&](size_t i) {
    return half ? body.cast(body.input(i), ElementType::float32) : body.input(i);
  };
  Projection p;
  p.q = p.k = p.v = third_of_last(body, 1, 2);
  p.value = integer_product(body, {body.input(0), body.input(1), body.input(6), body.input(7),
                                   wide(3), wide(4), wide(2)});
  if (half) p.value = body.cast(p.value, ElementType::float16);
  attend_projection(body, p, {.like = 2, .mask = 5, .past = 8});
}

// The parts of a packed [batch, length, heads, parts, size].
std::string unpacked(Body& body, size_t input, int64_t part) {
  return body.transpose(body.take(body.input(input), part, 3), {0, 2, 1, 3});
}

// The three operands, all of the rank that is returned.
int64_t read_operands(Body& body, Heads& heads) {
  UpgradeContext& ctx = body.context();
  const int64_t q_rank = body.rank(0);
  if (q_rank == 5 || (body.has(1) && body.rank(1) == 5)) {
    const bool all = q_rank == 5;
    if (body.has(3) && !all)
      ctx.fail(ErrorCode::invalid_model, "a bias with packed keys and values");
    heads.q = all ? unpacked(body, 0, 0) : four_dimensional(body, body.input(0), heads.count);
    heads.k = unpacked(body, all ? 0 : 1, all ? 1 : 0);
    heads.v = unpacked(body, all ? 0 : 1, all ? 2 : 1);
    if (!body.has(3)) return 4;
    // [3, heads, 1, size] of the bias: a part for each.
    const std::string parts = body.reshape(body.input(3), {3, heads.count, 1, -1});
    for (const auto& [operand, i] : {std::pair(&heads.q, 0), {&heads.k, 1}, {&heads.v, 2}})
      *operand = body.op("Add", {*operand, body.take(parts, i, 0)});
    return 4;
  }
  if (!body.has(1) || !body.has(2))
    ctx.fail(ErrorCode::invalid_model, "key and value may be absent only where query is packed");
  heads.q = body.input(0), heads.k = body.input(1), heads.v = body.input(2);
  const bool projected = body.rank(1) == 3;
  if (body.has(3)) add_bias(body, heads, 3, projected);
  if (projected) return 3;
  heads.q = four_dimensional(body, heads.q, heads.count);
  return 4;
}

void multi_head(UpgradeContext& ctx) {
  Body body(ctx);
  Heads heads;
  heads.count = head_count(ctx);
  const int64_t rank = read_operands(body, heads);
  heads.past_k = body.input(6), heads.past_v = body.input(7);
  if (body.has(6) != body.has(7))
    ctx.fail(ErrorCode::invalid_model, "past_key and past_value must be given together");
  // Without a past they say nothing.
  if (body.has(6) && body.has(8)) {
    heads.past_length = one_number(body, 8);
    heads.beams = body.input(9);
  }
  const std::string mask = additive_mask(body, heads, rank, 4, 5);
  attend(body, heads, rank, mask, wanted_outputs(body, 4));
}

// A single position is that of the first row; the others follow it.
std::string positions(Body& body, int64_t rank) {
  if (body.rank(1) == 2) return body.input(1);
  const std::string batch = body.size_of(body.input(0), 0),
                    length = body.size_of(body.input(0), rank == 4 ? 2 : 1);
  const std::string rows = body.op(
      "Range", {body.context().constant(Tensor::scalar<int64_t>(0)), body.op("Squeeze", {length}),
                body.context().constant(Tensor::scalar<int64_t>(1))});
  const std::string moved = body.op("Add", {rows, body.input(1)});
  return body.op("Expand", {moved, body.op("Concat", {batch, length}, {int_attribute("axis", 0)})});
}

// Rows whose heads only a run counts: each has twice the columns of cos_cache.
void rotate_open_heads(Body& body, const Attributes& attributes) {
  const std::string x = body.input(0);
  const std::string size = body.op("Mul", {body.size_of(body.input(2), 1), body.ints({2})});
  const std::string heads = body.op("Div", {body.size_of(x, 2), size});
  const std::string shape =
      body.op("Concat", {body.ints({0, 0}), heads, size}, {int_attribute("axis", 0)});
  const std::string apart = body.transpose(body.op("Reshape", {x, shape}), {0, 2, 1, 3});
  const std::string turned = body.op(
      "RotaryEmbedding", {apart, body.input(2), body.input(3), positions(body, 3)}, attributes);
  body.give(0, "Reshape", {body.transpose(turned, {0, 2, 1, 3}), body.op("Shape", {x})},
            {int_attribute("allowzero", 1)});
}

void rotary(UpgradeContext& ctx) {
  Body body(ctx);
  const NodeView node = ctx.old();
  const int64_t rank = body.rank(0);
  Attributes attributes{int_attribute("interleaved", node.attr_int("interleaved", 0))};
  const int64_t rotated = node.attr_int("rotary_embedding_dim", 0);
  if (rotated > 0) attributes.push_back(int_attribute("rotary_embedding_dim", rotated));
  int64_t heads = node.attr_int("num_heads", 0);
  if (rank == 3 && heads == 0) {
    const ir::Dim *hidden = body.dim(0, 2), *half = body.dim(2, 1);
    if (!hidden || !half || !hidden->value() || !half->value() || *half->value() == 0)
      return rotate_open_heads(body, attributes);
    heads = *hidden->value() / (2 * *half->value());
  }
  if (rank == 3) attributes.push_back(int_attribute("num_heads", heads));
  body.give(0, "RotaryEmbedding",
            {body.input(0), body.input(2), body.input(3), positions(body, rank)}, attributes);
}

constexpr Operator operators[] = {
    {.name = "Attention", .domain = "com.microsoft", .upgrade = attention},
    {.name = "MultiHeadAttention", .domain = "com.microsoft", .upgrade = multi_head},
    {.name = "QAttention", .domain = "com.microsoft", .upgrade = quantized_attention},
    {.name = "RotaryEmbedding", .domain = "com.microsoft", .upgrade = rotary},
};

}  // namespace
}  // namespace contrib_attention_unit

std::span<const Operator> contrib_attention_operators() {
  return contrib_attention_unit::operators;
}

}  // namespace sardonyx::ops
