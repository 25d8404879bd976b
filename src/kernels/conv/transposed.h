// Transposed convolution as convolutions: outputs a stride apart, of one phase, read the same taps
// of the kernel, so that the phases are channels of an ordinary convolution over X. What it makes
// is assembled afterwards. Where the kernel is no multiple of the stride some phases have a tap
// less: those are a convolution of their own, of which there are at most eight then.
//
// In a ConvParams that is given here `in` and `out` are those of X and Y, kernel, stride and
// pad_begin those of the operator; pad_end is not read. y[m][i * stride + t - pad_begin] is the sum
// of x[c][i] * w[c][m][t] for all that lands there; x, y, scratch and packed weights as conv.h
// says.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/conv/conv.h"

namespace sardonyx::kernels {

// Why it does not apply to kernels of these sizes; empty where it does: one group, no dilation, and
// every phase has a tap.
std::string_view refuses_transposed(const ConvParams& shape);

// What ConvParams::winograd may say here, as winograd_tile does of a convolution: 0 where strides
// make several phases.
int transposed_winograd_tile(const ConvParams& shape);

// Size and format depend on channels, kernel, stride, layout, winograd and the instruction set.
int64_t transposed_packed_size(const ConvParams& shape);
// `weights` is in_channels x out_channels x kernel...; `factors`, if any, are multiplied in: one
// for each output channel. Allocates.
void pack_transposed_weights(const ConvParams& shape, const float* weights, const float* factors,
                             void* packed, ThreadPool* pool);

int64_t transposed_scratch_bytes(const ConvParams& shape, int threads);

// The epilogue has no residual; its bias, if any, has out_channels values.
void transposed_run(const ConvParams& shape, const float* x, const void* packed, float* y,
                    const Epilogue& epilogue, void* scratch, ThreadPool& pool);

}  // namespace sardonyx::kernels
