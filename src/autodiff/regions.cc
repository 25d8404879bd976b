// RoiAlign and MaxRoiPool as reads of rows of channels.
#include <limits>

#include "autodiff/sampling.h"

namespace sardonyx::autodiff {

using ops::int_attribute;

namespace {

// Bins of one axis: [regions, bins, samples], and which samples a region has: [regions, 1, samples]
// or of the shape of the bins.
struct Bins {
  AxisTaps taps;
  std::string valid, count;
};

// Taps down and across become [regions, bins, samples, 1, 1] and [regions, 1, 1, bins, samples].
class Regions {
 public:
  Regions(const ir::Node& node, GradientEmitter& e)
      : node_(node), view_(node, schema::newest(node.domain, node.op_type)), s_(e) {
    x_ = node.inputs[0], rois_ = node.inputs[1];
    height_ = s_.size(x_, 2), width_ = s_.size(x_, 3);
  }

  std::vector<ir::Node> align() {
    const double scale = static_cast<double>(view_.attr_float("spatial_scale", 1));
    half_pixel_ = view_.attr_string("coordinate_transformation_mode", "half_pixel") == "half_pixel";
    const std::string scaled = s_.times(rois_, scale);
    const Names edges = columns(half_pixel_ ? s_.plus(scaled, -0.5) : scaled, 0, 4);
    const Bins down = aligned(edges[1], edges[3], view_.attr_int("output_height", 1), height_),
               across = aligned(edges[0], edges[2], view_.attr_int("output_width", 1), width_);
    const std::string values = sampled(down, across, node_.inputs[2]);
    const std::string valid = s_.op("And", {tall(down.valid), s_.wider(across.valid, {1, 2})});
    if (view_.attr_string("mode", "avg") == "max")
      return finish(largest(s_.largest(values, {5}), valid));
    const std::string kept = s_.mul(values, s_.wider(s_.like(valid, x_), {5, 6}));
    const std::string one = s_.number(1, down.count);
    const std::string count = s_.op("Max", {s_.mul(down.count, across.count), one});
    return finish(s_.div(s_.summed(kept, {2, 4, 5}), s_.wider(s_.like(count, x_), {1, 2})));
  }

  std::vector<ir::Node> pool() {
    const auto shape = view_.attr_ints("pooled_shape").value_or(std::vector<int64_t>());
    if (shape.size() != 2)
      view_.fail("pooled_shape must have two entries; it has {}", shape.size());
    const double scale = static_cast<double>(view_.attr_float("spatial_scale", 1));
    const Names parts = columns(rois_, 0, 5);
    Names edges;
    for (size_t i = 1; i < 5; ++i) edges.push_back(rounded(s_.times(parts[i], scale)));
    const Bins down = pooled(edges[1], edges[3], shape.at(0), height_),
               across = pooled(edges[0], edges[2], shape.at(1), width_);
    const std::string images = s_.op("Squeeze", {s_.whole(parts[0]), s_.writer().ints({1})});
    const std::string values = s_.largest(sampled(down, across, images), {5});
    const std::string valid = s_.op("And", {tall(down.valid), s_.wider(across.valid, {1, 2})});
    return finish(largest(values, valid));
  }

 private:
  // Columns of a table, each [regions, 1].
  Names columns(const std::string& table, int64_t first, int64_t count) {
    Names parts;
    for (int64_t i = first; i < first + count; ++i)
      parts.push_back(s_.op("Gather", {table, s_.writer().ints({i})}, {int_attribute("axis", 1)}));
    return parts;
  }
  std::string tall(const std::string& value) { return s_.wider(value, {3, 4}); }

  // Halves away from zero.
  std::string rounded(const std::string& value) {
    const std::string size = s_.op("Floor", {s_.plus(s_.op("Abs", {value}), 0.5)});
    return s_.mul(size, s_.op("Sign", {value}));
  }
  std::string numbers(int64_t count, const std::string& like) {
    return s_.like(s_.counted(s_.writer().constant(Tensor::scalar<int64_t>(count))), like);
  }
  // 0, 1, … up to the largest of some counts.
  std::string up_to_largest(const std::string& counts) {
    const std::string all =
        s_.joined({s_.shaped(s_.whole(counts), s_.writer().ints({-1})), s_.writer().ints({1})}, 0);
    return s_.like(s_.counted(s_.largest(all, {0})), counts);
  }

  Bins aligned(const std::string& begin, const std::string& end, int64_t bins,
               const std::string& size) {
    std::string extent = s_.sub(end, begin);
    if (!half_pixel_) extent = s_.op("Max", {extent, s_.number(1, extent)});
    const std::string bin = s_.div(extent, s_.number(static_cast<double>(bins), extent));
    const int64_t ratio = view_.attr_int("sampling_ratio", 0);
    Bins made;
    std::string steps;
    if (ratio > 0) {
      made.count = s_.plus(s_.times(bin, 0), static_cast<double>(ratio));
      steps = numbers(ratio, begin);
    } else {
      made.count = s_.op("Max", {s_.op("Ceil", {bin}), s_.number(0, bin)});
      steps = up_to_largest(made.count);
    }
    made.valid = s_.op("Less", {steps, s_.wider(made.count, {2})});
    const std::string divisor = s_.op("Max", {made.count, s_.number(1, bin)});
    const std::string step = s_.wider(s_.div(bin, divisor), {2});
    const std::string at = s_.mul(s_.wider(numbers(bins, begin), {1}), s_.wider(bin, {2}));
    const std::string within = s_.mul(s_.plus(steps, 0.5), step);
    made.taps = neighbours(s_.add(s_.add(s_.wider(begin, {2}), at), within), s_.like(size, begin));
    return made;
  }

