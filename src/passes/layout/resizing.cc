// Resize, and convolutions that go before it.
#include <algorithm>
#include <numeric>
#include <utility>

#include "ir/node_values.h"
#include "ir/origin.h"
#include "ir/tensor.h"
#include "ops/internal/node.h"
#include "ops/upgrade_context.h"
#include "passes/layout/layout_walk.h"

namespace sardonyx::passes {

using ops::internal::Conv;

bool LayoutWalk::resize(ir::Node& node) {
  if (!is_nhwc(node.inputs[0]) || !wanted_nhwc_.contains(node.outputs[0])) return false;
  const int64_t rank = rank_of(node.inputs[0]);
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), int64_t{0});
  if (const ir::Attribute* given = node.find("axes"))
    axes.assign(given->ints.begin(), given->ints.end());
  for (int64_t& axis : axes) {
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank) return false;
  }
  if (enlarges_planes(node, axes)) enlarged_.insert(node.outputs[0]);
  for (int64_t& axis : axes) axis = moved(axis, rank);
  std::erase_if(node.attributes, [](const ir::Attribute& a) { return a.name == "axes"; });
  node.attributes.push_back(ops::ints_attribute("axes", std::move(axes)));
  node.inputs[0] = as_nhwc(node.inputs[0]);
  emit(std::move(node));
  return true;
}

bool LayoutWalk::enlarges_planes(ir::Node& node, std::vector<int64_t>& axes) {
  const auto word = [&](std::string_view name, std::string_view fallback) {
    const ir::Attribute* a = node.find(name);
    return a != nullptr && a->s ? std::string_view(*a->s) : fallback;
  };
  const std::string_view mode = word("mode", "nearest");
  const Tensor* given = node.inputs.size() == 3 ? constant(node.inputs[2]) : nullptr;
  if ((mode != "nearest" && mode != "linear") || given == nullptr ||
      word("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize" ||
      given->element_type() != ElementType::float32 || given->rank() != 1 ||
      given->size() != static_cast<int64_t>(axes.size()))
    return false;
  const Tensor held = ir::aligned(*given);
  std::vector<int64_t> planes;
  std::vector<float> scales;
  double growth = 1;
  for (size_t i = 0; i < axes.size(); ++i) {
    const float scale = held.elements<float>()[i];
    if (scale < 1 || (axes[i] < 2 && scale != 1)) return false;
    if (axes[i] < 2) continue;
    planes.push_back(axes[i]), scales.push_back(scale);
    growth *= scale;
  }
  if (!(growth >= 2)) return false;
  axes = std::move(planes);
  node.inputs[1].clear();
  node.inputs[2] = add_constant(Tensor::of<float>(scales, {static_cast<int64_t>(scales.size())}),
                                node.inputs[2]);
  return true;
}

bool LayoutWalk::goes_before_resize(ir::Node& node, const Conv& conv, const Tensor& weights) {
  const std::string x = node.inputs[Conv::x];
  if (!enlarged_.contains(x) || !is_nhwc(x) || uses(x) != 1 || node.outputs.size() != 1 ||
      graph_.nodes.back().outputs[0] != last_.at(x) || !keeps_pixels(node, conv, weights))
    return false;
  const ir::Attribute* mode = graph_.nodes.back().find("mode");
  const bool nearest = mode == nullptr || !mode->s || *mode->s == "nearest";
  if (!nearest && !conv.activation.is_none()) return false;
  if (node.name.empty()) ir::keep_source(node);
  ir::Node resize = std::move(graph_.nodes.back());
  graph_.nodes.pop_back();
  only_nhwc_.erase(x);
  last_.erase(x);
  node.inputs[Conv::x] = resize.inputs[0];
  resize.inputs[0] = names_.make(node.outputs[Conv::y], "small");
  resize.outputs[0] = std::exchange(node.outputs[Conv::y], resize.inputs[0]);
  ops::internal::write(conv, node);
  graph_.nodes.push_back(std::move(node));
  emit(std::move(resize));
  return true;
}

bool LayoutWalk::keeps_pixels(const ir::Node& node, const Conv& conv, const Tensor& weights) {
  const auto all = [](const std::vector<int64_t>& list, int64_t wanted) {
    return std::ranges::all_of(list, [&](int64_t n) { return n == wanted; });
  };
  return std::all_of(weights.shape().begin() + 2, weights.shape().end(),
                     [](int64_t n) { return n == 1; }) &&
         all(conv.window.strides, 1) && all(conv.window.pads, 0) &&
         !ir::has_input(node, Conv::residual);
}

}  // namespace sardonyx::passes
