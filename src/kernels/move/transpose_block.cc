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
// 4 x 4 elements.
HWY_INLINE void Square(const uint32_t* x, int64_t x_column, uint32_t* y, int64_t y_row) {
  const hn::FixedTag<uint32_t, 4> d;
  const hn::RepartitionToWide<decltype(d)> dw;
  const auto a = hn::LoadU(d, x);
  const auto b = hn::LoadU(d, x + x_column);
  const auto c = hn::LoadU(d, x + 2 * x_column);
  const auto e = hn::LoadU(d, x + 3 * x_column);
  const auto ab_low = hn::BitCast(dw, hn::InterleaveLower(d, a, b));
  const auto ab_high = hn::BitCast(dw, hn::InterleaveUpper(d, a, b));
  const auto ce_low = hn::BitCast(dw, hn::InterleaveLower(d, c, e));
  const auto ce_high = hn::BitCast(dw, hn::InterleaveUpper(d, c, e));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dw, ab_low, ce_low)), d, y);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dw, ab_low, ce_low)), d, y + y_row);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dw, ab_high, ce_high)), d, y + 2 * y_row);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dw, ab_high, ce_high)), d, y + 3 * y_row);
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

void InterleaveWords(const uint32_t* x, int64_t x_column, uint32_t* y, int64_t rows,
                     int64_t columns) {
  Interleave(x, x_column, y, rows, columns);
}
void InterleaveBytes(const uint8_t* x, int64_t x_column, uint8_t* y, int64_t rows,
                     int64_t columns) {
  Interleave(x, x_column, y, rows, columns);
}

void TransposeBlock(const uint32_t* x, int64_t x_column, uint32_t* y, int64_t y_row, int64_t rows,
                    int64_t columns) {
  int64_t r = 0;
#if HWY_TARGET != HWY_SCALAR
  for (; r + 4 <= rows; r += 4) {
    int64_t c = 0;
    for (; c + 4 <= columns; c += 4) {
      Square(x + c * x_column + r, x_column, y + r * y_row + c, y_row);
    }
    for (; c < columns; ++c) {
      for (int64_t i = r; i < r + 4; ++i) y[i * y_row + c] = x[c * x_column + i];
    }
  }
#endif
  for (; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) y[r * y_row + c] = x[c * x_column + r];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(InterleaveWords);
HWY_EXPORT(InterleaveBytes);
HWY_EXPORT(TransposeBlock);

void interleave_columns(const uint32_t* x, int64_t x_column, uint32_t* y, int64_t rows,
                        int64_t columns) {
  HWY_DYNAMIC_DISPATCH(InterleaveWords)(x, x_column, y, rows, columns);
}
void interleave_columns(const uint8_t* x, int64_t x_column, uint8_t* y, int64_t rows,
                        int64_t columns) {
  HWY_DYNAMIC_DISPATCH(InterleaveBytes)(x, x_column, y, rows, columns);
}

void transpose_block(const uint32_t* x, int64_t x_column, uint32_t* y, int64_t y_row, int64_t rows,
                     int64_t columns) {
  HWY_DYNAMIC_DISPATCH(TransposeBlock)(x, x_column, y, y_row, rows, columns);
}

}  // namespace sardonyx::kernels
#endif
