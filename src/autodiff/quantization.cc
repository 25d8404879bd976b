// QuantizeLinear and DequantizeLinear by the straight-through estimator: rounding counts as the
// identity, and what a quantised value cannot hold has no slope.
#include "autodiff/rules.h"
#include "ops/upgrade_context.h"

namespace sardonyx::autodiff {

using ops::int_attribute;
using ops::ints_attribute;

namespace {

std::vector<ir::Attribute> layout_of(const GradientCall& call) {
  std::vector<ir::Attribute> attributes;
  for (const std::string_view name : {"axis", "block_size"}) {
    if (const ir::Attribute* given = call.node.find(name)) attributes.push_back(*given);
  }
  return attributes;
}

// The scales, each for all that it belongs to: of the shape of the node's first input.
std::string wide_scales(const GradientCall& call, GradientEmitter& e) {
  const std::string one =
      e.emit("Constant", {}, {ops::tensor_attribute("value", Tensor::scalar<int8_t>(1))});
  const std::string ones = e.emit("Expand", {one, e.emit("Shape", {call.node.inputs[0]})});
  return e.emit("DequantizeLinear", {ones, call.node.inputs[1]}, layout_of(call));
}

// Quantised values less their zero points.
std::string steps_of(const GradientCall& call, GradientEmitter& e, const std::string& quantized) {
  std::vector<std::string> inputs{quantized, e.filled_like(1, call.node.inputs[1])};
  if (call.node.inputs.size() > 2) inputs.push_back(call.node.inputs[2]);
  return e.emit("DequantizeLinear", inputs, layout_of(call));
}

// The sums of blocks along an axis, of which the last may be a part of one.
std::string block_sums(GradientEmitter& e, const std::string& value, const Shape& shape,
                       int64_t axis, int64_t block, int64_t blocks) {
  const auto at = static_cast<size_t>(axis);
  std::vector<int64_t> pads(2 * shape.size(), 0), parted(shape.begin(), shape.end());
  pads[shape.size() + at] = blocks * block - shape[at];
  parted[at] = blocks;
  parted.insert(parted.begin() + axis + 1, block);
  const std::string whole = e.emit("Pad", {value, e.ints(pads)});
  const std::string rows =
      e.emit("Reshape", {whole, e.ints(parted)}, {int_attribute("allowzero", 1)});
  return e.emit("ReduceSum", {rows, e.ints({axis + 1})}, {int_attribute("keepdims", 0)});
}

// What each element says of its scale, summed over what a scale belongs to.
std::string summed_by_scale(const GradientCall& call, GradientEmitter& e, const std::string& each) {
  const ops::NodeView view = view_of(call);
  const std::string& scale = call.node.inputs[1];
  const int64_t of_scale = e.required_rank(call, 1), block = view.attr_int("block_size", 0);
  if (of_scale == 0) return e.sum_like(each, scale);
  const int64_t rank = e.required_rank(call, 0);
  if (block == 0) {
    const auto sizes_of_scale = e.shape(scale);
    const bool one = sizes_of_scale && (*sizes_of_scale)[0] == 1;
    std::vector<int64_t> sizes(static_cast<size_t>(rank), 1);
    if (!one) {
      const int64_t axis = view.normalized_axis(view.attr_int("axis", 1), rank, "axis");
      sizes[static_cast<size_t>(axis)] = -1;
    }
    const std::string along = e.emit("Reshape", {scale, e.ints(sizes)});
    return e.emit("Reshape", {e.sum_like(each, along), e.emit("Shape", {scale})},
                  {int_attribute("allowzero", 1)});
  }
  const auto shape = e.shape(call.node.inputs[0]), scales = e.shape(scale);
  if (!shape || !scales) {
    view.fail(ErrorCode::unsupported,
              "has no gradient with block_size where sizes are open; give the graph's inputs their "
              "sizes");
  }
  const int64_t axis = view.normalized_axis(view.attr_int("axis", 1), rank, "axis");
  return block_sums(e, each, *shape, axis, block, (*scales)[static_cast<size_t>(axis)]);
}

bool wants(const GradientCall& call, size_t input) {
  return input < call.wanted.size() && call.wanted[input];
}

}  // namespace

void dequantize_gradient(const GradientCall& call, GradientEmitter& e) {
  const std::string& scale = call.node.inputs[1];
  if (wants(call, 1)) {
    const std::string steps = steps_of(call, e, call.node.inputs[0]);
    const std::string dy = e.emit("CastLike", {flow(call), steps});
    call.of_inputs[1] =
        summed_by_scale(call, e, e.emit("CastLike", {e.emit("Mul", {dy, steps}), scale}));
  }
  if (!wants(call, 0)) return;
  const std::string scales = wide_scales(call, e);
  call.of_inputs[0] = e.emit("Mul", {e.emit("CastLike", {flow(call), scales}), scales});
}

void quantize_gradient(const GradientCall& call, GradientEmitter& e) {
  const std::string &x = call.node.inputs[0], &scale = call.node.inputs[1],
                    &y = call.node.outputs[0];
  const std::string scales = e.emit("CastLike", {wide_scales(call, e), x});
  const std::string ratio = e.emit("Div", {x, scales});
  // Where the value was cut off, it is further from the quantised one than rounding takes it.
  const std::string steps = e.emit("CastLike", {steps_of(call, e, y), x});
  const std::string away = e.emit("Abs", {e.emit("Sub", {ratio, steps})});
  const infer::ValueFacts* known = e.services().known(y);
  const bool whole =
      known == nullptr || !known->type.is_tensor() || !is_floating(known->type.element);
  const std::string most =
      whole ? e.scalar_like(0.5f + 0x1p-10f, x)
            : e.emit("Add", {e.emit("Mul", {e.emit("Abs", {ratio}), e.scalar_like(0.26f, x)}),
                             e.scalar_like(0x1p-8f, x)});
  const std::string held = e.emit("LessOrEqual", {away, most});
  const std::string dy =
      e.emit("Mul", {e.emit("CastLike", {flow(call), x}), e.emit("CastLike", {held, x})});
  const std::string slope = e.emit("Div", {dy, scales});
  if (wants(call, 0)) call.of_inputs[0] = slope;
  if (!wants(call, 1)) return;
  const std::string each = e.emit("Neg", {e.emit("Mul", {slope, ratio})});
  call.of_inputs[1] = summed_by_scale(call, e, e.emit("CastLike", {each, scale}));
}

// MatMulNBits: of what is multiplied with the packed weights, and of their scales.
void matmul_nbits_gradient(const GradientCall& call, GradientEmitter& e) {
  const ops::NodeView view = view_of(call);
  const int64_t n = view.attr_int("N"), k = view.attr_int("K"), bits = view.attr_int("bits", 4);
  const auto zero_points = view.has_input(3) ? e.services().known(call.node.inputs[3]) : nullptr;
  if (view.has_input(4) || view.attr_int("weight_prepacked", 0) != 0 ||
      (view.has_input(3) && (zero_points == nullptr || !zero_points->type.is_tensor() ||
                             zero_points->type.element != ElementType::uint8)))
    view.fail(ErrorCode::unsupported,
              "has no gradient with g_idx, prepacked weights, or zero points that are not uint8");
  const auto rows = [&](const std::string& value) {
    return e.emit("Reshape", {value, e.ints({n, -1})});
  };
  const int64_t block = view.attr_int("block_size");
  if (block < 1 || n < 1 || k < 1)
    view.fail("N, K and block_size must be at least 1; they are {}, {} and {}", n, k, block);
  // The weights by these scales: [N, whole blocks].
  const auto weights = [&](const std::string& scales) {
    const std::string all =
        e.emit("Range", {e.emit("Squeeze", {e.ints({0})}), e.emit("Squeeze", {e.ints({n})}),
                         e.emit("Squeeze", {e.ints({1})})});
    std::vector<std::string> inputs{rows(call.node.inputs[1]), all, rows(scales)};
    if (view.has_input(3)) inputs.push_back(rows(call.node.inputs[3]));
    return e.emit("GatherBlockQuantized", inputs,
                  {int_attribute("bits", bits), int_attribute("block_size", block),
                   int_attribute("gather_axis", 0), int_attribute("quantize_axis", 1)},
                  "com.microsoft");
  };
  const std::string &a = call.node.inputs[0], &scales = call.node.inputs[2];
  if (wants(call, 0)) {
    const std::string cut =
        e.emit("Slice", {weights(scales), e.ints({0}), e.ints({k}), e.ints({1})});
    call.of_inputs[0] = e.emit("MatMul", {flow(call), cut});
  }
  if (wants(call, 2)) {
    const std::string slopes = e.emit(
        "Gemm",
        {e.emit("Reshape", {flow(call), e.ints({-1, n})}), e.emit("Reshape", {a, e.ints({-1, k})})},
        {int_attribute("transA", 1)});
    const int64_t blocks = (k + block - 1) / block;
    const std::string whole = e.emit("Pad", {slopes, e.ints({0, 0, 0, blocks * block - k})});
    const std::string each = e.emit("Mul", {whole, weights(e.filled_like(1, scales))});
    const std::string parted = e.emit("Reshape", {each, e.ints({n, blocks, block})});
    const std::string summed =
        e.emit("ReduceSum", {parted, e.ints({2})}, {int_attribute("keepdims", 0)});
    call.of_inputs[2] = e.emit("Reshape", {summed, e.emit("Shape", {scales})});
  }
  if (wants(call, 5)) call.of_inputs[5] = e.sum_like(flow(call), call.node.inputs[5]);
}

}  // namespace sardonyx::autodiff
