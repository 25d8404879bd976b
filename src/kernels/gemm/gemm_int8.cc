#include "kernels/gemm/gemm_int8.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/cpu.h"
#include "kernels/gemm/amx.h"
#include "kernels/gemm/gemm_int8_avx2.h"
#include "kernels/gemm/gemm_int8_avx_vnni.h"
#include "kernels/gemm/gemm_int8_neon.h"
#include "kernels/gemm/gemm_int8_vnni.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/gemm_int8.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/convert/bytes-inl.h"
#include "kernels/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace bytes = sardonyx::HWY_NAMESPACE::bytes;
namespace math = sardonyx::HWY_NAMESPACE::math;

// sum + the four products of bytes in each 32-bit lane; a is unsigned, b signed.
template <class D, class V>
HWY_INLINE V AddQuads(D d, V a, V b, V sum) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_EMU128 && HWY_TARGET != HWY_SCALAR
  const hn::Repartition<int16_t, D> d16;
  const hn::Repartition<uint16_t, D> du16;
  auto unused = hn::Zero(d);
  const auto a16 = hn::BitCast(du16, a);
  const auto b16 = hn::BitCast(d16, b);
  const auto a_even = hn::BitCast(d16, hn::And(a16, hn::Set(du16, 0xff)));
  const auto a_odd = hn::BitCast(d16, hn::ShiftRight<8>(a16));
  const auto b_even = hn::ShiftRight<8>(hn::ShiftLeft<8>(b16));
  const auto b_odd = hn::ShiftRight<8>(b16);
  sum = hn::ReorderWidenMulAccumulate(d, a_even, b_even, sum, unused);
  return hn::ReorderWidenMulAccumulate(d, a_odd, b_odd, sum, unused);
#elif HWY_TARGET == HWY_NEON
  // Products of bytes fit 16 bits; those of terms 0 and 2 of each group, and then of 1 and 3, are
  // neighbours.
  const uint16x8_t a16 = vreinterpretq_u16_s32(a.raw);
  const int16x8_t b16 = vreinterpretq_s16_s32(b.raw);
  const int16x8_t even = vmulq_s16(vreinterpretq_s16_u16(vandq_u16(a16, vdupq_n_u16(0xff))),
                                   vshrq_n_s16(vshlq_n_s16(b16, 8), 8));
  const int16x8_t odd = vmulq_s16(vreinterpretq_s16_u16(vshrq_n_u16(a16, 8)), vshrq_n_s16(b16, 8));
  (void)d;
  return V(vpadalq_s16(vpadalq_s16(sum.raw, even), odd));
#else
  const hn::RebindToUnsigned<D> du;
  const auto byte = hn::Set(du, 0xff);
  const auto ua = hn::BitCast(du, a);
  const auto term = [&](V x, V y) HWY_ATTR { return hn::Mul(x, y); };
  sum = hn::Add(sum,
                term(hn::BitCast(d, hn::And(ua, byte)), hn::ShiftRight<24>(hn::ShiftLeft<24>(b))));
  sum = hn::Add(sum, term(hn::BitCast(d, hn::And(hn::ShiftRight<8>(ua), byte)),
                          hn::ShiftRight<24>(hn::ShiftLeft<16>(b))));
  sum = hn::Add(sum, term(hn::BitCast(d, hn::And(hn::ShiftRight<16>(ua), byte)),
                          hn::ShiftRight<24>(hn::ShiftLeft<8>(b))));
  return hn::Add(sum, term(hn::BitCast(d, hn::ShiftRight<24>(ua)), hn::ShiftRight<24>(b)));
#endif
}

