// Folds over rows of whole numbers, which wrap. Inside rows/ and pool/ only; see row_math.h.
#pragma once

#include <cstdint>

namespace sardonyx::kernels {

enum class ColumnOp : int32_t { sum, sum_abs, sum_squares, product, max, min };

// The elements of x [n] folded, beginning with the operation's neutral element.
int32_t fold_row(ColumnOp op, const int32_t* x, int64_t n);
int64_t fold_row(ColumnOp op, const int64_t* x, int64_t n);
uint64_t fold_row(ColumnOp op, const uint64_t* x, int64_t n);
// y += x, and the like, element by element, for each of some rows of x in turn.
void column_steps(ColumnOp op, const int32_t* x, int64_t stride, int64_t rows, int32_t* y,
                  int64_t n);
void column_steps(ColumnOp op, const int64_t* x, int64_t stride, int64_t rows, int64_t* y,
                  int64_t n);
void column_steps(ColumnOp op, const uint64_t* x, int64_t stride, int64_t rows, uint64_t* y,
                  int64_t n);

}  // namespace sardonyx::kernels
