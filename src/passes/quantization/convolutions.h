// Convolutions between DequantizeLinear and QuantizeLinear.
#pragma once

#include <cstddef>

#include "passes/quantization/quantized_graph.h"

namespace sardonyx::passes {

// Where node i is the QuantizeLinear after a Conv of dequantised image and constant weights, and
// perhaps a Relu: puts a QLinearConv in its place. Returns whether it did.
bool quantize_conv(QuantizedGraph& graph, size_t i);

}  // namespace sardonyx::passes
