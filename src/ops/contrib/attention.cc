// com.microsoft: Attention, QAttention, MultiHeadAttention and RotaryEmbedding, spelled out around
// the operators of the standard.
#include <cmath>

#include "ops/contrib/integer_products.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace {

// What all three give to the standard's Attention. Values of three dimensions [batch, length,
// heads * size] or, all of them, of four [batch, heads, length, size].
struct Heads {
  std::string q, k, v;
  std::string past_k, past_v;
  int64_t count = 0;
  size_t like = 0;  // an input of the node that has the type of q
};

std::string zero_like(Body& body, size_t like) { return body.number(0, like); }

// 0 where `allowed` holds, else the filter value: the node's softmax over a row without any
// allowed key then is what it would be without the mask, as ONNX Runtime has it.
std::string filtered(Body& body, const std::string& allowed, size_t like) {
  const float filter = body.node().attr_float("mask_filter_value", -10000.0f);
  return body.op("Where", {allowed, zero_like(body, like), body.number(filter, like)});
}

// The number of keys, past ones included, as a vector of one.
std::string key_count(Body& body, const Heads& heads, int64_t rank) {
  const std::string fresh = body.size_of(heads.k, rank - 2);
  return heads.past_k.empty() ? fresh : body.op("Add", {fresh, body.size_of(heads.past_k, 2)});
}

// A mask of one dimension: for each batch where its keys end, and perhaps, after all the ends,
// where they begin.
std::string mask_from_ends(Body& body, const Heads& heads, int64_t rank, size_t mask) {
  const std::string batch = body.size_of(heads.q, 0);
  const std::string positions =
      body.op("Range", {body.context().constant(Tensor::scalar<int64_t>(0)),
                        body.op("Squeeze", {key_count(body, heads, rank)}),
                        body.context().constant(Tensor::scalar<int64_t>(1))});
  const std::string given = body.cast(body.input(mask), ElementType::int64);
  const std::string none = body.op("Expand", {body.ints({0}), batch});
  const std::string both = body.op("Concat", {given, none}, {int_attribute("axis", 0)});
  const std::string zero = body.ints({0}), twice = body.op("Add", {batch, batch});
  const std::string ends = body.op("Slice", {both, zero, batch, zero});
  const std::string begins = body.op("Slice", {both, batch, twice, zero});
  const std::string before_end = body.op("Less", {positions, body.unsqueeze(ends, {1, 2, 3})});
  const std::string from_begin =
      body.op("GreaterOrEqual", {positions, body.unsqueeze(begins, {1, 2, 3})});
  return body.op("And", {before_end, from_begin});
}

// The mask as something to add to the scores, or "".
std::string additive_mask(Body& body, const Heads& heads, int64_t rank, size_t mask, size_t bias) {
  std::string sum;
  if (body.has(mask)) {
    const int64_t dims = body.rank(mask);
    std::string allowed;
    if (dims == 1) {
      allowed = mask_from_ends(body, heads, rank, mask);
    } else if (dims == 2 || dims == 3) {
      allowed = body.unsqueeze(body.cast(body.input(mask), ElementType::boolean),
                               dims == 2 ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{1});
    } else {
      body.context().fail(ErrorCode::unsupported,
                          "a mask of {} dimensions; known are one (where keys end), two (batch, "
                          "keys) and three (batch, queries, keys)",
                          dims);
    }
    sum = filtered(body, allowed, heads.like);
  }
  if (!body.has(bias)) return sum;
  return sum.empty() ? body.input(bias) : body.op("Add", {sum, body.input(bias)});
}

void refuse(const UpgradeContext& ctx, bool used, std::string_view what) {
  if (used) ctx.fail(ErrorCode::unsupported, "{} is not supported", what);
}

// The standard's Attention with outputs of these names (absent: ""); heads of `rank` dimensions.
void attend(Body& body, const Heads& heads, int64_t rank, const std::string& mask, Names outputs,
            int64_t mode = 0) {
  const NodeView node = body.node();
  Attributes attributes{int_attribute("is_causal", node.attr_int("unidirectional", 0))};
  if (rank == 3) {
    attributes.push_back(int_attribute("q_num_heads", heads.count));
    attributes.push_back(int_attribute("kv_num_heads", heads.count));
  }
  if (const float scale = node.attr_float("scale", 0); scale != 0)
    attributes.push_back(float_attribute("scale", scale));
  if (mode != 0) attributes.push_back(int_attribute("qk_matmul_output_mode", mode));
  Names inputs{heads.q, heads.k, heads.v, mask, heads.past_k, heads.past_v};
  while (inputs.back().empty()) inputs.pop_back();
  while (outputs.back().empty()) outputs.pop_back();
  body.node_for("Attention", inputs, outputs, attributes);
}

// Attention and QAttention: one product gives Q, K and V side by side.
struct Projection {
  std::string value;  // [batch, length, q + k + v]
  // Three parts of one size where the sizes are 0.
  int64_t q = 0, k = 0, v = 0;
};

