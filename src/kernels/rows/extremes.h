// Where rows and columns of float32 have their extremes. Inside rows/ only.
#pragma once

#include <cstdint>

namespace sardonyx::kernels {

// y[r]: where row r of x [rows, n], 0 < n < 2^31, has its largest (or smallest) element, the last
// of several if select_last. NaN counts as both.
void extreme_of_rows(bool largest, bool select_last, const float* x, int64_t rows, int64_t n,
                     int64_t* y);

// y[j]: the same for column j of `width`; rows are `stride` apart, 0 < n < 2^31 of them.
void extreme_of_columns(bool largest, bool select_last, const float* x, int64_t stride, int64_t n,
                        int64_t width, int64_t* y);

}  // namespace sardonyx::kernels
