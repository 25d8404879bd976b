#include "kernels/gemm/gemm_int8_neon.h"

#include "base/cpu.h"
#include "kernels/gemm/gemm_int8.h"

#ifdef SARDONYX_NEON_DOT
#include <arm_neon.h>
#include <algorithm>
#include <cstring>

namespace sardonyx::kernels {
namespace {

constexpr int64_t lanes = 4;
constexpr int tile_rows = 4, tile_vectors = 4;  // sums in 16 of 32 registers
constexpr int64_t strip = tile_vectors * lanes;
constexpr int64_t together = 4;  // groups of a row that a vector holds
constexpr int64_t row_block = 128;
static_assert(strip == byte_strip_columns);

// The dot products take two signed factors. Bytes without a sign become signed by their top bit,
// which makes them 128 less; `lost` is what their products then lack.
inline int8x16_t load(const uint8_t* bytes, uint8x16_t top_bits) {
  return vreinterpretq_s8_u8(veorq_u8(vld1q_u8(bytes), top_bits));
}

// One group of some rows (`a`: their bytes, this group's in that lane) by a strip of the panel.
template <int rows, int lane>
SARDONYX_NEON_DOT inline void add_group(const int8x16_t (&a)[rows], const uint8_t* panel,
                                        uint8x16_t top_bits,
                                        int32x4_t (&sums)[rows][tile_vectors]) {
  int8x16_t b[tile_vectors];
#pragma GCC unroll 4
  for (int v = 0; v < tile_vectors; ++v) b[v] = load(panel + v * 16, top_bits);
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < tile_vectors; ++v)
      sums[r][v] = vdotq_laneq_s32(sums[r][v], b[v], a[r], lane);
  }
}

// The sums of some rows and a strip of columns. `column_lost` and `row_lost` are added to a
// column's and a row's.
template <bool panel_signed, int rows>
SARDONYX_NEON_DOT __attribute__((noinline)) void product_tile(const uint8_t* a, int64_t stride,
                                                              int64_t groups, const uint8_t* panel,
                                                              const int32_t* column_lost,
                                                              const int32_t* row_lost,
                                                              int32_t* to) {
  const uint8x16_t flip = vdupq_n_u8(0x80), keep = vdupq_n_u8(0);
  const uint8x16_t row_bits = panel_signed ? flip : keep, panel_bits = panel_signed ? keep : flip;
  int32x4_t sums[rows][tile_vectors];
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < tile_vectors; ++v)
      sums[r][v] = panel_signed ? vld1q_s32(column_lost + v * lanes) : vdupq_n_s32(row_lost[r]);
  }
  int8x16_t x[rows];
  int64_t q = 0;
  for (; q + together <= groups; q += together, panel += together * byte_group_bytes) {
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) x[r] = load(a + r * stride + 4 * q, row_bits);
    add_group<rows, 0>(x, panel, panel_bits, sums);
    add_group<rows, 1>(x, panel + byte_group_bytes, panel_bits, sums);
    add_group<rows, 2>(x, panel + 2 * byte_group_bytes, panel_bits, sums);
    add_group<rows, 3>(x, panel + 3 * byte_group_bytes, panel_bits, sums);
  }
  for (; q < groups; ++q, panel += byte_group_bytes) {
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      uint32_t group;
      std::memcpy(&group, a + r * stride + 4 * q, 4);
      x[r] = vreinterpretq_s8_u8(veorq_u8(vreinterpretq_u8_u32(vdupq_n_u32(group)), row_bits));
    }
    add_group<rows, 0>(x, panel, panel_bits, sums);
  }
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < tile_vectors; ++v)
      vst1q_s32(to + r * byte_panel_columns + v * lanes, sums[r][v]);
  }
}

// 128 times the sum of a row's signed bytes.
SARDONYX_NEON_DOT int32_t lost_of_row(const uint8_t* row, int64_t groups) {
  const int8x16_t one = vdupq_n_s8(1);
  int32x4_t sums = vdupq_n_s32(0);
  int64_t q = 0;
  for (; q + together <= groups; q += together)
    sums = vdotq_s32(sums, vreinterpretq_s8_u8(vld1q_u8(row + 4 * q)), one);
  int32_t sum = vaddvq_s32(sums);
  for (int64_t i = 4 * q; i < 4 * groups; ++i) sum += static_cast<int8_t>(row[i]);
  return 128 * sum;
}

// The rows that whole tiles leave.
template <bool panel_signed, int rows>
void last_tile(int64_t count, const uint8_t* a, int64_t stride, int64_t groups,
               const uint8_t* panel, const int32_t* column_lost, const int32_t* row_lost,
               int32_t* to) {
  if constexpr (rows > 0) {
    if (count == rows) {
      product_tile<panel_signed, rows>(a, stride, groups, panel, column_lost, row_lost, to);
    } else {
      last_tile<panel_signed, rows - 1>(count, a, stride, groups, panel, column_lost, row_lost, to);
    }
  }
}

// At most row_block rows. What columns lack stands behind a signed panel.
template <bool panel_signed>
void product_rows(const uint8_t* a, int64_t stride, int64_t count, int64_t groups,
                  const uint8_t* panel, int64_t columns, int32_t* sums) {
  int32_t row_lost[row_block] = {};
  if constexpr (!panel_signed) {
    for (int64_t i = 0; i < count; ++i) row_lost[i] = lost_of_row(a + i * stride, groups);
  }
  const auto* column_lost = reinterpret_cast<const int32_t*>(panel + groups * byte_group_bytes);
  for (int64_t column = 0; column < columns; column += strip, column_lost += strip) {
    const uint8_t* const at = panel + 4 * column;
    int32_t* to = sums + column;
    int64_t i = 0;
    for (; i + tile_rows <= count; i += tile_rows, to += tile_rows * byte_panel_columns)
      product_tile<panel_signed, tile_rows>(a + i * stride, stride, groups, at, column_lost,
                                            row_lost + i, to);
    last_tile<panel_signed, tile_rows - 1>(count - i, a + i * stride, stride, groups, at,
                                           column_lost, row_lost + i, to);
  }
}

}  // namespace

SARDONYX_NEON_DOT void find_lost_of_columns(int8_t* panel, int64_t groups, int64_t at) {
  const int8_t* from = panel + at * 4 * strip;
  const int8x16_t one = vdupq_n_s8(1);
  int32x4_t sums[tile_vectors] = {};
  for (int64_t q = 0; q < groups; ++q, from += byte_group_bytes) {
#pragma GCC unroll 4
    for (int v = 0; v < tile_vectors; ++v)
      sums[v] = vdotq_s32(sums[v], vld1q_s8(from + v * 16), one);
  }
  auto* const lost = reinterpret_cast<int32_t*>(panel + groups * byte_group_bytes) + at * strip;
#pragma GCC unroll 4
  for (int v = 0; v < tile_vectors; ++v) vst1q_s32(lost + v * lanes, vshlq_n_s32(sums[v], 7));
}

void neon_panel_product(bool panel_signed, const uint8_t* rows, int64_t row_stride, int64_t count,
                        int64_t groups, const uint8_t* panel, int64_t columns, int32_t* sums) {
  for (int64_t i = 0; i < count; i += row_block) {
    const int64_t some = std::min<int64_t>(row_block, count - i);
    const uint8_t* at = rows + i * row_stride;
    int32_t* to = sums + i * byte_panel_columns;
    panel_signed ? product_rows<true>(at, row_stride, some, groups, panel, columns, to)
                 : product_rows<false>(at, row_stride, some, groups, panel, columns, to);
  }
}

}  // namespace sardonyx::kernels
#endif
