#include "ops/internal/conv_chain.h"

#include "ops/internal/node.h"
#include "ops/internal/products.h"

namespace sardonyx::ops::internal {
namespace {

template <size_t n>
void copy_given(const std::vector<int64_t>& list, std::array<int64_t, n>& to) {
  if (list.size() == n) std::ranges::copy(list, to.begin());
}

FusedConvChain::Part part_of(const Conv& conv) {
  FusedConvChain::Part part;
  part.auto_pad = conv.window.auto_pad;
  copy_given(conv.window.strides, part.strides);
  copy_given(conv.window.dilations, part.dilations);
  copy_given(conv.window.pads, part.pads);
  part.group = conv.group;
  part.input_shuffle = conv.input_shuffle;
  part.shuffles_output = conv.shuffles_output;
  part.activation = conv.activation;
  part.residual_last = conv.residual_last;
  return part;
}

}  // namespace

Window FusedConvChain::Part::window() const {
  Window window;
  window.auto_pad = auto_pad;
  window.strides.assign(strides.begin(), strides.end());
  window.dilations.assign(dilations.begin(), dilations.end());
  window.pads.assign(pads.begin(), pads.end());
  return window;
}

kernels::Epilogue FusedConvChain::Part::epilogue() const {
  kernels::Epilogue made = activation.epilogue();
  made.residual_last = residual_last;
  return made;
}

ir::Dims FusedConvChain::Part::output(const ir::Dims& x, const ir::Dims& w) const {
  const Window at = window();
  ir::Dims y{x[0]};
  for (size_t i = 0; i + 2 < x.size(); ++i) y.push_back(window_output(at, i, x[i + 1], w[i + 2]));
  y.push_back(w[0]);
  return y;
}

ir::Node make_conv_chain(const std::vector<const ir::Node*>& convolutions, size_t depthwise) {
  FusedConvChain chain;
  chain.depthwise = static_cast<int64_t>(depthwise);
  const ir::Node &first = *convolutions.front(), &last = *convolutions.back();
  ir::Node node;
  node.name = last.name;
  node.inputs = {ir::input(first, Conv::x)};
  for (const ir::Node* conv : convolutions) {
    chain.parts.push_back(part_of(from_node<Conv>(*conv)));
    for (const size_t i : {Conv::w, Conv::bias, Conv::factors})
      node.inputs.push_back(ir::input(*conv, i));
  }
  if (ir::has_input(last, Conv::residual)) node.inputs.push_back(last.inputs[Conv::residual]);
  node.outputs = {last.outputs[Conv::y]};
  if (const ir::Node& middle = *convolutions[depthwise]; middle.outputs.size() > Conv::means)
    node.outputs.push_back(middle.outputs[Conv::means]);
  write(chain, node);
  return node;
}

}  // namespace sardonyx::ops::internal
