#include "kernels/gemm/gemm_int8_vnni.h"

#include "base/cpu.h"

#if defined(__x86_64__)
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/gemm/amx.h"
#include "kernels/simd/vnni.h"

namespace sardonyx::kernels {
namespace {

constexpr int64_t lanes = 16;
constexpr int32_t nothing[byte_panel_columns] = {};

// The sums of some rows and `vectors` vectors of columns, which begin with `start`. The rows' bytes
// are flipped by `sign_bit`; three rows have an address of their own.
template <bool panel_signed, int rows, int vectors>
SARDONYX_VNNI void product_tile(const uint8_t* a, int64_t stride, int64_t groups,
                                const uint8_t* panel, const int32_t* start, uint8_t sign_bit,
                                int32_t* to) {
  constexpr int near = 3, bases = (rows + near - 1) / near;
  const uint8_t* base[bases];
#pragma GCC unroll 8
  for (int i = 0; i < bases; ++i) base[i] = a + i * near * stride;
  const __m512i sign_bits = _mm512_set1_epi8(static_cast<char>(sign_bit));
  __m512i sums[rows][vectors];
#pragma GCC unroll 12
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) sums[r][v] = _mm512_loadu_si512(start + v * lanes);
  }
  for (int64_t q = 0; q < groups; ++q, panel += byte_group_bytes) {
    __m512i b[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) b[v] = _mm512_loadu_si512(panel + v * 64);
#pragma GCC unroll 12
    for (int r = 0; r < rows; ++r) {
      int32_t group;
      std::memcpy(&group, base[r / near] + r % near * stride, 4);
      const __m512i x = _mm512_xor_si512(_mm512_set1_epi32(group), sign_bits);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        sums[r][v] = panel_signed ? _mm512_dpbusd_epi32(sums[r][v], x, b[v])
                                  : _mm512_dpbusd_epi32(sums[r][v], b[v], x);
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < bases; ++i) base[i] += 4;
  }
#pragma GCC unroll 12
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v)
      _mm512_storeu_si512(to + r * byte_panel_columns + v * lanes, sums[r][v]);
  }
}

// Calls f<rows>(row) for all of `count` rows, as many at a time as registers hold sums of.
template <int vectors, class F>
void by_tiles(int64_t count, const F& f) {
  constexpr int most = vectors <= 2 ? 12 : vectors == 3 ? 8 : 6, some = vectors <= 3 ? 4 : 2;
  int64_t i = 0;
  for (; i + most <= count; i += most) f.template operator()<most>(i);
  for (; i + some <= count; i += some) f.template operator()<some>(i);
  for (; i < count; ++i) f.template operator()<1>(i);
}
constexpr int max_rows = 12;

// Calls f<vectors>() for as many as hold `columns`.
template <class F>
void by_vectors(int64_t columns, const F& f) {
  switch ((columns + lanes - 1) / lanes) {
    case 1: return f.template operator()<1>();
    case 2: return f.template operator()<2>();
    case 3: return f.template operator()<3>();
    default: return f.template operator()<4>();
  }
}

// Sums may be off from what they are when every step is rounded by so much a unit of what the
// operands are worth in steps of the output: several roundings of numbers up to 255.
constexpr float error_per_unit = 0x1p-24f * 255 * 8;

// How sums of int32 become bytes, all read as uint8: int8 is that with its sign bit flipped.
struct Rounding {
  Rounding(const ByteFinish& how, int64_t columns) : how(how), columns(columns) {
    const auto sign_bit = [](ElementType type) { return type == ElementType::int8 ? 0x80 : 0; };
    top_bit = sign_bit(how.type);
    zero = how.zero + top_bit;
    if (how.sum == nullptr) return;
    const ByteSum& sum = *how.sum;
    first_zero = static_cast<float>(sum.first.zero + sign_bit(sum.first.type));
    zero = sum.y.zero + top_bit;
    first = sum.first.scale / sum.y.scale, second = sum.second.scale / sum.y.scale;
    start = -second * static_cast<float>(sum.second.zero + top_bit);
    within = 0.5f - error_per_unit * (first + second);
  }