  // The two elements around each place; none where it lies outside.
  AxisTaps neighbours(const std::string& place, const std::string& size) {
    const std::string inside =
        s_.like(s_.op("And", {s_.op("GreaterOrEqual", {place, s_.number(-1, place)}),
                              s_.op("LessOrEqual", {place, size})}),
                place);
    const std::string zero = s_.number(0, place), last = s_.plus(size, -1);
    const std::string held = s_.op("Max", {place, zero});
    const std::string low = s_.op("Min", {s_.op("Floor", {held}), last}),
                      high = s_.op("Min", {s_.plus(low, 1), last});
    const std::string at_end = s_.op("GreaterOrEqual", {low, last});
    const std::string part = s_.where(at_end, zero, s_.sub(held, low));
    const std::string rest = s_.sub(s_.number(1, part), part);
    return {{s_.whole(low), s_.whole(high)}, {s_.mul(rest, inside), s_.mul(part, inside)}};
  }

  Bins pooled(const std::string& begin, const std::string& end, int64_t bins,
              const std::string& size) {
    const std::string extent = s_.op("Max", {s_.plus(s_.sub(end, begin), 1), s_.number(1, begin)});
    const std::string each = s_.div(extent, s_.number(static_cast<double>(bins), extent));
    const std::string at = numbers(bins, begin);
    const std::string limit = s_.like(size, begin), zero = s_.number(0, begin);
    const std::string first =
        s_.clip(s_.add(begin, s_.op("Floor", {s_.mul(at, each)})), zero, limit);
    const std::string last =
        s_.clip(s_.add(begin, s_.op("Ceil", {s_.mul(s_.plus(at, 1), each)})), zero, limit);
    const std::string steps = up_to_largest(s_.sub(last, first));
    const std::string place = s_.add(s_.wider(first, {2}), steps);
    Bins made;
    made.valid = s_.op("Less", {place, s_.wider(last, {2})});
    made.taps.index = {s_.whole(s_.op("Min", {place, s_.plus(limit, -1)}))};
    made.taps.weight = {s_.plus(s_.times(place, 0), 1)};
    return made;
  }

  // [regions, bins, samples, bins, samples, taps, channels].
  std::string sampled(const Bins& down, const Bins& across, const std::string& images) {
    AxisTaps y, x;
    for (const std::string& index : down.taps.index) y.index.push_back(tall(index));
    for (const std::string& weight : down.taps.weight) y.weight.push_back(tall(weight));
    for (const std::string& index : across.taps.index) x.index.push_back(s_.wider(index, {1, 2}));
    for (const std::string& weight : across.taps.weight)
      x.weight.push_back(s_.wider(weight, {1, 2}));
    Sampling::Taps taps = s_.product({y, x}, {height_, width_});
    const std::string image = s_.mul(images, s_.mul(height_, width_));
    taps.row = s_.add(taps.row, s_.wider(image, {1, 2, 3, 4, 5}));
    return s_.weighted_rows(s_.pixel_rows(x_, 4), taps);
  }

  // Of the samples that a bin has; 0 where it has none.
  std::string largest(const std::string& values, const std::string& valid) {
    const std::string none = s_.number(-std::numeric_limits<double>::infinity(), values);
    const std::string kept = s_.where(s_.wider(valid, {-1}), values, none);
    const std::string count = s_.summed(s_.wider(s_.like(valid, values), {-1}), {2, 4});
    const std::string some = s_.op("Greater", {count, s_.number(0, values)});
    return s_.where(some, s_.largest(kept, {2, 4}), s_.number(0, values));
  }

  // [regions, down, across, channels] becomes the output.
  std::vector<ir::Node> finish(const std::string& value) {
    s_.writer().add_to({node_.outputs[0]}, "Transpose", {value},
                       {ops::ints_attribute("perm", {0, 3, 1, 2})});
    return s_.writer().take();
  }

  const ir::Node& node_;
  ops::NodeView view_;
  Sampling s_;
  std::string x_, rois_, height_, width_;
  bool half_pixel_ = true;
};

}  // namespace

std::vector<ir::Node> roi_align_body(const ir::Node& node, GradientEmitter& e) {
  return Regions(node, e).align();
}

std::vector<ir::Node> max_roi_pool_body(const ir::Node& node, GradientEmitter& e) {
  return Regions(node, e).pool();
}

}  // namespace sardonyx::autodiff
