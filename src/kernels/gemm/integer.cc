#include "kernels/gemm/integer.h"

#include <algorithm>
#include <cstring>

// One instruction multiplies and adds pairs there.
#define HWY_WANT_AVX3_DL
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/integer.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// sum + a0 * b0 + a1 * b1 in each 32-bit lane, of the two 16-bit halves.
template <class D, class V>
HWY_INLINE V AddPairs(D d, V a, V b, V sum) {
#if HWY_TARGET == HWY_AVX3_DL
  // The intrinsic needs a flag that Highway does not set for this target.
  (void)d;
  asm("vpdpwssd %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
  return sum;
#elif HWY_ARCH_X86 && HWY_TARGET != HWY_EMU128 && HWY_TARGET != HWY_SCALAR
  const hn::Repartition<int16_t, D> d16;
  auto unused = hn::Zero(d);
  return hn::ReorderWidenMulAccumulate(d, hn::BitCast(d16, a), hn::BitCast(d16, b), sum, unused);
#elif HWY_TARGET == HWY_NEON
  const int16x8_t x = vreinterpretq_s16_s32(a.raw), y = vreinterpretq_s16_s32(b.raw);
  const int32x4_t low = vmull_s16(vget_low_s16(x), vget_low_s16(y));
  (void)d;
  return V(vaddq_s32(sum.raw, vpaddq_s32(low, vmull_high_s16(x, y))));
#else
  const auto low = [](V v) { return hn::ShiftRight<16>(hn::ShiftLeft<16>(v)); };
  const auto high = [](V v) { return hn::ShiftRight<16>(v); };
  (void)d;
  return hn::Add(sum, hn::Add(hn::Mul(low(a), low(b)), hn::Mul(high(a), high(b))));
#endif
}

HWY_INLINE int32_t PairAt(const int16_t* at) {
  int32_t pair;
  std::memcpy(&pair, at, 4);
  return pair;
}

// `rows` rows against two vectors of columns.
template <int rows, class D>
HWY_INLINE void Tile(D d, const int16_t* a, int64_t a_stride, int64_t pairs, const int16_t* panel,
                     int32_t* c, int64_t ldc) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<D> sums[rows][2];
  for (int r = 0; r < rows; ++r) sums[r][0] = sums[r][1] = hn::Zero(d);
  for (int64_t p = 0; p < pairs; ++p) {
    const auto* at = reinterpret_cast<const int32_t*>(panel + p * 2 * integer_panel_columns);
    const auto b0 = hn::LoadU(d, at), b1 = hn::LoadU(d, at + lanes);
    for (int r = 0; r < rows; ++r) {
      const auto x = hn::Set(d, PairAt(a + r * a_stride + 2 * p));
      sums[r][0] = AddPairs(d, x, b0, sums[r][0]);
      sums[r][1] = AddPairs(d, x, b1, sums[r][1]);
    }
  }
  for (int r = 0; r < rows; ++r) {
    hn::StoreU(sums[r][0], d, c + r * ldc);
    hn::StoreU(sums[r][1], d, c + r * ldc + lanes);
  }
}

// Every row against one panel; c has all 32 columns.
void PanelProduct(const int16_t* a, int64_t rows, int64_t pairs, const int16_t* panel, int32_t* c,
                  int64_t ldc) {
  const hn::CappedTag<int32_t, integer_panel_columns / 2> d;
  const auto step = 2 * static_cast<int64_t>(hn::Lanes(d)), a_stride = 2 * pairs;
  for (int64_t column = 0; column < integer_panel_columns; column += step) {
    const int16_t* b = panel + 2 * column;
    int64_t i = 0;
#if HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON  // 32 registers
    for (; i + 8 <= rows; i += 8)
      Tile<8>(d, a + i * a_stride, a_stride, pairs, b, c + i * ldc + column, ldc);
#endif
    for (; i + 4 <= rows; i += 4)
      Tile<4>(d, a + i * a_stride, a_stride, pairs, b, c + i * ldc + column, ldc);
    for (; i < rows; ++i)
      Tile<1>(d, a + i * a_stride, a_stride, pairs, b, c + i * ldc + column, ldc);
  }
}