  // Whether it can be done so: sums of bytes may only be off by so much.
  bool holds() const {
    constexpr float min_scale = 0x1p-60f, max_scale = 0x1p60f, max_quotient = 256;
    const auto middling = [](float scale) { return scale > min_scale && scale < max_scale; };
    if (how.bias != nullptr || !how.each || how.type == ElementType::float32) return false;
    return how.sum == nullptr ||
           (middling(how.sum->first.scale) && middling(how.sum->second.scale) &&
            middling(how.sum->y.scale) && first < max_quotient && second < max_quotient);
  }

  const ByteFinish& how;
  int64_t columns;
  int32_t zero = 0, top_bit = 0;
  // Of sums of bytes: what a unit of each is worth, what they begin with, and how far from a whole
  // number they may be without being in doubt.
  float first_zero = 0, first = 0, second = 0, start = 0, within = 0;
};

// Rounds rows of `vectors` vectors. What it holds stays in registers: bytes that are written could
// be those of any object in memory.
template <bool adds, int vectors>
class Rounder {
 public:
  SARDONYX_VNNI explicit Rounder(const Rounding& r)
      : zero_(_mm512_set1_epi16(static_cast<int16_t>(r.zero))),
        least_(_mm512_set1_epi8(static_cast<char>(adds && r.how.sum->relu ? r.zero : 0))),
        top_bit_(_mm512_set1_epi8(static_cast<char>(r.top_bit))),
        order_(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)),
        low_(_mm512_set1_ps(-r.first_zero)),
        high_(_mm512_set1_ps(255 - r.first_zero)),
        first_(_mm512_set1_ps(r.first)),
        second_(_mm512_set1_ps(r.second)),
        start_(_mm512_set1_ps(r.start)),
        within_(_mm512_set1_ps(r.within)),
        scale_(r.how.scale),
        mask_(~uint64_t{0} >> (byte_panel_columns - r.columns)),
        whole_(r.columns == vectors * lanes) {}

  // One row's sums, already with their terms. False where they must be added exactly.
  SARDONYX_VNNI bool finish(const int32_t* sums, const uint8_t* addend, uint8_t* y) const {
    __m512i whole[vectors];
    __m512 farthest = _mm512_setzero_ps();
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      __m512 value = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_loadu_si512(sums + v * lanes)),
                                   _mm512_loadu_ps(scale_ + v * lanes));
      if constexpr (adds) {
        const __m512 first = _mm512_roundscale_ps(_mm512_min_ps(_mm512_max_ps(value, low_), high_),
                                                  _MM_FROUND_TO_NEAREST_INT);
        value = _mm512_fmadd_ps(first, first_, _mm512_fmadd_ps(load(addend, v), second_, start_));
        constexpr int nearest = 0, farther_of_two = 0b1011;
        farthest = _mm512_range_ps(farthest, _mm512_reduce_ps(value, nearest), farther_of_two);
      } else {
        // The second where one is NaN, which as an integer is the lowest.
        value = _mm512_min_ps(_mm512_set1_ps(0x1p30f), value);
      }
      whole[v] = _mm512_cvtps_epi32(value);
    }
    if (adds && __builtin_expect(_mm512_cmp_ps_mask(farthest, within_, _CMP_NLT_UQ) != 0, 0))
      return false;
    put(whole, y);
    return true;
  }

 private:
  SARDONYX_VNNI __m512 load(const uint8_t* addend, int v) const {
    const auto mask = static_cast<__mmask16>(mask_ >> (v * lanes));
    const __m128i bytes = _mm_maskz_loadu_epi8(mask, addend + v * lanes);
    return _mm512_cvtepi32_ps(
        _mm512_cvtepu8_epi32(_mm_xor_si128(bytes, _mm512_castsi512_si128(top_bit_))));
  }

  SARDONYX_VNNI void put(const __m512i (&whole)[vectors], uint8_t* y) const {
    constexpr int last = vectors - 1;
    const __m512i low = _mm512_adds_epi16(_mm512_packs_epi32(whole[0], whole[std::min(1, last)]),
                                          zero_),
                  high =
                      vectors <= 2
                          ? low
                          : _mm512_adds_epi16(
                                _mm512_packs_epi32(whole[std::min(2, last)], whole[last]), zero_);
    __m512i bytes = _mm512_max_epu8(_mm512_packus_epi16(low, high), least_);
    // Each part of 16 bytes holds four bytes of every vector.
    bytes = _mm512_permutexvar_epi32(order_, _mm512_xor_si512(bytes, top_bit_));
    if (!whole_) return _mm512_mask_storeu_epi8(y, mask_, bytes);
    if constexpr (vectors == 4) _mm512_storeu_si512(y, bytes);
    if constexpr (vectors == 2 || vectors == 3)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(y), _mm512_castsi512_si256(bytes));
    if constexpr (vectors == 1 || vectors == 3)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(y + (vectors - 1) * lanes),
                       _mm512_extracti32x4_epi32(bytes, vectors - 1));
  }

  const __m512i zero_, least_, top_bit_, order_;
  const __m512 low_, high_, first_, second_, start_, within_;
  const float* const scale_;
  const __mmask64 mask_;
  const bool whole_;
};

