// Experimental operators of ONNX 1.0 to 1.4 that no later release has: rewritten with today's, or
// refused with the reason.
#include <climits>

#include "ir/tensor.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace removed_unit {
namespace {

constexpr int64_t to_the_end = INT64_MAX;

// Replaces the node by one that gives its output.
void replace(UpgradeContext& ctx, std::string_view op, std::vector<std::string> inputs,
             std::vector<ir::Attribute> attributes = {}) {
  ctx.after(op, std::move(inputs), ctx.node().outputs.at(0), std::move(attributes));
  ctx.drop_node();
}

void require_inputs(const UpgradeContext& ctx, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (!ctx.has_input(i)) ctx.fail(ErrorCode::invalid_model, "input {} is required and absent", i);
  }
  if (!ctx.has_output(0)) ctx.fail(ErrorCode::invalid_model, "its output is not named");
}

std::string scaled(UpgradeContext& ctx, std::string value, std::string_view attribute) {
  const float factor = ctx.old().attr_float(attribute, 1);
  return factor == 1 ? value : ctx.before("Mul", {value, ctx.scalar_like(factor, 0)});
}

// alpha * x + beta.
void upgrade_affine(UpgradeContext& ctx) {
  require_inputs(ctx, 1);
  const std::string product = scaled(ctx, ctx.node().inputs[0], "alpha");
  replace(ctx, "Add", {product, ctx.scalar_like(ctx.old().attr_float("beta"), 0)});
}

void upgrade_scale(UpgradeContext& ctx) {
  require_inputs(ctx, 1);
  replace(ctx, "Mul", {ctx.node().inputs[0], ctx.scalar_like(ctx.old().attr_float("scale"), 0)});
}

// alpha * f(beta * x).
void upgrade_curve(UpgradeContext& ctx) {
  require_inputs(ctx, 1);
  const bool softplus = ctx.node().op_type == "ParametricSoftplus";
  const std::string inner = scaled(ctx, ctx.node().inputs[0], "beta");
  const std::string curve = ctx.before(softplus ? "Softplus" : "Tanh", {inner});
  replace(ctx, "Mul", {curve, ctx.scalar_like(ctx.old().attr_float("alpha", 1), 0)});
}

// x * scale + bias of each channel; [N, C, H, W].
void upgrade_image_scaler(UpgradeContext& ctx) {
  require_inputs(ctx, 1);
  const std::string product = scaled(ctx, ctx.node().inputs[0], "scale");
  const auto bias = ctx.old().attr_floats("bias").value_or(std::vector<float>());
  if (bias.empty()) {
    replace(ctx, "Identity", {product});
    return;
  }
  const Tensor shifts = Tensor::of<float>(bias, {1, static_cast<int64_t>(bias.size()), 1, 1});
  replace(ctx, "Add",
          {product, ctx.before("CastLike", {ctx.constant(shifts), ctx.node().inputs[0]})});
}

// Takes border = left, top, right, bottom off; scale = height, width says the rest's size instead.
void upgrade_crop(UpgradeContext& ctx) {
  require_inputs(ctx, 1);
  const auto border = ctx.old().attr_ints("border").value_or(std::vector<int64_t>{0, 0, 0, 0});
  const auto scale = ctx.old().attr_ints("scale").value_or(std::vector<int64_t>());
  if (border.size() != 4 || (!scale.empty() && scale.size() != 2))
    ctx.fail(ErrorCode::invalid_model,
             "border must have 4 numbers and scale 2; they have {} and {}", border.size(),
             scale.size());
  for (const auto* list : {&border, &scale}) {
    for (const int64_t value : *list) {
      if (value < 0 || value > INT32_MAX)
        ctx.fail(ErrorCode::invalid_model, "border and scale must be in [0, {}]; got {}", INT32_MAX,
                 value);
    }
  }
  const auto end = [&](size_t first, size_t last, size_t size) {
    if (!scale.empty()) return border[first] + scale[size];
    return border[last] == 0 ? to_the_end : -border[last];
  };
  replace(ctx, "Slice",
          {ctx.node().inputs[0], ctx.constant_ints({border[1], border[0]}),
           ctx.constant_ints({end(1, 3, 0), end(0, 2, 1)}), ctx.constant_ints({2, 3})});
}

void upgrade_dynamic_slice(UpgradeContext& ctx) {
  require_inputs(ctx, 3);
  replace(ctx, "Slice", ctx.node().inputs);
}

// A row for each index. The text has the weights as [output, input].
void upgrade_embedding(UpgradeContext& ctx) {
  require_inputs(ctx, 1);
  const ir::TensorProto* proto = ctx.old().attr_tensor("weights");
  if (proto == nullptr)
    ctx.fail(ErrorCode::invalid_model, "attribute 'weights' is required and absent");
  const Tensor weights = ir::to_tensor(*proto);
  if (weights.rank() != 2)
    ctx.fail(ErrorCode::invalid_model, "weights must be a matrix; their shape is {}",
             to_string(weights.shape()));
  const int64_t rows = ctx.old().attr_int("input_dim", weights.shape()[1]);
  const int64_t size = ctx.old().attr_int("output_dim", weights.shape()[0]);
  std::string table = ctx.constant(weights);
  if (weights.shape() == Shape{size, rows}) {
    table = ctx.before("Transpose", {table});
  } else if (weights.shape() != Shape{rows, size}) {
    ctx.fail(ErrorCode::invalid_model, "weights must be [{}, {}]; their shape is {}", size, rows,
             to_string(weights.shape()));
  }
  replace(ctx, "Gather", {table, ctx.node().inputs[0]});
}