void split_projection(Body& body, const Projection& p, Heads& heads) {
  if (p.q == 0) {
    const Names parts = body.several("Split", {p.value}, 3,
                                     {int_attribute("axis", 2), int_attribute("num_outputs", 3)});
    heads.q = parts[0], heads.k = parts[1], heads.v = parts[2];
    return;
  }
  heads.q = body.slice(p.value, 0, p.q, 2);
  heads.k = body.slice(p.value, p.q, p.q + p.k, 2);
  heads.v = body.slice(p.value, p.q + p.k, p.q + p.k + p.v, 2);
}

void attend_projection(Body& body, const Projection& p, size_t mask, size_t past, size_t bias,
                       size_t like) {
  UpgradeContext& ctx = body.context();
  const NodeView node = ctx.old();
  Heads heads;
  heads.count = node.attr_int("num_heads");
  heads.like = like;
  for (const int64_t size : {p.q, p.k, p.v}) {
    if (heads.count < 1 || size % heads.count != 0)
      ctx.fail(ErrorCode::invalid_model, "num_heads {} must divide the hidden sizes {}, {} and {}",
               heads.count, p.q, p.k, p.v);
  }
  split_projection(body, p, heads);
  if (body.has(past)) {
    heads.past_k = body.take(body.input(past), 0, 0);
    heads.past_v = body.take(body.input(past), 1, 0);
  }
  const std::string added = additive_mask(body, heads, 3, mask, bias);
  if (!body.wants(1)) return attend(body, heads, 3, added, {ctx.node().outputs[0]});
  const std::string k = body.fresh_name(), v = body.fresh_name();
  const std::string y = body.wants(0) ? ctx.node().outputs[0] : body.fresh_name();
  attend(body, heads, 3, added, {y, k, v});
  body.give(1, "Concat", {body.unsqueeze(k, {0}), body.unsqueeze(v, {0})},
            {int_attribute("axis", 0)});
}

// The size of each of the three parts; 0 where only a run knows it.
int64_t third_of_columns(const Body& body, size_t input) {
  const ir::Dim* columns = body.dim(input, 1);
  if (columns == nullptr || !columns->value()) return 0;
  if (*columns->value() < 3 || *columns->value() % 3 != 0)
    body.context().fail(ErrorCode::invalid_model,
                        "{} must have three parts of one size as its columns; it has {}",
                        body.node().input_name(static_cast<int>(input)), *columns->value());
  return *columns->value() / 3;
}

void attention(UpgradeContext& ctx) {
  Body body(ctx);
  const NodeView node = ctx.old();
  refuse(ctx, node.attr_int("do_rotary", 0) != 0, "do_rotary");
  refuse(ctx, node.attr_int("past_present_share_buffer", 0) != 0, "past_present_share_buffer");
  Projection p;
  if (const auto sizes = node.attr_ints("qkv_hidden_sizes"); sizes && !sizes->empty()) {
    if (sizes->size() != 3)
      ctx.fail(ErrorCode::invalid_model, "qkv_hidden_sizes must have three values; it has {}",
               sizes->size());
    p.q = (*sizes)[0], p.k = (*sizes)[1], p.v = (*sizes)[2];
    if (p.q < 1 || p.k < 1 || p.v < 1)
      ctx.fail(ErrorCode::invalid_model, "qkv_hidden_sizes must be above 0; got {}, {} and {}", p.q,
               p.k, p.v);
  } else {
    p.q = p.k = p.v = third_of_columns(body, 1);
  }
  p.value = body.op("MatMul", {body.input(0), body.input(1)});
  if (body.has(2)) p.value = body.op("Add", {p.value, body.input(2)});
  attend_projection(body, p, 3, 4, 5, 0);
}

void quantized_attention(UpgradeContext& ctx) {
  Body body(ctx);
  const NodeView node = ctx.old();
  refuse(ctx, node.attr_int("do_rotary", 0) != 0, "do_rotary");
  refuse(ctx, node.attr_int("past_present_share_buffer", 0) != 0, "past_present_share_buffer");
  const bool half = ctx.element(2) == ElementType::float16;
  const auto wide = [&](size_t i) {
    return half ? body.cast(body.input(i), ElementType::float32) : body.input(i);
  };
  Projection p;
  p.q = p.k = p.v = third_of_columns(body, 1);
  p.value = integer_product(body, {body.input(0), body.input(1), body.input(6), body.input(7),
                                   wide(3), wide(4), wide(2)});
  if (half) p.value = body.cast(p.value, ElementType::float16);
  attend_projection(body, p, 5, 8, 99, 2);
}

// Q, K or V of three dimensions with its part of the bias, which begins and ends at vectors of one.
std::string biased(Body& body, const std::string& value, const std::string& begin,
                   const std::string& end) {
  const std::string part = body.op("Slice", {body.input(3), begin, end, body.ints({0})});
  return body.op("Add", {value, part});
}