// Rows of sums that are finished as they come.
struct Panel {
  const ByteRowsOf& rows;
  const uint8_t* panel;
  const Rounding& rounding;
  const int32_t* row_sums;
  void* y;
  int64_t y_stride;
  bool rounds = rounding.holds();
  // What sums begin with: their terms, but for finish_rows. Null: with 0.
  const int32_t* start = rounds ? rounding.how.term : nullptr;
};

// What zero points of the panel's columns take off.
template <int vectors>
SARDONYX_VNNI void take_off(const int32_t* factor, const int32_t* row_sums, int64_t rows,
                            int32_t* sums) {
  for (int64_t i = 0; i < rows; ++i, sums += byte_panel_columns) {
    for (int64_t j = 0; j < vectors * lanes; j += lanes) {
      const __m512i off =
          _mm512_mullo_epi32(_mm512_loadu_si512(factor + j), _mm512_set1_epi32(row_sums[i]));
      _mm512_store_si512(sums + j, _mm512_sub_epi32(_mm512_load_si512(sums + j), off));
    }
  }
}

// Sums with their terms as bytes: `rows` rows from `row` on.
template <bool adds, int vectors>
SARDONYX_VNNI void round_rows(const Panel& p, int64_t row, int64_t rows, int32_t* sums) {
  const ByteFinish& how = p.rounding.how;
  if (how.factor != nullptr) take_off<vectors>(how.factor, p.row_sums + row, rows, sums);
  const Rounder<adds, vectors> rounder(p.rounding);
  auto* y = static_cast<uint8_t*>(p.y) + row * p.y_stride;
  const auto* addend = static_cast<const uint8_t*>(how.addend);
  if (adds) addend += row * p.y_stride;
  for (int64_t i = 0; i < rows; ++i, sums += byte_panel_columns, y += p.y_stride) {
    const uint8_t* const at = adds ? addend + i * p.y_stride : nullptr;
    if (rounder.finish(sums, at, y)) continue;
    ByteFinish exact = how;
    exact.term = nothing, exact.factor = nullptr, exact.addend = at;
    finish_bytes(exact, {sums, nullptr, 1}, p.rounding.columns, y, p.y_stride);
  }
}

// Any other way, from sums without their terms.
void finish_rows(const Panel& p, int64_t row, int64_t rows, const int32_t* sums) {
  ByteFinish how = p.rounding.how;
  const int64_t place = row * p.y_stride * (how.type == ElementType::float32 ? 4 : 1);
  if (how.sum != nullptr) how.addend = static_cast<const std::byte*>(how.addend) + place;
  finish_bytes(how, {sums, p.row_sums ? p.row_sums + row : nullptr, rows}, p.rounding.columns,
               static_cast<std::byte*>(p.y) + place, p.y_stride);
}

