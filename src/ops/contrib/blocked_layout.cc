// com.microsoft.nchwc: what ONNX Runtime writes for convolutions into a model that it saves after
// optimisation. Its values hold blocks of 8 or 16 channels side by side, and as many channels as
// fill the last block. Nothing but its own nodes and element-wise ones reads them before
// ReorderOutput, so that here they keep their channels in order: ReorderInput adds the channels
// that fill a block, ReorderOutput takes them away, and weights are put into the standard's order.
#include "ops/contrib/body.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace contrib_blocked_layout_unit {
namespace {

Attributes kept(const UpgradeContext& ctx, std::initializer_list<std::string_view> names) {
  Attributes attributes;
  for (const std::string_view name : names) {
    if (const ir::Attribute* found = ctx.old().node().find(name)) attributes.push_back(*found);
  }
  return attributes;
}

std::vector<int64_t> order_to_first(int64_t rank) {
  std::vector<int64_t> order{0, rank - 1};
  for (int64_t i = 1; i + 1 < rank; ++i) order.push_back(i);
  return order;
}
std::vector<int64_t> order_to_nhwc(int64_t rank) {
  std::vector<int64_t> order{0};
  for (int64_t i = 2; i < rank; ++i) order.push_back(i);
  order.push_back(1);
  return order;
}

// Lowering has decided it for the model as a whole (lower/channel_blocks.h).
int64_t block_of(const UpgradeContext& ctx) {
  const int64_t block = ctx.old().attr_int("block_size", 16);
  if (block != 8 && block != 16)
    ctx.fail(ErrorCode::invalid_model, "blocks of channels have 8 or 16 channels, not {}", block);
  return block;
}

int64_t known_size(Body& body, size_t input, size_t axis) {
  const ir::Dim* dim = body.dim(input, axis);
  const auto value = dim == nullptr ? std::nullopt : dim->value();
  if (!value)
    body.context().fail(ErrorCode::unsupported,
                        "dimension {} of {} decides how channels are put into blocks, and nothing "
                        "says it; declare the shape of that value",
                        axis, body.node().input_name(static_cast<int>(input)));
  return *value;
}

int64_t image_rank(Body& body) {
  const int64_t rank = body.rank(0);
  if (rank < 3)
    body.context().fail(ErrorCode::invalid_model,
                        "{} must have a batch, channels and spatial dimensions; it has {}",
                        body.node().input_name(0), rank);
  return rank;
}

void reorder_input(UpgradeContext& ctx) {
  Body body(ctx);
  const int64_t block = block_of(ctx), rank = image_rank(body);
  const bool last = ctx.old().attr_int("channels_last", 0) != 0;
  const int64_t channels = known_size(body, 0, last ? static_cast<size_t>(rank) - 1 : 1);
  std::string x = body.input(0);
  if (last) x = body.transpose(x, order_to_first(rank));
  const int64_t added = (block - channels % block) % block;
  if (added == 0) return body.give(0, "Identity", {x});
  body.give(0, "Pad", {x, body.ints({0, added}), "", body.ints({1})});
}

void reorder_output(UpgradeContext& ctx) {
  Body body(ctx);
  const int64_t rank = image_rank(body), channels = ctx.old().attr_int("channels", 0);
  if (channels < 1)
    ctx.fail(ErrorCode::invalid_model, "attribute 'channels' must be 1 or more; got {}", channels);
  if (const int64_t found = known_size(body, 0, 1); found < channels)
    ctx.fail(ErrorCode::invalid_model, "gives {} channels of {}, which has {}", channels,
             ctx.old().input_name(0), found);
  const std::string y = body.slice(body.input(0), 0, channels, 1);
  if (ctx.old().attr_int("channels_last", 0) == 0) return body.give(0, "Identity", {y});
  body.give(0, "Transpose", {y}, {ints_attribute("perm", order_to_nhwc(rank))});
}

// Weights [M, C, kernel…] whose bytes lie as [M / b, C / b, kernel…, b of C, b of M], or, where few
// channels come in or each has a kernel of its own, as [M / b, C, kernel…, b of M].
std::string ordered_weights(Body& body, int64_t block) {
  const auto rank = static_cast<size_t>(body.rank(1));
  if (rank < 3)
    body.context().fail(ErrorCode::invalid_model, "{} must have 3 dimensions or more; it has {}",
                        body.node().input_name(1), rank);
  std::vector<int64_t> shape;
  for (size_t i = 0; i < rank; ++i) shape.push_back(known_size(body, 1, i));
  if (shape[0] % block != 0)
    body.context().fail(ErrorCode::invalid_model,
                        "{} must have a multiple of {} output channels; it has {}",
                        body.node().input_name(1), block, shape[0]);
  const bool both = shape[1] % block == 0 && shape[1] > 0;
  std::vector<int64_t> stored{shape[0] / block, both ? shape[1] / block : shape[1]};
  stored.insert(stored.end(), shape.begin() + 2, shape.end());
  if (both) stored.push_back(block);
  stored.push_back(block);
  const auto count = static_cast<int64_t>(stored.size()), kernel = static_cast<int64_t>(rank) - 2;
  std::vector<int64_t> order{0, count - 1, 1};
  if (both) order.push_back(count - 2);
  for (int64_t i = 0; i < kernel; ++i) order.push_back(2 + i);
  return body.reshape(body.transpose(body.reshape(body.input(1), stored), order), shape);
}

void conv(UpgradeContext& ctx) {
  Body body(ctx);
  Names inputs{body.input(0), ordered_weights(body, block_of(ctx))};
  if (body.has(2)) inputs.push_back(body.input(2));
  std::string y =
      body.op("Conv", inputs,
              kept(ctx, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}));
  if (body.has(3)) y = body.op("Add", {y, body.input(3)});
  const NodeView node = ctx.old();
  body.give(0, "Identity",
            {activate(body, y, node.attr_string("activation", ""),
                      node.attr_floats("activation_params").value_or(std::vector<float>()))});
}

