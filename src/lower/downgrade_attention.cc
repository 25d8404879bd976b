// Attention, RotaryEmbedding and Trilu as the nodes that do their work.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "lower/downgrade_support.h"
#include "sardonyx/value.h"

namespace sardonyx::lower {
namespace {

using ops::int_attribute;
using ops::ints_attribute;

std::string constant(DowngradeContext& ctx, const std::vector<int64_t>& values) {
  return ctx.constant_ints(values, "sizes");
}

// The sizes [begin, end) of a value, as a list.
std::string sizes(DowngradeContext& ctx, const std::string& of, int64_t begin, int64_t end) {
  return ctx.before("Shape", {of}, {int_attribute("start", begin), int_attribute("end", end)});
}

// One size of a value, as a scalar.
std::string size(DowngradeContext& ctx, const std::string& of, int64_t axis) {
  return ctx.before("Squeeze", {sizes(ctx, of, axis, axis + 1), constant(ctx, {0})});
}

std::string whole(DowngradeContext& ctx, int64_t value) {
  return ctx.constant(Tensor::scalar<int64_t>(value), "number");
}

// 0, 1, … below a scalar.
std::string numbers_below(DowngradeContext& ctx, const std::string& end) {
  return ctx.before("Range", {whole(ctx, 0), end, whole(ctx, 1)});
}

// Whether a column is at most its row, with what is added to the rows; both int64.
std::string at_most(DowngradeContext& ctx, const std::string& columns, const std::string& rows) {
  return ctx.before("Not", {ctx.before("Greater", {columns, rows})});
}

class AttentionNodes {
 public:
  explicit AttentionNodes(DowngradeContext& ctx) : ctx_(ctx), view_(ctx.newest()) {}

  void make() {
    enum Input { q, k, v, mask, past_key, past_value, nonpad };
    if (ctx_.has_output(3)) cannot("its scores are an output");
    if (ctx_.has_input(nonpad)) cannot("its keys are padded");
    rank_ = rank_of(ctx_, q);
    if (rank_ != 3 && rank_ != 4) cannot("its input 'Q' must have 3 or 4 dimensions");
    const std::string queries = by_heads(q, "q_num_heads");
    std::string keys = with_past(by_heads(k, "kv_num_heads"), past_key, 1);
    std::string values = with_past(by_heads(v, "kv_num_heads"), past_value, 2);
    const std::string scaled = ctx_.before("Mul", {queries, scale(queries)});
    const std::string bias = visible(queries, keys);
    repeat(keys, values);
    const std::string turned =
        ctx_.before("Transpose", {keys}, {ints_attribute("perm", {0, 1, 3, 2})});
    std::string scores = ctx_.before("MatMul", {scaled, turned});
    if (const float cap = view_.attr_float("softcap", 0); cap > 0) {
      const std::string limit = ctx_.scalar_like(cap, 0, "softcap");
      scores =
          ctx_.before("Mul", {ctx_.before("Tanh", {ctx_.before("Div", {scores, limit})}), limit});
    }
    if (!bias.empty()) scores = ctx_.before("Add", {scores, bias});
    if (ctx_.has_input(mask)) scores = ctx_.before("Add", {scores, mask_to_add()});
    if (ctx_.element(v) != ctx_.element(q))
      values = ctx_.before("CastLike", {values, ctx_.node().inputs[q]});
    const std::string summed = ctx_.before("MatMul", {shares(scores), values});
    const std::string y = ctx_.node().outputs[0];
    if (rank_ == 4) {
      ctx_.after("Identity", {summed}, y);
    } else {
      const std::string back =
          ctx_.before("Transpose", {summed}, {ints_attribute("perm", {0, 2, 1, 3})});
      ctx_.after("Reshape", {back, constant(ctx_, {0, 0, -1})}, y);
    }
    ctx_.drop_node();
  }

 private:
  const ops::Dims& shape_of(size_t input) const {
    const ops::ValueType* type = ctx_.type(input);
    if (type == nullptr || !type->shape) cannot("the ranks of its inputs must be known");
    return *type->shape;
  }

  // [batch, heads, length, size], whatever the rank.
  std::string by_heads(size_t input, std::string_view attribute) {
    const std::string& value = ctx_.node().inputs[input];
    if (rank_ == 4) return value;
    const std::string parted =
        ctx_.before("Reshape", {value, constant(ctx_, {0, 0, view_.attr_int(attribute), -1})});
    return ctx_.before("Transpose", {parted}, {ints_attribute("perm", {0, 2, 1, 3})});
  }

  std::string with_past(std::string value, size_t past, size_t output) {
    if (ctx_.has_input(past)) {
      value = ctx_.before("Concat", {ctx_.node().inputs[past], value}, {int_attribute("axis", 2)});
    }
    if (ctx_.has_output(output)) ctx_.after("Identity", {value}, ctx_.node().outputs[output]);
    return value;
  }

