// Depthwise convolution of bytes with channels last. Internal to kernels/conv.
#pragma once

#include <cstdint>

#include "kernels/conv/conv_bytes.h"
#include "kernels/conv/geometry.h"

namespace sardonyx::kernels {

// One line of output pixels. job.weights holds floats [taps, channels], their zero points taken
// off; of the job's x and y only the types count. At most 256 taps.
void depthwise_bytes_line(const ConvGeometry& g, const ConvBytes& job, const uint8_t* image,
                          int64_t depth, int64_t row, uint8_t* out);

}  // namespace sardonyx::kernels
