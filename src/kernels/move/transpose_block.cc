#include "kernels/move/transpose_block.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/move/transpose_block.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR
// As many rows as columns, each one vector of 16 bytes. Rows that lie half the square apart are
// interleaved into each other, which, done as often as the side can be halved, transposes the
// square.
template <class T>
HWY_INLINE void Square(const T* x, int64_t x_column, T* y, int64_t y_row) {
  constexpr int side = 16 / sizeof(T);
  const hn::FixedTag<T, side> d;
  hn::Vec<decltype(d)> v[side], w[side];
  for (int i = 0; i < side; ++i) v[i] = hn::LoadU(d, x + i * x_column);
  for (int left = side; left > 1; left /= 2) {
    for (int i = 0; i < side / 2; ++i) {
      w[2 * i] = hn::InterleaveLower(d, v[i], v[i + side / 2]);
      w[2 * i + 1] = hn::InterleaveUpper(d, v[i], v[i + side / 2]);
    }
    for (int i = 0; i < side; ++i) v[i] = w[i];
  }
  for (int i = 0; i < side; ++i) hn::StoreU(v[i], d, y + i * y_row);
}
#endif

template <class T>
void Interleave(const T* x, int64_t x_column, T* y, int64_t rows, int64_t columns) {
  int64_t r = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (; r + lanes <= rows; r += lanes) {
    const auto column = [&](int64_t c) HWY_ATTR { return hn::LoadU(d, x + c * x_column + r); };
    T* to = y + r * columns;
    if (columns == 2) {
      hn::StoreInterleaved2(column(0), column(1), d, to);
    } else if (columns == 3) {
      hn::StoreInterleaved3(column(0), column(1), column(2), d, to);
    } else {
      hn::StoreInterleaved4(column(0), column(1), column(2), column(3), d, to);
    }
  }
#endif
  for (; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) y[r * columns + c] = x[c * x_column + r];
  }
}

// The inverse: what stands in turns goes into columns of its own.
template <class T>
void Deal(const T* x, T* y, int64_t y_row, int64_t rows, int64_t columns) {
  int64_t c = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (; c + lanes <= columns; c += lanes) {
    const T* from = x + c * rows;
    hn::Vec<decltype(d)> v0, v1, v2, v3;
    if (rows == 2) {
      hn::LoadInterleaved2(d, from, v0, v1);
    } else if (rows == 3) {
      hn::LoadInterleaved3(d, from, v0, v1, v2);
    } else {
      hn::LoadInterleaved4(d, from, v0, v1, v2, v3);
      hn::StoreU(v3, d, y + 3 * y_row + c);
    }
    hn::StoreU(v0, d, y + c);
    hn::StoreU(v1, d, y + y_row + c);
    if (rows > 2) hn::StoreU(v2, d, y + 2 * y_row + c);
  }
#endif
  for (; c < columns; ++c) {
    for (int64_t r = 0; r < rows; ++r) y[r * y_row + c] = x[c * rows + r];
  }
}

template <class T>
void EverySecond(const void* from, void* to, int64_t n) {
  const T* x = static_cast<const T*>(from);
  T* y = static_cast<T*>(to);
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (; i + lanes < n; i += lanes) {  // nothing behind the last element is read
    hn::Vec<decltype(d)> even, odd;
    hn::LoadInterleaved2(d, x + 2 * i, even, odd);
    hn::StoreU(even, d, y + i);
  }
#endif
  for (; i < n; ++i) y[i] = x[2 * i];
}

void EverySecondOf(int element_bytes, const void* x, void* y, int64_t n) {
  switch (element_bytes) {
    case 1: return EverySecond<uint8_t>(x, y, n);
    case 2: return EverySecond<uint16_t>(x, y, n);
    case 4: return EverySecond<uint32_t>(x, y, n);
    default: return EverySecond<uint64_t>(x, y, n);
  }
}

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
// Four rows and eight columns of 4 bytes: two columns are joined while they are loaded. No more
// rows, whose places may fall into the same few sets of a cache.
HWY_INLINE void FourByEight(const uint32_t* x, int64_t x_column, uint32_t* y, int64_t y_row) {
  const auto joined = [&](int column) HWY_ATTR {
    const auto* low = reinterpret_cast<const __m128i*>(x + column * x_column);
    const auto* high = reinterpret_cast<const __m128i*>(x + (column + 4) * x_column);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(low)),
                                   _mm_loadu_si128(high), 1);
  };
  const __m256i a = joined(0), b = joined(1), c = joined(2), e = joined(3);
  const __m256i ab = _mm256_unpacklo_epi32(a, b), ab_high = _mm256_unpackhi_epi32(a, b);
  const __m256i ce = _mm256_unpacklo_epi32(c, e), ce_high = _mm256_unpackhi_epi32(c, e);
  const auto store = [&](int r, __m256i v) HWY_ATTR {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + r * y_row), v);
  };
  store(0, _mm256_unpacklo_epi64(ab, ce));
  store(1, _mm256_unpackhi_epi64(ab, ce));
  store(2, _mm256_unpacklo_epi64(ab_high, ce_high));
  store(3, _mm256_unpackhi_epi64(ab_high, ce_high));
}
#endif

