// Resize, and Upsample, its older name.
#include <algorithm>
#include <deque>
#include <mutex>
#include <utility>

#include "base/bytes.h"
#include "ir/tensor.h"
#include "kernels/convert/cast.h"
#include "kernels/move/resize.h"
#include "ops/objections.h"
#include "ops/shared/element_counts.h"
#include "ops/shared/fixed_point.h"
#include "ops/shared/moving.h"
#include "ops/shared/resize_sizes.h"

namespace sardonyx::ops {
namespace resize_unit {
namespace {

using kernels::CoordinateMode;

std::vector<double> as_doubles(ElementType type, const void* data, int64_t n) {
  std::vector<double> values(static_cast<size_t>(n));
  if (type == ElementType::float64) {
    std::copy_n(static_cast<const double*>(data), n, values.begin());
  } else {
    std::vector<float> floats(static_cast<size_t>(n));
    kernels::to_floats(type, data, floats.data(), n);
    std::copy(floats.begin(), floats.end(), values.begin());
  }
  return values;
}

// Of a constant, which may lie unaligned in its file.
std::vector<double> as_doubles(const Tensor& tensor) {
  const Tensor held = ir::aligned(tensor);
  return as_doubles(held.element_type(), held.data(), held.size());
}

// --- Inference ----------------------------------------------------------------------------------

bool has_input(const InferContext& ctx, int i) { return i >= 0 && ctx.has_input(i); }

bool is_given(const InferContext& ctx, int i) {
  if (!has_input(ctx, i)) return false;
  // Empty tensors stood for "absent" where a later input had to be named.
  const auto length = length_of(ctx, i);
  return !length || *length > 0;
}

// Scales and sizes are both there, and only a run knows whether the sizes are empty.
bool is_open_choice(const InferContext& ctx, const ResizeSettings& s) {
  return s.scales_input != s.sizes_input && is_given(ctx, s.scales_input) &&
         is_given(ctx, s.sizes_input) && !length_of(ctx, s.sizes_input);
}

void infer_sizes(InferContext& ctx, const ResizeSettings& s, const std::vector<int64_t>& axes,
                 Dims& out) {
  const auto sizes = values_of(ctx, s.sizes_input);
  if (!sizes) require_elements(ctx, s.sizes_input, axes.size());
  if (sizes && sizes->size() != axes.size())
    ctx.fail("sizes must have {} elements, one per axis; it has {}", axes.size(), sizes->size());
  std::vector<int64_t> in, asked;
  for (size_t i = 0; i < axes.size(); ++i) {
    Dim& size = out[static_cast<size_t>(axes[i])];
    if (sizes && size.is_constant() && (*sizes)[i].is_constant()) {
      in.push_back(*size.value()), asked.push_back(*(*sizes)[i].value());
    }
    if (sizes) ctx.require_at_least((*sizes)[i], 0, "a size in sizes");
    size =
        sizes && s.policy == AspectRatio::stretch
            ? (*sizes)[i]
            : ctx.unknown(sizes && s.policy == AspectRatio::not_larger ? std::optional((*sizes)[i])
                                                                       : std::nullopt);
  }
  if (s.policy == AspectRatio::stretch || in.size() != axes.size()) return;
  const auto targets = resize_targets(s.policy, in, asked);
  for (size_t i = 0; i < axes.size(); ++i) out[static_cast<size_t>(axes[i])] = Dim(targets[i].size);
}

void infer_scales(InferContext& ctx, const ResizeSettings& s, const std::vector<int64_t>& axes,
                  Dims& out) {
  const Tensor* scales = ctx.constant(s.scales_input);
  const bool crops = s.options.coordinates == CoordinateMode::tf_crop_and_resize;
  const Tensor* roi = crops ? ctx.constant(s.roi_input) : nullptr;
  const size_t n = axes.size();
  if (!scales) require_elements(ctx, s.scales_input, n);
  if (crops && !roi) require_elements(ctx, s.roi_input, 2 * n);
  if (scales && static_cast<size_t>(scales->size()) != n)
    ctx.fail("scales must have {} elements, one per axis; it has {}", n, scales->size());
  if (roi && static_cast<size_t>(roi->size()) != 2 * n)
    ctx.fail("roi must have {} elements, a start and an end per axis; it has {}", 2 * n,
             roi->size());
  const auto region = roi ? as_doubles(*roi) : std::vector<double>();
  const auto factors = scales ? as_doubles(*scales) : std::vector<double>();
  const auto* scale_units = ctx.mode().symbolic_values ? ctx.elements(s.scales_input) : nullptr;
  if (scale_units && scale_units->size() != n) scale_units = nullptr;
  for (size_t i = 0; i < n; ++i) {
    Dim& size = out[static_cast<size_t>(axes[i])];
    std::optional<Dim> scaled;
    if (scales && (!crops || roi)) {
      const auto scale = static_cast<float>(factors[i]);
      const double extent = crops ? region[n + i] - region[i] : 1;
      if (!(scale > 0)) ctx.fail("scales must be above 0; got {}", scale);
      if (size.is_constant()) {
        scaled = Dim(scaled_size(*size.value(), extent, scale));
      } else if (extent == 1) {
        scaled = scaled_size(size, scale);
        if (!scaled) scaled = ctx.unknown(largest_scaled(size, scale));
      }
    }
    if (!scaled && scale_units && !crops) scaled = floor_div(size * (*scale_units)[i], float_unit);
    size = scaled ? *scaled : ctx.unknown();
  }
}

void infer(InferContext& ctx) {
  const ResizeSettings s = resize_settings(ctx);
  const auto& in = ctx.shape(0);
  if (!in) {
    const int with = is_given(ctx, s.sizes_input) ? s.sizes_input : s.scales_input;
    set_rank(ctx, ctx.element(0), s.axes || with < 0 ? std::nullopt : length_of(ctx, with));
    return;
  }
  const auto axes = resized_axes(ctx, s, static_cast<int64_t>(in->size()));
  Dims out = *in;
  if (s.scales_input != s.sizes_input && is_given(ctx, s.sizes_input) &&
      is_given(ctx, s.scales_input))
    object(ctx, "scales and sizes exclude each other; keep one");
  if (is_open_choice(ctx, s)) {
    if (axes.empty()) {  // nothing is left open that a run would look at again
      require_elements(ctx, s.scales_input, 0);
      require_elements(ctx, s.sizes_input, 0);
    }
    for (const int64_t axis : axes) out[static_cast<size_t>(axis)] = ctx.unknown();
  } else if (is_given(ctx, s.sizes_input)) {
    infer_sizes(ctx, s, axes, out);
  } else if (is_given(ctx, s.scales_input)) {
    infer_scales(ctx, s, axes, out);
  } else if (!axes.empty() || !(has_input(ctx, s.scales_input) || has_input(ctx, s.sizes_input))) {
    ctx.fail("needs one of the inputs scales and sizes");
  }
  ctx.set(0, ctx.element(0), std::move(out));
}

// --- Running ------------------------------------------------------------------------------------

// The values that with the sizes decide the sampling tables.
struct Values {
  std::vector<double> scales, roi;
  std::vector<int64_t> sizes;  // empty where the output's sizes are the ones asked for
};

std::vector<kernels::ResizeAxis> axes_of(const ResizeSettings& s, const Values& values,
                                         std::span<const int64_t> in,
                                         std::span<const int64_t> out) {
  std::vector<kernels::ResizeAxis> result;
  for (size_t d = 0; d < in.size(); ++d) result.push_back({.in = in[d], .out = out[d]});
  std::vector<int64_t> axes = s.axes.value_or(std::vector<int64_t>());
  for (size_t d = 0; !s.axes && d < in.size(); ++d) axes.push_back(static_cast<int64_t>(d));
  for (int64_t& axis : axes) axis += axis < 0 ? static_cast<int64_t>(in.size()) : 0;
  std::vector<ResizeTarget> targets;
  if (values.scales.empty()) {
    std::vector<int64_t> before, sizes = values.sizes;
    for (const int64_t axis : axes) before.push_back(in[static_cast<size_t>(axis)]);
    for (size_t i = 0; values.sizes.size() != axes.size() && i < axes.size(); ++i)
      sizes.push_back(out[static_cast<size_t>(axes[i])]);
    targets = resize_targets(s.policy, before, sizes);
  }
  const size_t n = axes.size();
  for (size_t i = 0; i < n; ++i) {
    kernels::ResizeAxis& axis = result[static_cast<size_t>(axes[i])];
    axis.scale = values.scales.empty() ? targets[i].scale : values.scales.at(i);
    if (s.options.coordinates != CoordinateMode::tf_crop_and_resize || values.roi.size() != 2 * n)
      continue;
    axis.roi_start = values.roi[i], axis.roi_end = values.roi[n + i];
    // Given as such, scales are those of the crop; computed from sizes they have its extent.
    const double extent = axis.roi_end - axis.roi_start;
    if (!values.scales.empty() && extent > 0) axis.extent = extent;
  }
  return result;
}

// Tables made for the sizes met so far; they stay as long as the step. Thread-safe.
class Tables {
 public:
  explicit Tables(ResizeSettings settings) : settings_(std::move(settings)) {}

