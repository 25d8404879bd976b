#include "ops/contrib/heads.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "ops/internal/checks.h"
#include "ops/internal/node.h"

namespace sardonyx::ops {
namespace {

std::string total_keys(Body& body, const Heads& heads, int64_t rank) {
  const std::string fresh = body.size_of(heads.k, rank - 2);
  if (heads.is_buffered()) return body.op("Add", {fresh, heads.past_length});
  return heads.past_k.empty() ? fresh : body.op("Add", {fresh, body.size_of(heads.past_k, 2)});
}

// 0 where `allowed` holds, else the filter value: the node's softmax over a row without any
// allowed key then is what it would be without the mask, as ONNX Runtime has it.
std::string filtered(Body& body, const std::string& allowed, size_t like) {
  return body.op("Where", {allowed, body.number(0, like), mask_filter(body, like)});
}

std::string counting(Body& body, const std::string& count) {
  return body.op("Range",
                 {body.context().constant(Tensor::scalar<int64_t>(0)), body.op("Squeeze", {count}),
                  body.context().constant(Tensor::scalar<int64_t>(1))});
}

// A mask of one dimension: for each batch where its keys end, and, if there are twice as many
// numbers, where they begin. What else may follow the ends (3 * batch + 2 numbers) is for GPUs.
std::string mask_from_ends(Body& body, const Heads& heads, int64_t rank, size_t mask) {
  const std::string batch = body.size_of(heads.q, 0);
  const std::string total = total_keys(body, heads, rank);
  std::string positions;
  if (heads.is_buffered()) {
    // What the length says is not checked yet: it must not decide how much memory this takes.
    const std::string all = counting(body, body.size_of(heads.past_k, 2));
    positions = body.op("Slice", {all, body.ints({0}), total, body.ints({0})});
  } else {
    positions = counting(body, total);
  }
  const std::string given = body.cast(body.input(mask), ElementType::int64);
  const std::string none = body.op("Expand", {body.ints({0}), batch});
  const std::string both = body.op("Concat", {given, none}, {int_attribute("axis", 0)});
  const std::string zero = body.ints({0}), twice = body.op("Add", {batch, batch});
  const std::string ends = body.op("Slice", {both, zero, batch, zero});
  const std::string has_begins = body.op("Equal", {body.op("Shape", {given}), twice});
  const std::string begins =
      body.op("Where", {has_begins, body.op("Slice", {both, batch, twice, zero}), none});
  const std::string before_end = body.op("Less", {positions, body.unsqueeze(ends, {1, 2, 3})});
  const std::string from_begin =
      body.op("GreaterOrEqual", {positions, body.unsqueeze(begins, {1, 2, 3})});
  return body.op("And", {before_end, from_begin});
}

std::string concat(Body& body, Names parts) {
  return body.op("Concat", std::move(parts), {int_attribute("axis", 0)});
}

// Rows [batch, heads, rows, size] of a buffer, each taken from the beam that `beams` names; those
// from past_length on are the batch's own.
std::string of_beams(Body& body, const Heads& heads, const std::string& present) {
  const std::string batch = body.size_of(present, 0), rows = body.size_of(present, 2),
                    width = body.size_of(heads.beams, 1);
  const std::string all = body.unsqueeze(counting(body, batch), {1}), places = counting(body, rows);
  const std::string own = body.op("Mod", {all, width});
  const std::string given =
      body.op("Reshape", {body.cast(heads.beams, ElementType::int64), concat(body, {batch, rows})});
  const std::string past = body.op("Less", {places, heads.past_length});
  const std::string chosen =
      in_range(body, body.op("Where", {past, given, own}), 0,
               body.op("Sub", {width, body.ints({1})}), "beams that cache_indirection names");
  const std::string source = body.op("Add", {body.op("Sub", {all, own}), chosen});
  const std::string place = body.op("Add", {body.op("Mul", {source, rows}), places});
  const std::string wide = three_dimensional(body, present);
  const std::string flat =
      body.op("Reshape", {wide, concat(body, {body.ints({-1}), body.size_of(wide, 2)})});
  return four_dimensional(body, body.op("Gather", {flat, place}), heads.count);
}

Attributes attention_attributes(Body& body, const Heads& heads, int64_t rank) {
  const NodeView node = body.node();
  Attributes attributes{int_attribute("is_causal", node.attr_int("unidirectional", 0))};
  if (rank == 3) {
    attributes.push_back(int_attribute("q_num_heads", heads.count));
    attributes.push_back(int_attribute("kv_num_heads", heads.count));
  }
  if (const float scale = node.attr_float("scale", 0); scale != 0)
    attributes.push_back(float_attribute("scale", scale));
  // The scores after masks are added.
  attributes.push_back(int_attribute("qk_matmul_output_mode", 2));
  return attributes;
}

void attention_node(Body& body, Names inputs, Names outputs, Attributes attributes) {
  while (inputs.back().empty()) inputs.pop_back();
  while (outputs.back().empty()) outputs.pop_back();
  body.node_for("Attention", std::move(inputs), std::move(outputs), std::move(attributes));
}

// Keys and values lie in buffers of one size for all lengths: new ones are written at past_length,
// and the attention is over those up to the end of the new ones.
void attend_buffered(Body& body, Heads heads, int64_t rank, const std::string& mask,
                     const Names& outputs) {
  const std::string total = total_keys(body, heads, rank);
  if (rank == 3) {
    for (std::string* x : {&heads.q, &heads.k, &heads.v})
      *x = four_dimensional(body, *x, heads.count);
  }
  const std::string batch = body.size_of(heads.q, 0);
  const std::string starts = body.op("Expand", {heads.past_length, batch}),
                    ends = body.op("Expand", {total, batch});
  const auto present = [&](const std::string& past, const std::string& fresh,
                           const std::string& name) {
    const std::string made = name.empty() ? body.fresh_name() : name;
    body.node_for("TensorScatter", {past, fresh, starts}, {made}, {int_attribute("axis", 2)});
    return heads.beams.empty() ? made : of_beams(body, heads, made);
  };
  const std::string k = present(heads.past_k, heads.k, outputs[1]),
                    v = present(heads.past_v, heads.v, outputs[2]);
  const std::string y = body.fresh_name();
  const std::string scores =
      outputs.size() > 3 && !outputs[3].empty() ? body.fresh_name() : std::string();
  attention_node(body, {heads.q, k, v, mask, "", "", ends}, {y, "", "", scores},
                 attention_attributes(body, heads, 4));
  if (!outputs[0].empty())
    body.node_for("Reshape", {body.transpose(y, {0, 2, 1, 3}), body.ints({0, 0, -1})},
                  {outputs[0]});
  if (!scores.empty())
    body.node_for("Slice", {scores, body.ints({0}), total, body.ints({3})}, {outputs[3]});
}

}  // namespace

int64_t head_count(const UpgradeContext& ctx) {
  const int64_t count = ctx.old().attr_int("num_heads");
  if (count < 1) ctx.fail(ErrorCode::invalid_model, "num_heads must be at least 1; got {}", count);
  return count;
}

std::string mask_filter(Body& body, size_t like) {
  const ElementType type = body.context().element(like);
  const float most = type == ElementType::float16    ? 65504.0f
                     : type == ElementType::bfloat16 ? 0x1.fep127f
                                                     : std::numeric_limits<float>::max();
  const float filter = body.node().attr_float("mask_filter_value", -10000.0f);
  return body.number(std::isfinite(filter) ? std::clamp(filter, -most, most) : filter, like);
}

std::string one_number(Body& body, size_t input) {
  return body.reshape(body.cast(body.input(input), ElementType::int64), {1});
}

std::string in_range(Body& body, const std::string& value, int64_t low, const std::string& high,
                     std::string_view what) {
  const std::string made = body.fresh_name();
  using internal::InRange;
  body.context().before(internal::to_node(InRange{low, std::string(what)}, {},
                                          {{InRange::x, value}, {InRange::high, high}}, {made}));
  return made;
}

std::string four_dimensional(Body& body, const std::string& value, int64_t heads) {
  return body.transpose(body.reshape(value, {0, 0, heads, -1}), {0, 2, 1, 3});
}

std::string three_dimensional(Body& body, const std::string& value) {
  return body.reshape(body.transpose(value, {0, 2, 1, 3}), {0, 0, -1});
}

void add_bias(Body& body, Heads& heads, size_t bias, bool projected) {
  const auto add = [&](std::string& value, const std::string& begin, const std::string& end) {
    const std::string part = body.op("Slice", {body.input(bias), begin, end, body.ints({0})});
    value = body.op("Add", {value, part});
  };
  const std::string size = body.size_of(heads.q, 2), twice = body.op("Add", {size, size});
  if (projected) {
    const std::string all = body.op("Add", {twice, body.size_of(heads.v, 2)});
    add(heads.k, size, twice);
    add(heads.v, twice, all);
  }
  add(heads.q, body.ints({0}), size);
}

namespace {

// Megatron's mask [batch, 1, rows, rows] of all positions there may be: the rows of the queries,
// and the columns of the keys.
std::string mask_of_all(Body& body, const Heads& heads, int64_t rank, size_t mask) {
  if (body.node().attr_int("unidirectional", 0) != 0)
    body.context().fail(ErrorCode::invalid_model, "unidirectional with a mask of four dimensions");
  const std::string total = total_keys(body, heads, rank), zero = body.ints({0});
  const std::string first = body.op("Sub", {total, body.size_of(heads.q, rank - 2)});
  // No fewer rows than keys, which a slice would leave out.
  const std::string end = in_range(body, total, 0, body.size_of(body.input(mask), 3),
                                   "the keys that a mask of four dimensions is for");
  const std::string starts = body.op("Concat", {first, zero}, {int_attribute("axis", 0)}),
                    ends = body.op("Concat", {end, end}, {int_attribute("axis", 0)});
  return body.op("Slice", {body.cast(body.input(mask), ElementType::boolean), starts, ends,
                           body.ints({2, 3})});
}

}  // namespace

namespace {

// Which keys each query may see, as something that broadcasts to the scores; "" for all.
std::string allowed_keys(Body& body, const Heads& heads, int64_t rank, size_t mask, MaskOfOne one) {
  if (!body.has(mask)) return "";
  const int64_t dims = body.rank(mask);
  if (dims == 1) return mask_from_ends(body, heads, rank, mask);
  if (dims == 4) return mask_of_all(body, heads, rank, mask);
  if (dims != 2 && dims != 3)
    body.context().fail(ErrorCode::invalid_model,
                        "a mask of {} dimensions; known are one (where keys end), two (batch, "
                        "keys), three (batch, queries, keys) and four (batch, 1, all, all)",
                        dims);
  const std::string allowed = body.cast(body.input(mask), ElementType::boolean);
  if (dims == 3) return body.unsqueeze(allowed, {1});
  const std::string wide = body.unsqueeze(allowed, {1, 2});
  if (one == MaskOfOne::meant) return wide;
  const ir::Dim* keys = body.dim(mask, 1);
  if (keys && keys->is_constant()) return *keys == 1 ? "" : wide;
  // Where a name says that there is one number for each key, one number and no mask are the same.
  const ir::Dim* fresh = body.dim(0, 1);
  if (keys && fresh && *keys == *fresh && heads.past_k.empty()) return wide;
  // As wide as there are keys: the standard's Attention fills what is shorter.
  const std::string ignored = body.op("Equal", {body.size_of(body.input(mask), 1), body.ints({1})});
  return body.op("Or", {wide, body.op("Expand", {ignored, total_keys(body, heads, rank)})});
}

}  // namespace

std::string additive_mask(Body& body, const Heads& heads, int64_t rank, size_t mask, size_t bias,
                          MaskOfOne one) {
  const std::string allowed = allowed_keys(body, heads, rank, mask, one);
  const std::string sum = allowed.empty() ? allowed : filtered(body, allowed, heads.like);
  if (!body.has(bias)) return sum;
  return sum.empty() ? body.input(bias) : body.op("Add", {sum, body.input(bias)});
}

Names wanted_outputs(const Body& body, size_t count) {
  Names names;
  for (size_t i = 0; i < count; ++i)
    names.push_back(body.wants(i) ? body.context().node().outputs[i] : std::string());
  return names;
}

void attend(Body& body, const Heads& heads, int64_t rank, const std::string& mask, Names outputs) {
  outputs.resize(4);
  if (heads.is_buffered()) return attend_buffered(body, heads, rank, mask, outputs);
  const std::string y = outputs[0];
  if (rank == 4 || y.empty()) outputs[0] = body.fresh_name();
  attention_node(body, {heads.q, heads.k, heads.v, mask, heads.past_k, heads.past_v, heads.lengths},
                 outputs, attention_attributes(body, heads, rank));
  if (rank == 4 && !y.empty())
    body.node_for("Reshape", {body.transpose(outputs[0], {0, 2, 1, 3}), body.ints({0, 0, -1})},
                  {y});
}

}  // namespace sardonyx::ops
