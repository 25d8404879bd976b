// What moves elements, or takes axes together.
#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "ir/node_values.h"
#include "ir/origin.h"
#include "ir/tensor.h"
#include "ops/internal/images.h"
#include "ops/internal/node.h"
#include "ops/internal/products.h"
#include "ops/upgrade_context.h"
#include "passes/attributes.h"
#include "passes/layout/layout.h"
#include "passes/layout/layout_walk.h"

namespace sardonyx::passes {

using ops::internal::Conv;
using ops::internal::DepthToSpace;

bool LayoutWalk::concat(ir::Node& node) {
  const int64_t rank = rank_of(node.outputs[0]);
  for (const std::string& input : node.inputs) {
    if (rank_of(input) != rank || constant(input) != nullptr) return false;
  }
  if (!rename_axis(node, rank)) return false;
  for (std::string& input : node.inputs) input = as_nhwc(input);
  emit(std::move(node));
  return true;
}

bool LayoutWalk::rename_axis(ir::Node& node, int64_t rank) {
  int64_t axis = attr_int(node, "axis", node.op_type == "Split" ? 0 : -1);
  axis += axis < 0 ? rank : 0;
  if (axis < 0 || axis >= rank) return false;
  std::erase_if(node.attributes, [](const ir::Attribute& a) { return a.name == "axis"; });
  node.attributes.push_back(ops::int_attribute("axis", moved(axis, rank)));
  return true;
}

bool LayoutWalk::along_axis(ir::Node& node) {
  if (!rename_axis(node, rank_of(node.inputs[0]))) return false;
  node.inputs[0] = as_nhwc(node.inputs[0]);
  emit(std::move(node));
  return true;
}

std::optional<std::vector<int64_t>> LayoutWalk::moved_axes(const ir::Node& node, size_t input,
                                                           int64_t rank, size_t all) const {
  std::vector<int64_t> axes(all);
  if (input < node.inputs.size() && !node.inputs[input].empty()) {
    const auto given = integers(node.inputs[input]);
    if (!given) return std::nullopt;
    axes = *given;
  } else {
    std::iota(axes.begin(), axes.end(), int64_t{0});
  }
  for (int64_t& axis : axes) {
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank) return std::nullopt;
    axis = moved(axis, rank);
  }
  return axes;
}

bool LayoutWalk::slice(ir::Node& node) {
  const int64_t rank = rank_of(node.inputs[0]);
  const auto starts = node.inputs.size() > 2 ? integers(node.inputs[1]) : std::nullopt;
  if (!starts) return false;
  const auto axes = moved_axes(node, 3, rank, starts->size());
  if (!axes) return false;
  node.inputs.resize(std::max<size_t>(node.inputs.size(), 4));
  node.inputs[0] = as_nhwc(node.inputs[0]);
  node.inputs[3] = add_integers(*axes, "axes");
  emit(std::move(node));
  return true;
}

bool LayoutWalk::pad(ir::Node& node) {
  const int64_t rank = rank_of(node.inputs[0]);
  const auto pads = node.inputs.size() > 1 ? integers(node.inputs[1]) : std::nullopt;
  if (!pads) return false;
  const auto axes = moved_axes(node, 3, rank, pads->size() / 2);
  if (!axes) return false;
  node.inputs.resize(4);
  node.inputs[0] = as_nhwc(node.inputs[0]);
  node.inputs[3] = add_integers(*axes, "axes");
  emit(std::move(node));
  return true;
}

bool LayoutWalk::depth_to_space(ir::Node& node) {
  using ops::internal::DepthMode;
  DepthToSpace op = ops::internal::depth_to_space_of(ops::NodeView(node, nullptr));
  if (op.mode == DepthMode::CRD && puts_blocks_first(node, op.blocksize)) op.mode = DepthMode::DCR;
  ops::internal::write(op, node);
  node.inputs[0] = as_nhwc(node.inputs[0]);
  emit(std::move(node));
  return true;
}

bool LayoutWalk::puts_blocks_first(const ir::Node& node, int64_t block) {
  const std::string& x = node.inputs[0];
  if (!is_nhwc(x) || uses(x) != 1 || graph_.nodes.empty()) return false;
  ir::Node& conv = graph_.nodes.back();
  if (!ops::internal::is<Conv>(conv) || conv.outputs[Conv::y] != last_.at(x)) return false;
  // Of one with channels first, which a Transpose takes for channels last, they are no channels.
  const auto op = ops::internal::from_node<Conv>(conv);
  if (op.group != 1 || !op.nhwc) return false;
  const bool has_bias = ir::has_input(conv, Conv::bias);
  const Tensor* weights = constant(ir::input(conv, Conv::w));
  const Tensor* bias = has_bias ? constant(conv.inputs[Conv::bias]) : nullptr;
  if (weights == nullptr || (has_bias && bias == nullptr) || ir::has_input(conv, Conv::residual) ||
      ir::has_input(conv, Conv::factors) || block < 2 || block > weights->shape()[0] ||
      weights->shape()[0] % (block * block) != 0)
    return false;
  std::string& w = conv.inputs[Conv::w];
  w = add_constant(blocks_first(*weights, block * block), w);
  if (bias != nullptr) {
    std::string& b = conv.inputs[Conv::bias];
    b = add_constant(blocks_first(*bias, block * block), b);
  }
  return true;
}