template <bool panel_signed, int rows, class D>
HWY_INLINE void QuadTile(D d, const uint8_t* a, int64_t stride, int64_t groups,
                         const uint8_t* panel, int32_t* sums) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<D> acc[rows][2];
  for (int r = 0; r < rows; ++r) acc[r][0] = acc[r][1] = hn::Zero(d);
  for (int64_t q = 0; q < groups; ++q) {
    const auto* at = reinterpret_cast<const int32_t*>(panel + q * byte_panel_columns * 4);
    const auto b0 = hn::LoadU(d, at), b1 = hn::LoadU(d, at + lanes);
    for (int r = 0; r < rows; ++r) {
      int32_t group;
      std::memcpy(&group, a + r * stride + q * 4, 4);
      const auto x = hn::Set(d, group);
      acc[r][0] = panel_signed ? AddQuads(d, x, b0, acc[r][0]) : AddQuads(d, b0, x, acc[r][0]);
      acc[r][1] = panel_signed ? AddQuads(d, x, b1, acc[r][1]) : AddQuads(d, b1, x, acc[r][1]);
    }
  }
  for (int r = 0; r < rows; ++r) {
    hn::StoreU(acc[r][0], d, sums + r * byte_panel_columns);
    hn::StoreU(acc[r][1], d, sums + r * byte_panel_columns + lanes);
  }
}

template <bool panel_signed>
void QuadPanel(const uint8_t* a, int64_t stride, int64_t rows, int64_t groups, const uint8_t* panel,
               int64_t columns, int32_t* sums) {
  const hn::CappedTag<int32_t, byte_panel_columns / 2> d;
  const int64_t step = 2 * static_cast<int64_t>(hn::Lanes(d));
  for (int64_t column = 0; column < columns; column += step) {
    const uint8_t* b = panel + 4 * column;
    int64_t i = 0;
    for (; i + 2 <= rows; i += 2)
      QuadTile<panel_signed, 2>(d, a + i * stride, stride, groups, b,
                                sums + i * byte_panel_columns + column);
    if (i < rows)
      QuadTile<panel_signed, 1>(d, a + i * stride, stride, groups, b,
                                sums + i * byte_panel_columns + column);
  }
}

void PanelSigned(const uint8_t* a, int64_t stride, int64_t rows, int64_t groups,
                 const uint8_t* panel, int64_t columns, int32_t* sums) {
  QuadPanel<true>(a, stride, rows, groups, panel, columns, sums);
}
void PanelUnsigned(const uint8_t* a, int64_t stride, int64_t rows, int64_t groups,
                   const uint8_t* panel, int64_t columns, int32_t* sums) {
  QuadPanel<false>(a, stride, rows, groups, panel, columns, sums);
}

// The parameters of some columns: each has its own, or all have those of a row.
template <int vectors, bool has_factor, bool has_bias>
struct FinishColumns {
  using Ints = hn::Vec<bytes::IntTag>;

  HWY_INLINE FinishColumns(const ByteFinish& how, int64_t column) {
    const bytes::Tag d;
    const bytes::IntTag di;
    if (!how.each) set_row(how, 0);
    for (int v = 0; v < vectors; ++v, column += static_cast<int64_t>(hn::Lanes(d))) {
      if constexpr (has_factor) factor[v] = hn::LoadU(di, how.factor + column);
      if (!how.each) continue;
      term[v] = hn::LoadU(di, how.term + column);
      scale[v] = hn::LoadU(d, how.scale + column);
      if constexpr (has_bias) bias[v] = hn::LoadU(d, how.bias + column);
    }
  }

  HWY_INLINE void set_row(const ByteFinish& how, int64_t row) {
    for (int v = 0; v < vectors; ++v) {
      term[v] = hn::Set(bytes::IntTag(), how.term[row]);
      scale[v] = hn::Set(bytes::Tag(), how.scale[row]);
      if constexpr (has_bias) bias[v] = hn::Set(bytes::Tag(), how.bias[row]);
    }
  }

  // Of one row's sums.
  HWY_INLINE void finish(const int32_t* sums, const int32_t* row_sum, bytes::Vec* values) const {
    const bytes::Tag d;
    const bytes::IntTag di;
    for (int v = 0; v < vectors; ++v, sums += hn::Lanes(d)) {
      auto sum = hn::Add(hn::LoadU(di, sums), term[v]);
      if constexpr (has_factor) sum = hn::Sub(sum, hn::Mul(factor[v], hn::Set(di, *row_sum)));
      const auto value = hn::ConvertTo(d, sum);
      if constexpr (has_bias) {
        values[v] = hn::MulAdd(value, scale[v], bias[v]);
      } else {
        values[v] = hn::Mul(value, scale[v]);
      }
    }
  }

