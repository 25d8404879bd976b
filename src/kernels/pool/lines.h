// Pooling of lines that lie side by side with their padding; inside pool/ only.
#pragma once

#include <cstdint>

#include "kernels/pool/window.h"

namespace sardonyx::kernels {

// Floats that must be behind lines, since vectors reach over their ends.
constexpr int64_t pool_lines_room = 64;

// The most elements that lines may be apart for one output and the next.
constexpr int64_t pool_lines_stride = 256;

// What an output line joins: `slices` times `rows` lines of the input.
struct PoolColumn {
  int32_t row = 0;               // of the first, counted through the plane
  int32_t slices = 0, rows = 0;  // one of them 0: nothing but padding
  float inside = 1;              // of how many of them an average is
};

// Some lines of output, all of one plane, and the part of each that the memory at `lines` suffices
// for.
struct PoolBlock {
  PoolKind kind = PoolKind::max;
  const float* plane = nullptr;  // from the column on at which the part begins
  int64_t n = 0;                 // floats of an input line that the part reads
  int64_t row_floats = 0;        // from one input line to the next
  int64_t slice_rows = 0, row_dilation = 1, slice_dilation = 1;
  const PoolColumn* columns = nullptr;
  int64_t count = 0;  // of output lines
  // Line i of them is joined at lines + i * pitch, which is a multiple of 16. All around stands
  // what wins against nothing, at least up to the next multiple of 16 behind n; pool_lines keeps
  // it.
  float* lines = nullptr;
  int64_t pitch = 0;
  int64_t before = 0;  // floats of padding that the first window reads
  int64_t kernel = 1, dilation = 1, stride = 1, out = 0;  // along the line
  const float* columns_inside = nullptr;  // of how many columns averages are, with room behind
  // Scratch of that size, and of how many lines the averages are that it holds factors for; 0:
  // none.
  float *scales = nullptr, *scales_for = nullptr;
  float* y = nullptr;
  int64_t y_pitch = 0;
};

// First down the columns of the input, whose result is lines; then along these. NaN wins. Of sums
// the order is: what two output lines share comes first, then what each has alone, from the first
// row to the last; then along the line from the first column on.
void pool_lines(const PoolBlock& block);

}  // namespace sardonyx::kernels