Tensor LayoutWalk::blocks_first(const Tensor& rows, int64_t blocks) {
  const Tensor held = ir::aligned(rows);
  Tensor result(held.element_type(), held.shape());
  const int64_t n = held.shape()[0] / blocks;
  const auto bytes = static_cast<int64_t>(held.byte_size()) / held.shape()[0];
  const auto* from = static_cast<const std::byte*>(held.data());
  auto* to = static_cast<std::byte*>(result.mutable_data());
  for (int64_t block = 0; block < blocks; ++block)
    for (int64_t i = 0; i < n; ++i)
      to = std::copy_n(from + (i * blocks + block) * bytes, bytes, to);
  return result;
}

bool LayoutWalk::reduction(ir::Node& node) {
  const int64_t rank = rank_of(node.inputs[0]);
  if (!ir::has_input(node, 1)) return false;
  auto axes = moved_axes(node, 1, rank, 0);
  if (!axes || axes->empty()) return false;
  std::ranges::sort(*axes);
  const bool keeps = attr_int(node, "keepdims", 1) != 0;
  // Without the spatial axes both layouts are one.
  std::vector<int64_t> spatial(static_cast<size_t>(rank - 2));
  std::iota(spatial.begin(), spatial.end(), int64_t{1});
  if (!keeps && *axes != spatial) return false;
  node.inputs[0] = as_nhwc(node.inputs[0]);
  node.inputs[1] = add_integers(*axes, "axes");
  if (keeps) {
    emit(std::move(node));
  } else {
    graph_.nodes.push_back(std::move(node));
  }
  return true;
}

bool LayoutWalk::transposed(ir::Node& node) {
  const ir::Attribute* given = node.find("perm");
  const int64_t rank = rank_of(node.inputs[0]);
  if (given == nullptr || rank < 3 || static_cast<int64_t>(given->ints.size()) != rank)
    return false;
  std::vector<int64_t> perm(given->ints.begin(), given->ints.end());
  if (!std::ranges::all_of(perm, [&](int64_t axis) { return axis >= 0 && axis < rank; }))
    return false;
  if (is_nhwc(node.inputs[0])) {
    for (int64_t& axis : perm) axis = moved(axis, rank);
    node.inputs[0] = last_.at(node.inputs[0]);
    if (std::ranges::is_sorted(perm)) {
      ir::keep_source(node);
      node.op_type = "Identity";
      node.attributes.clear();
    } else {
      node.attributes = {ops::ints_attribute("perm", perm)};
    }
    graph_.nodes.push_back(std::move(node));
    return true;
  }
  // What it was made from is its twin.
  if (is_image(node.outputs[0]) && perm == to_channels_first(rank)) {
    need_first(node.inputs[0]);
    last_[node.outputs[0]] = node.inputs[0];
    only_nhwc_.insert(node.outputs[0]);
    return true;
  }
  return false;
}

size_t LayoutWalk::shuffle(std::vector<ir::Node>& nodes, size_t i) {
  if (i + 2 >= nodes.size() || nodes[i].op_type != "Reshape" || !nodes[i].domain.empty() ||
      !is_nhwc(nodes[i].inputs[0]) || rank_of(nodes[i].inputs[0]) != 4)
    return 0;
  ir::Node &split = nodes[i], &swap = nodes[i + 1], &join = nodes[i + 2];
  const std::string x = split.inputs[0];
  const auto follows = [&](const ir::Node& node, std::string_view op, const ir::Node& before) {
    return node.op_type == op && node.domain.empty() && node.inputs[0] == before.outputs[0] &&
           uses(before.outputs[0]) == 1;
  };
  if (!follows(swap, "Transpose", split) || !follows(join, "Reshape", swap)) return 0;
  const auto *groups = shape_of(split.outputs[0]), *before = shape_of(x),
             *after = shape_of(join.outputs[0]);
  const ir::Attribute* perm = swap.find("perm");
  if (groups == nullptr || before == nullptr || after == nullptr || groups->size() != 5 ||
      *before != *after || perm == nullptr)
    return 0;
  const std::vector<int64_t> order(perm->ints.begin(), perm->ints.end());
  const auto group = (*groups)[1].value(), each = (*groups)[2].value();
  if (order != std::vector<int64_t>{0, 2, 1, 3, 4} || !group || !each ||
      (*groups)[0] != (*before)[0] || (*groups)[3] != (*before)[2] || (*groups)[4] != (*before)[3])
    return 0;
  split.inputs = {as_nhwc(x), add_integers({0, 0, 0, *group, *each}, "groups")};
  split.attributes.clear();
  swap.attributes = {ops::ints_attribute("perm", {0, 1, 2, 4, 3})};
  join.inputs[1] = add_integers({0, 0, 0, *group * *each}, "channels");
  join.attributes.clear();
  graph_.nodes.push_back(std::move(split));
  graph_.nodes.push_back(std::move(swap));
  emit(std::move(join));
  return 3;
}

}  // namespace sardonyx::passes