template <int vectors>
void finish_sums(const Panel& p, int64_t row, int64_t rows, int32_t* sums) {
  if (!p.rounds) {
    finish_rows(p, row, rows, sums);
  } else if (p.rounding.how.sum != nullptr) {
    round_rows<true, vectors>(p, row, rows, sums);
  } else {
    round_rows<false, vectors>(p, row, rows, sums);
  }
}

template <int vectors>
void finish_panel(const Panel& p) {
  alignas(64) int32_t sums[max_rows * byte_panel_columns];
  const ByteRowsOf& rows = p.rows;
  by_tiles<vectors>(rows.count, [&]<int count>(int64_t row) {
    product_tile<true, count, vectors>(rows.data + row * rows.stride, rows.stride, rows.groups,
                                       p.panel, p.start ? p.start : nothing,
                                       rows.is_signed ? 0x80 : 0, sums);
    finish_sums<vectors>(p, row, count, sums);
  });
}

// By matrix tiles, whose sums stay in the first-level cache.
template <int vectors>
void finish_by_matrix_tiles(const Panel& p, BytesAhead ahead) {
  constexpr int64_t most = 128, step = 16;
  alignas(64) int32_t sums[most * byte_panel_columns];
  const ByteRowsOf& rows = p.rows;
  // Equal parts: a single last row would take as long as a tile.
  const int64_t parts = (rows.count + most - 1) / most,
                part = ((rows.count + parts - 1) / parts + step - 1) / step * step;
  for (int64_t i = 0; i < rows.count; i += part) {
    const int64_t some = std::min(part, rows.count - i);
    byte_tiles_product(rows.is_signed ? SignedBytes::both : SignedBytes::panel,
                       rows.data + i * rows.stride, rows.stride, some, rows.groups, p.panel,
                       p.rounding.columns, p.start, sums, ahead.part(i / part, parts));
    finish_sums<vectors>(p, i, some, sums);
  }
}

template <bool panel_signed>
void product_panel(const ByteRowsOf& rows, const uint8_t* panel, int64_t columns, int32_t* sums) {
  by_vectors(columns, [&]<int vectors>() {
    by_tiles<vectors>(rows.count, [&]<int count>(int64_t row) {
      product_tile<panel_signed, count, vectors>(rows.data + row * rows.stride, rows.stride,
                                                 rows.groups, panel, nothing, 0,
                                                 sums + row * byte_panel_columns);
    });
  });
}

}  // namespace

void vnni_panel_product(bool panel_signed, const uint8_t* rows, int64_t row_stride, int64_t count,
                        int64_t groups, const uint8_t* panel, int64_t columns, int32_t* sums) {
  const ByteRowsOf from{rows, row_stride, count, groups, false};
  panel_signed ? product_panel<true>(from, panel, columns, sums)
               : product_panel<false>(from, panel, columns, sums);
}

void vnni_panel_finish(const ByteRowsOf& rows, const uint8_t* panel, const ByteFinish& how,
                       const int32_t* row_sums, int64_t columns, void* y, int64_t y_stride,
                       BytesAhead ahead) {
  const Rounding rounding(how, columns);
  const Panel job{rows, panel, rounding, row_sums, y, y_stride};
  const bool by_tiles =
      rows.is_signed ? byte_tiles_take(rows.groups) : byte_tiles_apply(rows.count, rows.groups);
  by_vectors(columns, [&]<int vectors>() {
    by_tiles ? finish_by_matrix_tiles<vectors>(job, ahead) : finish_panel<vectors>(job);
  });
}

}  // namespace sardonyx::kernels

#else

namespace sardonyx::kernels {

void vnni_panel_product(bool, const uint8_t*, int64_t, int64_t, int64_t, const uint8_t*, int64_t,
                        int32_t*) {}
void vnni_panel_finish(const ByteRowsOf&, const uint8_t*, const ByteFinish&, const int32_t*,
                       int64_t, void*, int64_t, BytesAhead) {}

}  // namespace sardonyx::kernels
#endif
