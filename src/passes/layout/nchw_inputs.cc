#include "passes/layout/nchw_inputs.h"

#include <algorithm>

#include "ops/upgrade_context.h"
#include "passes/convolution/nhwc_conv.h"
#include "passes/graph_index.h"
#include "passes/layout/layout.h"

namespace sardonyx::passes {
namespace {

bool turns_to_nhwc(const ir::Node& node) {
  const ir::Attribute* perm = node.find("perm");
  return node.domain.empty() && node.op_type == "Transpose" && perm != nullptr &&
         perm->ints.size() >= 3 &&
         std::ranges::equal(perm->ints, to_nhwc(static_cast<int64_t>(perm->ints.size())));
}

bool reads_few_channels(const GraphIndex& index, size_t i) {
  const auto conv = nhwc_conv(index, i);
  const ir::Node& node = index.node(i);
  constexpr int64_t most = 4;
  return conv && conv->shape.group == 1 && conv->shape.in_channels >= 2 &&
         conv->shape.in_channels <= most && !conv->keeps_pixels() && node.outputs.size() == 1 &&
         (node.inputs.size() < 6 || node.inputs[5].empty()) &&
         node.find("input_shuffle") == nullptr && index.is_float32(node.inputs[1]);
}

}  // namespace

void read_nchw_inputs(GraphIndex& index) {
  for (size_t i = 0; i < index.size(); ++i) {
    if (index.is_dead(i) || !turns_to_nhwc(index.node(i))) continue;
    const ir::Node& turn = index.node(i);
    const size_t user = index.only_user(turn.outputs[0]);
    if (user == index.size() || !index.is_float32(turn.inputs[0]) ||
        index.node(user).inputs[0] != turn.outputs[0] || !reads_few_channels(index, user))
      continue;
    ir::Node conv = index.node(user);
    conv.inputs[0] = turn.inputs[0];
    conv.attributes.push_back(ops::int_attribute("nchw_input", 1));
    index.replace(user, std::move(conv));
  }
}

}  // namespace sardonyx::passes