template <bool long_rows, class T>
void Transpose(const T* x, int64_t x_column, T* y, int64_t y_row, int64_t rows, int64_t columns) {
  int64_t r = 0;
#if HWY_TARGET != HWY_SCALAR
  constexpr int64_t side = 16 / sizeof(T);
  for (; r + side <= rows; r += side) {
    int64_t c = 0;
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
    if constexpr (long_rows) {
      for (; c + 8 <= columns; c += 8)
        FourByEight(x + c * x_column + r, x_column, y + r * y_row + c, y_row);
    }
#endif
    for (; c + side <= columns; c += side) {
      Square(x + c * x_column + r, x_column, y + r * y_row + c, y_row);
    }
    for (; c < columns; ++c) {
      for (int64_t i = r; i < r + side; ++i) y[i * y_row + c] = x[c * x_column + i];
    }
  }
#endif
  for (; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) y[r * y_row + c] = x[c * x_column + r];
  }
}

template <class T>
void TransposeWhole(const void* x, int64_t x_column, void* y, int64_t y_row, int64_t rows,
                    int64_t columns) {
  const auto* from = static_cast<const T*>(x);
  auto* to = static_cast<T*>(y);
  if (columns == y_row && columns >= 2 && columns <= 4)
    return Interleave(from, x_column, to, rows, columns);
  if (rows == x_column && rows >= 2 && rows <= 4) return Deal(from, to, y_row, rows, columns);
  constexpr int64_t long_row = 16;  // in shorter ones too many long stores cross a line
  if (sizeof(T) == 4 && columns >= long_row)
    Transpose<sizeof(T) == 4>(from, x_column, to, y_row, rows, columns);
  else
    Transpose<false>(from, x_column, to, y_row, rows, columns);
}

void Transpose1(const void* x, int64_t x_column, void* y, int64_t y_row, int64_t rows,
                int64_t columns) {
  TransposeWhole<uint8_t>(x, x_column, y, y_row, rows, columns);
}
void Transpose2(const void* x, int64_t x_column, void* y, int64_t y_row, int64_t rows,
                int64_t columns) {
  TransposeWhole<uint16_t>(x, x_column, y, y_row, rows, columns);
}
void Transpose4(const void* x, int64_t x_column, void* y, int64_t y_row, int64_t rows,
                int64_t columns) {
  TransposeWhole<uint32_t>(x, x_column, y, y_row, rows, columns);
}
void Transpose8(const void* x, int64_t x_column, void* y, int64_t y_row, int64_t rows,
                int64_t columns) {
  TransposeWhole<uint64_t>(x, x_column, y, y_row, rows, columns);
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(Transpose1);
HWY_EXPORT(Transpose2);
HWY_EXPORT(Transpose4);
HWY_EXPORT(Transpose8);
HWY_EXPORT(EverySecondOf);

void transpose_block(int element_bytes, const void* x, int64_t x_column, void* y, int64_t y_row,
                     int64_t rows, int64_t columns) {
  switch (element_bytes) {
    case 1: return HWY_DYNAMIC_DISPATCH(Transpose1)(x, x_column, y, y_row, rows, columns);
    case 2: return HWY_DYNAMIC_DISPATCH(Transpose2)(x, x_column, y, y_row, rows, columns);
    case 4: return HWY_DYNAMIC_DISPATCH(Transpose4)(x, x_column, y, y_row, rows, columns);
    default: return HWY_DYNAMIC_DISPATCH(Transpose8)(x, x_column, y, y_row, rows, columns);
  }
}

void every_second(int element_bytes, const void* x, void* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(EverySecondOf)(element_bytes, x, y, n);
}

}  // namespace sardonyx::kernels
#endif