  Ints term[vectors], factor[has_factor ? vectors : 1];
  bytes::Vec scale[vectors], bias[has_bias ? vectors : 1];
};

// Columns from `column` on, `vectors` vectors of them. Y: float, uint8_t or int8_t.
template <int vectors, bool has_factor, bool has_bias, class Y, class Store>
HWY_INLINE void FinishPart(const ByteFinish& how, const ByteSums& from, int64_t column, Y* y,
                           int64_t y_stride, const Store& store) {
  FinishColumns<vectors, has_factor, has_bias> columns(how, column);
  for (int64_t r = 0; r < from.rows; ++r) {
    if (!how.each) columns.set_row(how, r);
    bytes::Vec values[vectors];
    columns.finish(from.sums + r * byte_panel_columns + column,
                   has_factor ? from.row_sums + r : nullptr, values);
    store(values, y + r * y_stride + column);
  }
}

// All columns: first whole groups of vectors, by store<vectors>(values, to), then what is left, by
// store_some(values, to, count).
template <bool has_factor, bool has_bias, class Y, class Store, class StoreSome>
HWY_INLINE void FinishColumnsBy(const ByteFinish& how, const ByteSums& from, int64_t columns, Y* y,
                                int64_t y_stride, const Store& store, const StoreSome& store_some) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(bytes::Tag()));
  constexpr int many = 4;
  int64_t j = 0;
  for (; j + many * lanes <= columns; j += many * lanes) {
    FinishPart<many, has_factor, has_bias>(how, from, j, y, y_stride,
                                           [&](const bytes::Vec* values, Y* to) HWY_ATTR {
                                             store.template operator()<many>(values, to);
                                           });
  }
  if constexpr (std::is_same_v<Y, float>) {
    for (; j + lanes <= columns; j += lanes) {
      FinishPart<1, has_factor, has_bias>(how, from, j, y, y_stride,
                                          [&](const bytes::Vec* values, Y* to) HWY_ATTR {
                                            store.template operator()<1>(values, to);
                                          });
    }
  }
  for (; j < columns; j += lanes) {
    const auto count = static_cast<size_t>(std::min(lanes, columns - j));
    FinishPart<1, has_factor, has_bias>(how, from, j, y, y_stride,
                                        [&](const bytes::Vec* values, Y* to)
                                            HWY_ATTR { store_some(values, to, count); });
  }
}

template <class Y, bool has_factor, bool has_bias>
void FinishRows(const ByteFinish& how, const ByteSums& from, int64_t columns, Y* y,
                int64_t y_stride) {
  const bytes::Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  using Byte = std::conditional_t<std::is_same_v<Y, float>, uint8_t, Y>;
  const bytes::Rounder<Byte> rounder(how.zero);
  const auto store = [&]<int vectors>(const bytes::Vec* values, Y* to) HWY_ATTR {
    if constexpr (std::is_same_v<Y, float>) {
      for (int v = 0; v < vectors; ++v) {
        const auto raised = math::RaiseTo(d, values[v], how.low);
        hn::StoreU(math::LowerTo(d, raised, how.high), d, to + v * lanes);
      }
    } else {
      rounder.template store<vectors>(values, to);
    }
  };
  FinishColumnsBy<has_factor, has_bias>(how, from, columns, y, y_stride, store,
                                        [&](const bytes::Vec* values, Y* to, size_t count)
                                            HWY_ATTR {
                                              HWY_ALIGN Y some[hn::MaxLanes(d)];
                                              store.template operator()<1>(values, some);
                                              std::memcpy(to, some, count * sizeof(Y));
                                            });
}

// How bytes are added to others and rounded again. Y: uint8_t or int8_t.
template <class Y>
class ByteAdder {
 public:
  // int8 with a zero point is uint8 with another one.
  explicit HWY_INLINE ByteAdder(const ByteSum& how)
      : how_(how),
        first_(how.first.zero + (how.first.type == ElementType::int8 ? 128 : 0)),
        second_(how.second.scale, how.second.zero),
        y_(how.y.zero),
        factor_(byte_factor(how.y.scale)) {}

