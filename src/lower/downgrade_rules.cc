#include "lower/downgrade_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/convert/cast.h"
#include "lower/downgrade_support.h"
#include "sardonyx/value.h"

namespace sardonyx::lower {

void keep_inputs(DowngradeContext& ctx, size_t count) {
  if (ctx.node().inputs.size() > count) ctx.node().inputs.resize(count);
}

int64_t rank_of(DowngradeContext& ctx, size_t input) {
  const auto rank = ctx.rank(input);
  if (!rank) cannot("that takes a rank of its input '{}' that is known", ctx.node().inputs[input]);
  return *rank;
}

namespace {

using ops::float_attribute;
using ops::int_attribute;
using ops::ints_attribute;

// The elements of an input that the older version has as an attribute.
std::vector<int64_t> integers(DowngradeContext& ctx, size_t input, std::string_view name) {
  const Tensor* tensor = ctx.constant(input);
  if (tensor == nullptr)
    cannot("its input '{}' must be constant, since it is an attribute there", name);
  std::vector<int64_t> list(static_cast<size_t>(tensor->size()));
  if (tensor->element_type() == ElementType::int64) {
    std::ranges::copy(tensor->elements<int64_t>(), list.begin());
  } else if (tensor->element_type() == ElementType::int32) {
    std::ranges::copy(tensor->elements<int32_t>(), list.begin());
  } else {
    cannot("its input '{}' must be of integers", name);
  }
  return list;
}

float number(DowngradeContext& ctx, size_t input, std::string_view name) {
  const Tensor* tensor = ctx.constant(input);
  if (tensor == nullptr)
    cannot("its input '{}' must be constant, since it is an attribute there", name);
  if (tensor->size() != 1) cannot("its input '{}' must be a single number", name);
  switch (tensor->element_type()) {
    case ElementType::float32: return tensor->elements<float>()[0];
    case ElementType::float64: {
      const double value = tensor->elements<double>()[0];
      if (static_cast<double>(static_cast<float>(value)) != value && value == value)
        cannot("its input '{}', {}, is no float32, as the attribute there is", name, value);
      return static_cast<float>(value);
    }
    case ElementType::float16:
    case ElementType::bfloat16: {
      float value = 0;
      kernels::to_floats(tensor->element_type(), tensor->data(), &value, 1);
      return value;
    }
    default: cannot("its input '{}' is no floating-point number", name);
  }
}

// Axes from the end are new in opset 11.
void count_from_the_start(std::vector<int64_t>& axes, const std::optional<int64_t>& rank) {
  for (int64_t& axis : axes) {
    if (axis >= 0) continue;
    if (!rank) cannot("its axes count from the end, and the rank is not known");
    axis += *rank;
  }
}

// Axes as an input, as an attribute up to opset 12 or 17.
void axes_attribute(DowngradeContext& ctx, const std::optional<int64_t>& rank) {
  std::vector<int64_t> axes = integers(ctx, 1, "axes");
  if (ctx.since() < 11) count_from_the_start(axes, rank);
  keep_inputs(ctx, 1);
  if (!axes.empty()) ctx.set_attribute("axes", std::move(axes));
}

void reduce(DowngradeContext& ctx) {
  const ops::NodeView view = ctx.newest();
  const bool noop = view.attr_int("noop_with_empty_axes", 0) != 0;
  const bool has_axes = ctx.has_input(1);
  if (noop) {
    const bool is_empty = !has_axes || integers(ctx, 1, "axes").empty();
    if (is_empty) {
      constexpr std::array plain = {"ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax",
                                    "ReduceMin"};
      if (std::ranges::find(plain, ctx.node().op_type) == plain.end())
        cannot("it reduces nothing, which it cannot say there");
      ctx.node().op_type = "Identity";
      ctx.node().attributes.clear();
      return keep_inputs(ctx, 1);
    }
    ctx.remove_attribute("noop_with_empty_axes");
  }
  if (has_axes) axes_attribute(ctx, ctx.rank(0));
}

// No axes at all as an input leave everything as it is.
bool stays(DowngradeContext& ctx) {
  if (!integers(ctx, 1, "axes").empty()) return false;
  ctx.node().op_type = "Identity";
  keep_inputs(ctx, 1);
  return true;
}

void squeeze(DowngradeContext& ctx) {
  if (ctx.has_input(1) && !stays(ctx)) axes_attribute(ctx, ctx.rank(0));
}

void unsqueeze(DowngradeContext& ctx) {
  if (stays(ctx)) return;
  std::optional<int64_t> rank = ctx.rank(0);
  if (rank) *rank += static_cast<int64_t>(integers(ctx, 1, "axes").size());
  axes_attribute(ctx, rank);
}

// The largest number of parts that is cut into parts of its own sizes.
constexpr int64_t max_parts = 65'536;

void split(DowngradeContext& ctx) {
  if (ctx.has_input(1)) {
    std::vector<int64_t> sizes = integers(ctx, 1, "split");
    keep_inputs(ctx, 1);
    ctx.set_attribute("split", std::move(sizes));
    return;
  }
  const ops::NodeView view = ctx.newest();
  const ops::ValueType* type = ctx.type(0);
  int64_t axis = view.attr_int("axis", 0);
  const int64_t rank = rank_of(ctx, 0);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) cannot("its axis is none of its input's");
  const auto parts = static_cast<int64_t>(ctx.node().outputs.size());
  if (parts == 0) cannot("it has no outputs");
  const auto size = (*type->shape)[static_cast<size_t>(axis)].value();
  if (!size) cannot("the size of the axis that it splits must be known there");
  ctx.remove_attribute("num_outputs");
  if (*size % parts == 0) return;
  if (parts > max_parts) cannot("it has too many parts");
  // All parts but the last are equal.
  const int64_t part = (*size + parts - 1) / parts;
  std::vector<int64_t> sizes(static_cast<size_t>(parts), part);
  sizes.back() = *size - part * (parts - 1);
  if (ctx.since() >= 13) return ctx.set_input(1, ctx.constant_ints(sizes, "split"));
  ctx.set_attribute("split", std::move(sizes));
}

void slice(DowngradeContext& ctx) {
  std::vector<int64_t> starts = integers(ctx, 1, "starts"), ends = integers(ctx, 2, "ends");
  if (ctx.has_input(4)) {
    const std::vector<int64_t> steps = integers(ctx, 4, "steps");
    if (std::ranges::any_of(steps, [](int64_t step) { return step != 1; }))
      cannot("its steps are not all 1");
  }
  if (ctx.has_input(3)) {
    std::vector<int64_t> axes = integers(ctx, 3, "axes");
    count_from_the_start(axes, ctx.rank(0));
    ctx.set_attribute("axes", std::move(axes));
  }
  keep_inputs(ctx, 1);
  ctx.set_attribute("starts", std::move(starts));
  ctx.set_attribute("ends", std::move(ends));
}

void pad(DowngradeContext& ctx) {
  std::optional<std::vector<int64_t>> pads;
  if (ctx.has_input(3)) {
    pads = integers(ctx, 1, "pads");
    const std::vector<int64_t> axes = integers(ctx, 3, "axes");
    const int64_t rank = rank_of(ctx, 0);
    if (pads->size() != axes.size() * 2) cannot("its pads don't fit its axes");
    std::vector<int64_t> all(static_cast<size_t>(rank) * 2, 0);
    for (size_t i = 0; i < axes.size(); ++i) {
      const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
      if (axis < 0 || axis >= rank) cannot("its axes are none of its input's");
      all[static_cast<size_t>(axis)] = (*pads)[i];
      all[static_cast<size_t>(axis + rank)] = (*pads)[i + axes.size()];
    }
    pads = std::move(all);
    keep_inputs(ctx, 3);
  }
  if (ctx.since() >= 11) {
    if (pads) ctx.set_input(1, ctx.constant_ints(*pads, "pads"));
    return;
  }
  if (!pads) pads = integers(ctx, 1, "pads");
  if (ctx.has_input(2)) ctx.set_attribute("value", number(ctx, 2, "constant_value"));
  keep_inputs(ctx, 1);
  ctx.set_attribute(ctx.since() < 2 ? "paddings" : "pads", std::move(*pads));
}

void clip(DowngradeContext& ctx) {
  if (ctx.since() >= 11) return;
  if (ctx.has_input(1)) ctx.set_attribute("min", number(ctx, 1, "min"));
  if (ctx.has_input(2)) ctx.set_attribute("max", number(ctx, 2, "max"));
  keep_inputs(ctx, 1);
}

void dropout(DowngradeContext& ctx) {
  if (ctx.has_input(2)) {
    const Tensor* training = ctx.constant(2);
    if (training == nullptr || training->element_type() != ElementType::boolean ||
        training->size() != 1 || training->elements<bool>()[0])
      cannot("it may be training, which it cannot say there");
  }
  if (ctx.has_output(1) && ctx.since() < 10) cannot("its mask is no boolean there");
  // Nothing is dropped, whatever the ratio.
  if (ctx.has_input(1) && ctx.constant(1) != nullptr)
    ctx.set_attribute("ratio", number(ctx, 1, "ratio"));
  ctx.remove_attribute("seed");
  if (ctx.since() < 7) ctx.set_attribute("is_test", int64_t{1});
  keep_inputs(ctx, 1);
}

// The types with 8 bits are the only ones that saturate or round in ways to choose.
bool is_float8(int64_t type) {
  switch (static_cast<ElementType>(type)) {
    case ElementType::float8e4m3fn:
    case ElementType::float8e4m3fnuz:
    case ElementType::float8e5m2:
    case ElementType::float8e5m2fnuz:
    case ElementType::float8e8m0: return true;
    default: return false;
  }
}

void cast(DowngradeContext& ctx) {
  const int64_t to = ctx.newest().attr_int("to");
  if (is_float8(to)) cannot("it makes 8-bit floating-point numbers");
  ctx.remove_attribute("saturate");
  ctx.remove_attribute("round_mode");
  if (ctx.since() >= 6) return;
  std::string name(name_of(static_cast<ElementType>(to)));
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  ctx.set_attribute("to", std::string_view(name));
}

void cast_like(DowngradeContext& ctx) {
  const ElementType like = ctx.element(1);
  if (like == ElementType::undefined) cannot("the type to cast to is not known");
  ctx.node().op_type = "Cast";
  ctx.set_attribute("to", static_cast<int64_t>(like));
  keep_inputs(ctx, 1);
}

void constant(DowngradeContext& ctx) {
  const ops::NodeView view = ctx.newest();
  if (view.has_attribute("value")) return;
  const auto become = [&](const Tensor& tensor) {
    ctx.node().attributes.clear();
    ctx.node().attributes.push_back(ops::tensor_attribute("value", tensor));
  };
  if (view.has_attribute("value_float"))
    return become(Tensor::scalar<float>(view.attr_float("value_float")));
  if (view.has_attribute("value_int"))
    return become(Tensor::scalar<int64_t>(view.attr_int("value_int")));
  if (const auto floats = view.attr_floats("value_floats"))
    return become(Tensor::of<float>(*floats, {static_cast<int64_t>(floats->size())}));
  if (const auto ints = view.attr_ints("value_ints"))
    return become(Tensor::of<int64_t>(*ints, {static_cast<int64_t>(ints->size())}));
  if (view.has_attribute("value_string"))
    return become(Tensor::scalar<std::string>(view.attr_string("value_string")));
  if (const auto strings = view.attr_strings("value_strings"))
    return become(Tensor::of<std::string>(*strings, {static_cast<int64_t>(strings->size())}));
  cannot("it holds a sparse tensor");
}

void gemm(DowngradeContext& ctx) {
  if (ctx.since() >= 7) {
    if (!ctx.has_input(2)) ctx.set_input(2, ctx.scalar_like(0, 0, "no_c"));
    return;
  }
  // Up to opset 6 an attribute says that C is a row for all.
  if (!ctx.has_input(2) || ctx.rank(2) != 1) cannot("what it adds must be a row there");
  ctx.set_attribute("broadcast", int64_t{1});
}

// Up to opset 12 all axes from `axis` on are one.
void softmax(DowngradeContext& ctx) {
  const int64_t axis = ctx.newest().attr_int("axis", -1);
  if (axis == -1 && ctx.since() >= 11) return ctx.set_attribute("axis", axis);
  const int64_t rank = rank_of(ctx, 0);
  const int64_t at = axis < 0 ? axis + rank : axis;
  if (at < 0 || at >= rank) cannot("its axis is none of its input's");
  const ops::Dims& shape = *ctx.type(0)->shape;
  const bool is_last = std::all_of(shape.begin() + at + 1, shape.end(),
                                   [](const ops::Dim& dim) { return dim.value() == 1; });
  if (is_last) return ctx.set_attribute("axis", at);
  std::vector<int64_t> order;
  for (int64_t k = 0; k < rank; ++k) order.push_back(k);
  std::swap(order[static_cast<size_t>(at)], order.back());
  ctx.set_input(0,
                ctx.before("Transpose", {ctx.node().inputs[0]}, {ints_attribute("perm", order)}));
  ctx.set_attribute("axis", rank - 1);
  std::string result;
  const std::string turned = ctx.detach_output(0, &result);
  ctx.after("Transpose", {turned}, result, {ints_attribute("perm", order)});
}

void all_one(DowngradeContext& ctx, std::string_view name) {
  const auto list = ctx.newest().attr_ints(name);
  if (!list) return;
  if (std::ranges::any_of(*list, [](int64_t value) { return value != 1; }))
    cannot("it has no attribute '{}' there", name);
  ctx.remove_attribute(name);
}

void pool(DowngradeContext& ctx) {
  if (ctx.old().signature()->attribute("dilations") == nullptr) all_one(ctx, "dilations");
  if (ctx.since() < 2 && ctx.newest().has_attribute("p"))
    ctx.set_attribute("p", static_cast<float>(ctx.newest().attr_int("p")));
}

// Up to opset 13 more outputs than one say that it trains, and then there are five; up to opset 6
// an attribute says so.
void batch_normalization(DowngradeContext& ctx) {
  if (ctx.since() >= 14) return;
  const bool trains = ctx.newest().attr_int("training_mode", 0) != 0;
  ctx.remove_attribute("training_mode");
  std::vector<std::string>& outputs = ctx.node().outputs;
  constexpr std::array names = {"mean", "var", "saved_mean", "saved_var"};
  for (size_t i = 1; trains && i <= names.size(); ++i) {
    if (ctx.has_output(i)) continue;
    if (outputs.size() <= i) outputs.resize(i + 1);
    outputs[i] = ctx.fresh_name(names[i - 1]);
  }
  if (ctx.since() >= 7) return;
  ctx.set_attribute("is_test", int64_t{!trains});
  if (ctx.since() < 6) ctx.set_attribute("consumed_inputs", std::vector<int64_t>{0, 0, 0, 1, 1});
}

// In opsets 9 and 10 it has another name.
void scatter_elements(DowngradeContext& ctx) {
  if (ctx.since() > 0 || ctx.opset() < 9) return;
  if (ctx.newest().attr_string("reduction", "none") != "none") cannot("it reduces");
  ctx.remove_attribute("reduction");
  if (int64_t axis = ctx.newest().attr_int("axis", 0); axis < 0)
    ctx.set_attribute("axis", axis + rank_of(ctx, 0));
  ctx.node().op_type = "Scatter";
}

// Up to opset 10 negative indices switch nothing on.
void one_hot(DowngradeContext& ctx) {
  if (ctx.since() == 0 || ctx.since() >= 11) return;
  const auto whole = int_attribute("to", static_cast<int64_t>(ElementType::int64));
  const std::string indices = ctx.before("Cast", {ctx.node().inputs[0]}, {whole});
  const std::string depth = ctx.before(
      "Reshape",
      {ctx.before("Cast", {ctx.node().inputs[1]}, {whole}), ctx.constant_ints({}, "scalar")});
  const std::string zero = ctx.constant(Tensor::scalar<int64_t>(0), "zero");
  const std::string from_the_end = ctx.before("Less", {indices, zero});
  ctx.set_input(0,
                ctx.before("Where", {from_the_end, ctx.before("Add", {indices, depth}), indices}));
}

// Up to version 10 nearest takes the pixel below along axes that grow, and the pixel above along
// those that shrink.
void require_old_rounding(std::string_view rounding, const std::vector<float>& scales) {
  if (scales.empty())
    cannot("its input 'scales' must be constant, since it says how to round there");
  for (const float scale : scales) {
    const float step = 1 / scale;
    if (scale <= 1 && step == std::floor(step)) continue;  // from pixel to pixel
    const std::string_view old = scale > 1 ? "floor" : "ceil";
    if (rounding != old)
      cannot("its nearest_mode is {} and not {}, as it is there along an axis whose scale is {}",
             rounding, old, scale);
  }
}

void resize(DowngradeContext& ctx) {
  enum Input { x, roi, scales, sizes };
  const ops::NodeView view = ctx.newest();
  std::vector<float> factors;  // of all axes, where they are made here
  if (view.attr_ints("axes")) {
    // Those of the axes that are named; the others stay as they are.
    const std::vector<int64_t> axes = *view.attr_ints("axes");
    const int64_t rank = rank_of(ctx, x);
    const auto spread = [&]<class T>(std::vector<T> all, std::span<const T> of) {
      if (of.size() != axes.size()) cannot("its axes don't fit its sizes");
      for (size_t i = 0; i < axes.size(); ++i) {
        const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (axis < 0 || axis >= rank) cannot("its axes are none of its input's");
        all[static_cast<size_t>(axis)] = of[i];
      }
      return all;
    };
    if (ctx.has_input(roi) &&
        view.attr_string("coordinate_transformation_mode") == "tf_crop_and_resize")
      cannot("it has no attribute 'axes' there");
    if (ctx.has_input(sizes)) {
      std::vector<int64_t> all;
      for (const ops::Dim& dim : *ctx.type(x)->shape) {
        if (!dim.value()) cannot("the sizes of its input must be known there");
        all.push_back(*dim.value());
      }
      const std::vector<int64_t> given = integers(ctx, sizes, "sizes");
      ctx.set_input(sizes, ctx.constant_ints(spread(std::move(all), std::span(given)), "sizes"));
    } else {
      const Tensor* given = ctx.constant(scales);
      if (given == nullptr || given->element_type() != ElementType::float32)
        cannot("its input 'scales' must be constant, since it has no attribute 'axes' there");
      factors =
          spread(std::vector<float>(static_cast<size_t>(rank), 1.0F), given->elements<float>());
      ctx.set_input(scales, ctx.constant(Tensor::of<float>(factors, {rank}), "scales"));
    }
    ctx.remove_attribute("axes");
  }
  if (ctx.since() >= 13) return;
  if (ctx.since() >= 11) {  // both are needed, if only to be empty
    if (!ctx.has_input(roi)) ctx.set_input(roi, ctx.constant(Tensor::of<float>({}, {0}), "roi"));
    if (!ctx.has_input(scales))
      ctx.set_input(scales, ctx.constant(Tensor::of<float>({}, {0}), "scales"));
    return;
  }
  const std::string coordinates = view.attr_string("coordinate_transformation_mode");
  const std::string mode = view.attr_string("mode");
  if (coordinates != "asymmetric")
    cannot("its coordinates are {} and not asymmetric, as all are there", coordinates);
  if (mode == "cubic") cannot("its mode is cubic, which is not known there");
  if (ctx.has_input(sizes)) cannot("it is told sizes rather than scales");
  const std::string by = ctx.node().inputs[scales];
  const Tensor* given = ctx.constant(scales);
  if (given != nullptr && given->element_type() == ElementType::float32)
    factors.assign(given->elements<float>().begin(), given->elements<float>().end());
  if (mode == "nearest") require_old_rounding(view.attr_string("nearest_mode"), factors);
  keep_inputs(ctx, 1);
  ctx.set_input(1, by);
  for (const std::string_view name : {"coordinate_transformation_mode", "nearest_mode",
                                      "cubic_coeff_a", "exclude_outside", "extrapolation_value"})
    ctx.remove_attribute(name);
  if (ctx.since() >= 10) return;
  // Upsample, which makes nothing smaller.
  if (factors.empty()) cannot("its input 'scales' must be constant");
  if (std::ranges::any_of(factors, [](float scale) { return !(scale >= 1); }))
    cannot("it makes its input smaller");
  if (view.attr_int("antialias", 0) != 0) cannot("it is antialiased");
  ctx.remove_attribute("antialias");
  ctx.remove_attribute("keep_aspect_ratio_policy");  // of sizes
  ctx.node().op_type = "Upsample";
  if (ctx.opset() >= 9) return;
  ir::Attribute scales_attribute;
  scales_attribute.name = "scales";
  scales_attribute.kind = ir::AttributeKind::floats;
  scales_attribute.floats = std::move(factors);
  ctx.node().attributes.push_back(std::move(scales_attribute));
  keep_inputs(ctx, 1);
}

void roi_align(DowngradeContext& ctx) {
  const std::string mode = ctx.newest().attr_string("coordinate_transformation_mode");
  if (mode != "output_half_pixel")
    cannot("its coordinates are {} and not output_half_pixel, as all are there", mode);
  ctx.remove_attribute("coordinate_transformation_mode");
}

void shape(DowngradeContext& ctx) {
  const ops::NodeView view = ctx.newest();
  const int64_t start = view.attr_int("start", 0);
  const int64_t end = view.attr_int("end", std::numeric_limits<int64_t>::max());
  ctx.remove_attribute("start");
  ctx.remove_attribute("end");
  if (start == 0 && end == std::numeric_limits<int64_t>::max()) return;
  std::string result;
  const std::string whole = ctx.detach_output(0, &result);
  const std::string first = ctx.constant_ints({start}, "start");
  const std::string last = ctx.constant_ints({end}, "end");
  const std::string axes = ctx.constant_ints({0}, "axes");
  ctx.after("Slice", {whole, first, last, axes}, result);
}

void reshape(DowngradeContext& ctx) {
  // A 0 copies a size of the input unless zeros are allowed.
  if (ctx.newest().attr_int("allowzero", 0) != 0) {
    const ops::Dims* sizes = ctx.elements(1);
    if (sizes == nullptr) cannot("its shape may have a 0 that is meant");
    if (std::ranges::any_of(*sizes, [](const ops::Dim& dim) { return dim.value() == 0; }))
      cannot("its shape has a 0 that is meant");
  }
  ctx.remove_attribute("allowzero");
  if (ctx.since() >= 5) return;
  std::vector<int64_t> sizes = integers(ctx, 1, "shape");
  keep_inputs(ctx, 1);
  ctx.set_attribute("shape", std::move(sizes));
}

void top_k(DowngradeContext& ctx) {
  if (ctx.since() >= 10) return;
  const std::vector<int64_t> count = integers(ctx, 1, "K");
  if (count.size() != 1) cannot("its input 'K' must be a single number");
  keep_inputs(ctx, 1);
  ctx.set_attribute("k", count[0]);
}

void dft(DowngradeContext& ctx) {
  if (ctx.since() >= 20) return;
  int64_t axis = -2;
  if (ctx.has_input(2)) {
    const std::vector<int64_t> list = integers(ctx, 2, "axis");
    if (list.size() != 1) cannot("its input 'axis' must be a single number");
    axis = list[0];
  }
  if (axis < 0) axis += rank_of(ctx, 0);
  keep_inputs(ctx, 2);
  ctx.set_attribute("axis", axis);
}

void grid_sample(DowngradeContext& ctx) {
  const std::string mode = ctx.newest().attr_string("mode");
  if (mode == "linear") ctx.set_attribute("mode", "bilinear");
  if (mode == "cubic") ctx.set_attribute("mode", "bicubic");
  if (rank_of(ctx, 0) != 4) cannot("its input is no image of two dimensions, as all are there");
}

void quantize(DowngradeContext& ctx) {
  const ops::NodeView view = ctx.newest();
  const auto has = [&](std::string_view name) {
    return ctx.old().signature()->attribute(name) != nullptr;
  };
  if (!has("axis")) {  // up to opset 12, one scale for all
    if (ctx.rank(1) != 0) cannot("it has a scale for each channel");
    ctx.remove_attribute("axis");
  }
  if (!has("output_dtype") && view.attr_int("output_dtype", 0) != 0) {
    const auto type = static_cast<ElementType>(view.attr_int("output_dtype"));
    if (view.node().op_type == "DequantizeLinear") {
      if (ctx.element(1) != type) cannot("its output is of another type than its scale");
    } else if (!ctx.has_input(2)) {
      const auto* scale = ctx.type(1);
      const auto shape = scale != nullptr ? scale->concrete_shape() : std::nullopt;
      if (!shape || (type != ElementType::int8 && type != ElementType::uint8))
        cannot("it has no attribute 'output_dtype' there");
      Tensor zeros(type, *shape);
      std::fill_n(static_cast<uint8_t*>(zeros.mutable_data()), zeros.byte_size(), uint8_t{0});
      ctx.set_input(2, ctx.constant(std::move(zeros), "zero_point"));
    }
    ctx.remove_attribute("output_dtype");
  }
  if (!has("precision") && view.attr_int("precision", 0) != 0 &&
      static_cast<ElementType>(view.attr_int("precision")) == ctx.element(1))
    ctx.remove_attribute("precision");
  if (!has("saturate")) ctx.remove_attribute("saturate");  // of types that are not there
  // Versions 19 and 21 want both of one type; the division is one of float32 anyway.
  if (view.node().op_type == "QuantizeLinear" && ctx.since() >= 19 && ctx.since() < 23 &&
      ctx.element(0) == ElementType::int32 && ctx.element(1) == ElementType::float32)
    ctx.set_input(0, ctx.before("Cast", {ctx.node().inputs[0]},
                                {int_attribute("to", static_cast<int64_t>(ElementType::float32))}));
}

// What normalisations work on: the input in the type of their statistics.
struct Statistics {
  std::string x;
  ElementType given, type;
};

Statistics statistics_of(DowngradeContext& ctx) {
  const ElementType given = ctx.element(0);
  if (given == ElementType::undefined) cannot("the type of its input is not known");
  const auto type = static_cast<ElementType>(ctx.newest().attr_int("stash_type", 1));
  if (type != ElementType::float32 && type != ElementType::float64)
    cannot("its statistics are neither float32 nor float64");
  const std::string& x = ctx.node().inputs[0];
  if (given == type) return {x, given, type};
  return {ctx.before("Cast", {x}, {int_attribute("to", static_cast<int64_t>(type))}), given, type};
}

// The square root of a mean of squares and the node's epsilon.
std::string deviation(DowngradeContext& ctx, const Statistics& of, const std::string& mean) {
  const float epsilon = ctx.newest().attr_float("epsilon");
  const std::string added = of.type == ElementType::float64
                                ? ctx.constant(Tensor::scalar<double>(epsilon), "epsilon")
                                : ctx.constant(Tensor::scalar<float>(epsilon), "epsilon");
  return ctx.before("Sqrt", {ctx.before("Add", {mean, added})});
}

struct Standardized {
  std::string mean, deviation, normal;  // normal = (x - mean) / deviation
};

// Over the axes.
Standardized standardized(DowngradeContext& ctx, const Statistics& of, const std::string& x,
                          const std::string& axes) {
  Standardized made;
  made.mean = ctx.before("ReduceMean", {x, axes});
  const std::string centered = ctx.before("Sub", {x, made.mean});
  const std::string squares = ctx.before("Mul", {centered, centered});
  made.deviation = deviation(ctx, of, ctx.before("ReduceMean", {squares, axes}));
  made.normal = ctx.before("Div", {centered, made.deviation});
  return made;
}

std::vector<int64_t> axes_from(DowngradeContext& ctx, int64_t axis) {
  const int64_t rank = rank_of(ctx, 0);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis > rank) cannot("its axis is none of its input's");
  std::vector<int64_t> axes;
  for (; axis < rank; ++axis) axes.push_back(axis);
  return axes;
}

