// What bodies that read images at computed places share. Internal to the gradients.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "autodiff/bodies.h"

namespace sardonyx::autodiff {

// Where the samples of one axis come from: for each tap an index and a weight of one shape.
struct AxisTaps {
  Names index;   // int64, within the axis
  Names weight;  // 0 where the tap is outside
};

// Arithmetic on values by name. Sizes are scalars in the type of the places.
class Sampling {
 public:
  explicit Sampling(GradientEmitter& e) : w_(e.services()) {}

  NodeWriter& writer() { return w_; }
  std::string op(std::string_view name, Names inputs, std::vector<ir::Attribute> attributes = {}) {
    return w_.add(name, std::move(inputs), std::move(attributes));
  }
  std::string add(const std::string& a, const std::string& b) { return op("Add", {a, b}); }
  std::string sub(const std::string& a, const std::string& b) { return op("Sub", {a, b}); }
  std::string mul(const std::string& a, const std::string& b) { return op("Mul", {a, b}); }
  std::string div(const std::string& a, const std::string& b) { return op("Div", {a, b}); }
  std::string where(const std::string& c, const std::string& a, const std::string& b) {
    return op("Where", {c, a, b});
  }
  std::string number(double value, const std::string& like) {
    return w_.number(static_cast<float>(value), like);
  }
  std::string plus(const std::string& a, double value) { return add(a, number(value, a)); }
  std::string times(const std::string& a, double value) { return mul(a, number(value, a)); }
  std::string like(const std::string& value, const std::string& other) {
    return op("CastLike", {value, other});
  }
  std::string whole(const std::string& value) {
    return op("Cast", {value}, {ops::int_attribute("to", 7)});
  }
  std::string clip(const std::string& value, const std::string& low, const std::string& high) {
    return op("Min", {op("Max", {value, low}), high});
  }
  std::string wider(const std::string& value, std::vector<int64_t> axes) {
    return op("Unsqueeze", {value, w_.ints(std::move(axes))});
  }
  std::string shaped(const std::string& value, const std::string& shape) {
    return op("Reshape", {value, shape});
  }
  std::string transposed(const std::string& value, std::vector<int64_t> order) {
    return op("Transpose", {value}, {ops::ints_attribute("perm", std::move(order))});
  }
  std::string joined(Names parts, int64_t axis) {
    return op("Concat", std::move(parts), {ops::int_attribute("axis", axis)});
  }
  std::string summed(const std::string& value, std::vector<int64_t> axes) {
    return op("ReduceSum", {value, w_.ints(std::move(axes))}, {ops::int_attribute("keepdims", 0)});
  }
  std::string largest(const std::string& value, std::vector<int64_t> axes) {
    return op("ReduceMax", {value, w_.ints(std::move(axes))}, {ops::int_attribute("keepdims", 0)});
  }
  // The size of an axis: a scalar of int64.
  std::string size(const std::string& value, int64_t axis) {
    return op("Gather", {op("Shape", {value}), w_.constant(Tensor::scalar<int64_t>(axis))},
              {ops::int_attribute("axis", 0)});
  }
  // 0, 1, … of a scalar's count.
  std::string counted(const std::string& count) {
    return op("Range", {w_.constant(Tensor::scalar<int64_t>(0)), count,
                        w_.constant(Tensor::scalar<int64_t>(1))});
  }
  // [N, C, …] as rows of channels: [N * …, C].
  std::string pixel_rows(const std::string& x, int64_t rank);
  // The taps of all axes, all their products: rows in an image of these sizes, and weights, with
  // the taps in a new last dimension. `axes` broadcast against each other.
  struct Taps {
    std::string row, weight;
  };
  Taps product(const std::vector<AxisTaps>& axes, const Names& sizes);
  // The rows at these places by their weights: […, taps, C].
  std::string weighted_rows(const std::string& rows, const Taps& taps);

 private:
  NodeWriter w_;
};

}  // namespace sardonyx::autodiff