  std::string scale(const std::string& queries) {
    if (view_.has_attribute("scale")) return ctx_.scalar_like(view_.attr_float("scale"), 0);
    const ops::Dim& last = shape_of(0).back();
    const int64_t heads = rank_ == 3 ? view_.attr_int("q_num_heads") : 1;
    if (const auto width = last.value()) {
      return ctx_.scalar_like(
          static_cast<float>(1 / std::sqrt(static_cast<double>(*width / heads))), 0);
    }
    const std::string width = ctx_.before("CastLike", {sizes(ctx_, queries, 3, 4), queries});
    return ctx_.before("Reciprocal", {ctx_.before("Sqrt", {width})});
  }

  // 0 where a query sees a key and -infinity where not, as attributes say it; empty: all is seen.
  std::string visible(const std::string& queries, const std::string& keys) {
    const bool is_causal = view_.attr_int("is_causal", 0) != 0;
    const int64_t left = view_.attr_int("left_window_size", -1);
    const int64_t right = view_.attr_int("right_window_size", -1);
    if (!is_causal && left < 0 && right < 0) return {};
    const std::string columns = numbers_below(ctx_, size(ctx_, keys, 2));
    std::string rows = ctx_.before(
        "Unsqueeze", {numbers_below(ctx_, size(ctx_, queries, 2)), constant(ctx_, {1})});
    if (ctx_.has_input(4)) rows = ctx_.before("Add", {rows, size(ctx_, ctx_.node().inputs[4], 2)});
    std::string seen;
    const auto also = [&](const std::string& condition) {
      seen = seen.empty() ? condition : ctx_.before("And", {seen, condition});
    };
    if (is_causal) also(at_most(ctx_, columns, rows));
    if (right >= 0) also(at_most(ctx_, columns, ctx_.before("Add", {rows, whole(ctx_, right)})));
    if (left >= 0) also(at_most(ctx_, ctx_.before("Sub", {rows, whole(ctx_, left)}), columns));
    may_see_nothing_ = left >= 0 || right >= 0;
    return added(seen);
  }

  std::string added(const std::string& seen) {
    return ctx_.before("Where",
                       {seen, ctx_.scalar_like(0, 0, "seen"),
                        ctx_.scalar_like(-std::numeric_limits<float>::infinity(), 0, "hidden")});
  }

  std::string mask_to_add() {
    constexpr size_t mask = 3;
    const size_t length = rank_ == 4 ? 2 : 1;
    ops::Dim keys = shape_of(1)[length];
    if (ctx_.has_input(4)) keys = keys + shape_of(4)[2];
    if (shape_of(mask).empty() || shape_of(mask).back() != keys)
      cannot("its mask must surely have a column for each key");
    may_see_nothing_ = true;
    const std::string& given = ctx_.node().inputs[mask];
    if (ctx_.element(mask) == ElementType::boolean) return added(given);
    if (ctx_.element(mask) == ctx_.element(0)) return given;
    return ctx_.before("CastLike", {given, ctx_.node().inputs[0]});
  }

  // Heads of queries that share a head of keys.
  void repeat(std::string& keys, std::string& values) {
    std::optional<int64_t> query_heads, key_heads;
    if (rank_ == 3) {
      query_heads = view_.attr_int("q_num_heads"), key_heads = view_.attr_int("kv_num_heads");
    } else {
      if (shape_of(0)[1] == shape_of(1)[1]) return;
      query_heads = shape_of(0)[1].value(), key_heads = shape_of(1)[1].value();
    }
    if (!query_heads || !key_heads || *key_heads < 1) cannot("its numbers of heads must be known");
    if (*query_heads == *key_heads) return;
    const std::string times = constant(ctx_, {1, 1, *query_heads / *key_heads, 1, 1});
    for (std::string* value : {&keys, &values}) {
      const std::string heads = ctx_.before(
          "Concat",
          {sizes(ctx_, *value, 0, 1), constant(ctx_, {*query_heads}), sizes(ctx_, *value, 2, 4)},
          {int_attribute("axis", 0)});
      const std::string wider = ctx_.before("Unsqueeze", {*value, constant(ctx_, {2})});
      *value = ctx_.before("Reshape", {ctx_.before("Expand", {wider, times}), heads});
    }
  }

  std::string shares(std::string scores) {
    const int64_t own = static_cast<int64_t>(ctx_.element(0));
    const int64_t precision = view_.attr_int("softmax_precision", own);
    const bool casts = precision != own;
    if (casts) scores = ctx_.before("Cast", {scores}, {int_attribute("to", precision)});
    std::string made = ctx_.before("Softmax", {scores}, {int_attribute("axis", -1)});
    if (casts) made = ctx_.before("Cast", {made}, {int_attribute("to", own)});
    if (!may_see_nothing_) return made;
    // A query without any key gets 0.
    const std::string largest = ctx_.before("ReduceMax", {scores, constant(ctx_, {-1})});
    std::string nothing = ctx_.scalar_like(-std::numeric_limits<float>::infinity(), 0, "nothing");
    if (casts) nothing = ctx_.before("Cast", {nothing}, {int_attribute("to", precision)});
    const std::string is_blind = ctx_.before("Equal", {largest, nothing});
    return ctx_.before("Where", {is_blind, ctx_.scalar_like(0, 0, "none"), made});
  }

