#include "kernels/gemm/gemm_int8_avx2.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/cpu.h"
#include "kernels/gemm/gemm_int8.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/gemm_int8_avx2.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef SARDONYX_KERNELS_GROUP_FLAGS
#define SARDONYX_KERNELS_GROUP_FLAGS
namespace sardonyx::kernels {
namespace {

// Of the signed bytes of two groups of a strip: whether the sums of both fit together, and if not,
// which groups do not even by themselves.
enum GroupFlags : uint8_t { first_is_large = 1, second_is_large = 2, groups_apart = 4 };

}  // namespace
}  // namespace sardonyx::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
constexpr int64_t wide_groups = 64;  // at a time: those of a panel stay in the nearest cache
constexpr int tile_rows = 5;         // by two vectors: with their operands all registers of AVX2
using WideTag = hn::CappedTag<int32_t, byte_panel_columns / 2>;
using WideVec = hn::Vec<WideTag>;
using PairTag = hn::Repartition<int16_t, WideTag>;
using PairVec = hn::Vec<PairTag>;

// Of unsigned and signed bytes: a[2i] * b[2i] + a[2i+1] * b[2i+1], which must fit.
HWY_INLINE PairVec AddNeighbours(WideVec a, WideVec b) {
#if HWY_TARGET == HWY_AVX3
  return PairVec{_mm512_maddubs_epi16(a.raw, b.raw)};
#else
  return PairVec{_mm256_maddubs_epi16(a.raw, b.raw)};
#endif
}

// The largest sums, in size, that two neighbours of bytes and what is above and below 0 of them
// make: 255 times as much must fit 16 bits.
class NeighbourSums {
 public:
  HWY_INLINE NeighbourSums() : above_(hn::Zero(PairTag())), below_(hn::Zero(PairTag())) {}
  HWY_INLINE void add(WideVec v) {
    const hn::Repartition<int8_t, WideTag> d8;
    const auto bytes = hn::BitCast(d8, v);
    above_ = hn::Add(above_, sums(hn::BitCast(WideTag(), hn::Max(bytes, hn::Zero(d8)))));
    below_ = hn::Sub(below_, sums(hn::BitCast(WideTag(), hn::Min(bytes, hn::Zero(d8)))));
  }
  HWY_INLINE bool fit() const {
    const PairTag d16;
    return hn::AllTrue(d16, hn::Lt(hn::Max(above_, below_), hn::Set(d16, 129)));
  }

 private:
  static HWY_INLINE PairVec sums(WideVec v) {
    const hn::Repartition<uint8_t, WideTag> du8;
    return AddNeighbours(hn::BitCast(WideTag(), hn::Set(du8, 1)), v);
  }
  PairVec above_, below_;
};

// Of each two groups of a strip.
void FindFlags(const int8_t* strip, int64_t groups, uint8_t* flags) {
  const WideTag d;
  const auto fit = [&](int64_t first, int64_t end) HWY_ATTR {
    bool all = true;
    for (int64_t j = 0; j < byte_strip_columns; j += static_cast<int64_t>(hn::Lanes(d))) {
      NeighbourSums sums;
      for (int64_t q = first; q < end; ++q)
        sums.add(hn::LoadU(d, reinterpret_cast<const int32_t*>(strip + q * byte_group_bytes) + j));
      all = all && sums.fit();
    }
    return all;
  };
  for (int64_t q = 0; q < groups; q += 2, flags += byte_panel_strips) {
    const bool is_last = q + 1 == groups;
    uint8_t found = 0;
    if (is_last || !fit(q, q + 2)) {
      found = groups_apart;
      if (!fit(q, q + 1)) found |= first_is_large;
      if (!is_last && !fit(q + 1, q + 2)) found |= second_is_large;
    }
    *flags = found;
  }
}

template <bool is_signed>
HWY_INLINE void Widen(WideVec bytes, PairVec& even, PairVec& odd) {
  const PairTag d16;
  const std::conditional_t<is_signed, PairTag, hn::RebindToUnsigned<PairTag>> d_pairs;
  const auto pairs = hn::BitCast(d_pairs, bytes);
  if constexpr (is_signed) {
    even = hn::ShiftRight<8>(hn::ShiftLeft<8>(pairs));
  } else {
    even = hn::BitCast(d16, hn::And(pairs, hn::Set(d_pairs, 0xff)));
  }
  odd = hn::BitCast(d16, hn::ShiftRight<8>(pairs));
}

