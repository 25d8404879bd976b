// com.microsoft: sequences of different lengths without the rows that pad them, and attention over
// such.
#include "ops/contrib/padding.h"
#include "ops/contrib/projection.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace contrib_packed_sequences_unit {
namespace {

// The places of the rows that `real` [batch, length] marks, or of all others, in int64.
std::string places(Body& body, const std::string& real) {
  return body.op("Squeeze", {body.op("NonZero", {body.reshape(real, {-1})}), body.ints({0})});
}

void remove_padding(UpgradeContext& ctx) {
  Body body(ctx);
  if (body.rank(0) != 3 || body.rank(1) != 1)
    ctx.fail(ErrorCode::invalid_model,
             "input must be [batch, length, hidden] and sequence_token_count [batch]; their ranks "
             "are {} and {}",
             body.rank(0), body.rank(1));
  const std::string batch = body.size_of(body.input(0), 0), length = body.size_of(body.input(0), 1);
  const std::string counts =
      in_range(body, body.op("Reshape", {body.cast(body.input(1), ElementType::int64), batch}), 0,
               length, "sequence_token_count");
  const std::string columns = body.op(
      "Range", {body.context().constant(Tensor::scalar<int64_t>(0)), body.op("Squeeze", {length}),
                body.context().constant(Tensor::scalar<int64_t>(1))});
  const std::string real = body.op("Less", {columns, body.unsqueeze(counts, {1})});
  const std::string rows = places(body, real), rest = places(body, body.op("Not", {real}));
  const std::string flat =
      body.op("Reshape",
              {body.input(0),
               body.op("Concat", {body.op("Mul", {batch, length}), body.size_of(body.input(0), 2)},
                       {int_attribute("axis", 0)})},
              {int_attribute("allowzero", 1)});
  const auto as_int32 = [&](size_t output, const std::string& value) {
    body.give(output, "Cast", {value},
              {int_attribute("to", static_cast<int64_t>(ElementType::int32))});
  };
  body.give(0, "Gather", {flat, rows});
  if (body.wants(1)) {
    const std::string all = body.op("Concat", {rows, rest}, {int_attribute("axis", 0)});
    const std::string shape = body.op("Concat", {batch, length}, {int_attribute("axis", 0)});
    as_int32(1, body.op("Reshape", {all, shape}, {int_attribute("allowzero", 1)}));
  }
  const std::string from_zero =
      body.op("Concat", {body.ints({0}), counts}, {int_attribute("axis", 0)});
  if (body.wants(2))
    as_int32(2,
             body.op("CumSum", {from_zero, body.context().constant(Tensor::scalar<int64_t>(0))}));
  if (body.wants(3)) as_int32(3, body.op("ReduceMax", {from_zero}, {int_attribute("keepdims", 1)}));
}

void restore_padding(UpgradeContext& ctx) {
  Body body(ctx);
  if (body.rank(0) != 2)
    ctx.fail(ErrorCode::invalid_model, "input must be [tokens, hidden]; its rank is {}",
             body.rank(0));
  body.give(0, "Identity", {with_padding(body, body.input(0), 1)});
}

// --- attention ----------------------------------------------------------------------------------

// How many tokens each sequence has, by their sums; `tokens` there are, of which a sequence has
// `length` at most.
std::string sequence_lengths(Body& body, size_t sums, const std::string& tokens,
                             const std::string& length) {
  const std::string ends = body.reshape(body.cast(body.input(sums), ElementType::int64), {-1});
  const std::string zero = body.ints({0}), one = body.ints({1});
  const std::string last = body.op("Slice", {ends, body.ints({-1}), body.ints({INT64_MAX}), zero});
  const std::string missing =
      in_range(body, body.op("Sub", {tokens, last}), 0, zero,
               "the number of tokens less the last of cumulative_sequence_length");
  const std::string after = body.op("Slice", {ends, one, body.ints({INT64_MAX}), zero}),
                    before = body.op("Slice", {ends, zero, body.ints({-1}), zero});
  const std::string lengths = in_range(body, body.op("Sub", {after, before}), 0, length,
                                       "differences in cumulative_sequence_length");
  return body.op("Add", {lengths, missing});
}

// Makes output 0 of `heads`, whose values are [batch, length, ...]: of each token its row.
void attend_packed(Body& body, Heads& heads, size_t offsets, size_t sums, size_t bias) {
  constexpr size_t none = 99;
  const std::string tokens = body.size_of(body.input(0), 0);
  heads.lengths = sequence_lengths(body, sums, tokens, body.size_of(heads.q, 1));
  const std::string y = body.fresh_name();
  attend(body, heads, 3, additive_mask(body, heads, 3, none, bias), {y});
  const std::string flat = body.op(
      "Reshape",
      {y, body.op("Concat", {body.ints({-1}), body.size_of(y, 2)}, {int_attribute("axis", 0)})});
  body.give(0, "Gather", {flat, token_places(body, offsets, tokens)});
}

void packed_attention(UpgradeContext& ctx) {
  Body body(ctx);
  if (body.rank(0) != 2)
    ctx.fail(ErrorCode::invalid_model, "input must be [tokens, hidden]; its rank is {}",
             body.rank(0));
  Projection p = plain_projection(body, 0);
  p.value = with_padding(body, p.value, 3);
  Heads heads = split_projection(body, p, 0);
  attend_packed(body, heads, 3, 4, 5);
}

void packed_multi_head(UpgradeContext& ctx) {
  constexpr size_t key = 1, value = 2, bias = 3, offsets = 4, sums = 5, added = 6;
  Body body(ctx);
  Heads heads;
  heads.count = head_count(ctx);
  const auto padded = [&](const std::string& rows) { return with_padding(body, rows, offsets); };
  if (body.rank(0) == 4) {
    if (body.has(key) || body.has(value))
      ctx.fail(ErrorCode::invalid_model, "key and value must be absent where query is packed");
    const auto part = [&](int64_t i) {
      return padded(body.reshape(body.take(body.input(0), i, 2), {0, -1}));
    };
    heads.q = part(0), heads.k = part(1), heads.v = part(2);
  } else {
    if (!body.has(key) || !body.has(value))
      ctx.fail(ErrorCode::invalid_model, "key and value may be absent only where query is packed");
    heads.q = padded(body.input(0));
    heads.k = padded(body.input(key)), heads.v = padded(body.input(value));
  }
  if (body.has(bias)) add_bias(body, heads, bias, true);
  attend_packed(body, heads, offsets, sums, added);
}

constexpr Operator operators[] = {
    {.name = "PackedAttention", .domain = "com.microsoft", .upgrade = packed_attention},
    {.name = "PackedMultiHeadAttention", .domain = "com.microsoft", .upgrade = packed_multi_head},
    {.name = "RemovePadding", .domain = "com.microsoft", .upgrade = remove_padding},
    {.name = "RestorePadding", .domain = "com.microsoft", .upgrade = restore_padding},
};

}  // namespace
}  // namespace contrib_packed_sequences_unit

std::span<const Operator> contrib_packed_sequences_operators() {
  return contrib_packed_sequences_unit::operators;
}

}  // namespace sardonyx::ops