void max_pool(UpgradeContext& ctx) {
  Body(ctx).give(
      0, "MaxPool", {ctx.node().inputs[0]},
      kept(ctx, {"auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides"}));
}
void average_pool(UpgradeContext& ctx) {
  Body(ctx).give(0, "AveragePool", {ctx.node().inputs[0]},
                 kept(ctx, {"auto_pad", "ceil_mode", "count_include_pad", "dilations",
                            "kernel_shape", "pads", "strides"}));
}
void global_average_pool(UpgradeContext& ctx) {
  Body(ctx).give(0, "GlobalAveragePool", {ctx.node().inputs[0]});
}
void global_max_pool(UpgradeContext& ctx) {
  Body(ctx).give(0, "GlobalMaxPool", {ctx.node().inputs[0]});
}

void upsample(UpgradeContext& ctx) {
  Body body(ctx);
  std::vector<float> scales;
  for (const int64_t scale : ctx.old().attr_ints("scales").value_or(std::vector<int64_t>())) {
    if (scale < 1 || scale > 1 << 20)
      ctx.fail(ErrorCode::invalid_model, "scales must be in [1, 2^20]; got {}", scale);
    scales.push_back(static_cast<float>(scale));
  }
  if (scales.size() != 4 || scales[0] != 1 || scales[1] != 1)
    ctx.fail(ErrorCode::invalid_model, "scales must be four numbers, of which the first two are 1");
  const std::string mode = ctx.old().attr_string("mode", "nearest");
  body.give(
      0, "Resize", {body.input(0), "", ctx.constant(Tensor::of<float>(scales, {4}))},
      {string_attribute("mode", mode), string_attribute("nearest_mode", "floor"),
       string_attribute("coordinate_transformation_mode",
                        ctx.old().attr_string("coordinate_transformation_mode", "asymmetric"))});
}

// --- channels last, of com.microsoft -------------------------------------------------------------

void nhwc_conv(UpgradeContext& ctx) {
  Body body(ctx);
  const int64_t rank = image_rank(body);
  Names inputs{body.transpose(body.input(0), order_to_first(rank)), body.input(1)};
  if (body.has(2)) inputs.push_back(body.input(2));
  std::string y =
      body.op("Conv", inputs,
              kept(ctx, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}));
  y = body.transpose(y, order_to_nhwc(rank));
  if (body.has(3)) y = body.op("Add", {y, body.input(3)});
  const NodeView node = ctx.old();
  body.give(0, "Identity",
            {activate(body, y, node.attr_string("activation", ""),
                      node.attr_floats("activation_params").value_or(std::vector<float>()))});
}

void nhwc_max_pool(UpgradeContext& ctx) {
  Body body(ctx);
  const int64_t rank = image_rank(body);
  const std::string x = body.transpose(body.input(0), order_to_first(rank));
  const std::string y =
      body.op("MaxPool", {x},
              kept(ctx, {"auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides"}));
  body.give(0, "Transpose", {y}, {ints_attribute("perm", order_to_nhwc(rank))});
}

constexpr Operator operators[] = {
    {.name = "AveragePool", .domain = "com.microsoft.nchwc", .upgrade = average_pool},
    {.name = "Conv", .domain = "com.microsoft.nchwc", .upgrade = conv},
    {.name = "GlobalAveragePool", .domain = "com.microsoft.nchwc", .upgrade = global_average_pool},
    {.name = "GlobalMaxPool", .domain = "com.microsoft.nchwc", .upgrade = global_max_pool},
    {.name = "MaxPool", .domain = "com.microsoft.nchwc", .upgrade = max_pool},
    {.name = "ReorderInput", .domain = "com.microsoft.nchwc", .upgrade = reorder_input},
    {.name = "ReorderOutput", .domain = "com.microsoft.nchwc", .upgrade = reorder_output},
    {.name = "Upsample", .domain = "com.microsoft.nchwc", .upgrade = upsample},
    {.name = "NhwcConv", .domain = "com.microsoft", .upgrade = nhwc_conv},
    {.name = "NhwcFusedConv", .domain = "com.microsoft", .upgrade = nhwc_conv},
    {.name = "NhwcMaxPool", .domain = "com.microsoft", .upgrade = nhwc_max_pool},
};

}  // namespace
}  // namespace contrib_blocked_layout_unit

std::span<const Operator> contrib_blocked_layout_operators() {
  return contrib_blocked_layout_unit::operators;
}

}  // namespace sardonyx::ops
