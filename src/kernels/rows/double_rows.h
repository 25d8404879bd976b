// Sums and maps over contiguous rows of double that have a vector form. Inside rows/ and pool/
// only; see row_math.h.
#pragma once

#include <cstdint>

namespace sardonyx::kernels {

double row_sum(const double* x, int64_t n);
double row_sum_squares(const double* x, double center, int64_t n);  // sum of (x - center)^2
double row_max(const double* x, int64_t n);                         // NaN where there is one
double row_min(const double* x, int64_t n);
double row_sum_exp(const double* x, double center, int64_t n);  // sum of exp(x - center)
// y = exp(x - center), and their sum.
double row_exp(const double* x, double center, double* y, int64_t n);
// y += x, element by element, for each of some rows of x in turn; the same for the larger and the
// smaller, NaN where either is.
void column_sums(const double* x, int64_t stride, int64_t rows, double* y, int64_t n);
void column_maxima(const double* x, int64_t stride, int64_t rows, double* y, int64_t n);
void column_minima(const double* x, int64_t stride, int64_t rows, double* y, int64_t n);
// sums += exp(x - centers); y gets the exponentials unless it is null.
void column_exp(const double* x, const double* centers, double* y, double* sums, int64_t n);

}  // namespace sardonyx::kernels
