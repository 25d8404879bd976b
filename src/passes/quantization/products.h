// Products of quantised matrices: MatMul and Gemm of dequantised ones, and products of integers
// whose sums are scaled.
#pragma once

#include <cstddef>

#include "passes/quantization/quantized_graph.h"

namespace sardonyx::passes {

// Where node i is the QuantizeLinear after a product of dequantised matrices, and perhaps a bias
// and a Relu: puts a QuantizedMatMul in its place. Returns whether it did.
bool quantize_product_to_bytes(QuantizedGraph& graph, size_t i);

// The same where node i is a product whose result no QuantizeLinear takes: floats that stay so
// (QuantizedMatMul; MatMulNBits where scales come in blocks), MatMulInteger that is scaled, and
// QLinearMatMul.
bool quantize_product(QuantizedGraph& graph, size_t i);

}  // namespace sardonyx::passes
