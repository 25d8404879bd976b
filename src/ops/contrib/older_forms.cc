// Operators of com.microsoft that an operator of the standard does, or a few of them: forms that
// the standard took over later, and fusions for other devices.
#include <algorithm>

#include "ops/contrib/heads.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace contrib_older_forms_unit {
namespace {

// A vector of one, whether the input is that or a scalar.
std::string as_vector(Body& body, size_t input) { return body.reshape(body.input(input), {-1}); }

std::string as_scalar(Body& body, size_t input) {
  return body.op("Reshape", {body.input(input), body.ints({})});
}

void expand_dims(UpgradeContext& ctx) {
  Body body(ctx);
  const std::string axis = body.cast(as_vector(body, 1), ElementType::int64);
  body.give(0, "Unsqueeze", {body.input(0), axis});
}

void gather_nd(UpgradeContext& ctx) {
  Body body(ctx);
  body.give(0, "GatherND", {body.input(0), body.cast(body.input(1), ElementType::int64)});
}

void grid_sample(UpgradeContext& ctx) {
  Body body(ctx);
  std::string mode = ctx.old().attr_string("mode", "bilinear");
  if (mode == "bilinear") mode = "linear";
  if (mode == "bicubic") mode = "cubic";
  body.give(0, "GridSample", {body.input(0), body.input(1)},
            {string_attribute("mode", mode),
             string_attribute("padding_mode", ctx.old().attr_string("padding_mode", "zeros")),
             int_attribute("align_corners", ctx.old().attr_int("align_corners", 0))});
}

void pad(UpgradeContext& ctx) {
  Body body(ctx);
  Names inputs{body.input(0), as_vector(body, 1)};
  if (body.has(2)) inputs.push_back(as_scalar(body, 2));
  body.give(0, "Pad", inputs,
            {string_attribute("mode", ctx.old().attr_string("mode", "constant"))});
}

void range(UpgradeContext& ctx) {
  Body body(ctx);
  const std::string step = body.has(2) ? as_scalar(body, 2) : body.number(1, 0);
  body.give(0, "Range", {as_scalar(body, 0), as_scalar(body, 1), step});
}

void trilu(UpgradeContext& ctx) {
  Body body(ctx);
  Names inputs{body.input(0)};
  if (body.has(1)) inputs.push_back(as_scalar(body, 1));
  body.give(0, "Trilu", inputs, {int_attribute("upper", ctx.old().attr_int("upper", 1))});
}

// In the order in which they occur.
void unique(UpgradeContext& ctx) {
  Body body(ctx);
  const auto output = [&](size_t i) { return body.wants(i) ? ctx.node().outputs[i] : ""; };
  body.node_for("Unique", {body.input(0)}, {output(0), "", output(1), output(2)},
                {int_attribute("sorted", 0)});
}

void torch_embedding(UpgradeContext& ctx) {
  Body body(ctx);
  body.give(0, "Gather", {body.input(0), body.input(1)});
}

// All slices of `size` along an axis, `step` apart; the elements of a slice become the last axis.
void unfold(UpgradeContext& ctx) {
  Body body(ctx);
  const int64_t rank = body.rank(0), size = ctx.old().attr_int("size"),
                step = ctx.old().attr_int("step", 1);
  const int64_t axis = ctx.old().normalized_axis(ctx.old().attr_int("dim", -1), rank, "dim");
  if (size < 1 || step < 1)
    ctx.fail(ErrorCode::invalid_model, "size and step must be 1 or more; got {} and {}", size,
             step);
  const ir::Dim* dim = body.dim(0, static_cast<size_t>(axis));
  if (dim != nullptr && dim->value() && *dim->value() < size)
    ctx.fail(ErrorCode::invalid_model, "slices of {} are longer than dimension {} of {}, {}", size,
             axis, ctx.old().input_name(0), *dim->value());
  // The starts lie below length - size + 1, which a length below size leaves negative: none.
  const auto whole = [&](int64_t value) {
    return ctx.constant(Tensor::scalar<int64_t>(value), "number");
  };
  const std::string length = body.op("Squeeze", {body.size_of(body.input(0), axis)});
  const std::string end = body.op("Sub", {length, whole(size - 1)});
  const std::string starts = body.op("Range", {whole(0), end, whole(step)});
  std::vector<int64_t> inside;
  for (int64_t i = 0; i < std::min<int64_t>(size, 1 << 24); ++i) inside.push_back(i);
  if (static_cast<int64_t>(inside.size()) != size)
    ctx.fail(ErrorCode::unsupported, "slices of {} are too long", size);
  const std::string places = body.op("Add", {body.unsqueeze(starts, {1}), body.ints(inside)});
  const std::string slices =
      body.op("Gather", {body.input(0), places}, {int_attribute("axis", axis)});
  std::vector<int64_t> order;
  for (int64_t i = 0; i <= rank; ++i) {
    if (i != axis + 1) order.push_back(i);
  }
  order.push_back(axis + 1);
  body.give(0, "Transpose", {slices}, {ints_attribute("perm", order)});
}

// |a|^2 + |b|^2 - 2 a b, which rounding may bring below 0.
void distances(UpgradeContext& ctx) {
  Body body(ctx);
  const std::string metric = ctx.old().attr_string("metric", "sqeuclidean");
  if (metric != "sqeuclidean" && metric != "euclidean")
    ctx.fail(ErrorCode::unsupported, "metric must be euclidean or sqeuclidean; got '{}'", metric);
  const auto squares = [&](size_t i, int64_t keepdims) {
    return body.op("ReduceSumSquare", {body.input(i), body.ints({1})},
                   {int_attribute("keepdims", keepdims)});
  };
  const std::string sums = body.op("Add", {squares(0, 1), squares(1, 0)});
  const std::string raw = body.op(
      "Gemm", {body.input(0), body.input(1), sums},
      {float_attribute("alpha", -2), float_attribute("beta", 1), int_attribute("transB", 1)});
  const std::string square = body.op("Relu", {raw});
  body.give(0, metric == "euclidean" ? "Sqrt" : "Identity", {square});
}

void transposed_conv(UpgradeContext& ctx) {
  Body body(ctx);
  Attributes attributes;
  for (const char* name :
       {"auto_pad", "dilations", "group", "kernel_shape", "output_padding", "strides"}) {
    if (const ir::Attribute* found = ctx.old().node().find(name)) attributes.push_back(*found);
  }
  if (body.has(2)) {
    const Tensor* pads = ctx.constant(2);
    if (pads == nullptr)
      ctx.fail(ErrorCode::unsupported,
               "Pads decide the shape of the output and must be constant here");
    const auto numbers = pads->elements<int64_t>();
    attributes.push_back(ints_attribute("pads", {numbers.begin(), numbers.end()}));
  }
  Names inputs{body.input(0), body.input(1)};
  if (body.has(3)) inputs.push_back(body.input(3));
  body.give(0, "ConvTranspose", inputs, std::move(attributes));
}

// --- integers -----------------------------------------------------------------------------------

void mul_integer(UpgradeContext& ctx) {
  Body body(ctx);
  const auto moved = [&](size_t value, size_t zero) {
    const std::string wide = body.cast(body.input(value), ElementType::int32);
    if (!body.has(zero)) return wide;
    return body.op("Sub", {wide, body.cast(body.input(zero), ElementType::int32)});
  };
  const std::string a = moved(0, 1), b = moved(2, 3);
  body.give(0, "Mul", {a, b});
}

void reduce_sum_integer(UpgradeContext& ctx) {
  Body body(ctx);
  const std::string wide = body.cast(body.input(0), ElementType::int32);
  Names inputs{wide};
  const auto axes = ctx.old().attr_ints("axes").value_or(std::vector<int64_t>());
  if (!axes.empty()) inputs.push_back(body.ints(axes));
  body.give(0, "ReduceSum", inputs, {int_attribute("keepdims", ctx.old().attr_int("keepdims"))});
}

// --- fusions for other devices ------------------------------------------------------------------

void gemm_fast_gelu(UpgradeContext& ctx) {
  Body body(ctx);
  std::string y = body.op("MatMul", {body.input(0), body.input(1)});
  if (body.has(2)) y = body.op("Add", {y, body.input(2)});
  body.give(0, "Gelu", {y}, {string_attribute("approximate", "tanh")});
}

void bias_dropout(UpgradeContext& ctx) {
  Body body(ctx);
  Names inputs{body.op("Add", {body.input(0), body.input(1)}), body.input(3), body.input(4)};
  while (inputs.back().empty()) inputs.pop_back();
  Attributes attributes;
  if (const ir::Attribute* seed = ctx.old().node().find("seed")) attributes.push_back(*seed);
  const bool adds = body.has(2);
  std::string y = adds || !body.wants(0) ? body.fresh_name() : ctx.node().outputs[0];
  Names outputs{y};
  if (body.wants(1)) outputs.push_back(ctx.node().outputs[1]);
  body.node_for("Dropout", inputs, outputs, std::move(attributes));
  if (adds) body.give(0, "Add", {y, body.input(2)});
}

// Softmax over all dimensions from the axis on.
void bias_softmax(UpgradeContext& ctx) {
  Body body(ctx);
  const int64_t axis = ctx.old().normalized_axis(ctx.old().attr_int("axis", 1), body.rank(0));
  const std::string x = body.op("Add", {body.input(0), body.input(1)});
  if (axis + 1 == body.rank(0)) return body.give(0, "Softmax", {x}, {int_attribute("axis", axis)});
  const std::string flat = body.op("Flatten", {x}, {int_attribute("axis", axis)});
  const std::string y = body.op("Softmax", {flat}, {int_attribute("axis", 1)});
  body.give(0, "Reshape", {y, body.op("Shape", {x})}, {int_attribute("allowzero", 1)});
}

// --- Fourier transforms -------------------------------------------------------------------------

int64_t signal_dims(const UpgradeContext& ctx) {
  const NodeView node = ctx.old();
  if (node.attr_int("onesided", 1) != 1 || node.attr_int("normalized", 0) != 0)
    ctx.fail(ErrorCode::invalid_model, "onesided must be 1 and normalized 0");
  const int64_t dims = node.attr_int("signal_ndim", 1);
  if (dims < 1 || dims > 3)
    ctx.fail(ErrorCode::invalid_model, "signal_ndim must be 1, 2 or 3; got {}", dims);
  return dims;
}

std::string transform(Body& body, const std::string& x, int64_t axis, Attributes attributes) {
  const std::string at = body.context().constant(Tensor::scalar<int64_t>(axis), "axis");
  return body.op("DFT", {x, "", at}, std::move(attributes));
}

void rfft(UpgradeContext& ctx) {
  Body body(ctx);
  const int64_t dims = signal_dims(ctx);
  std::string y =
      transform(body, body.unsqueeze(body.input(0), {-1}), -2, {int_attribute("onesided", 1)});
  for (int64_t i = 1; i < dims; ++i) y = transform(body, y, -2 - i, {});
  body.give(0, "Identity", {y});
}

void irfft(UpgradeContext& ctx) {
  Body body(ctx);
  std::string y = body.input(0);
  for (int64_t i = signal_dims(ctx) - 1; i > 0; --i)
    y = transform(body, y, -2 - i, {int_attribute("inverse", 1)});
  y = transform(body, y, -2, {int_attribute("inverse", 1), int_attribute("onesided", 1)});
  body.give(0, "Squeeze", {y, body.ints({-1})});
}

// Characters of words become vectors, windows of them features, of which each word has the largest.
void word_convolution(UpgradeContext& ctx) {
  Body body(ctx);
  if (body.rank(0) != 2 || body.rank(1) != 4)
    ctx.fail(ErrorCode::invalid_model,
             "Sequence must be [words, characters] and W [features, 1, window, size]; their ranks "
             "are {} and {}",
             body.rank(0), body.rank(1));
  const std::pair<const char*, std::pair<size_t, size_t>> given[] = {
      {"embedding_size", {1, 0}}, {"conv_window_size", {1, 2}}, {"char_embedding_size", {3, 1}}};
  for (const auto& [name, place] : given) {
    const ir::Dim* dim = body.dim(place.first, place.second);
    const int64_t wanted = ctx.old().attr_int(name, -1);
    if (wanted != -1 && dim != nullptr && dim->value() && *dim->value() != wanted)
      ctx.fail(ErrorCode::invalid_model, "{} says {}, the weights {}", name, wanted, *dim->value());
  }
  const std::string letters = body.op("Gather", {body.input(3), body.input(0)});
  const std::string features = body.op(
      "Squeeze", {body.op("Conv", {body.unsqueeze(letters, {1}), body.input(1), body.input(2)}),
                  body.ints({3})});
  const std::string zero = ctx.constant(Tensor::scalar<int32_t>(0));
  const std::string is_letter = body.op("Greater", {body.input(0), zero});
  const std::string first =
      body.op("Slice", {is_letter, body.ints({0}), body.ints({1}), body.ints({1})});
  const std::string counts =
      body.op("ReduceSum", {body.cast(is_letter, ElementType::int64), body.ints({1})},
              {int_attribute("keepdims", 1)});
  // Windows that begin after the last letter's say nothing, but for the first one.
  const std::string window = in_range(body, body.size_of(body.input(1), 2), 1,
                                      body.size_of(body.input(0), 1), "the window of characters");
  const std::string last = body.op("Max", {body.op("Sub", {counts, window}), body.ints({0})});
  const std::string places = body.op("Range", {ctx.constant(Tensor::scalar<int64_t>(0)),
                                               body.op("Squeeze", {body.size_of(features, 2)}),
                                               ctx.constant(Tensor::scalar<int64_t>(1))});
  const std::string seen = body.unsqueeze(body.op("LessOrEqual", {places, last}), {1});
  const std::string some = body.op(
      "Where", {seen, body.op("Tanh", {features}), ctx.constant(Tensor::scalar<float>(-1e12f))});
  const std::string most =
      body.op("ReduceMax", {some, body.ints({2})}, {int_attribute("keepdims", 0)});
  body.give(0, "Where", {first, most, ctx.constant(Tensor::scalar<float>(0))});
}

std::string zero_of(Body& body) { return body.context().constant(Tensor::of<int32_t>({0}, {1})); }

void is_all_finite(UpgradeContext& ctx) {
  Body body(ctx);
  const bool only_infinite = ctx.old().attr_int("isinf_only", 0) != 0,
             only_no_number = ctx.old().attr_int("isnan_only", 0) != 0;
  if (only_infinite && only_no_number)
    ctx.fail(ErrorCode::invalid_model, "isinf_only and isnan_only exclude each other");
  Names bad;
  for (size_t i = 0; i < ctx.node().inputs.size(); ++i) {
    const auto found = [&](const char* op) {
      const std::string flags = body.cast(body.op(op, {body.input(i)}), ElementType::int32);
      bad.push_back(body.op("ReduceMax",
                            {body.op("Concat", {body.reshape(flags, {-1}), zero_of(body)},
                                     {int_attribute("axis", 0)})},
                            {int_attribute("keepdims", 0)}));
    };
    if (!only_no_number) found("IsInf");
    if (!only_infinite) found("IsNaN");
  }
  const std::string worst = bad.size() == 1 ? bad[0] : body.op("Max", bad);
  body.give(0, "Equal", {worst, ctx.constant(Tensor::scalar<int32_t>(0))});
}

constexpr Operator operators[] = {
    {.name = "IsAllFinite", .domain = "com.microsoft", .upgrade = is_all_finite},
    {.name = "WordConvEmbedding", .domain = "com.microsoft", .upgrade = word_convolution},
    {.name = "BiasDropout", .domain = "com.microsoft", .upgrade = bias_dropout},
    {.name = "BiasSoftmax", .domain = "com.microsoft", .upgrade = bias_softmax},
    {.name = "CDist", .domain = "com.microsoft", .upgrade = distances},
    {.name = "ConvTransposeWithDynamicPads", .domain = "com.microsoft", .upgrade = transposed_conv},
    {.name = "ExpandDims", .domain = "com.microsoft", .upgrade = expand_dims},
    {.name = "GatherND", .domain = "com.microsoft", .upgrade = gather_nd},
    {.name = "GemmFastGelu", .domain = "com.microsoft", .upgrade = gemm_fast_gelu},
    {.name = "GridSample", .domain = "com.microsoft", .upgrade = grid_sample},
    {.name = "Irfft", .domain = "com.microsoft", .upgrade = irfft},
    {.name = "MulInteger", .domain = "com.microsoft", .upgrade = mul_integer},
    {.name = "Pad", .domain = "com.microsoft", .upgrade = pad},
    {.name = "Range", .domain = "com.microsoft", .upgrade = range},
    {.name = "ReduceSumInteger", .domain = "com.microsoft", .upgrade = reduce_sum_integer},
    {.name = "Rfft", .domain = "com.microsoft", .upgrade = rfft},
    {.name = "TorchEmbedding", .domain = "com.microsoft", .upgrade = torch_embedding},
    {.name = "Trilu", .domain = "com.microsoft", .upgrade = trilu},
    {.name = "UnfoldTensor", .domain = "com.microsoft", .upgrade = unfold},
    {.name = "Unique", .domain = "com.microsoft", .upgrade = unique},
};

}  // namespace
}  // namespace contrib_older_forms_unit

std::span<const Operator> contrib_older_forms_operators() {
  return contrib_older_forms_unit::operators;
}

}  // namespace sardonyx::ops
