#include "passes/layout/nchw_inputs.h"

#include <algorithm>

#include "ir/node_values.h"
#include "ops/internal/node.h"
#include "passes/convolution/nhwc_conv.h"
#include "passes/graph_index.h"
#include "passes/layout/layout.h"

namespace sardonyx::passes {
namespace {

using ops::internal::Conv;

bool turns_to_nhwc(const ir::Node& node) {
  const ir::Attribute* perm = node.find("perm");
  return node.domain.empty() && node.op_type == "Transpose" && perm != nullptr &&
         perm->ints.size() >= 3 &&
         std::ranges::equal(perm->ints, to_nhwc(static_cast<int64_t>(perm->ints.size())));
}

// The convolution with channels last at i, where it reads an image of few channels.
std::optional<Conv> conv_of_few_channels(const GraphIndex& index, size_t i) {
  const auto conv = nhwc_conv(index, i);
  const ir::Node& node = index.node(i);
  constexpr int64_t most = 4;
  const bool fits = conv && conv->shape.group == 1 && conv->shape.in_channels >= 2 &&
                    conv->shape.in_channels <= most && !conv->keeps_pixels() &&
                    node.outputs.size() == 1 && !ir::has_input(node, Conv::input_factors) &&
                    conv->op.input_shuffle == 1 && index.is_float32(node.inputs[Conv::w]);
  return fits ? std::optional(conv->op) : std::nullopt;
}

}  // namespace

void read_nchw_inputs(GraphIndex& index) {
  for (size_t i = 0; i < index.size(); ++i) {
    if (index.is_dead(i) || !turns_to_nhwc(index.node(i))) continue;
    const ir::Node& turn = index.node(i);
    const size_t user = index.only_user(turn.outputs[0]);
    if (user == index.size() || !index.is_float32(turn.inputs[0]) ||
        index.node(user).inputs[0] != turn.outputs[0])
      continue;
    auto conv = conv_of_few_channels(index, user);
    if (!conv) continue;
    conv->nchw_input = true;
    ir::Node reading = index.node(user);
    ops::internal::write(*conv, reading);
    reading.inputs[Conv::x] = turn.inputs[0];
    index.replace(user, std::move(reading));
  }
}

}  // namespace sardonyx::passes