template <class X>
void PairTerms(const X* a, const int16_t* a_mask, const X* b, const int16_t* b_mask, int32_t zero,
               int16_t* to) {
  const hn::CappedTag<int16_t, integer_panel_columns> d;
  const hn::Rebind<X, decltype(d)> d8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto offset = hn::Set(d, static_cast<int16_t>(zero));
  for (int64_t j = 0; j < integer_panel_columns; j += lanes) {
    const auto first = hn::Sub(hn::PromoteTo(d, hn::LoadU(d8, a + j)), offset);
    const auto second = hn::Sub(hn::PromoteTo(d, hn::LoadU(d8, b + j)), offset);
    hn::StoreInterleaved2(hn::And(first, hn::LoadU(d, a_mask + j)),
                          hn::And(second, hn::LoadU(d, b_mask + j)), d, to + 2 * j);
  }
}

void PairSigned(const int8_t* a, const int16_t* a_mask, const int8_t* b, const int16_t* b_mask,
                int32_t zero, int16_t* to) {
  PairTerms(a, a_mask, b, b_mask, zero, to);
}
void PairUnsigned(const uint8_t* a, const int16_t* a_mask, const uint8_t* b, const int16_t* b_mask,
                  int32_t zero, int16_t* to) {
  PairTerms(a, a_mask, b, b_mask, zero, to);
}

// The factor of column j is scale[j * step]. NaN gives `low`.
void RequantizeRow(const int32_t* sums, const float* scale, int64_t step, int32_t zero, int32_t low,
                   int32_t high, int64_t n, uint8_t* y) {
  const hn::CappedTag<float, 16> df;
  const hn::RebindToSigned<decltype(df)> di;
  const hn::Rebind<uint8_t, decltype(df)> d8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(df));
  const auto bottom = hn::Set(df, static_cast<float>(low - zero)),
             top = hn::Set(df, static_cast<float>(high - zero)), same = hn::Set(df, *scale);
  // Counted from the lowest value; of signed bytes that flips the sign bit.
  const auto offset = hn::Set(di, zero - low);
  const auto sign = hn::Set(d8, static_cast<uint8_t>(low == 0 ? 0 : 0x80));
  const auto bytes = [&](const int32_t* from, const float* factors) {
    const auto factor = step == 0 ? same : hn::LoadU(df, factors);
    const auto value = hn::Mul(hn::ConvertTo(df, hn::LoadU(di, from)), factor);
    const auto kept = hn::IfThenElse(hn::Gt(value, bottom), hn::Min(value, top), bottom);
    return hn::Xor(hn::DemoteTo(d8, hn::Add(hn::NearestInt(kept), offset)), sign);
  };
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes) hn::StoreU(bytes(sums + j, scale + j * step), d8, y + j);
  if (j == n) return;
  int32_t last[16] = {};
  float factors[16] = {};
  uint8_t some[16];
  std::copy_n(sums + j, n - j, last);
  if (step != 0) std::copy_n(scale + j, n - j, factors);
  hn::StoreU(bytes(last, factors), d8, some);
  std::copy_n(some, n - j, y + j);
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(PanelProduct);
HWY_EXPORT(PairSigned);
HWY_EXPORT(PairUnsigned);
HWY_EXPORT(RequantizeRow);

namespace {

constexpr int64_t row_block = 64;

int16_t value_at(ElementType type, const void* data, int64_t i) {
  return type == ElementType::int8 ? static_cast<const int8_t*>(data)[i]
                                   : static_cast<const uint8_t*>(data)[i];
}

}  // namespace

void pack_integer_rows(ElementType type, const void* a, int64_t row_stride, int64_t term_stride,
                       int64_t rows, int64_t k, const int32_t* zero, bool zero_each_row,
                       int16_t* out, ThreadPool& pool) {
  const int64_t width = 2 * integer_pairs(k);
  pool.parallel_for(
      rows, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, width)),
      [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) {
          const auto offset = static_cast<int16_t>(zero ? zero[zero_each_row ? i : 0] : 0);
          int16_t* to = out + i * width;
          for (int64_t t = 0; t < k; ++t)
            to[t] =
                static_cast<int16_t>(value_at(type, a, i * row_stride + t * term_stride) - offset);
          if (k % 2 != 0) to[k] = 0;
        }
      });
}

