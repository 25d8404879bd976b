#include "ops/contrib/projection.h"

#include <cmath>

namespace sardonyx::ops {
namespace {

// cos and sin [batch, length, half] of angles that fall geometrically from 1 to 1 / 10000 a
// position.
struct Turns {
  std::string cosine, sine;
};

Turns turns(Body& body, const Heads& heads, int64_t rotated, size_t like) {
  Tensor steps(ElementType::float32, {rotated / 2});
  for (int64_t i = 0; i < rotated / 2; ++i)
    steps.mutable_elements<float>()[static_cast<size_t>(i)] = static_cast<float>(
        std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(rotated)));
  const std::string batch = body.size_of(heads.q, 0), length = body.size_of(heads.q, 1);
  std::string rows = body.op(
      "Range", {body.context().constant(Tensor::scalar<int64_t>(0)), body.op("Squeeze", {length}),
                body.context().constant(Tensor::scalar<int64_t>(1))});
  if (heads.is_buffered()) {
    rows = body.op("Add", {rows, heads.past_length});
  } else if (!heads.past_k.empty()) {
    rows = body.op("Add", {rows, body.size_of(heads.past_k, 2)});
  }
  const std::string angles =
      body.op("Mul", {body.unsqueeze(body.cast(rows, ElementType::float32), {1}),
                      body.context().constant(std::move(steps), "turns")});
  const std::string sizes =
      body.op("Concat", {batch, length, body.ints({rotated / 2})}, {int_attribute("axis", 0)});
  const std::string all = body.op("Expand", {angles, sizes});
  const auto part = [&](std::string_view op) {
    return body.op("CastLike", {body.op(op, {all}), body.input(like)});
  };
  return {part("Cos"), part("Sin")};
}

// Q and K of three dimensions rotated by their positions, halves against each other.
void rotate(Body& body, Heads& heads, int64_t size, size_t like) {
  UpgradeContext& ctx = body.context();
  if (size == 0)
    ctx.fail(ErrorCode::unsupported, "do_rotary where the size of a head is not known");
  const int64_t given = ctx.old().attr_int("rotary_embedding_dim", 0);
  const int64_t rotated = given != 0 ? given : size;
  constexpr int64_t most = 1 << 16;
  if (rotated > most)
    ctx.fail(ErrorCode::unsupported, "do_rotary of more than {} elements of a head", most);
  if (rotated < 2 || rotated % 2 != 0 || rotated > size)
    ctx.fail(ErrorCode::invalid_model,
             "rotary_embedding_dim must be even and at most the size of a head, {}; got {}", size,
             rotated);
  const Turns by = turns(body, heads, rotated, like);
  for (std::string* x : {&heads.q, &heads.k})
    *x = body.op(
        "RotaryEmbedding", {*x, by.cosine, by.sine},
        {int_attribute("num_heads", heads.count), int_attribute("rotary_embedding_dim", rotated)});
}

}  // namespace

int64_t third_of_last(const Body& body, size_t input, size_t rank) {
  const ir::Dim* columns = body.dim(input, rank - 1);
  if (columns == nullptr || !columns->value()) return 0;
  if (*columns->value() < 3 || *columns->value() % 3 != 0)
    body.context().fail(ErrorCode::invalid_model,
                        "{} must have three parts of one size as its columns; it has {}",
                        body.node().input_name(static_cast<int>(input)), *columns->value());
  return *columns->value() / 3;
}

Projection plain_projection(Body& body, size_t like) {
  UpgradeContext& ctx = body.context();
  Projection p;
  if (const auto sizes = ctx.old().attr_ints("qkv_hidden_sizes"); sizes && !sizes->empty()) {
    if (sizes->size() != 3)
      ctx.fail(ErrorCode::invalid_model, "qkv_hidden_sizes must have three values; it has {}",
               sizes->size());
    p.q = (*sizes)[0], p.k = (*sizes)[1], p.v = (*sizes)[2];
    if (p.q < 1 || p.k < 1 || p.v < 1)
      ctx.fail(ErrorCode::invalid_model, "qkv_hidden_sizes must be above 0; got {}, {} and {}", p.q,
               p.k, p.v);
  } else {
    p.q = p.k = p.v = third_of_last(body, like + 1, 2);
  }
  p.value = body.op("MatMul", {body.input(like), body.input(like + 1)});
  if (body.has(like + 2)) p.value = body.op("Add", {p.value, body.input(like + 2)});
  return p;
}

Heads split_projection(Body& body, const Projection& p, size_t like) {
  UpgradeContext& ctx = body.context();
  Heads heads;
  heads.count = head_count(ctx);
  heads.like = like;
  for (const int64_t size : {p.q, p.k, p.v}) {
    if (size % heads.count != 0)
      ctx.fail(ErrorCode::invalid_model, "num_heads {} must divide the hidden sizes {}, {} and {}",
               heads.count, p.q, p.k, p.v);
  }
  if (p.q == 0) {
    const Names parts = body.several("Split", {p.value}, 3,
                                     {int_attribute("axis", -1), int_attribute("num_outputs", 3)});
    heads.q = parts[0], heads.k = parts[1], heads.v = parts[2];
    return heads;
  }
  heads.q = body.slice(p.value, 0, p.q, -1);
  heads.k = body.slice(p.value, p.q, p.q + p.k, -1);
  heads.v = body.slice(p.value, p.q + p.k, p.q + p.k + p.v, -1);
  return heads;
}

void attend_projection(Body& body, const Projection& p, const ProjectionInputs& inputs) {
  UpgradeContext& ctx = body.context();
  Heads heads = split_projection(body, p, inputs.like);
  if (body.has(inputs.past)) {
    heads.past_k = body.take(body.input(inputs.past), 0, 0);
    heads.past_v = body.take(body.input(inputs.past), 1, 0);
    if (ctx.old().attr_int("past_present_share_buffer", 0) != 0) {
      if (!body.has(inputs.length))
        ctx.fail(ErrorCode::invalid_model,
                 "past_present_share_buffer needs the input past_sequence_length");
      heads.past_length =
          inputs.past_length.empty() ? one_number(body, inputs.length) : inputs.past_length;
      heads.beams = body.input(inputs.beams);
    }
  }
  if (ctx.old().attr_int("do_rotary", 0) != 0) rotate(body, heads, p.q / heads.count, inputs.like);
  const std::string added =
      additive_mask(body, heads, 3, inputs.mask, inputs.bias, MaskOfOne::ignored);
  if (!body.wants(1)) return attend(body, heads, 3, added, {ctx.node().outputs[0]});
  const std::string k = body.fresh_name(), v = body.fresh_name();
  const std::string y = body.wants(0) ? ctx.node().outputs[0] : body.fresh_name();
  attend(body, heads, 3, added, {y, k, v});
  body.give(1, "Concat", {body.unsqueeze(k, {0}), body.unsqueeze(v, {0})},
            {int_attribute("axis", 0)});
}

}  // namespace sardonyx::ops