  DowngradeContext& ctx_;
  ops::NodeView view_;
  int64_t rank_ = 0;
  bool may_see_nothing_ = false;
};

}  // namespace

void attention_down(DowngradeContext& ctx) {
  if (ctx.element(0) == ElementType::undefined) cannot("the type of its input 'Q' is not known");
  AttentionNodes(ctx).make();
}

void rotary_embedding_down(DowngradeContext& ctx) {
  enum Input { x, cosines, sines, positions };
  const ops::NodeView view = ctx.newest();
  const int64_t rank = rank_of(ctx, x);
  const std::vector<std::string> inputs = ctx.node().inputs;
  // [batch, length, heads, size]
  std::string value =
      rank == 3 ? ctx.before("Reshape",
                             {inputs[x], constant(ctx, {0, 0, view.attr_int("num_heads"), -1})})
                : ctx.before("Transpose", {inputs[x]}, {ints_attribute("perm", {0, 2, 1, 3})});
  const auto slice = [&](const std::string& of, int64_t begin, int64_t end, int64_t step) {
    return ctx.before("Slice", {of, constant(ctx, {begin}), constant(ctx, {end}),
                                constant(ctx, {3}), constant(ctx, {step})});
  };
  constexpr int64_t all = std::numeric_limits<int64_t>::max();
  const int64_t turned = view.attr_int("rotary_embedding_dim", 0);
  std::string rest;
  if (turned > 0) {
    rest = slice(value, turned, all, 1);
    value = slice(value, 0, turned, 1);
  }
  const auto for_heads = [&](size_t table) {
    const std::string rows = ctx.has_input(positions)
                                 ? ctx.before("Gather", {inputs[table], inputs[positions]})
                                 : inputs[table];
    return ctx.before("Unsqueeze", {rows, constant(ctx, {2})});
  };
  const std::string cos = for_heads(cosines), sin = for_heads(sines);
  const bool interleaved = view.attr_int("interleaved", 0) != 0;
  std::string first, second;
  if (interleaved) {
    first = slice(value, 0, all, 2), second = slice(value, 1, all, 2);
  } else {
    const ops::ValueType* table = ctx.type(cosines);
    const bool is_ranked = table != nullptr && table->shape && !table->shape->empty();
    const auto half = is_ranked ? table->shape->back().value() : std::nullopt;
    if (!half) cannot("the sizes of its tables must be known");
    first = slice(value, 0, *half, 1), second = slice(value, *half, all, 1);
  }
  const auto product = [&](const std::string& a, const std::string& b) {
    return ctx.before("Mul", {a, b});
  };
  const std::string real = ctx.before("Sub", {product(cos, first), product(sin, second)});
  const std::string imaginary = ctx.before("Add", {product(sin, first), product(cos, second)});
  std::string made;
  if (interleaved) {
    const auto column = [&](const std::string& of) {
      return ctx.before("Unsqueeze", {of, constant(ctx, {4})});
    };
    made = ctx.before("Reshape", {ctx.before("Concat", {column(real), column(imaginary)},
                                             {int_attribute("axis", 4)}),
                                  constant(ctx, {0, 0, 0, -1})});
  } else {
    made = ctx.before("Concat", {real, imaginary}, {int_attribute("axis", 3)});
  }
  if (!rest.empty()) made = ctx.before("Concat", {made, rest}, {int_attribute("axis", 3)});
  const std::string y = ctx.node().outputs[0];
  if (rank == 3) {
    ctx.after("Reshape", {made, constant(ctx, {0, 0, -1})}, y);
  } else {
    ctx.after("Transpose", {made}, y, {ints_attribute("perm", {0, 2, 1, 3})});
  }
  ctx.drop_node();
}

void trilu_down(DowngradeContext& ctx) {
  const int64_t rank = rank_of(ctx, 0);
  const ElementType element = ctx.element(0);
  if (rank < 2 || element == ElementType::undefined) cannot("the type of its input is not known");
  const std::string x = ctx.node().inputs[0], y = ctx.node().outputs[0];
  const std::string columns = numbers_below(ctx, size(ctx, x, rank - 1));
  const std::string rows =
      ctx.before("Unsqueeze", {numbers_below(ctx, size(ctx, x, rank - 2)), constant(ctx, {1})});
  // The diagonal that an element is on, compared with one that may be any number.
  const std::string at = ctx.has_input(1) ? ctx.before("Sub", {columns, rows}) : columns;
  const std::string& from = ctx.has_input(1) ? ctx.node().inputs[1] : rows;
  const bool upper = ctx.newest().attr_int("upper", 1) != 0;
  const std::string kept = upper ? at_most(ctx, from, at) : at_most(ctx, at, from);
  Tensor zero(element, {});
  if (element == ElementType::string) cannot("its input is of strings");
  std::fill_n(static_cast<uint8_t*>(zero.mutable_data()), zero.byte_size(), uint8_t{0});
  ctx.after("Where", {kept, x, ctx.constant(std::move(zero), "zero")}, y);
  ctx.drop_node();
}

}  // namespace sardonyx::lower
