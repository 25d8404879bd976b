#include "ops/shared/resize_sizes.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

namespace sardonyx::ops {
namespace {

using kernels::CoordinateMode;
using kernels::NearestMode;
using kernels::ResizeMode;

template <class Enum>
struct Word {
  std::string_view word;
  Enum meaning;
};

template <class Enum, size_t n>
Enum meaning_of(const NodeView& node, std::string_view attribute, std::string_view fallback,
                const Word<Enum> (&words)[n]) {
  const std::string given = node.attr_string(attribute, fallback);
  std::string legal;
  for (const auto& [word, meaning] : words) {
    if (word == given) return meaning;
    if (!legal.empty()) legal += ", ";
    legal += word;
  }
  node.fail("{} must be one of {}; got '{}'", attribute, legal, given);
}

// tf_half_pixel_for_nn left the standard with version 13: what an upgrade could not express by
// another mode keeps it.
constexpr Word<CoordinateMode> coordinate_words[] = {
    {"half_pixel", CoordinateMode::half_pixel},
    {"half_pixel_symmetric", CoordinateMode::half_pixel_symmetric},
    {"pytorch_half_pixel", CoordinateMode::pytorch_half_pixel},
    {"align_corners", CoordinateMode::align_corners},
    {"asymmetric", CoordinateMode::asymmetric},
    {"tf_crop_and_resize", CoordinateMode::tf_crop_and_resize},
    {"tf_half_pixel_for_nn", CoordinateMode::tf_half_pixel_for_nn},
};
constexpr Word<ResizeMode> mode_words[] = {
    {"nearest", ResizeMode::nearest}, {"linear", ResizeMode::linear}, {"cubic", ResizeMode::cubic}};
constexpr Word<NearestMode> nearest_words[] = {
    {"round_prefer_floor", NearestMode::round_prefer_floor},
    {"round_prefer_ceil", NearestMode::round_prefer_ceil},
    {"floor", NearestMode::floor},
    {"ceil", NearestMode::ceil},
};
constexpr Word<AspectRatio> policy_words[] = {{"stretch", AspectRatio::stretch},
                                              {"not_larger", AspectRatio::not_larger},
                                              {"not_smaller", AspectRatio::not_smaller}};

struct Ratio {
  int64_t over, under;
};

// What the scale stands for, where that is a fraction of small numbers: 0.6 is 3/5. And where the
// float32 product of a size and the scale, rounded down, is that of the size and the fraction for
// all sizes below 2^23/over: both products are off by 2^-24 of themselves at most, less than what
// lies between the fraction's and the next whole number. Where the fraction's is a whole number,
// the float's must not fall below it: its scale is no smaller, or by so little that the product is
// rounded to it.
std::optional<Ratio> ratio_of(float scale) {
  constexpr int64_t max_under = 1024;
  constexpr double max_over = 1e6, min_loss = 0x1p-25;
  if (!(scale > 0) || static_cast<double>(scale) > max_over) return std::nullopt;
  // The fractions that come closer to the scale, each after two before it.
  Ratio before{0, 1}, last{1, 0};
  double rest = static_cast<double>(scale);
  while (true) {
    const double whole = std::floor(rest);
    if (whole > max_over) return std::nullopt;
    const auto times = static_cast<int64_t>(whole);
    const Ratio next{times * last.over + before.over, times * last.under + before.under};
    if (next.under > max_under || static_cast<double>(next.over) > max_over) return std::nullopt;
    const double fraction = static_cast<double>(next.over) / static_cast<double>(next.under);
    if (static_cast<float>(fraction) == scale) {
      const double loss = 1 - static_cast<double>(scale) / fraction;
      return loss <= min_loss ? std::optional(next) : std::nullopt;
    }
    if (rest == whole) return std::nullopt;
    rest = 1 / (rest - whole);
    before = std::exchange(last, next);
  }
}

}  // namespace

ResizeSettings resize_settings(const NodeView& node) {
  ResizeSettings s;
  if (node.node().op_type == "Upsample") {
    s.options.mode =
        node.attr_string("mode", "nearest") == "nearest" ? ResizeMode::nearest : ResizeMode::linear;
    s.options.coordinates = CoordinateMode::asymmetric;
    s.options.nearest = NearestMode::floor;
    s.scales_input = 1, s.sizes_input = -1, s.roi_input = -1;
    return s;
  }
  s.options.mode = meaning_of(node, "mode", "nearest", mode_words);
  s.options.coordinates =
      meaning_of(node, "coordinate_transformation_mode", "half_pixel", coordinate_words);
  s.options.nearest = meaning_of(node, "nearest_mode", "round_prefer_floor", nearest_words);
  s.options.cubic_a = node.attr_float("cubic_coeff_a", -0.75f);
  s.options.exclude_outside = node.attr_int("exclude_outside", 0) != 0;
  s.options.antialias = node.attr_int("antialias", 0) != 0;
  s.options.extrapolation_value = node.attr_float("extrapolation_value", 0.0f);
  s.policy = meaning_of(node, "keep_aspect_ratio_policy", "stretch", policy_words);
  s.axes = node.attr_ints("axes");
  return s;
}

std::vector<int64_t> resized_axes(const NodeView& node, const ResizeSettings& settings,
                                  int64_t rank) {
  std::vector<int64_t> axes;
  if (!settings.axes) {
    for (int64_t i = 0; i < rank; ++i) axes.push_back(i);
    return axes;
  }
  std::vector<bool> used(static_cast<size_t>(rank), false);
  for (const int64_t axis : *settings.axes) {
    axes.push_back(node.normalized_axis(axis, rank, "axes"));
    if (used[static_cast<size_t>(axes.back())])
      node.fail("axes must name each axis once; axis {} occurs twice", axes.back());
    used[static_cast<size_t>(axes.back())] = true;
  }
  return axes;
}

int64_t scaled_size(int64_t size, double extent, float scale) {
  if (extent == 1 && size > 1 << 23) {
    int64_t product = 0;
    const auto ratio = ratio_of(scale);
    if (ratio && !__builtin_mul_overflow(size, ratio->over, &product))
      return product / ratio->under;
  }
  const float product =
      extent == 1
          ? static_cast<float>(size) * scale
          : static_cast<float>(static_cast<double>(size) * extent * static_cast<double>(scale));
  if (!(product >= 0 && product < 9e15f)) {  // NaN too
    throw Error(ErrorCode::run_failed,
                fmt::format("Resize: a size of {} scaled by {} is no size", size, scale));
  }
  return static_cast<int64_t>(std::floor(product));
}

std::optional<Dim> scaled_size(const Dim& size, float scale) {
  const auto ratio = ratio_of(scale);
  return ratio ? std::optional(floor_div(size * Dim(ratio->over), ratio->under)) : std::nullopt;
}

std::optional<Dim> largest_scaled(const Dim& size, float scale) {
  // What lies between the scale and the next whole number is more than what rounding adds.
  constexpr float most = 1e6f;
  if (scale > most) return std::nullopt;
  return size * Dim(static_cast<int64_t>(std::ceil(scale)));
}

std::vector<ResizeTarget> resize_targets(AspectRatio policy, const std::vector<int64_t>& in,
                                         const std::vector<int64_t>& sizes) {
  std::vector<ResizeTarget> targets;
  double common = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    const double scale =
        in[i] == 0 ? 1 : static_cast<double>(sizes[i]) / static_cast<double>(in[i]);
    targets.push_back({sizes[i], scale});
    const bool first = i == 0;
    common = first                               ? scale
             : policy == AspectRatio::not_larger ? std::min(common, scale)
                                                 : std::max(common, scale);
  }
  if (policy == AspectRatio::stretch) return targets;
  for (size_t i = 0; i < in.size(); ++i) {
    targets[i] = {static_cast<int64_t>(std::floor(common * static_cast<double>(in[i]) + 0.5)),
                  common};
  }
  return targets;
}

}  // namespace sardonyx::ops