// The node gives way to `normal`, in the type of its input, times a scale; plus a bias if any.
void become_scaled(DowngradeContext& ctx, const Statistics& of, std::string normal,
                   const std::string& scale, const std::string& bias) {
  if (of.given != of.type)
    normal = ctx.before("Cast", {normal}, {int_attribute("to", static_cast<int64_t>(of.given))});
  const std::string y = ctx.node().outputs[0];
  if (bias.empty()) {
    ctx.after("Mul", {normal, scale}, y);
  } else {
    ctx.after("Add", {ctx.before("Mul", {normal, scale}), bias}, y);
  }
  ctx.drop_node();
}

void layer_normalization(DowngradeContext& ctx) {
  const Statistics of = statistics_of(ctx);
  const std::string axes =
      ctx.constant_ints(axes_from(ctx, ctx.newest().attr_int("axis", -1)), "axes");
  const Standardized made = standardized(ctx, of, of.x, axes);
  const auto& outputs = ctx.node().outputs;
  if (ctx.has_output(1)) ctx.after("Identity", {made.mean}, outputs[1]);
  if (ctx.has_output(2)) ctx.after("Reciprocal", {made.deviation}, outputs[2]);
  become_scaled(ctx, of, made.normal, ctx.node().inputs[1],
                ctx.has_input(2) ? ctx.node().inputs[2] : "");
}