// [batch, length, heads * size] as [batch, heads, length, size].
std::string four_dimensional(Body& body, const std::string& value, int64_t heads) {
  return body.transpose(body.reshape(value, {0, 0, heads, -1}), {0, 2, 1, 3});
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
    refuse(ctx, body.has(3), "a bias with packed operands");
    const bool all = q_rank == 5;
    heads.q = all ? unpacked(body, 0, 0) : four_dimensional(body, body.input(0), heads.count);
    heads.k = unpacked(body, all ? 0 : 1, all ? 1 : 0);
    heads.v = unpacked(body, all ? 0 : 1, all ? 2 : 1);
    return 4;
  }
  if (!body.has(1) || !body.has(2))
    ctx.fail(ErrorCode::invalid_model, "key and value may be absent only where query is packed");
  heads.q = body.input(0), heads.k = body.input(1), heads.v = body.input(2);
  const bool projected = body.rank(1) == 3;
  if (body.has(3)) {
    const std::string size = body.size_of(body.input(0), 2), twice = body.op("Add", {size, size});
    heads.q = biased(body, heads.q, body.ints({0}), size);
    if (projected) {
      const std::string all = body.op("Add", {twice, body.size_of(body.input(2), 2)});
      heads.k = biased(body, heads.k, size, twice);
      heads.v = biased(body, heads.v, twice, all);
    }
  }
  if (projected) return 3;
  heads.q = four_dimensional(body, heads.q, heads.count);
  return 4;
}

void multi_head(UpgradeContext& ctx) {
  Body body(ctx);
  // Without a past they say nothing.
  const bool has_past = body.has(6) || body.has(7);
  refuse(ctx, has_past && body.has(8),
         "past_sequence_length (a past and present that share their memory)");
  refuse(ctx, has_past && body.has(9), "cache_indirection");
  Heads heads;
  heads.count = ctx.old().attr_int("num_heads");
  if (heads.count < 1)
    ctx.fail(ErrorCode::invalid_model, "num_heads must be at least 1; got {}", heads.count);
  const int64_t rank = read_operands(body, heads);
  heads.past_k = body.input(6), heads.past_v = body.input(7);
  const std::string mask = additive_mask(body, heads, rank, 4, 5);
  Names outputs;
  for (size_t i = 0; i < 4; ++i)
    outputs.push_back(body.wants(i) ? ctx.node().outputs[i] : std::string());
  const bool four = rank == 4;
  if (four || outputs[0].empty()) outputs[0] = body.fresh_name();
  attend(body, heads, rank, mask, outputs, 2);
  if (four)
    body.give(0, "Reshape", {body.transpose(outputs[0], {0, 2, 1, 3}), body.ints({0, 0, -1})});
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
      ctx.fail(ErrorCode::unsupported,
               "without num_heads the last dimensions of input and cos_cache must be known");
    heads = *hidden->value() / (2 * *half->value());
  }
  if (rank == 3) attributes.push_back(int_attribute("num_heads", heads));
  body.give(0, "RotaryEmbedding",
            {body.input(0), body.input(2), body.input(3), positions(body, rank)}, attributes);
}

// Rows of `input` go to the places that the first offsets name; all others are zeros.
void restore_padding(UpgradeContext& ctx) {
  Body body(ctx);
  if (body.rank(0) != 2 || body.rank(1) != 2)
    ctx.fail(ErrorCode::invalid_model,
             "input must be [tokens, hidden] and token_offset [batch, length]; their ranks are {} "
             "and {}",
             body.rank(0), body.rank(1));
  const std::string tokens = body.size_of(body.input(0), 0),
                    hidden = body.size_of(body.input(0), 1);
  const std::string offsets = body.reshape(body.cast(body.input(1), ElementType::int64), {-1, 1});
  const std::string rows = body.op("Slice", {offsets, body.ints({0}), tokens, body.ints({0})});
  const auto join = [&](const std::string& first) {
    return body.op("Concat", {first, hidden}, {int_attribute("axis", 0)});
  };
  const std::string zeros = body.op("Expand", {body.number(0, 0), join(body.size_of(offsets, 0))});
  const std::string filled = body.op("ScatterND", {zeros, rows, body.input(0)});
  body.give(0, "Reshape", {filled, join(body.op("Shape", {body.input(1)}))});
}

constexpr Operator operators[] = {
    {.name = "Attention", .domain = "com.microsoft", .upgrade = attention},
    {.name = "MultiHeadAttention", .domain = "com.microsoft", .upgrade = multi_head},
    {.name = "QAttention", .domain = "com.microsoft", .upgrade = quantized_attention},
    {.name = "RestorePadding", .domain = "com.microsoft", .upgrade = restore_padding},
    {.name = "RotaryEmbedding", .domain = "com.microsoft", .upgrade = rotary},
};

}  // namespace

std::span<const Operator> contrib_attention_operators() { return operators; }

}  // namespace sardonyx::ops