// Two vectors of columns of some groups of a panel: which groups are taken together with the next
// one, which as bytes, and which as pairs, which stand here.
struct WideColumns {
  // Of `some` groups of a signed panel.
  HWY_INLINE void find(const uint8_t* flags, int64_t some) {
    constexpr auto strips = static_cast<int64_t>(2 * hn::MaxLanes(WideTag())) / byte_strip_columns;
    twos = bytes = pairs = 0;
    for (int64_t q = 0; q < some; q += 2, flags += byte_panel_strips) {
      uint8_t found = flags[0];
      for (int64_t i = 1; i < strips; ++i) found |= flags[i];
      // Written to all lists, of which one moves on: a branch would be guessed wrongly.
      const bool apart = (found & groups_apart) != 0;
      two_groups[twos] = static_cast<uint8_t>(q);
      twos += !apart;
      add(q, apart, (found & first_is_large) != 0);
      add(q + 1, apart && q + 1 < some, (found & second_is_large) != 0);
    }
  }
  // Of an unsigned panel, whatever the rows are.
  HWY_INLINE void take_all(int64_t some) {
    twos = bytes = 0;
    for (pairs = 0; pairs < some; ++pairs) pair_groups[pairs] = static_cast<uint8_t>(pairs);
  }
  template <bool is_signed>
  HWY_INLINE void widen(const int32_t* panel) {
    const WideTag d;
    const PairTag d16;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    int16_t* to = values;
    for (int64_t i = 0; i < pairs; ++i, to += 8 * lanes) {
      const int32_t* group = panel + pair_groups[i] * byte_panel_columns;
      for (int64_t v = 0; v < 2; ++v) {
        PairVec even, odd;
        Widen<is_signed>(hn::LoadU(d, group + v * lanes), even, odd);
        hn::Store(even, d16, to + 2 * v * lanes);
        hn::Store(odd, d16, to + 2 * (2 + v) * lanes);
      }
    }
  }

  HWY_ALIGN int16_t values[wide_groups * 8 * hn::MaxLanes(WideTag())];
  uint8_t two_groups[wide_groups / 2 + 1], byte_groups[wide_groups + 1],
      pair_groups[wide_groups + 1];
  int64_t twos = 0, bytes = 0, pairs = 0;

 private:
  HWY_INLINE void add(int64_t q, bool is_there, bool is_large) {
    byte_groups[bytes] = pair_groups[pairs] = static_cast<uint8_t>(q);
    bytes += is_there && !is_large, pairs += is_there && is_large;
  }
};

// Rows of a tile. Their addresses are hidden from the compiler, which would compute them from each
// other in every group.
template <int rows>
struct WideRows {
  HWY_INLINE WideRows(const uint8_t* data, int64_t stride) {
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      at[r] = data + r * stride;
      asm("" : "+r"(at[r]));
    }
  }
  HWY_INLINE WideVec group(int row, int64_t q) const {
    int32_t four;
    std::memcpy(&four, at[row] + 4 * q, sizeof four);
    return hn::Set(WideTag(), four);
  }
  const uint8_t* at[rows];
};

// The next group, too.
template <int rows>
HWY_INLINE void AddTwo(const WideRows<rows>& a, int64_t q, const int32_t* columns, PairVec ones,
                       WideVec (&sums)[rows][2]) {
  const WideTag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto unused = hn::Zero(d);
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
    const auto x = a.group(r, q), y = a.group(r, q + 1);
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      const int32_t* const at = columns + v * lanes;
      const auto both = hn::Add(AddNeighbours(x, hn::LoadU(d, at)),
                                AddNeighbours(y, hn::LoadU(d, at + byte_panel_columns)));
      sums[r][v] = hn::ReorderWidenMulAccumulate(d, both, ones, sums[r][v], unused);
    }
  }
}