void rms_normalization(DowngradeContext& ctx) {
  const Statistics of = statistics_of(ctx);
  const std::string axes =
      ctx.constant_ints(axes_from(ctx, ctx.newest().attr_int("axis", -1)), "axes");
  const std::string mean = ctx.before("ReduceMean", {ctx.before("Mul", {of.x, of.x}), axes});
  become_scaled(ctx, of, ctx.before("Div", {of.x, deviation(ctx, of, mean)}), ctx.node().inputs[1],
                "");
}

void group_normalization(DowngradeContext& ctx) {
  const Statistics of = statistics_of(ctx);
  const int64_t rank = rank_of(ctx, 0);
  // [batch, groups, rest], and back.
  const std::string groups =
      ctx.constant_ints({0, ctx.newest().attr_int("num_groups"), -1}, "groups");
  const std::string grouped = ctx.before("Reshape", {of.x, groups});
  const std::string normal =
      ctx.before("Reshape", {standardized(ctx, of, grouped, ctx.constant_ints({2}, "axes")).normal,
                             ctx.before("Shape", {of.x})});
  std::vector<int64_t> spread;  // channels, then an axis of size 1 for each of the others
  for (int64_t k = 1; k < rank - 1; ++k) spread.push_back(k);
  const auto by_channel = [&](size_t i) {
    if (spread.empty()) return ctx.node().inputs[i];
    return ctx.before("Unsqueeze", {ctx.node().inputs[i], ctx.constant_ints(spread, "axes")});
  };
  const std::string scale = by_channel(1), bias = by_channel(2);
  become_scaled(ctx, of, normal, scale, bias);
}