  template <int vectors>
  HWY_INLINE void store(const bytes::Vec* values, const Y* addend, Y* to) const {
    const bytes::Tag d;
    const auto scale = hn::Set(d, how_.first.scale);
    bytes::Vec sums[vectors];
    for (int v = 0; v < vectors; ++v, addend += hn::Lanes(d)) {
      const auto sum =
          hn::Add(hn::Mul(first_.whole(values[v]), scale), second_.template load<Y>(addend));
      sums[v] = how_.relu ? math::RaiseTo(d, sum, 0.0f) : sum;
    }
    y_.template store_quotients<vectors>(sums, how_.y.scale, factor_, to);
  }

 private:
  const ByteSum how_;
  const bytes::Rounder<uint8_t> first_;
  const bytes::Scaler second_;
  const bytes::Rounder<Y> y_;
  const float factor_;
};

template <class Y, bool has_factor>
void AddRows(const ByteFinish& how, const ByteSums& from, int64_t columns, Y* y, int64_t y_stride) {
  const ByteAdder<Y> adder(*how.sum);
  const auto* const addend = static_cast<const Y*>(how.addend);
  FinishColumnsBy<has_factor, false>(
      how, from, columns, y, y_stride,
      [&]<int vectors>(const bytes::Vec* values, Y* to)
          HWY_ATTR { adder.template store<vectors>(values, addend + (to - y), to); },
      [&](const bytes::Vec* values, Y* to, size_t count) HWY_ATTR {
        HWY_ALIGN Y some[hn::MaxLanes(bytes::Tag())] = {};
        std::memcpy(some, addend + (to - y), count);
        adder.template store<1>(values, some, some);
        std::memcpy(to, some, count);
      });
}

template <class Y>
void FinishAs(const ByteFinish& how, const ByteSums& from, int64_t columns, void* y,
              int64_t y_stride) {
  auto* to = static_cast<Y*>(y);
  if constexpr (!std::is_same_v<Y, float>) {
    if (how.sum != nullptr)
      return how.factor != nullptr ? AddRows<Y, true>(how, from, columns, to, y_stride)
                                   : AddRows<Y, false>(how, from, columns, to, y_stride);
  }
  if (how.factor != nullptr) {
    how.bias != nullptr ? FinishRows<Y, true, true>(how, from, columns, to, y_stride)
                        : FinishRows<Y, true, false>(how, from, columns, to, y_stride);
  } else {
    how.bias != nullptr ? FinishRows<Y, false, true>(how, from, columns, to, y_stride)
                        : FinishRows<Y, false, false>(how, from, columns, to, y_stride);
  }
}

// The sum of bytes from `from` on, as many as fill vectors of D, which are added to `done`.
template <class D>
HWY_INLINE uint64_t SumVectors(D d, const uint8_t* from, int64_t count, uint8_t flipped,
                               int64_t& done) {
  const hn::Repartition<uint64_t, D> d64;
  const auto flip = hn::Set(d, flipped);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto sum = hn::Zero(d64);
  for (; done + lanes <= count; done += lanes)
    sum = hn::Add(sum, hn::SumsOf8(hn::Xor(hn::LoadU(d, from + done), flip)));
  return hn::GetLane(hn::SumOfLanes(d64, sum));
}

void SumByteRows(const uint8_t* rows, int64_t stride, int64_t count, int64_t terms, uint8_t flipped,
                 int32_t* sums) {
  for (int64_t i = 0; i < count; ++i, rows += stride) {
    int64_t done = 0;
    uint64_t sum = SumVectors(hn::ScalableTag<uint8_t>(), rows, terms, flipped, done);
    sum += SumVectors(hn::CappedTag<uint8_t, 16>(), rows, terms, flipped, done);
    for (; done < terms; ++done) sum += static_cast<uint8_t>(rows[done] ^ flipped);
    sums[i] = static_cast<int32_t>(sum);
  }
}

