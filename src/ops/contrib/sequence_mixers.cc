// com.microsoft: CausalConvWithState, LinearAttention, MRotaryEmbedding and SparseAttention.
#include <algorithm>

#include "ops/contrib/body.h"
#include "ops/contrib/heads.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace contrib_sequence_mixers_unit {
namespace {

void refuse_window(const UpgradeContext& ctx) {
  if (const int64_t window = ctx.old().attr_int("state_window", 0); window != 0)
    ctx.fail(ErrorCode::unsupported, "state_window {}: states of more than the last position",
             window);
}

// --- LinearAttention ----------------------------------------------------------------------------

void linear_attention(UpgradeContext& ctx) {
  Body body(ctx);
  refuse_window(ctx);
  const NodeView node = ctx.old();
  const int64_t q_heads = node.attr_int("q_num_heads"), kv_heads = node.attr_int("kv_num_heads");
  if (q_heads >= 1 && q_heads < kv_heads)
    ctx.fail(ErrorCode::unsupported, "{} query heads with {} of keys", q_heads, kv_heads);
  const std::string rule = node.attr_string("update_rule", "gated_delta");
  // What the rule does not read may stand here.
  const std::string decay = rule.starts_with("gated") ? body.input(4) : "";
  const std::string beta = rule.ends_with("delta") ? body.input(5) : "";
  Names inputs{body.input(0), body.input(1), body.input(2), body.input(3), decay, beta};
  while (inputs.back().empty()) inputs.pop_back();
  body.node_for("LinearAttention", inputs, wanted_outputs(body, 2),
                {int_attribute("q_num_heads", q_heads), int_attribute("kv_num_heads", kv_heads),
                 float_attribute("scale", node.attr_float("scale", 0)),
                 string_attribute("update_rule", rule)});
}

// --- CausalConvWithState ------------------------------------------------------------------------

// [batch, length, ...] as [batch, channels, length].
std::string channels_first(Body& body, size_t i) {
  if (!body.has(i)) return "";
  return body.transpose(body.reshape(body.input(i), {0, 0, -1}), {0, 2, 1});
}

// Back to channels last, in the channel axes of the input.
void give_nhwc(Body& body, size_t output, const std::string& value) {
  if (!body.wants(output)) return;
  const std::string transposed = body.transpose(value, {0, 2, 1});
  const std::string channels = body.op("Shape", {body.input(0)}, {int_attribute("start", 2)});
  const std::string before =
      body.op("Shape", {transposed}, {int_attribute("start", 0), int_attribute("end", 2)});
  const std::string shape = body.op("Concat", {before, channels}, {int_attribute("axis", 0)});
  body.give(output, "Reshape", {transposed, shape}, {int_attribute("allowzero", 1)});
}

struct Taps {
  int64_t channels = 0, count = 0, dilation = 1;
  int64_t state() const { return (count - 1) * dilation; }
};

Taps read_taps(const Body& body) {
  const ir::Dim *channels = body.dim(1, 0), *count = body.dim(1, 2);
  if (!channels || !count || !channels->value() || !count->value())
    body.context().fail(ErrorCode::unsupported,
                        "with a dilation the shape of weight must be known: [channels, 1, taps]");
  const Taps taps{*channels->value(), *count->value(), body.node().attr_int("dilation", 1)};
  if (taps.channels < 1 || taps.count < 1 || taps.count > 1 << 20 || taps.dilation > 1 << 20)
    body.context().fail(ErrorCode::invalid_model,
                        "weight must be [channels, 1, taps]; it has {} channels and {} taps",
                        taps.channels, taps.count);
  return taps;
}

// The convolution of state and input, and the state after it.
Names dilated(Body& body, const std::string& x, std::string state) {
  const Taps taps = read_taps(body);
  if (state.empty()) {
    const std::string sizes = body.op(
        "Concat", {body.op("Shape", {x}, {int_attribute("end", 2)}), body.ints({taps.state()})},
        {int_attribute("axis", 0)});
    state = body.op("Expand", {body.number(0, 0), sizes});
  }
  const std::string all = body.op("Concat", {state, x}, {int_attribute("axis", 2)});
  Names inputs{all, body.input(1)};
  if (body.has(2)) inputs.push_back(body.input(2));
  std::string y = body.op(
      "Conv", inputs,
      {int_attribute("group", taps.channels), ints_attribute("dilations", {taps.dilation})});
  const std::string activation = body.node().attr_string("activation", "none");
  if (activation == "silu" || activation == "swish") {
    y = body.op("Swish", {y});
  } else if (activation != "none") {
    body.context().fail(ErrorCode::invalid_model,
                        "activation must be none, silu or swish; got '{}'", activation);
  }
  const std::string end = body.size_of(all, 2);
  const std::string begin = body.op("Sub", {end, body.ints({taps.state()})});
  return {y, body.op("Slice", {all, begin, end, body.ints({2})})};
}

void causal_conv(UpgradeContext& ctx) {
  Body body(ctx);
  refuse_window(ctx);
  const NodeView node = ctx.old();
  if (const int64_t dims = node.attr_int("ndim", 1); dims != 1)
    ctx.fail(ErrorCode::unsupported, "ndim must be 1, as in ONNX Runtime; got {}", dims);
  const int64_t dilation = node.attr_int("dilation", 1);
  if (dilation < 1)
    ctx.fail(ErrorCode::invalid_model, "dilation must be 1 or more; got {}", dilation);
  const bool last = node.attr_int("channels_last", 0) != 0;
  const std::string x = last ? channels_first(body, 0) : body.input(0);
  const std::string state = last ? channels_first(body, 3) : body.input(3);
  if (!last && dilation == 1) {
    Names inputs{x, body.input(1), body.input(2), state};
    while (inputs.back().empty()) inputs.pop_back();
    return body.node_for("CausalConvWithState", inputs, wanted_outputs(body, 2),
                         {string_attribute("activation", node.attr_string("activation", "none"))});
  }
  Names made;
  if (dilation == 1) {
    Names inputs{x, body.input(1), body.input(2), state};
    while (inputs.back().empty()) inputs.pop_back();
    made = body.several("CausalConvWithState", inputs, 2,
                        {string_attribute("activation", node.attr_string("activation", "none"))});
  } else {
    made = dilated(body, x, state);
  }
  for (size_t i = 0; i < 2; ++i) {
    if (last) {
      give_nhwc(body, i, made[i]);
    } else {
      body.give(i, "Identity", {made[i]});
    }
  }
}

// --- MRotaryEmbedding ---------------------------------------------------------------------------

// For each column of the table which of the three positions it is read at.
std::vector<int64_t> streams(const UpgradeContext& ctx) {
  const auto section = ctx.old().attr_ints("mrope_section").value_or(std::vector<int64_t>());
  const int64_t layout = ctx.old().attr_int("mrope_layout", 0);
  if (layout != 0 && layout != 1)
    ctx.fail(ErrorCode::invalid_model, "mrope_layout must be 0 or 1; got {}", layout);
  constexpr int64_t most = 1 << 20;
  const bool sound = section.size() == 3 && std::ranges::all_of(section, [](int64_t size) {
                       return size >= 0 && size <= most;
                     });
  if (!sound || section[0] + section[1] + section[2] < 1)
    ctx.fail(ErrorCode::invalid_model,
             "mrope_section must have three numbers, none below 0 and not all 0");
  const int64_t half = section[0] + section[1] + section[2];
  std::vector<int64_t> stream(static_cast<size_t>(half), 0);
  for (int64_t i = 0; i < half; ++i) {
    int64_t& mine = stream[static_cast<size_t>(i)];
    if (layout == 0) {
      mine = i < section[0] ? 0 : i < section[0] + section[1] ? 1 : 2;
    } else if (i % 3 != 0 && i < 3 * section[static_cast<size_t>(i % 3)]) {
      mine = i % 3;
    }
  }
  return stream;
}

void multimodal_rotary(UpgradeContext& ctx) {
  Body body(ctx);
  const NodeView node = ctx.old();
  const std::vector<int64_t> stream = streams(ctx);
  const auto half = static_cast<int64_t>(stream.size());
  const int64_t rotated = node.attr_int("rotary_embedding_dim", 0);
  if (rotated != 0 && rotated != 2 * half)
    ctx.fail(ErrorCode::invalid_model, "mrope_section has {} columns for a rotary_embedding_dim {}",
             half, rotated);
  if (body.rank(1) != 3)
    ctx.fail(ErrorCode::invalid_model, "position_ids must be [3, batch, length]");
  for (const size_t i : {size_t{2}, size_t{3}}) {
    const ir::Dim* columns = body.dim(i, 1);
    if (columns != nullptr && columns->value() && *columns->value() != half)
      ctx.fail(ErrorCode::invalid_model, "{} must have the {} columns of mrope_section; it has {}",
               node.input_name(static_cast<int>(i)), half, *columns->value());
  }
  // All three rows of the table side by side, of which each column is one.
  std::vector<int64_t> columns;
  for (int64_t i = 0; i < half; ++i) columns.push_back(stream[static_cast<size_t>(i)] * half + i);
  const std::string chosen = body.ints(columns);
  const auto table = [&](size_t i) {
    Names rows;
    for (int64_t j = 0; j < 3; ++j)
      rows.push_back(body.op("Gather", {body.input(i), body.take(body.input(1), j, 0)}));
    const std::string all = body.op("Concat", rows, {int_attribute("axis", -1)});
    return body.op("Gather", {all, chosen}, {int_attribute("axis", 2)});
  };
  Attributes attributes{int_attribute("interleaved", node.attr_int("interleaved", 0))};
  if (rotated > 0) attributes.push_back(int_attribute("rotary_embedding_dim", rotated));
  if (body.rank(0) == 3) {
    int64_t heads = node.attr_int("num_heads", 0);
    const ir::Dim* hidden = body.dim(0, 2);
    if (heads == 0 && (hidden == nullptr || !hidden->value()))
      ctx.fail(ErrorCode::unsupported,
               "without num_heads the last dimension of input must be known");
    if (heads == 0) heads = *hidden->value() / (2 * half);
    attributes.push_back(int_attribute("num_heads", heads));
  }
  const std::string cosine = table(2), sine = table(3);
  body.give(0, "RotaryEmbedding", {body.input(0), cosine, sine}, attributes);
}

// --- SparseAttention ----------------------------------------------------------------------------

enum SparseInput {
  sparse_query,
  sparse_key,
  sparse_value,
  sparse_past_key,
  sparse_past_value,
  row_starts,
  row_columns,
  total_length,
  key_lengths,
  sparse_cosine,
  sparse_sine
};

// 0, 1, 2 … up to a vector of one.
std::string count_up(Body& body, const std::string& size) {
  const auto whole = [&](int64_t value) {
    return body.context().constant(Tensor::scalar<int64_t>(value), "number");
  };
  return body.op("Range", {whole(0), body.op("Squeeze", {size}), whole(1)});
}

// [layouts, rows, rows] of numbers: above 0 where a block is one that its row of blocks reads.
std::string dense_blocks(Body& body) {
  const std::string starts = body.cast(body.input(row_starts), ElementType::int64);
  const std::string columns = body.cast(body.input(row_columns), ElementType::int64);
  const std::string rows = body.op("Sub", {body.size_of(starts, 1), body.ints({1})});
  const std::string zero = body.ints({0}), one = body.ints({1});
  const std::string begins = body.op("Slice", {starts, zero, rows, one});
  const std::string ends = body.op("Slice", {starts, one, body.size_of(starts, 1), one});
  const std::string entries = count_up(body, body.size_of(columns, 1));
  const std::string from = body.op("GreaterOrEqual", {entries, body.unsqueeze(begins, {2})});
  const std::string to = body.op("Less", {entries, body.unsqueeze(ends, {2})});
  const std::string mine = body.cast(body.op("And", {from, to}), ElementType::float32);
  const std::string named = body.op("Equal", {body.unsqueeze(columns, {2}), count_up(body, rows)});
  return body.op("MatMul", {mine, body.cast(named, ElementType::float32)});
}

// What is added to the scores, [batch, heads, length, keys]: the lowest number where a block is not
// read.
std::string block_bias(Body& body, int64_t heads, int64_t block) {
  const std::string blocks = dense_blocks(body);
  const std::string size = body.ints({block});
  const std::string total =
      body.op("Reshape", {body.cast(body.input(total_length), ElementType::int64), body.ints({1})});
  const std::string length = body.size_of(body.input(sparse_query), 1);
  const std::string keys = body.op("Div", {count_up(body, total), size});  // their blocks
  // Queries begin at 0 where all keys are new, else `length` before the end.
  const std::string ends =
      body.unsqueeze(body.cast(body.input(key_lengths), ElementType::int64), {1});
  const std::string starts = body.op(
      "Where", {body.op("Equal", {total, length}), body.ints({0}), body.op("Sub", {ends, length})});
  const std::string places = body.op("Add", {starts, count_up(body, length)});  // [batch, length]
  const std::string rows = body.op("Div", {places, size});
  const std::string allowed =
      body.op("Gather", {body.op("Gather", {blocks, rows}, {int_attribute("axis", 1)}), keys},
              {int_attribute("axis", 3)});  // [layouts, batch, length, keys]
  const std::string bias = body.op(
      "Where", {body.op("Greater", {allowed, body.context().constant(Tensor::scalar<float>(0))}),
                body.number(0, 0), body.number(-60000.0f, 0)});
  // Heads take the layouts in turn.
  const std::string layouts = body.size_of(bias, 0);
  const std::string turns = body.op("Mod", {count_up(body, body.ints({heads})), layouts});
  return body.op("Gather", {body.transpose(bias, {1, 0, 2, 3}), turns}, {int_attribute("axis", 1)});
}

void sparse_attention(UpgradeContext& ctx) {
  Body body(ctx);
  const NodeView node = ctx.old();
  const int64_t heads = node.attr_int("num_heads"), block = node.attr_int("sparse_block_size");
  if (heads < 1 || heads > 1 << 16)
    ctx.fail(ErrorCode::invalid_model, "num_heads must be at least 1; got {}", heads);
  if (block < 1 || block > 1 << 20)
    ctx.fail(ErrorCode::invalid_model, "sparse_block_size must be at least 1; got {}", block);
  if (body.rank(row_starts) != 2 || body.rank(row_columns) != 2)
    ctx.fail(ErrorCode::invalid_model,
             "block_row_indices and block_col_indices must have two dimensions");
  const std::string bias = block_bias(body, heads, block);
  ir::Node made;
  made.op_type = "GroupQueryAttention", made.domain = "com.microsoft";
  const std::string last_keys =
      body.op("Sub", {body.input(key_lengths), ctx.constant(Tensor::of<int32_t>({1}, {1}))});
  made.inputs = {body.input(sparse_query),
                 body.input(sparse_key),
                 body.input(sparse_value),
                 body.input(sparse_past_key),
                 body.input(sparse_past_value),
                 last_keys,
                 body.input(total_length),
                 body.input(sparse_cosine),
                 body.input(sparse_sine),
                 "",
                 bias};
  made.outputs = wanted_outputs(body, 3);
  made.attributes = {int_attribute("num_heads", heads),
                     int_attribute("kv_num_heads", node.attr_int("kv_num_heads")),
                     int_attribute("do_rotary", node.attr_int("do_rotary", 0)),
                     int_attribute("rotary_interleaved", node.attr_int("rotary_interleaved", 0))};
  if (const float scale = node.attr_float("scale", 0); scale != 0)
    made.attributes.push_back(float_attribute("scale", scale));
  ctx.before(std::move(made));
}

constexpr Operator operators[] = {
    {.name = "CausalConvWithState", .domain = "com.microsoft", .upgrade = causal_conv},
    {.name = "LinearAttention", .domain = "com.microsoft", .upgrade = linear_attention},
    {.name = "MRotaryEmbedding", .domain = "com.microsoft", .upgrade = multimodal_rotary},
    {.name = "SparseAttention", .domain = "com.microsoft", .upgrade = sparse_attention},
};

}  // namespace
}  // namespace contrib_sequence_mixers_unit

std::span<const Operator> contrib_sequence_mixers_operators() {
  return contrib_sequence_mixers_unit::operators;
}

}  // namespace sardonyx::ops
