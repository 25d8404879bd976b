// com.microsoft: DecoderMaskedMultiHeadAttention and DecoderMaskedSelfAttention, which stand in
// decoders that BeamSearch runs: the past lies in a buffer, and beams may read each other's rows.
// And DecoderAttention, FairSeq's.
#include "ops/contrib/heads.h"
#include "ops/contrib/projection.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace contrib_decoder_attention_unit {
namespace {

// The length of the past, which fails to be one where the input `width` is not the number of beams
// that cache_indirection has.
std::string past_length(Body& body, size_t length, size_t width, size_t beams) {
  const std::string past = one_number(body, length);
  if (!body.has(width)) return past;
  const std::string known = body.has(beams) ? body.size_of(body.input(beams), 1) : body.ints({1});
  const std::string more =
      in_range(body, body.op("Sub", {one_number(body, width), known}), 0, body.ints({0}),
               body.has(beams) ? "beam_width less the beams of cache_indirection"
                               : "beam_width less 1, without cache_indirection,");
  return body.op("Add", {past, more});
}

// Q, K and V, which may be packed into query. Returns their rank.
int64_t read_operands(Body& body, Heads& heads) {
  UpgradeContext& ctx = body.context();
  constexpr size_t key = 1, value = 2, bias = 10;
  if (body.rank(0) != 3)
    ctx.fail(ErrorCode::invalid_model, "query must have three dimensions; it has {}", body.rank(0));
  if (body.has(key) != body.has(value))
    ctx.fail(ErrorCode::invalid_model, "key and value must be given together");
  bool projected = true;
  if (body.has(key)) {
    heads.q = body.input(0), heads.k = body.input(key), heads.v = body.input(value);
    projected = body.rank(key) == 3;
  } else {
    Projection packed{.value = body.input(0)};
    packed.q = packed.k = packed.v = third_of_last(body, 0, 3);
    heads = split_projection(body, packed, 0);
  }
  if (body.has(bias)) add_bias(body, heads, bias, projected);
  if (projected) return 3;
  heads.q = four_dimensional(body, heads.q, heads.count);
  return 4;
}

void masked_multi_head(UpgradeContext& ctx) {
  constexpr size_t mask = 3, added = 4, past_key = 5, past_value = 6, length = 7, width = 8,
                   beams = 9;
  Body body(ctx);
  Heads heads;
  heads.count = head_count(ctx);
  const int64_t rank = read_operands(body, heads);
  if (body.has(past_key) != body.has(past_value))
    ctx.fail(ErrorCode::invalid_model, "past_key and past_value must be given together");
  heads.past_k = body.input(past_key), heads.past_v = body.input(past_value);
  if (body.has(past_key) && ctx.old().attr_int("past_present_share_buffer", 0) != 0) {
    if (!body.has(length))
      ctx.fail(ErrorCode::invalid_model,
               "past_present_share_buffer needs the input past_sequence_length");
    heads.past_length = past_length(body, length, width, beams);
    heads.beams = body.input(beams);
  } else if (body.has(beams)) {
    ctx.fail(ErrorCode::unsupported, "cache_indirection without past_present_share_buffer");
  }
  const std::string sum = additive_mask(body, heads, rank, mask, added);
  attend(body, heads, rank, sum, wanted_outputs(body, 4));
}

void masked_self(UpgradeContext& ctx) {
  constexpr size_t length = 6, width = 7, beams = 8;
  Body body(ctx);
  ProjectionInputs inputs{.mask = 3, .past = 4, .bias = 5, .length = length, .beams = beams};
  const bool buffered = ctx.old().attr_int("past_present_share_buffer", 0) != 0;
  if (buffered) inputs.past_length = past_length(body, length, width, beams);
  if (!buffered && body.has(beams))
    ctx.fail(ErrorCode::unsupported, "cache_indirection without past_present_share_buffer");
  attend_projection(body, plain_projection(body, 0), inputs);
}

// --- DecoderAttention ---------------------------------------------------------------------------

// What a boolean input says, which decides what the node computes at all.
bool said(const UpgradeContext& ctx, size_t input) {
  const Tensor* value = ctx.constant(input);
  const bool is_one = value && value->element_type() == ElementType::boolean && value->size() == 1;
  if (!is_one)
    ctx.fail(ErrorCode::unsupported, "{} that is no constant of one boolean",
             ctx.old().input_name(static_cast<int>(input)));
  return *static_cast<const bool*>(value->data());
}

// [length, batch, hidden] times weights, plus the bias from `begin` to `end`: [batch, length, ...].
std::string projected(Body& body, size_t x, size_t weights, const std::string& begin,
                      const std::string& end) {
  const std::string part = body.op("Slice", {body.input(4), begin, end, body.ints({0})});
  const std::string y = body.op("MatMul", {body.input(x), body.input(weights)});
  return body.transpose(body.op("Add", {y, part}), {1, 0, 2});
}

void decoder_attention(UpgradeContext& ctx) {
  constexpr size_t query = 0, key = 1, mask = 5, key_cache = 6, value_cache = 7;
  Body body(ctx);
  const bool is_cross = said(ctx, 8), uses_past = said(ctx, 9) && said(ctx, 10);
  if (uses_past && (!body.has(key_cache) || !body.has(value_cache)))
    ctx.fail(ErrorCode::invalid_model, "use_past needs key_cache and value_cache");
  Heads heads;
  heads.count = head_count(ctx);
  const std::string size = body.size_of(body.input(query), 2);
  const std::string all = body.op("Mul", {size, body.ints({3})});
  heads.q = projected(body, query, 2, body.ints({0}), size);
  int64_t rank = 3;
  if (is_cross && uses_past) {
    heads.q = four_dimensional(body, heads.q, heads.count);
    heads.k = body.input(key_cache), heads.v = body.input(value_cache);
    rank = 4;
  } else {
    const Names parts =
        body.several("Split", {projected(body, is_cross ? key : query, 3, size, all)}, 2,
                     {int_attribute("axis", 2), int_attribute("num_outputs", 2)});
    heads.k = parts[0], heads.v = parts[1];
    if (uses_past) heads.past_k = body.input(key_cache), heads.past_v = body.input(value_cache);
  }
  std::string added;
  if (said(ctx, 11)) {
    if (!body.has(mask))
      ctx.fail(ErrorCode::invalid_model, "has_key_padding_mask needs key_padding_mask");
    added = body.op("Where", {body.unsqueeze(body.input(mask), {1, 2}), mask_filter(body, 0),
                              body.number(0, 0)});
  }
  const std::string y = body.fresh_name();
  const Names wanted = wanted_outputs(body, 3);
  attend(body, heads, rank, added, {y, wanted[1], wanted[2]});
  body.give(0, "Transpose", {y}, {ints_attribute("perm", {1, 0, 2})});
}

constexpr Operator operators[] = {
    {.name = "DecoderAttention", .domain = "com.microsoft", .upgrade = decoder_attention},
    {.name = "DecoderMaskedMultiHeadAttention",
     .domain = "com.microsoft",
     .upgrade = masked_multi_head},
    {.name = "DecoderMaskedSelfAttention", .domain = "com.microsoft", .upgrade = masked_self},
};

}  // namespace
}  // namespace contrib_decoder_attention_unit

std::span<const Operator> contrib_decoder_attention_operators() {
  return contrib_decoder_attention_unit::operators;
}

}  // namespace sardonyx::ops