void Finish(const ByteFinish& how, const ByteSums& from, int64_t columns, void* y,
            int64_t y_stride) {
  switch (how.type) {
    case ElementType::uint8: return FinishAs<uint8_t>(how, from, columns, y, y_stride);
    case ElementType::int8: return FinishAs<int8_t>(how, from, columns, y, y_stride);
    default: return FinishAs<float>(how, from, columns, y, y_stride);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(PanelSigned);
HWY_EXPORT(PanelUnsigned);
HWY_EXPORT(Finish);
HWY_EXPORT(SumByteRows);

namespace {

constexpr int64_t row_block = 128;

}  // namespace

int64_t byte_panel_bytes(int64_t groups) {
  return groups * byte_group_bytes + (sums_in_16_bits() ? byte_flags_bytes(groups)
                                      : has_neon_dot()  ? lost_of_columns_bytes
                                                        : 0);
}

// A loop of its own: bytes that are written could be those of any captured variable.
void flip_signs(const uint8_t* from, int64_t count, uint8_t* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<uint8_t>(from[i] ^ 0x80);
}

void sum_byte_rows(const uint8_t* rows, int64_t stride, int64_t count, int64_t terms,
                   uint8_t flipped, int32_t* sums) {
  HWY_DYNAMIC_DISPATCH(SumByteRows)(rows, stride, count, terms, flipped, sums);
}

void pack_byte_rows(ElementType type, const void* a, int64_t count, int64_t k, uint8_t* out,
                    int32_t* sums, ThreadPool& pool) {
  const int64_t width = 4 * vnni_groups(k);
  pool.parallel_for(count, std::max<int64_t>(1, 65536 / std::max<int64_t>(1, width)),
                    [&](int64_t begin, int64_t end, int) {
                      for (int64_t i = begin; i < end; ++i) {
                        const auto* from = static_cast<const uint8_t*>(a) + i * k;
                        uint8_t* to = out + i * width;
                        if (type == ElementType::int8) {
                          flip_signs(from, k, to);
                        } else if (k > 0) {
                          std::memcpy(to, from, static_cast<size_t>(k));
                        }
                        for (int64_t t = k; t < width; ++t) to[t] = 0;
                        if (sums != nullptr) sum_byte_rows(to, width, 1, k, 0, sums + i);
                      }
                    });
}

namespace {

// Part of a panel: `used` columns of the matrix from `from` on, four terms side by side.
struct ByteStrip {
  const uint8_t* from;
  int64_t term_stride, column_stride, k, used;
  uint32_t mask;  // flips the sign bits of four bytes
  int8_t* to;
  int32_t* sums;

  int8_t flipped(const uint8_t* byte) const { return static_cast<int8_t>(*byte ^ (mask & 0xff)); }

  // Terms [first, end), whatever the strides.
  void pack_some(int64_t first, int64_t end) const {
    for (int64_t t = first; t < end; ++t) {
      int8_t* group = to + t / 4 * byte_group_bytes + t % 4;
      for (int64_t j = 0; j < used; ++j) {
        const int8_t value = flipped(from + t * term_stride + j * column_stride);
        group[4 * j] = value;
        sums[j] += value;
      }
    }
  }

  // Columns whose terms lie side by side: four bytes move as one.
  void pack_columns() const {
    constexpr int64_t block = 512;  // terms; what they are written to stays in the nearest cache
    const int64_t whole = k / 4 * 4;
    for (int64_t first = 0; first < whole; first += block) {
      const int64_t end = std::min(first + block, whole);
      for (int64_t j = 0; j < used; ++j) {
        const uint8_t* column = from + j * column_stride;
        int8_t* group = to + first / 4 * byte_group_bytes + 4 * j;
        for (int64_t t = first; t < end; t += 4, group += byte_group_bytes) {
          uint32_t four;
          std::memcpy(&four, column + t, sizeof four);
          four ^= mask;
          std::memcpy(group, &four, sizeof four);
        }
        int32_t sum = 0;
        for (int64_t t = first; t < end; ++t) sum += flipped(column + t);
        sums[j] += sum;
      }
    }
    pack_some(whole, k);
  }

  // Rows whose columns lie side by side: four of them at a time.
  void pack_rows() const {
    const int64_t whole = k / 4 * 4;
    for (int64_t t = 0; t < whole; t += 4) {
      const uint8_t* const rows[] = {from + t * term_stride, from + (t + 1) * term_stride,
                                     from + (t + 2) * term_stride, from + (t + 3) * term_stride};
      int8_t* group = to + t / 4 * byte_group_bytes;
      for (int64_t j = 0; j < used; ++j) {
        int32_t sum = 0;
        for (int64_t r = 0; r < 4; ++r) {
          const int8_t value = flipped(rows[r] + j);
          group[4 * j + r] = value;
          sum += value;
        }
        sums[j] += sum;
      }
    }
    pack_some(whole, k);
  }

  void pack() const {
    for (int64_t t = 0; t < vnni_groups(k); ++t)
      std::memset(to + t * byte_group_bytes, 0, static_cast<size_t>(4 * byte_strip_columns));
    std::fill_n(sums, used, 0);
    if (term_stride == 1) return pack_columns();
    if (column_stride == 1) return pack_rows();
    pack_some(0, k);
  }
};

}  // namespace

void pack_byte_panels(ElementType type, const void* b, int64_t term_stride, int64_t column_stride,
                      int64_t k, int64_t columns, int8_t* out, int32_t* sums, ThreadPool& pool) {
  constexpr int64_t strips = byte_panel_strips;
  constexpr int64_t task = 32768;  // bytes
  const int64_t groups = vnni_groups(k), bytes = byte_panel_bytes(groups);
  const int64_t panels = (columns + byte_panel_columns - 1) / byte_panel_columns;
  const auto* from = static_cast<const uint8_t*>(b);
  pool.parallel_for(
      panels * strips,
      std::max<int64_t>(1, task / std::max<int64_t>(1, groups * 4 * byte_strip_columns)),
      [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t first = i * byte_strip_columns, strip = i % strips;
          int8_t* const panel = out + i / strips * bytes;
          int8_t* const to = panel + strip * 4 * byte_strip_columns;
          ByteStrip{.from = from + std::min(first, columns) * column_stride,
                    .term_stride = term_stride,
                    .column_stride = column_stride,
                    .k = k,
                    .used = std::clamp<int64_t>(columns - first, 0, byte_strip_columns),
                    .mask = type == ElementType::int8 ? 0 : 0x80808080u,
                    .to = to,
                    .sums = sums + std::min(first, columns)}
              .pack();
          if (sums_in_16_bits()) find_byte_flags(panel, groups, strip);
#ifdef SARDONYX_NEON_DOT
          if (has_neon_dot()) find_lost_of_columns(panel, groups, strip);
#endif
        }
      });
}

void byte_panel_product(bool panel_signed, const void* rows, int64_t row_stride, int64_t count,
                        int64_t groups, const void* panel, int64_t columns, int32_t* sums,
                        BytesAhead ahead) {
  const auto* a = static_cast<const uint8_t*>(rows);
  const auto* b = static_cast<const uint8_t*>(panel);
  if (byte_tiles_apply(count, groups))
    return byte_tiles_product(panel_signed ? SignedBytes::panel : SignedBytes::rows, a, row_stride,
                              count, groups, b, columns, nullptr, sums, ahead);
  if (has_avx512_vnni())
    return vnni_panel_product(panel_signed, a, row_stride, count, groups, b, columns, sums);
#if defined(__x86_64__)
  if (has_avx_vnni())
    return avx_vnni_panel_product(panel_signed, a, row_stride, count, groups, b, columns, sums);
#elif defined(SARDONYX_NEON_DOT)
  if (has_neon_dot())
    return neon_panel_product(panel_signed, a, row_stride, count, groups, b, columns, sums);
#endif
  constexpr int64_t few_rows = 4;  // which simple loops finish before more is set up
  if (sums_in_16_bits() && groups > 0 && count > few_rows)
    return avx2_panel_product(panel_signed, a, row_stride, count, groups, b, columns, sums, ahead);
  if (panel_signed) {
    HWY_DYNAMIC_DISPATCH(PanelSigned)(a, row_stride, count, groups, b, columns, sums);
  } else {
    HWY_DYNAMIC_DISPATCH(PanelUnsigned)(a, row_stride, count, groups, b, columns, sums);
  }
}

void finish_bytes(const ByteFinish& how, const ByteSums& from, int64_t columns, void* y,
                  int64_t y_stride) {
  HWY_DYNAMIC_DISPATCH(Finish)(how, from, columns, y, y_stride);
}

SignedRows signed_rows(int64_t groups) {
  if (byte_tiles_take(groups)) return SignedRows::as_they_are;
  return has_avx512_vnni() ? SignedRows::raised : SignedRows::no;
}

void byte_panel_finish(const ByteRowsOf& rows, const int8_t* panel, const ByteFinish& how,
                       const int32_t* row_sums, int64_t columns, void* y, int64_t y_stride,
                       BytesAhead ahead) {
  if (has_avx512_vnni())
    return vnni_panel_finish(rows, reinterpret_cast<const uint8_t*>(panel), how, row_sums, columns,
                             y, y_stride, ahead);
  const int64_t parts = (rows.count + row_block - 1) / row_block,
                part = (rows.count + parts - 1) / parts;
  const int64_t size = how.type == ElementType::float32 ? 4 : 1;
  alignas(64) int32_t sums[row_block * byte_panel_columns];
  ByteFinish at = how;
  for (int64_t i = 0; i < rows.count; i += part) {
    const int64_t some = std::min(part, rows.count - i), place = i * y_stride * size;
    byte_panel_product(true, rows.data + i * rows.stride, rows.stride, some, rows.groups, panel,
                       columns, sums, ahead.part(i / part, parts));
    if (how.sum != nullptr) at.addend = static_cast<const std::byte*>(how.addend) + place;
    finish_bytes(at, {sums, row_sums ? row_sums + i : nullptr, some}, columns,
                 static_cast<std::byte*>(y) + place, y_stride);
  }
}

void byte_product(const uint8_t* rows, const int32_t* row_sums, int64_t m, int64_t n, int64_t k,
                  const int8_t* panels, const ByteFinish& how, void* y, ThreadPool& pool) {
  const int64_t groups = vnni_groups(k), count = (n + byte_panel_columns - 1) / byte_panel_columns;
  const int64_t width = 4 * groups, panel_bytes = byte_panel_bytes(groups);
  // Rows of a task: as many as stay in the second-level cache while a panel is read once for them.
  constexpr int64_t near_bytes = 512 << 10;
  const int64_t most = std::max<int64_t>(1, near_bytes / std::max<int64_t>(width, 1) / row_block),
                together = most * row_block, blocks = (m + together - 1) / together;
  const int64_t size = how.type == ElementType::float32 ? 4 : 1;
  const int64_t work = std::min(together, m) * width * byte_panel_columns;
  pool.parallel_for(
      blocks * count, std::max<int64_t>(1, 2000000 / std::max<int64_t>(1, work)),
      [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t panel = i % count, column = panel * byte_panel_columns;
          ByteFinish at = how;
          at.term += column, at.scale += column;
          if (at.factor) at.factor += column;
          if (at.bias) at.bias += column;
          const int64_t begin_row = i / count * together, last = std::min(m, begin_row + together);
          const int8_t* at_panel = panels + panel * panel_bytes;
          const int64_t next_bytes = panel + 1 < count ? panel_bytes : 0;
          const BytesAhead next{at_panel + next_bytes, next_bytes};
          byte_panel_finish({rows + begin_row * width, width, last - begin_row, groups}, at_panel,
                            at, row_sums ? row_sums + begin_row : nullptr,
                            std::min(byte_panel_columns, n - column),
                            static_cast<std::byte*>(y) + (begin_row * n + column) * size, n, next);
        }
      });
}

}  // namespace sardonyx::kernels
#endif