template <int rows>
HWY_INLINE void AddBytes(const WideRows<rows>& a, int64_t q, const int32_t* columns, PairVec ones,
                         WideVec (&sums)[rows][2]) {
  const WideTag d;
  auto unused = hn::Zero(d);
  const auto b0 = hn::LoadU(d, columns), b1 = hn::LoadU(d, columns + hn::Lanes(d));
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
    const auto x = a.group(r, q);
    sums[r][0] = hn::ReorderWidenMulAccumulate(d, AddNeighbours(x, b0), ones, sums[r][0], unused);
    sums[r][1] = hn::ReorderWidenMulAccumulate(d, AddNeighbours(x, b1), ones, sums[r][1], unused);
  }
}

// Columns as WideColumns widened them.
template <bool is_signed, int rows>
HWY_INLINE void AddPairs(const WideRows<rows>& a, int64_t q, const int16_t* columns,
                         WideVec (&sums)[rows][2]) {
  const WideTag d;
  const PairTag d16;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d16));
  auto unused = hn::Zero(d);
  const auto even0 = hn::Load(d16, columns), even1 = hn::Load(d16, columns + lanes),
             odd0 = hn::Load(d16, columns + 2 * lanes), odd1 = hn::Load(d16, columns + 3 * lanes);
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
    PairVec even, odd;
    Widen<is_signed>(a.group(r, q), even, odd);
    sums[r][0] = hn::ReorderWidenMulAccumulate(d, even, even0, sums[r][0], unused);
    sums[r][1] = hn::ReorderWidenMulAccumulate(d, even, even1, sums[r][1], unused);
    sums[r][0] = hn::ReorderWidenMulAccumulate(d, odd, odd0, sums[r][0], unused);
    sums[r][1] = hn::ReorderWidenMulAccumulate(d, odd, odd1, sums[r][1], unused);
  }
}

// A function by itself: within another one its sums do not get all registers.
template <bool panel_signed, int rows>
HWY_NOINLINE void WideTile(const uint8_t* data, int64_t stride, const int32_t* panel,
                           const WideColumns& b, bool adds, int32_t* to) {
  const WideTag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const WideRows<rows> a(data, stride);
  WideVec sums[rows][2];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v)
      sums[r][v] = adds ? hn::LoadU(d, to + r * byte_panel_columns + v * lanes) : hn::Zero(d);
  }
  if constexpr (panel_signed) {
    const auto ones = hn::Set(PairTag(), 1);
#pragma GCC unroll 1
    for (int64_t i = 0; i < b.twos; ++i) {
      const int64_t q = b.two_groups[i];
      AddTwo<rows>(a, q, panel + q * byte_panel_columns, ones, sums);
    }
#pragma GCC unroll 1
    for (int64_t i = 0; i < b.bytes; ++i) {
      const int64_t q = b.byte_groups[i];
      AddBytes<rows>(a, q, panel + q * byte_panel_columns, ones, sums);
    }
  }
#pragma GCC unroll 1
  for (int64_t i = 0; i < b.pairs; ++i)
    AddPairs<!panel_signed, rows>(a, b.pair_groups[i], b.values + i * 8 * lanes, sums);
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) hn::StoreU(sums[r][v], d, to + r * byte_panel_columns + v * lanes);
  }
}

// At most `rows` of them.
template <bool panel_signed, int rows>
void SomeRows(int64_t count, const uint8_t* a, int64_t stride, const int32_t* panel,
              const WideColumns& b, bool adds, int32_t* to) {
  if (count >= rows) return WideTile<panel_signed, rows>(a, stride, panel, b, adds, to);
  if constexpr (rows > 1) SomeRows<panel_signed, rows - 1>(count, a, stride, panel, b, adds, to);
}

