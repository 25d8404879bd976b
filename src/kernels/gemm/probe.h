// How fast this machine could be: what measurements are compared with.
#pragma once

#include <cstdint>

namespace sardonyx::kernels {

// fp32 operations a second of one core when it does nothing but multiply-adds in registers (a
// multiply-add counts as two). Takes about `seconds`; the best of several tries.
double probe_peak_flops(double seconds = 0.05);

// Bytes a second that one core reads from a buffer of that size, over and over; from a buffer much
// larger than the caches, that is memory. Allocates the buffer.
double probe_read_bandwidth(int64_t bytes, double seconds = 0.05);

}  // namespace sardonyx::kernels
