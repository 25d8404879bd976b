// What the builders of contextual functions share: writing the nodes that stand for one.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/upgrade_context.h"

namespace sardonyx::ops {

using Names = std::vector<std::string>;
using Attributes = std::vector<ir::Attribute>;

// Replaces the node by what is written. Inputs are named by their position; an absent one is "".
class Body {
 public:
  explicit Body(UpgradeContext& ctx) : ctx_(ctx) { ctx_.drop_node(); }

  UpgradeContext& context() const { return ctx_; }
  NodeView node() const { return ctx_.old(); }
  bool has(size_t input) const { return ctx_.has_input(input); }
  std::string input(size_t i) const { return has(i) ? ctx_.node().inputs[i] : std::string(); }
  // A name that no value has.
  std::string fresh_name() const;
  bool wants(size_t output) const { return ctx_.has_output(output); }
  // The rank of an input; fails where nobody knows it.
  int64_t rank(size_t i) const;
  // The known dimension of an input of known rank; null where it is open.
  const ir::Dim* dim(size_t i, size_t axis) const;

  // A node with one output; returns that.
  std::string op(std::string_view op, Names inputs, Attributes attributes = {}) {
    return ctx_.before(op, std::move(inputs), std::move(attributes));
  }
  // The same with several outputs.
  Names several(std::string_view op, Names inputs, size_t outputs, Attributes attributes = {});
  // A node of any number of outputs that are named already; absent ones are "".
  void node_for(std::string_view op, Names inputs, Names outputs, Attributes attributes = {});
  // The node that makes an output of the function, if that is wanted.
  void give(size_t output, std::string_view op, Names inputs, Attributes attributes = {});

  std::string ints(const std::vector<int64_t>& values) {
    return ctx_.constant_ints(values, "sizes");
  }
  // A scalar in the type of an input.
  std::string number(float value, size_t like_input) { return ctx_.scalar_like(value, like_input); }
  std::string reshape(std::string value, const std::vector<int64_t>& shape) {
    return op("Reshape", {std::move(value), ints(shape)});
  }
  std::string transpose(std::string value, std::vector<int64_t> order) {
    return op("Transpose", {std::move(value)}, {ints_attribute("perm", std::move(order))});
  }
  std::string unsqueeze(std::string value, const std::vector<int64_t>& axes) {
    return op("Unsqueeze", {std::move(value), ints(axes)});
  }
  // [begin, end) along one axis.
  std::string slice(std::string value, int64_t begin, int64_t end, int64_t axis) {
    return op("Slice", {std::move(value), ints({begin}), ints({end}), ints({axis})});
  }
  // The one slice at a position, without its axis.
  std::string take(std::string value, int64_t position, int64_t axis);
  // The size along an axis, as a vector of one.
  std::string size_of(std::string value, int64_t axis) {
    return op("Shape", {std::move(value)},
              {int_attribute("start", axis), int_attribute("end", axis + 1)});
  }
  std::string cast(std::string value, ElementType to) {
    return op("Cast", {std::move(value)}, {int_attribute("to", static_cast<int64_t>(to))});
  }

 private:
  UpgradeContext& ctx_;
};

// The activation that FusedConv and FusedGemm name, with its parameters as alpha, beta (gamma is of
// none). Returns the value itself where `name` is empty; fails on a name nobody knows.
std::string activate(Body& body, const std::string& value, const std::string& name,
                     const std::vector<float>& parameters);

}  // namespace sardonyx::ops
