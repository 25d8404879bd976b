// Convolutions between DequantizeLinear and QuantizeLinear, and of integers.
#pragma once

#include <cstddef>

#include "passes/quantization/quantized_graph.h"

namespace sardonyx::passes {

// Where node i is the QuantizeLinear after a Conv of dequantised image and constant weights, and
// perhaps a Relu: puts a QLinearConv in its place. Returns whether it did.
bool quantize_conv(QuantizedGraph& graph, size_t i);

// Where node i is a ConvInteger of constant weights, with a Cast to float and a Mul by the scales
// behind it, and perhaps the Add of a bias: puts a QuantizedConv in their place. Returns whether it
// did.
bool scale_conv_integer(QuantizedGraph& graph, size_t i);

}  // namespace sardonyx::passes
