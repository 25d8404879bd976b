// Running sums and products of columns. Inside rows/ only.
#pragma once

#include <cstdint>

#include "kernels/rows/scan.h"

namespace sardonyx::kernels {

// Rows of n elements; x and y may be the same place.
template <class T>
struct ColumnScan {
  ScanOp op;
  bool exclusive;
  const T* x;
  T* y;
  int64_t stride;  // from row to row, backwards too
  int64_t rows;
  T* totals;  // [n], before the first row and then behind the last
  int64_t n;
};
void scan_columns(const ColumnScan<float>& s);
void scan_columns(const ColumnScan<double>& s);
void scan_columns(const ColumnScan<int64_t>& s);
void scan_columns(const ColumnScan<uint64_t>& s);

}  // namespace sardonyx::kernels
