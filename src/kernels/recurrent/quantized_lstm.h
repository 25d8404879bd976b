// An LSTM whose weights are bytes, and whose inputs and states become bytes while it runs.
#pragma once

#include "kernels/recurrent/recurrent.h"
#include "sardonyx/element_type.h"

namespace sardonyx::kernels {

// Matrices [directions, K, N] of bytes, (byte - zero) * scale, in the form the products want.
int64_t byte_weights_bytes(int64_t directions, int64_t K, int64_t N);
void pack_byte_weights(ElementType type, const void* w, int64_t directions, int64_t K, int64_t N,
                       void* packed, ThreadPool& pool);

struct ByteWeights {
  const void* packed = nullptr;
  ElementType type = ElementType::int8;  // or uint8, of the zero points, too
  // One for each direction, or, where `scales_each` and `zeros_each` say so, [directions, N].
  const float* scale = nullptr;
  const void* zero = nullptr;
  bool scales_each = false, zeros_each = false;
};

// `shape` is of an LSTM that is not batch_first.
int64_t quantized_lstm_scratch_bytes(const RecurrentShape& shape, int threads);

// As ONNX Runtime defines it: one scale and zero point for all rows of X up to the end of the
// longest sequence, and one in each step for the states that the sequences had before it, of those
// that have just ended, too; both are found as DynamicQuantizeLinear finds them; sums of the bytes'
// products are exact. data.w and data.r are not looked at.
void run_quantized_lstm(const RecurrentShape& shape, const RecurrentData<float>& data,
                        const ByteWeights& w, const ByteWeights& r, void* scratch,
                        ThreadPool& pool);

}  // namespace sardonyx::kernels
