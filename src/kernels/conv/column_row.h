// One row of an image as a sum of columns; internal to kernels/conv.
#pragma once

#include <cstdint>

namespace sardonyx::kernels {

// Where one kernel position's floats, one for each window, are added to a row.
struct ColumnTap {
  int64_t from = 0;  // the first of them that the row has a place for, from a line's begin
  int64_t n = 0;
  int64_t to = 0;  // of the row's phase
};

// Rows of `floats` elements, of which those `stride` apart make a phase: phase p's element i is
// bias plus the floats of taps [ends[p - 1], ends[p]) that have a place there, tap after tap of
// line after line.
struct ColumnRow {
  const float* const* lines;
  int64_t line_count;
  const ColumnTap* taps;
  const int64_t* ends;
  int64_t stride, floats;
  float bias;
};

// row[i] = element i of phase 0, for strides of 1; of phase i % 2 for strides of 2. Of others phase
// p goes to row + p * length, length being that of the longest, with a vector's room behind all.
void sum_columns(const ColumnRow& job, float* row);

}  // namespace sardonyx::kernels
