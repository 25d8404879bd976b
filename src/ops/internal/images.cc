#include "ops/internal/images.h"

#include "ops/internal/node.h"

namespace sardonyx::ops::internal {
namespace {

int64_t positive(const NodeView& node, std::string_view name, int64_t number) {
  if (number < 1) node.fail("{} must be at least 1; got {}", name, number);
  return number;
}

int64_t checked_blocksize(const NodeView& node, int64_t block) {
  if (block < 1 || block > INT32_MAX) {
    node.fail("blocksize must be in [1, {}]; got {}", INT32_MAX, block);
  }
  return block;
}

// A node of an internal pool.
template <class Pool>
Pool pool_of(const NodeView& node) {
  auto pool = from_node<Pool>(node.node());
  check_window(node, pool.window);
  return pool;
}

DepthMode read_mode(const NodeView& node) {
  DepthMode mode = DepthMode::DCR;
  const std::string text = node.attr_string("mode", "DCR");
  if (!from_text(text, mode)) node.fail("mode must be DCR or CRD; got '{}'", text);
  return mode;
}

// Calls work(op) with what the node is, where it is an internal operator that scales channels.
template <class Work>
void for_scaling(const ir::Node& node, const Work& work) {
  if (is<ScaleShift>(node)) work(from_node<ScaleShift>(node));
  if (is<InstanceNormalization>(node)) work(from_node<InstanceNormalization>(node));
  if (is<GroupNormalization>(node)) work(from_node<GroupNormalization>(node));
}

}  // namespace

AveragePool average_pool_of(const NodeView& node) {
  if (ir::is_internal(node.node())) return pool_of<AveragePool>(node);
  AveragePool pool;
  pool.window = read_window(node, WindowKind::pool);
  pool.count_include_pad = node.attr_int("count_include_pad", 0) != 0;
  return pool;
}

MaxPool max_pool_of(const NodeView& node) {
  if (ir::is_internal(node.node())) return pool_of<MaxPool>(node);
  return {.window = read_window(node, WindowKind::pool)};
}

InstanceNormalization instance_normalization_of(const NodeView& node) {
  if (ir::is_internal(node.node())) return from_node<InstanceNormalization>(node.node());
  InstanceNormalization norm;
  norm.epsilon = node.attr_float("epsilon", norm.epsilon);
  return norm;
}

GroupNormalization group_normalization_of(const NodeView& node) {
  GroupNormalization norm;
  if (ir::is_internal(node.node())) {
    norm = from_node<GroupNormalization>(node.node());
    positive(node, "num_groups", norm.num_groups);
    return norm;
  }
  norm.num_groups = positive(node, "num_groups", node.attr_int("num_groups"));
  norm.epsilon = node.attr_float("epsilon", norm.epsilon);
  return norm;
}

LRN lrn_of(const NodeView& node) {
  LRN lrn;
  if (ir::is_internal(node.node())) {
    lrn = from_node<LRN>(node.node());
    positive(node, "size", lrn.size);
    return lrn;
  }
  lrn.size = positive(node, "size", node.attr_int("size"));
  lrn.alpha = node.attr_float("alpha", lrn.alpha);
  lrn.beta = node.attr_float("beta", lrn.beta);
  lrn.bias = node.attr_float("bias", lrn.bias);
  return lrn;
}

DepthToSpace depth_to_space_of(const NodeView& node) {
  if (!ir::is_internal(node.node()))
    return {checked_blocksize(node, node.attr_int("blocksize")), read_mode(node)};
  const auto op = from_node<DepthToSpace>(node.node());
  checked_blocksize(node, op.blocksize);
  return op;
}

SpaceToDepth space_to_depth_of(const NodeView& node) {
  if (!ir::is_internal(node.node()))
    return {checked_blocksize(node, node.attr_int("blocksize")), read_mode(node)};
  const auto op = from_node<SpaceToDepth>(node.node());
  checked_blocksize(node, op.blocksize);
  return op;
}

bool make_nhwc_form(ir::Node& node) {
  const NodeView view(node, nullptr);
  if (is_standard<AveragePool>(node)) {
    write(average_pool_of(view), node);
  } else if (is_standard<MaxPool>(node)) {
    write(max_pool_of(view), node);
  } else if (is_standard<InstanceNormalization>(node)) {
    write(instance_normalization_of(view), node);
  } else if (is_standard<GroupNormalization>(node)) {
    write(group_normalization_of(view), node);
  } else if (is_standard<LRN>(node)) {
    write(lrn_of(view), node);
  } else if (is_standard<DepthToSpace>(node)) {
    write(depth_to_space_of(view), node);
  } else if (is_standard<SpaceToDepth>(node)) {
    write(space_to_depth_of(view), node);
  } else {
    return false;
  }
  return true;
}

std::optional<FusedActivation> activation_after_scaling(const ir::Node& node) {
  std::optional<FusedActivation> found;
  for_scaling(node, [&](const auto& op) { found = op.activation; });
  return found;
}

void set_activation_after_scaling(ir::Node& node, const FusedActivation& activation) {
  for_scaling(node, [&](auto op) {
    op.activation = activation;
    write(op, node);
  });
}

}  // namespace sardonyx::ops::internal