void upgrade_fc(UpgradeContext& ctx) {
  require_inputs(ctx, 3);
  const auto flat = [&](size_t input, std::string_view attribute) {
    return ctx.before("Flatten", {ctx.node().inputs[input]},
                      {int_attribute("axis", ctx.old().attr_int(attribute, 1))});
  };
  const std::string x = flat(0, "axis"), w = flat(1, "axis_w");
  replace(ctx, "Gemm", {x, w, ctx.node().inputs[2]}, {int_attribute("transB", 1)});
}

// The output's shape: an attribute, or an input's shape or elements; extra_shape follows.
std::string filled_shape(UpgradeContext& ctx) {
  if (!ctx.has_input(0)) {
    const auto shape = ctx.old().attr_ints("shape");
    if (!shape)
      ctx.fail(ErrorCode::invalid_model, "needs the attribute 'shape' or an input that gives it");
    return ctx.constant_ints(*shape);
  }
  const std::string given = ctx.node().inputs[0];
  std::string shape =
      ctx.old().attr_int("input_as_shape", 0) != 0
          ? ctx.before("Cast", {given},
                       {int_attribute("to", static_cast<int64_t>(ElementType::int64))})
          : ctx.before("Shape", {given});
  const auto extra = ctx.old().attr_ints("extra_shape").value_or(std::vector<int64_t>());
  if (extra.empty()) return shape;
  return ctx.before("Concat", {shape, ctx.constant_ints(extra)}, {int_attribute("axis", 0)});
}

void upgrade_constant_fill(UpgradeContext& ctx) {
  require_inputs(ctx, 0);
  const std::string shape = filled_shape(ctx);
  const std::string value = ctx.constant(Tensor::scalar<float>(ctx.old().attr_float("value", 0)));
  const std::string typed =
      ctx.before("Cast", {value}, {int_attribute("to", ctx.old().attr_int("dtype", 1))});
  replace(ctx, "Expand", {typed, shape});
}

// The type X is only declared: float, the type of the attribute, where nobody says.
void upgrade_given_fill(UpgradeContext& ctx) {
  require_inputs(ctx, 0);
  const auto values = ctx.old().attr_floats("values").value_or(std::vector<float>());
  const Tensor list = Tensor::of<float>(values, {static_cast<int64_t>(values.size())});
  const std::string shape = filled_shape(ctx);
  replace(ctx, "Reshape", {ctx.constant(list), shape}, {int_attribute("allowzero", 1)});
}

// Element loop_idx along an axis, which goes.
void upgrade_loop_index(UpgradeContext& ctx) {
  require_inputs(ctx, 2);
  const std::string index = ctx.before("Reshape", {ctx.node().inputs[1], ctx.constant_ints({})});
  replace(ctx, "Gather", {ctx.node().inputs[0], index},
          {int_attribute("axis", ctx.old().attr_int("axis", 0))});
}

void refuse_aten(UpgradeContext& ctx) {
  ctx.fail(ErrorCode::unsupported,
           "calls a PyTorch function that ONNX does not define; export the model again without "
           "fallback to ATen");
}

void refuse_gru_unit(UpgradeContext& ctx) {
  ctx.fail(ErrorCode::unsupported,
           "has no meaning that any edition of ONNX wrote down; use GRU, which does");
}

void refuse_graph_call(InferContext& ctx) {
  ctx.fail(ErrorCode::unsupported,
           "ONNX 1.8 removed it; put the nodes of the graph it calls in its place");
}

constexpr Operator operators[] = {
    {.name = "ATen", .upgrade = refuse_aten},
    {.name = "Affine", .upgrade = upgrade_affine},
    {.name = "ConstantFill", .upgrade = upgrade_constant_fill},
    {.name = "Crop", .upgrade = upgrade_crop},
    {.name = "DynamicSlice", .upgrade = upgrade_dynamic_slice},
    {.name = "Embedding", .upgrade = upgrade_embedding},
    {.name = "FC", .upgrade = upgrade_fc},
    {.name = "GRUUnit", .upgrade = refuse_gru_unit},
    {.name = "GivenTensorFill", .upgrade = upgrade_given_fill},
    {.name = "ImageScaler", .upgrade = upgrade_image_scaler},
    {.name = "LoopIndexTensor", .upgrade = upgrade_loop_index},
    {.name = "ParametricSoftplus", .upgrade = upgrade_curve},
    {.name = "Scale", .upgrade = upgrade_scale},
    {.name = "ScaledTanh", .upgrade = upgrade_curve},
    {.name = "GraphCall", .domain = "ai.onnx.preview.training", .infer = refuse_graph_call},
};

}  // namespace
}  // namespace removed_unit

std::span<const Operator> removed_operators() { return removed_unit::operators; }

}  // namespace sardonyx::ops
