// SimplifiedLayerNormalization (which ONNX Runtime puts in ai.onnx), and of com.microsoft
// SkipLayerNormalization, SkipSimplifiedLayerNormalization, EmbedLayerNormalization and
// QEmbedLayerNormalization.
#include "ops/contrib/body.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace contrib_normalizations_unit {
namespace {

// 1 / sqrt(mean(x^2) + epsilon) over the dimensions from `axis` on, in the stash type.
void give_inverse_rms(Body& body, size_t output, const std::string& x, int64_t axis, float epsilon,
                      ElementType stash) {
  if (!body.wants(output)) return;
  const std::string wide = body.cast(x, stash);
  // No tensor has as many dimensions; the axis is held against the rank where the node runs.
  constexpr int64_t most = 256;
  if (axis < -most || axis >= most)
    body.context().fail(ErrorCode::invalid_model, "axis must be less than the rank; got {}", axis);
  std::vector<int64_t> axes;
  for (int64_t i = axis < 0 ? axis : axis - body.rank(0); i < 0; ++i) axes.push_back(i);
  const std::string mean = body.op("ReduceMean", {body.op("Mul", {wide, wide}), body.ints(axes)});
  const Tensor term = stash == ElementType::float64 ? Tensor::scalar<double>(epsilon)
                                                    : Tensor::scalar<float>(epsilon);
  const std::string sum = body.op("Add", {mean, body.context().constant(term, "epsilon")});
  body.give(output, "Reciprocal", {body.op("Sqrt", {sum})});
}

void simplified(UpgradeContext& ctx) {
  Body body(ctx);
  const NodeView node = ctx.old();
  const int64_t axis = node.attr_int("axis", -1);
  const float epsilon = node.attr_float("epsilon", 1e-5f);
  body.give(0, "RMSNormalization", {body.input(0), body.input(1)},
            {int_attribute("axis", axis), float_attribute("epsilon", epsilon)});
  const bool wide = node.attr_int("stash_type", 1) == static_cast<int64_t>(ElementType::float64);
  give_inverse_rms(body, 1, body.input(0), axis, epsilon,
                   wide ? ElementType::float64 : ElementType::float32);
}

// input + skip + bias; the fourth output of the skip-normalisations. A skip with fewer dimensions
// or a batch of one repeats.
std::string skip_sum(Body& body, size_t bias, size_t output) {
  std::string sum = body.input(0);
  Names terms{body.input(1)};
  if (body.has(bias)) terms.insert(terms.begin(), body.input(bias));
  for (size_t i = 0; i < terms.size(); ++i) {
    const bool last = i + 1 == terms.size() && body.wants(output);
    if (!last) {
      sum = body.op("Add", {sum, terms[i]});
      continue;
    }
    body.give(output, "Add", {sum, terms[i]});
    sum = body.context().node().outputs[output];
  }
  return sum;
}

void skip_layer(UpgradeContext& ctx) {
  Body body(ctx);
  const std::string sum = skip_sum(body, 4, 3);
  Names inputs{sum, body.input(2)}, outputs;
  if (body.has(3)) inputs.push_back(body.input(3));
  for (size_t i = 0; i < 3; ++i)
    outputs.push_back(body.wants(i) ? ctx.node().outputs[i] : std::string());
  while (outputs.size() > 1 && outputs.back().empty()) outputs.pop_back();
  if (outputs[0].empty()) outputs[0] = body.fresh_name();
  body.node_for("LayerNormalization", inputs, outputs,
                {int_attribute("axis", -1),
                 float_attribute("epsilon", ctx.old().attr_float("epsilon", 1e-12f))});
}

void skip_simplified(UpgradeContext& ctx) {
  Body body(ctx);
  const float epsilon = ctx.old().attr_float("epsilon", 1e-12f);
  const std::string sum = skip_sum(body, 3, 3);
  // The root mean square needs no mean, but the operator has an output for it.
  if (body.wants(1))
    body.give(1, "ReduceMean", {body.cast(sum, ElementType::float32), body.ints({-1})});
  body.give(0, "RMSNormalization", {sum, body.input(2)},
            {int_attribute("axis", -1), float_attribute("epsilon", epsilon)});
  give_inverse_rms(body, 2, sum, -1, epsilon, ElementType::float32);
}

// Rows 0, 1, 2 … of the position table, as many as there are words.
std::string first_positions(Body& body) {
  const std::string length = body.size_of(body.input(0), 1);
  return body.op("Slice", {body.input(3), body.ints({0}), length, body.ints({0})});
}

// How many of a row's words count; without a mask the output is 0.
void give_word_counts(Body& body) {
  UpgradeContext& ctx = body.context();
  if (!body.wants(1)) return;
  const std::string ones =
      body.has(7)
          ? body.cast(body.op("Equal", {body.input(7), ctx.constant(Tensor::scalar<int32_t>(1))}),
                      ElementType::int32)
          : body.op("Mul", {body.input(0), ctx.constant(Tensor::scalar<int32_t>(0))});
  body.give(1, "ReduceSum", {ones, body.ints({1})}, {int_attribute("keepdims", 0)});
}

void embed(UpgradeContext& ctx) {
  Body body(ctx);
  std::string sum = body.op("Gather", {body.input(2), body.input(0)});
  const std::string positions =
      body.has(8) ? body.op("Gather", {body.input(3), body.input(8)}) : first_positions(body);
  const bool segments = body.has(4);
  if (segments != body.has(1))
    ctx.fail(ErrorCode::invalid_model, "segment_ids and segment_embedding must be given together");
  if (segments) {
    sum = body.op("Add", {sum, positions});
    const std::string rows = body.op("Gather", {body.input(4), body.input(1)});
    if (body.wants(2)) body.give(2, "Add", {sum, rows});
    sum = body.wants(2) ? ctx.node().outputs[2] : body.op("Add", {sum, rows});
  } else {
    if (body.wants(2)) body.give(2, "Add", {sum, positions});
    sum = body.wants(2) ? ctx.node().outputs[2] : body.op("Add", {sum, positions});
  }
  body.give(0, "LayerNormalization", {sum, body.input(5), body.input(6)},
            {int_attribute("axis", -1),
             float_attribute("epsilon", ctx.old().attr_float("epsilon", 1e-12f))});
  give_word_counts(body);
}

// The same from bytes, each table with its scale and zero point.
void quantized_embed(UpgradeContext& ctx) {
  Body body(ctx);
  const bool segments = body.has(4);
  for (const size_t i : {size_t{1}, size_t{10}, size_t{15}}) {
    if (body.has(i) != segments)
      ctx.fail(ErrorCode::invalid_model,
               "segment_ids, segment_embedding, its scale and its zero point must be given "
               "together");
  }
  const auto scalar = [&](size_t i) { return body.op("Reshape", {body.input(i), body.ints({})}); };
  const auto floats = [&](const std::string& bytes, size_t scale) {
    return body.op("DequantizeLinear", {bytes, scalar(scale), scalar(scale + 5)});
  };
  std::string sum = body.op("Add", {floats(body.op("Gather", {body.input(2), body.input(0)}), 8),
                                    floats(first_positions(body), 9)});
  if (segments)
    sum = body.op("Add", {sum, floats(body.op("Gather", {body.input(4), body.input(1)}), 10)});
  body.give(0, "LayerNormalization", {sum, floats(body.input(5), 11), floats(body.input(6), 12)},
            {int_attribute("axis", -1),
             float_attribute("epsilon", ctx.old().attr_float("epsilon", 1e-12f))});
  give_word_counts(body);
}

constexpr Operator operators[] = {
    {.name = "SimplifiedLayerNormalization", .upgrade = simplified},
    {.name = "EmbedLayerNormalization", .domain = "com.microsoft", .upgrade = embed},
    {.name = "QEmbedLayerNormalization", .domain = "com.microsoft", .upgrade = quantized_embed},
    {.name = "SkipLayerNormalization", .domain = "com.microsoft", .upgrade = skip_layer},
    {.name = "SkipSimplifiedLayerNormalization",
     .domain = "com.microsoft",
     .upgrade = skip_simplified},
};

}  // namespace
}  // namespace contrib_normalizations_unit

std::span<const Operator> contrib_normalizations_operators() {
  return contrib_normalizations_unit::operators;
}

}  // namespace sardonyx::ops