void pack_integer_panels(ElementType type, const void* b, int64_t term_stride,
                         int64_t column_stride, int64_t k, int64_t columns, const int32_t* zero,
                         bool zero_each_column, int16_t* out, ThreadPool& pool) {
  const int64_t pairs = integer_pairs(k),
                panels = (columns + integer_panel_columns - 1) / integer_panel_columns;
  pool.parallel_for(
      panels, std::max<int64_t>(1, 1024 / std::max<int64_t>(1, pairs)),
      [&](int64_t begin, int64_t end, int) {
        for (int64_t panel = begin; panel < end; ++panel) {
          int16_t* to = out + panel * pairs * 2 * integer_panel_columns;
          const int64_t first = panel * integer_panel_columns,
                        used = std::min(integer_panel_columns, columns - first);
          std::fill_n(to, pairs * 2 * integer_panel_columns, int16_t{0});
          for (int64_t t = 0; t < k; ++t) {
            for (int64_t j = 0; j < used; ++j) {
              const auto offset = zero ? zero[zero_each_column ? first + j : 0] : 0;
              to[(t / 2 * integer_panel_columns + j) * 2 + t % 2] = static_cast<int16_t>(
                  value_at(type, b, t * term_stride + (first + j) * column_stride) - offset);
            }
          }
        }
      });
}

void integer_panel_product(const int16_t* rows, int64_t row_count, int64_t pairs,
                           const int16_t* panel, int64_t columns, int32_t* c, int64_t ldc) {
  if (columns == integer_panel_columns)
    return HWY_DYNAMIC_DISPATCH(PanelProduct)(rows, row_count, pairs, panel, c, ldc);
  int32_t whole[row_block * integer_panel_columns];
  for (int64_t i = 0; i < row_count; i += row_block) {
    const int64_t some = std::min(row_block, row_count - i);
    HWY_DYNAMIC_DISPATCH(PanelProduct)
    (rows + i * 2 * pairs, some, pairs, panel, whole, integer_panel_columns);
    for (int64_t r = 0; r < some; ++r)
      std::copy_n(whole + r * integer_panel_columns, columns, c + (i + r) * ldc);
  }
}

void integer_product(const int16_t* rows, int64_t row_count, int64_t k, const int16_t* panels,
                     int64_t columns, int32_t* c, int64_t ldc, ThreadPool& pool) {
  const int64_t pairs = integer_pairs(k),
                count = (columns + integer_panel_columns - 1) / integer_panel_columns;
  const int64_t blocks = (row_count + row_block - 1) / row_block;
  const int64_t grain = std::max<int64_t>(
      1, 400000 / std::max<int64_t>(1, std::min(row_block, row_count) * k * integer_panel_columns));
  pool.parallel_for(blocks * count, grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t panel = i % count, first = i / count * row_block,
                    column = panel * integer_panel_columns;
      integer_panel_product(rows + first * 2 * pairs, std::min(row_block, row_count - first), pairs,
                            panels + panel * pairs * 2 * integer_panel_columns,
                            std::min(integer_panel_columns, columns - column),
                            c + first * ldc + column, ldc);
    }
  });
}

void pair_terms(const int8_t* a, const int16_t* a_mask, const int8_t* b, const int16_t* b_mask,
                int32_t zero, int16_t* to) {
  HWY_DYNAMIC_DISPATCH(PairSigned)(a, a_mask, b, b_mask, zero, to);
}
void pair_terms(const uint8_t* a, const int16_t* a_mask, const uint8_t* b, const int16_t* b_mask,
                int32_t zero, int16_t* to) {
  HWY_DYNAMIC_DISPATCH(PairUnsigned)(a, a_mask, b, b_mask, zero, to);
}

void requantize(ElementType y_type, const Requantize& how, const int32_t* sums, int64_t ld,
                int64_t rows, int64_t columns, void* y, int64_t y_stride) {
  const int32_t low = y_type == ElementType::int8 ? -128 : 0, high = low + 255;
  for (int64_t i = 0; i < rows; ++i) {
    HWY_DYNAMIC_DISPATCH(RequantizeRow)
    (sums + i * ld, how.scale + i * how.scale_row, how.scale_column,
     how.zero ? how.zero[i * how.zero_row] : 0, low, high, columns,
     static_cast<uint8_t*>(y) + i * y_stride);
  }
}

}  // namespace sardonyx::kernels
#endif