void gelu(DowngradeContext& ctx) {
  const std::string x = ctx.node().inputs[0], y = ctx.node().outputs[0];
  const std::string half = ctx.before("Mul", {x, ctx.scalar_like(0.5F, 0)});
  std::string inner;
  if (ctx.newest().attr_string("approximate", "none") == "tanh") {
    const std::string cube = ctx.before("Mul", {ctx.before("Mul", {x, x}), x});
    const std::string bent = ctx.before("Mul", {cube, ctx.scalar_like(0.044715F, 0)});
    const std::string sum = ctx.before("Add", {x, bent});
    inner = ctx.before("Tanh", {ctx.before("Mul", {sum, ctx.scalar_like(0.7978845608028654F, 0)})});
  } else {
    inner = ctx.before("Erf", {ctx.before("Mul", {x, ctx.scalar_like(0.7071067811865476F, 0)})});
  }
  ctx.after("Mul", {half, ctx.before("Add", {inner, ctx.scalar_like(1, 0)})}, y);
  ctx.drop_node();
}

struct Entry {
  std::string_view op_type;
  DowngradeRule rule;
};

constexpr Entry rules[] = {
    {"Attention", attention_down},
    {"AveragePool", pool},
    {"BatchNormalization", batch_normalization},
    {"Cast", cast},
    {"CastLike", cast_like},
    {"Clip", clip},
    {"Constant", constant},
    {"DFT", dft},
    {"DequantizeLinear", quantize},
    {"Dropout", dropout},
    {"Gelu", gelu},
    {"Gemm", gemm},
    {"GlobalLpPool", pool},
    {"GridSample", grid_sample},
    {"GroupNormalization", group_normalization},
    {"Hardmax", softmax},
    {"LayerNormalization", layer_normalization},
    {"LogSoftmax", softmax},
    {"LpPool", pool},
    {"MaxPool", pool},
    {"OneHot", one_hot},
    {"Pad", pad},
    {"QuantizeLinear", quantize},
    {"RMSNormalization", rms_normalization},
    {"ReduceL1", reduce},
    {"ReduceL2", reduce},
    {"ReduceLogSum", reduce},
    {"ReduceLogSumExp", reduce},
    {"ReduceMax", reduce},
    {"ReduceMean", reduce},
    {"ReduceMin", reduce},
    {"ReduceProd", reduce},
    {"ReduceSum", reduce},
    {"ReduceSumSquare", reduce},
    {"Reshape", reshape},
    {"Resize", resize},
    {"RoiAlign", roi_align},
    {"RotaryEmbedding", rotary_embedding_down},
    {"ScatterElements", scatter_elements},
    {"Shape", shape},
    {"Slice", slice},
    {"Softmax", softmax},
    {"Split", split},
    {"Squeeze", squeeze},
    {"TopK", top_k},
    {"Trilu", trilu_down},
    {"Unsqueeze", unsqueeze},
};

