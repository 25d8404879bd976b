// The list of all internal operators. Each is a struct in one of these headers; what it means is in
// the file of src/ops/ that has its infer and prepare.
#pragma once

#include <type_traits>

#include "ops/internal/attention.h"
#include "ops/internal/checks.h"
#include "ops/internal/conv_chain.h"
#include "ops/internal/elementwise.h"
#include "ops/internal/gradients.h"
#include "ops/internal/images.h"
#include "ops/internal/optimizers.h"
#include "ops/internal/products.h"
#include "ops/internal/quantized.h"

namespace sardonyx::ops::internal {

template <class... Ops>
struct OperatorList {
  // Calls visit(std::type_identity<Op>()) for each, until one returns true; whether one has.
  template <class Visit>
  static bool any(Visit&& visit) {
    return (visit(std::type_identity<Ops>()) || ...);
  }
};

using AllOperators =
    OperatorList<AdamW, Attention, AveragePool, BatchNormalizationGradient, Conv, ConvTranspose,
                 ConvWeightGradient, DepthToSpace, FusedConvChain, FusedElementwise, Gemm,
                 GroupNormalization, InRange, InstanceNormalization, InterleavedConcat, LRN,
                 LSTMRecurrence, LSTMRecurrenceGradient, LayerNormalizationGradient, LookupTable,
                 MatMul, MaxPool, MaxPoolGradient, QLinearConv, QuantizedConv, QuantizedMatMul,
                 ScaleShift, SpaceToDepth, SumLike>;

}  // namespace sardonyx::ops::internal
