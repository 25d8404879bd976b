#include "kernels/gemm/doubles.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/doubles.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<double, 8>;
// Terms whose part of B is turned at a time where its columns are dense, not its rows.
constexpr int64_t turned_terms = 128;
constexpr int vectors = 2;  // of a tile's columns

// A tile of C, `last` of whose lanes count in its last vector.
struct Tile {
  int64_t k;
  const double* a;
  int64_t a_row, a_column;
  const double* b;
  int64_t b_row;
  double* c;
  int64_t ldc;
  int64_t last;
  bool goes_on;  // adds to what C holds
};

template <int rows, int width>
void Multiply(const Tile& t) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const bool whole = t.last == lanes;
  const auto some = hn::FirstN(d, static_cast<size_t>(t.last));
  const auto load = [&](const double* from, int v) HWY_ATTR {
    return v + 1 == width && !whole ? hn::MaskedLoad(some, d, from + v * lanes)
                                    : hn::LoadU(d, from + v * lanes);
  };
  hn::Vec<D> sums[rows][width];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < width; ++v) sums[r][v] = t.goes_on ? load(t.c + r * t.ldc, v) : hn::Zero(d);
  }
  const double* a = t.a;
  const double* b = t.b;
  for (int64_t k = 0; k < t.k; ++k, a += t.a_column, b += t.b_row) {
    hn::Vec<D> right[width];
#pragma GCC unroll 2
    for (int v = 0; v < width; ++v) right[v] = load(b, v);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const auto left = hn::Set(d, a[r * t.a_row]);
#pragma GCC unroll 2
      for (int v = 0; v < width; ++v) sums[r][v] = hn::MulAdd(left, right[v], sums[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < width; ++v) {
      if (v + 1 == width && !whole)
        hn::BlendedStore(sums[r][v], some, d, t.c + r * t.ldc + v * lanes);
      else
        hn::StoreU(sums[r][v], d, t.c + r * t.ldc + v * lanes);
    }
  }
}

template <int width>
void MultiplyRows(int64_t rows, const Tile& t) {
  switch (rows) {
    case 8: return Multiply<8, width>(t);
    case 7: return Multiply<7, width>(t);
    case 6: return Multiply<6, width>(t);
    case 5: return Multiply<5, width>(t);
    case 4: return Multiply<4, width>(t);
    case 3: return Multiply<3, width>(t);
    case 2: return Multiply<2, width>(t);
    default: return Multiply<1, width>(t);
  }
}

void MultiplyTile(int64_t rows, int64_t columns, Tile& t) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  t.last = columns > lanes ? columns - lanes : columns;
  if (columns > lanes)
    MultiplyRows<2>(rows, t);
  else
    MultiplyRows<1>(rows, t);
}

void MultiplyDoubles(int64_t rows, int64_t N, int64_t K, const double* a, int64_t a_row,
                     int64_t a_column, const double* b, int64_t b_row, int64_t b_column, double* c,
                     int64_t ldc) {
  const int64_t step = vectors * static_cast<int64_t>(hn::Lanes(D()));
  alignas(64) double turned[turned_terms * vectors * hn::MaxLanes(D())];
  for (int64_t j = 0; j < N; j += step) {
    const int64_t columns = std::min(step, N - j);
    Tile t{K, a, a_row, a_column, b + j * b_column, b_row, c + j, ldc, 0, false};
    if (b_column == 1 || K == 0) {
      MultiplyTile(rows, columns, t);
      continue;
    }
    t.b = turned, t.b_row = step;
    for (int64_t first = 0; first < K; first += turned_terms) {
      t.k = std::min(turned_terms, K - first);
      for (int64_t n = 0; n < columns; ++n) {
        const double* from = b + (j + n) * b_column + first * b_row;
        for (int64_t k = 0; k < t.k; ++k) turned[k * step + n] = from[k * b_row];
      }
      MultiplyTile(rows, columns, t);
      t.a += t.k * a_column;
      t.goes_on = true;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(MultiplyDoubles);

void multiply_doubles(int64_t rows, int64_t N, int64_t K, const double* a, int64_t a_row,
                      int64_t a_column, const double* b, int64_t b_row, int64_t b_column, double* c,
                      int64_t ldc) {
  HWY_DYNAMIC_DISPATCH(MultiplyDoubles)
  (rows, N, K, a, a_row, a_column, b, b_row, b_column, c, ldc);
}

}  // namespace sardonyx::kernels
#endif