// Values of attributes that came after the attributes.
struct LateValue {
  std::string_view op_type, attribute, value;
  int64_t since;  // opset
};
constexpr LateValue late_values[] = {
    {"GridSample", "mode", "linear", 20},
    {"GridSample", "mode", "cubic", 20},
    {"Pad", "mode", "wrap", 19},
    {"Resize", "coordinate_transformation_mode", "half_pixel_symmetric", 19},
    {"ScatterElements", "reduction", "max", 18},
    {"ScatterElements", "reduction", "min", 18},
    {"ScatterND", "reduction", "max", 18},
    {"ScatterND", "reduction", "min", 18},
};

}  // namespace

DowngradeContext::DowngradeContext(ir::Node& node, const schema::Signature* older, int64_t opset,
                                   const Services& services)
    : UpgradeContext(node, older != nullptr ? older->since : 0,
                     older != nullptr ? older : schema::newest(node.domain, node.op_type),
                     services),
      node_(node),
      newest_(schema::newest(node.domain, node.op_type)),
      opset_(opset),
      services_(services) {}

const ops::Dims* DowngradeContext::elements(size_t input) const {
  if (!has_input(input)) return nullptr;
  const ops::ValueFacts* known = services_.known(node_.inputs[input]);
  return known == nullptr ? nullptr : known->elements.get();
}

DowngradeRule downgrade_rule(std::string_view op_type) {
  const auto found = std::ranges::find(rules, op_type, &Entry::op_type);
  return found == std::end(rules) ? nullptr : found->rule;
}

std::string unknown_value(const ir::Node& node, int64_t opset) {
  for (const LateValue& late : late_values) {
    if (opset >= late.since || node.op_type != late.op_type) continue;
    const ir::Attribute* given = node.find(late.attribute);
    if (given != nullptr && given->s == late.value)
      return fmt::format("its {} '{}' is not known there", late.attribute, late.value);
  }
  return {};
}

}  // namespace sardonyx::lower