  // Null where more sizes have been met than are kept.
  const kernels::Resize* find_or_make(const Values& values, std::span<const int64_t> in,
                                      std::span<const int64_t> out) const {
    const std::lock_guard lock(mutex_);
    for (const Entry& entry : entries_) {
      if (std::equal(in.begin(), in.end(), entry.in.begin(), entry.in.end()) &&
          std::equal(out.begin(), out.end(), entry.out.begin(), entry.out.end())) {
        return &entry.resize;
      }
    }
    if (entries_.size() >= most) return nullptr;
    entries_.push_back({{in.begin(), in.end()}, {out.begin(), out.end()}, make(values, in, out)});
    return &entries_.back().resize;
  }

  kernels::Resize make(const Values& values, std::span<const int64_t> in,
                       std::span<const int64_t> out) const {
    return kernels::Resize(settings_.options, axes_of(settings_, values, in, out));
  }
  const ResizeSettings& settings() const { return settings_; }

 private:
  static constexpr size_t most = 64;
  struct Entry {
    Shape in, out;
    kernels::Resize resize;
  };
  ResizeSettings settings_;
  mutable std::mutex mutex_;
  mutable std::deque<Entry> entries_;
};

struct State {
  const kernels::Resize* resize = nullptr;
};

// Everything that decides the tables never changes: made when sizes are bound.
std::unique_ptr<Step> fixed_step(std::shared_ptr<const Tables> tables, Values values,
                                 ElementType type) {
  return make_step<State>(
      "resize.tables",
      [tables, values, type](BindContext& bind, State& state) {
        state.resize = tables->find_or_make(values, bind.in_shape(0), bind.out_shape(0));
        const auto bytes = [&](const kernels::Resize& resize) {
          return resize.scratch_bytes(type);
        };
        bind.need_scratch(state.resize
                              ? bytes(*state.resize)
                              : bytes(tables->make(values, bind.in_shape(0), bind.out_shape(0))));
      },
      [tables, values, type](RunContext& run, const State& state) {
        if (state.resize) {
          state.resize->run(type, run.data(0), run.out_data(0), run.scratch(), run.pool());
        } else {
          tables->make(values, run.in_shape(0), run.out_shape(0))
              .run(type, run.data(0), run.out_data(0), run.scratch(), run.pool());
        }
      });
}

Values read_values(const RunContext& run, const ResizeSettings& s) {
  Values values;
  const auto given = [&](int i) { return i >= 0 && run.has_input(i) && run.in_size(i) > 0; };
  if (given(s.sizes_input)) {
    values.sizes.assign(run.in<int64_t>(s.sizes_input),
                        run.in<int64_t>(s.sizes_input) + run.in_size(s.sizes_input));
  } else if (given(s.scales_input)) {  // a scalar needs neither
    values.scales =
        as_doubles(ElementType::float32, run.data(s.scales_input), run.in_size(s.scales_input));
  }
  if (given(s.roi_input))
    values.roi =
        as_doubles(run.in_type(s.roi_input), run.data(s.roi_input), run.in_size(s.roi_input));
  return values;
}

std::unique_ptr<Step> changing_step(std::shared_ptr<const Tables> tables, ElementType type) {
  return make_step("resize.by_values", [tables, type](RunContext& run) {
    const kernels::Resize resize =
        tables->make(read_values(run, tables->settings()), run.in_shape(0), run.out_shape(0));
    const int64_t bytes = resize.scratch_bytes(type);
    const RunEnvironment::Scope scope(run.environment());
    run.environment().charge(bytes);
    const Bytes scratch = Bytes::allocate(static_cast<size_t>(bytes));
    resize.run(type, run.data(0), run.out_data(0), const_cast<std::byte*>(scratch.data()),
               run.pool());
  });
}

bool is_given(const PrepareContext& ctx, int i) {
  if (i < 0 || !ctx.has_input(i)) return false;
  const auto count = ctx.in_type(i).element_count();
  return !count || !(*count == 0);
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const ResizeSettings s = resize_settings(ctx);
  const ElementType type = ctx.in_element(0);
  const auto tables = std::make_shared<const Tables>(s);
  if (!kernels::Resize(s.options, {}).supports(type))
    ctx.fail(ErrorCode::unsupported, "cannot interpolate {} elements", name_of(type));
  const bool by_sizes = is_given(ctx, s.sizes_input);
  if (by_sizes && s.scales_input != s.sizes_input && is_given(ctx, s.scales_input)) {
    const auto count = ctx.in_type(s.sizes_input).element_count();
    if (!count || !count->is_constant()) return changing_step(tables, type);
  }
  const Tensor* scales = by_sizes || s.scales_input < 0 ? nullptr : ctx.constant(s.scales_input);
  const bool needs_roi =
      s.options.coordinates == CoordinateMode::tf_crop_and_resize && is_given(ctx, s.roi_input);
  const Tensor* roi = needs_roi ? ctx.constant(s.roi_input) : nullptr;
  // Stretched to given sizes, the sizes of input and output say all.
  const auto sizes = by_sizes && s.policy != AspectRatio::stretch
                         ? constant_numbers(ctx, s.sizes_input)
                         : std::nullopt;
  const bool fixed = (by_sizes ? s.policy == AspectRatio::stretch || sizes : scales != nullptr) &&
                     (!needs_roi || roi);
  if (!fixed) return changing_step(tables, type);
  Values values;
  if (scales) values.scales = as_doubles(*scales);
  if (roi) values.roi = as_doubles(*roi);
  if (sizes) values.sizes = *sizes;
  auto step = fixed_step(tables, std::move(values), type);
  for (const int i : {s.roi_input, s.scales_input, s.sizes_input}) {
    if (i > 0 && ctx.has_input(i)) step->traits().unread_inputs.push_back(i);
  }
  return step;
}

// --- Upgrades -----------------------------------------------------------------------------------

void set_asymmetric(UpgradeContext& ctx, std::string_view nearest) {
  ctx.set_attribute("coordinate_transformation_mode", std::string_view("asymmetric"));
  ctx.set_attribute("nearest_mode", nearest);
}

// Version 10 took the pixel below where it enlarged and the one above where it shrank, axis by
// axis: two nodes, one after the other, where the scales are mixed or not known.
void upgrade_resize_10(UpgradeContext& ctx) {
  const std::string scales = ctx.node().inputs.at(1);
  const Tensor* known = ctx.constant(1);
  bool enlarges = false, shrinks = false;
  if (known && known->element_type() == ElementType::float32) {
    for (const double scale : as_doubles(*known)) (scale < 1 ? shrinks : enlarges) = true;
  } else {
    enlarges = shrinks = true;
  }
  const bool nearest = ctx.old().attr_string("mode", "nearest") == "nearest";
  ctx.node().inputs.resize(1);
  ctx.set_input(2, scales);
  set_asymmetric(ctx, shrinks && !enlarges ? "ceil" : "floor");
  if (!nearest || !(enlarges && shrinks)) return;
  const std::string one = ctx.constant(Tensor::scalar<float>(1), "one");
  const auto text = [](const char* name, const char* value) {
    return string_attribute(name, value);
  };
  const std::string larger =
      ctx.before("Resize", {ctx.node().inputs[0], "", ctx.before("Max", {scales, one})},
                 {text("mode", "nearest"), text("coordinate_transformation_mode", "asymmetric"),
                  text("nearest_mode", "floor")});
  ctx.set_input(0, larger);
  ctx.set_input(2, ctx.before("Min", {scales, one}));
  set_asymmetric(ctx, "ceil");
}

bool is_empty_constant(const UpgradeContext& ctx, size_t i) {
  const Tensor* tensor = ctx.constant(i);
  return tensor != nullptr && tensor->size() == 0;
}

// Versions 11 and 12: empty tensors for absent inputs, scales beside sizes, and
// tf_half_pixel_for_nn, which two of the nearest modes can express.
void upgrade_resize_11(UpgradeContext& ctx) {
  if (ctx.has_input(3) && is_empty_constant(ctx, 3)) ctx.set_input(3, "");
  if (ctx.has_input(3) || is_empty_constant(ctx, 2)) ctx.set_input(2, "");
  if (is_empty_constant(ctx, 1)) ctx.set_input(1, "");
  if (ctx.old().attr_string("coordinate_transformation_mode", "half_pixel") !=
      "tf_half_pixel_for_nn")
    return;
  if (ctx.old().attr_string("mode", "nearest") != "nearest") return;
  const std::string nearest = ctx.old().attr_string("nearest_mode", "round_prefer_floor");
  if (nearest != "floor" && nearest != "round_prefer_floor") return;
  ctx.set_attribute("coordinate_transformation_mode", std::string_view("half_pixel"));
  ctx.set_attribute("nearest_mode",
                    std::string_view(nearest == "floor" ? "round_prefer_ceil" : "ceil"));
}

void upgrade_resize(UpgradeContext& ctx) {
  if (ctx.since() < 11) {
    upgrade_resize_10(ctx);
  } else if (ctx.since() < 13) {
    upgrade_resize_11(ctx);
  }
}

// Upsample is Resize with asymmetric coordinates, the pixel below and the scales in attributes.
void upgrade_upsample(UpgradeContext& ctx) {
  std::string scales;
  const auto old = ctx.old();
  const std::string mode = old.attr_string("mode", "nearest");
  if (ctx.since() < 7) {
    const float height = old.attr_float("height_scale"), width = old.attr_float("width_scale");
    scales = ctx.constant(Tensor::of<float>({1, 1, height, width}, {4}), "scales");
  } else if (ctx.since() < 9) {
    const auto list = old.attr_floats("scales");
    if (!list)
      ctx.fail(ErrorCode::invalid_model,
               "attribute 'scales' is required and absent; add it to the node");
    scales = ctx.constant(Tensor::of<float>(*list, {static_cast<int64_t>(list->size())}), "scales");
  } else {
    scales = ctx.node().inputs.at(1);
  }
  for (const auto* name : {"height_scale", "width_scale", "scales"}) ctx.remove_attribute(name);
  ctx.node().op_type = "Resize";
  ctx.node().inputs.resize(1);
  ctx.set_input(2, scales);
  ctx.set_attribute("mode", std::string_view(mode == "bilinear" ? "linear" : mode));
  set_asymmetric(ctx, "floor");
}

constexpr Operator operators[] = {
    {.name = "Resize",
     .infer = infer,
     .prepare = prepare,
     .upgrade = upgrade_resize,
     .same_since = 13},
    {.name = "Upsample", .infer = infer, .prepare = prepare, .upgrade = upgrade_upsample},
};

}  // namespace
}  // namespace resize_unit

std::span<const Operator> resize_operators() { return resize_unit::operators; }

}  // namespace sardonyx::ops