template <bool panel_signed>
void WidePanel(const uint8_t* a, int64_t stride, int64_t rows, int64_t groups, const uint8_t* panel,
               int64_t columns, int32_t* sums, BytesAhead ahead) {
  constexpr auto step = static_cast<int64_t>(2 * hn::MaxLanes(WideTag()));
  const int64_t used = (columns + step - 1) / step;
  const uint8_t* flags = panel + groups * byte_group_bytes;
  WideColumns strips[byte_panel_columns / step];
  for (int64_t q = 0; q < groups; q += wide_groups, flags += wide_groups / 2 * byte_panel_strips) {
    const int64_t some = std::min(wide_groups, groups - q);
    const auto* const first = reinterpret_cast<const int32_t*>(panel + q * byte_group_bytes);
    for (int64_t s = 0; s < used; ++s) {
      if constexpr (panel_signed) {
        strips[s].find(flags + s * step / byte_strip_columns, some);
      } else {
        strips[s].take_all(some);
      }
      strips[s].template widen<panel_signed>(first + s * step);
    }
    // The next groups, or what follows the last, are brought near meanwhile.
    constexpr int64_t line = 64;
    const int64_t left = groups - q - some;
    const BytesAhead next =
        left > 0 ? BytesAhead{first + some * byte_panel_columns, left * byte_group_bytes} : ahead;
    const int64_t most = std::min(next.size, some * byte_group_bytes);
    int64_t fetched = 0;
    for (int64_t i = 0; i < rows; i += tile_rows) {
      const int64_t until = most * std::min(rows, i + tile_rows) / rows;
      for (; fetched < until; fetched += line)
        __builtin_prefetch(static_cast<const char*>(next.data) + fetched, 0, 2);
      for (int64_t s = 0; s < used; ++s)
        SomeRows<panel_signed, tile_rows>(rows - i, a + i * stride + 4 * q, stride,
                                          first + s * step, strips[s], q > 0,
                                          sums + i * byte_panel_columns + s * step);
    }
  }
}

void WidePanelSigned(const uint8_t* a, int64_t stride, int64_t rows, int64_t groups,
                     const uint8_t* panel, int64_t columns, int32_t* sums, BytesAhead ahead) {
  WidePanel<true>(a, stride, rows, groups, panel, columns, sums, ahead);
}
void WidePanelUnsigned(const uint8_t* a, int64_t stride, int64_t rows, int64_t groups,
                       const uint8_t* panel, int64_t columns, int32_t* sums, BytesAhead ahead) {
  WidePanel<false>(a, stride, rows, groups, panel, columns, sums, ahead);
}
bool AddsIn16Bits() { return true; }
#else  // never called, but for the last
void FindFlags(const int8_t*, int64_t, uint8_t*) {}
void WidePanelSigned(const uint8_t*, int64_t, int64_t, int64_t, const uint8_t*, int64_t, int32_t*,
                     BytesAhead) {}
void WidePanelUnsigned(const uint8_t*, int64_t, int64_t, int64_t, const uint8_t*, int64_t, int32_t*,
                       BytesAhead) {}
bool AddsIn16Bits() { return false; }
#endif

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(AddsIn16Bits);
HWY_EXPORT(FindFlags);
HWY_EXPORT(WidePanelSigned);
HWY_EXPORT(WidePanelUnsigned);

bool sums_in_16_bits() {
  return !has_avx512_vnni() && !has_avx_vnni() && HWY_DYNAMIC_DISPATCH(AddsIn16Bits)();
}

namespace {
int64_t flags_used(int64_t groups) { return (groups + 1) / 2 * byte_panel_strips; }
}  // namespace

int64_t byte_flags_bytes(int64_t groups) {
  constexpr int64_t line = 64;
  return (flags_used(groups) + line - 1) / line * line;
}

void find_byte_flags(int8_t* panel, int64_t groups, int64_t strip) {
  auto* const flags = reinterpret_cast<uint8_t*>(panel + groups * byte_group_bytes);
  if (strip == 0) {  // what is behind the last one is written to files, too
    std::memset(flags + flags_used(groups), 0,
                static_cast<size_t>(byte_flags_bytes(groups) - flags_used(groups)));
  }
  HWY_DYNAMIC_DISPATCH(FindFlags)(panel + strip * 4 * byte_strip_columns, groups, flags + strip);
}

void avx2_panel_product(bool panel_signed, const uint8_t* rows, int64_t row_stride, int64_t count,
                        int64_t groups, const uint8_t* panel, int64_t columns, int32_t* sums,
                        BytesAhead ahead) {
  if (panel_signed) {
    HWY_DYNAMIC_DISPATCH(WidePanelSigned)
    (rows, row_stride, count, groups, panel, columns, sums, ahead);
  } else {
    HWY_DYNAMIC_DISPATCH(WidePanelUnsigned)
    (rows, row_stride, count, groups, panel, columns, sums, ahead);
  }
}

}  // namespace sardonyx::kernels
#endif
