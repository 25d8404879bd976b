// The internal FusedConvChain: convolutions with channels last that follow each other, as one node.
#pragma once

#include <optional>
#include <vector>

#include "ir/dim.h"
#include "ir/model.h"
#include "ops/families/window.h"

namespace sardonyx::ops {

// Inputs of a FusedConvChain: X; weights, bias? and factors of the weights? of each part; a
// residual of Y's shape?. Outputs: Y, and the means of what the depthwise part makes?. Attributes:
// `parts`, how many there are, `depthwise`, which of them that is, and those of each part as Conv
// has them, with its number and a dot before their names.
constexpr int chain_inputs_of_part = 3;
inline int chain_weights(int part) { return 1 + chain_inputs_of_part * part; }
inline int chain_bias(int part) { return chain_weights(part) + 1; }
inline int chain_factors(int part) { return chain_weights(part) + 2; }

// Convs with channels last (their W, B and factors constant or absent, the residual the last one's)
// as a chain.
ir::Node make_conv_chain(const std::vector<const ir::Node*>& parts, int depthwise);
// A part as a Conv without inputs.
ir::Node conv_part(const ir::Node& chain, int part);

// The sizes of a part's output over two dimensions, from those of its input; channels last.
ir::Dims conv_part_output(const Window& window, const ir::Dims& x, const ir::Dims& w);

}  // namespace sardonyx::ops
