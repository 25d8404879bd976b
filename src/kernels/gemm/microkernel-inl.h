// The innermost loops: a tile of sums kept in registers.
//
// Included from files that Highway compiles several times; hence the toggled guard.
#if defined(SARDONYX_KERNELS_GEMM_MICROKERNEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SARDONYX_KERNELS_GEMM_MICROKERNEL_INL_H_
#undef SARDONYX_KERNELS_GEMM_MICROKERNEL_INL_H_
#else
#define SARDONYX_KERNELS_GEMM_MICROKERNEL_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "kernels/convert/low_precision.h"
#include "kernels/gemm/tiles.h"
#include "kernels/simd/masked-inl.h"
#include "kernels/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace math = sardonyx::HWY_NAMESPACE::math;

// Of the portable target there is less code: it is as large as the others', and slow in any case.
constexpr bool is_portable =
    HWY_TARGET != HWY_AVX3 && HWY_TARGET != HWY_AVX2 && HWY_TARGET != HWY_NEON;
constexpr bool has_32_registers = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON;

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
using TileTag = hn::ScalableTag<float>;
using TileVec = hn::Vec<TileTag>;
constexpr int tile_lanes = HWY_TARGET == HWY_AVX3 ? 16 : HWY_TARGET == HWY_AVX2 ? 8 : 4;
constexpr int tile_rows = HWY_TARGET == HWY_AVX3 ? 14 : HWY_TARGET == HWY_AVX2 ? 6 : 8;
constexpr int flat_rows = HWY_TARGET == HWY_AVX2 ? 4 : 8;
HWY_INLINE TileVec TileZero() { return hn::Zero(TileTag()); }
HWY_INLINE TileVec TileLoad(const float* p) { return hn::LoadU(TileTag(), p); }
HWY_INLINE TileVec TileBroadcast(const float* p) { return hn::Set(TileTag(), *p); }
HWY_INLINE void TileStoreVec(TileVec v, float* p) { hn::StoreU(v, TileTag(), p); }
HWY_INLINE TileVec TileMulAdd(TileVec a, TileVec b, TileVec sum) { return hn::MulAdd(a, b, sum); }
#else
// The compiler's own vectors: Highway's portable target is slow here, and scalable vectors cannot
// stand in an array.
typedef float TileVec __attribute__((vector_size(16)));
constexpr int tile_lanes = 4;
constexpr int tile_rows = 4;
constexpr int flat_rows = 4;
HWY_INLINE TileVec TileZero() { return TileVec{0, 0, 0, 0}; }
HWY_INLINE TileVec TileLoad(const float* p) {
  TileVec v;
  memcpy(&v, p, sizeof v);
  return v;
}
HWY_INLINE TileVec TileBroadcast(const float* p) { return TileVec{*p, *p, *p, *p}; }
HWY_INLINE void TileStoreVec(TileVec v, float* p) { memcpy(p, &v, sizeof v); }
HWY_INLINE TileVec TileMulAdd(TileVec a, TileVec b, TileVec sum) { return a * b + sum; }
#endif

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
// The first `count` lanes of a vector; the memory of the others is not touched, and loads as 0.
class FirstLanes {
 public:
  HWY_INLINE explicit FirstLanes(int64_t count)
      : mask_(hn::FirstN(TileTag(), static_cast<size_t>(count))) {}
  HWY_INLINE TileVec load(const float* p) const { return masked::Load(mask_, TileTag(), p); }
  HWY_INLINE void store(TileVec v, float* p) const { masked::Store(v, mask_, TileTag(), p); }

 private:
  hn::Mask<TileTag> mask_;
};
#elif HWY_TARGET == HWY_NEON
// The same without masks.
class FirstLanes {
 public:
  HWY_INLINE explicit FirstLanes(int64_t count) : count_(static_cast<int>(count)) {}
  HWY_INLINE TileVec load(const float* p) const {
    HWY_ALIGN const float lanes[tile_lanes] = {count_ > 0 ? p[0] : 0, count_ > 1 ? p[1] : 0,
                                               count_ > 2 ? p[2] : 0, count_ > 3 ? p[3] : 0};
    return hn::Load(TileTag(), lanes);
  }
  HWY_INLINE void store(TileVec v, float* p) const {
    HWY_ALIGN float lanes[tile_lanes];
    hn::Store(v, TileTag(), lanes);
    for (int i = 0; i < count_; ++i) p[i] = lanes[i];
  }

 private:
  int count_;
};
#endif

// sum += a * b, into the sum's own register. Left to itself GCC 12 takes forms that overwrite a
// factor, and of the 15 registers that a tile needs of AVX2's 16 it then spills a sum in every
// term, which doubles the time.
// Few rows leave registers free, and read b from memory in the same instruction.
template <bool many_rows>
HWY_INLINE void TileAccumulate(TileVec a, TileVec b, TileVec& sum) {
#if HWY_TARGET == HWY_AVX2 && defined(__GNUC__) && !defined(__clang__) && \
    !defined(SARDONYX_SANITIZED)
  if constexpr (many_rows) {
    __m256 raw = sum.raw;
    asm("vfmadd231ps %2, %1, %0" : "+x"(raw) : "x"(a.raw), "x"(b.raw));
    sum.raw = raw;
    return;
  }
#endif
  sum = TileMulAdd(a, b, sum);
}

// p[0] to p[group - 1], again and again; group divides tile_lanes.
template <int group>
HWY_INLINE TileVec TileRepeat(const float* p) {
  if constexpr (group == 1) {
    return TileBroadcast(p);
  } else if constexpr (group >= tile_lanes) {
    return TileLoad(p);
  } else {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
    if constexpr (group == 4) return hn::LoadDup128(TileTag(), p);
#if HWY_TARGET == HWY_AVX3
    if constexpr (group == 8) return TileVec{_mm512_broadcast_f32x8(_mm256_loadu_ps(p))};
#endif
    uint64_t bits;
    memcpy(&bits, p, sizeof bits);
    return hn::BitCast(TileTag(),
                       hn::Set(hn::RepartitionToWide<hn::RebindToUnsigned<TileTag>>(), bits));
#else
    return TileVec{p[0], p[1], p[0], p[1]};
#endif
  }
}

// Halves as vectors of floats. The types stand for what 16 bits mean.
struct Float16Bits {
  uint16_t bits;
};
struct Bfloat16Bits {
  uint16_t bits;
};
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
HWY_INLINE TileVec TileLoad(const Float16Bits* p) {
  const hn::Rebind<hwy::float16_t, TileTag> d;
  return hn::PromoteTo(TileTag(), hn::BitCast(d, hn::LoadU(hn::Rebind<uint16_t, TileTag>(),
                                                           reinterpret_cast<const uint16_t*>(p))));
}
HWY_INLINE TileVec TileLoad(const Bfloat16Bits* p) {
  const hn::Rebind<uint32_t, TileTag> d;
  const auto bits =
      hn::LoadU(hn::Rebind<uint16_t, TileTag>(), reinterpret_cast<const uint16_t*>(p));
  return hn::BitCast(TileTag(), hn::ShiftLeft<16>(hn::PromoteTo(d, bits)));
}
#else
HWY_INLINE TileVec TileLoad(const Float16Bits* p) {
  TileVec v;
  for (int i = 0; i < tile_lanes; ++i) v[i] = half_to_float(p[i].bits);
  return v;
}
HWY_INLINE TileVec TileLoad(const Bfloat16Bits* p) {
  TileVec v;
  for (int i = 0; i < tile_lanes; ++i) v[i] = bfloat16_to_float(p[i].bits);
  return v;
}
#endif

// The compiler takes the result for a value that it cannot compute anew.
template <class T>
HWY_INLINE T Opaque(T value) {
#if defined(__GNUC__)
  asm("" : "+r"(value));
#endif
  return value;
}

// Up to 14 rows of A from two pointers and three distances, which all find room in registers; or,
// k-major, rows that lie side by side.
template <bool k_major>
class TileRows {
 public:
  TileRows(const float* a, int64_t stride) : TileRows(a, a + low_tile_rows * stride, stride) {}
  TileRows(const float* low, const float* high, int64_t stride)
      : low_(low),
        high_(Opaque(high)),
        one_(stride),
        three_(Opaque(3 * stride)),
        five_(Opaque(5 * stride)) {}
  HWY_INLINE const float* at(int row, int64_t term) const {
    if constexpr (k_major) return low_ + row + term * one_;
    const float* base = (row < low_tile_rows ? low_ : high_) + term;
    switch (row % low_tile_rows) {
      case 0: return base;
      case 1: return base + one_;
      case 2: return base + 2 * one_;
      case 3: return base + three_;
      case 4: return base + 4 * one_;
      case 5: return base + five_;
      default: return base + 2 * three_;
    }
  }
  HWY_INLINE void skip(int64_t terms) {
    low_ += k_major ? terms * one_ : terms;
    high_ += terms;
  }

 private:
  const float* low_;
  const float* high_;
  int64_t one_, three_, five_;
};

#if HWY_TARGET == HWY_AVX3
// In the lower half of a vector; what is in the upper one is nobody's.
HWY_INLINE void HalfMulAdd(TileVec a, __m256 b, TileVec& sum) {
  sum.raw = _mm512_castps256_ps512(
      _mm256_fmadd_ps(_mm512_castps512_ps256(a.raw), b, _mm512_castps512_ps256(sum.raw)));
}
#endif

// One term: `rows` x `vectors` multiply-adds. `a` gives the address of A's element in a row (of as
// many as are in a group), `b` that of a vector of B. half_last: of the last only the lower half.
template <int rows, int vectors, int group, bool half_last, class AddressA, class AddressB>
HWY_INLINE void TileTerm(TileVec (&sums)[rows][vectors], AddressA&& a, AddressB&& b) {
  constexpr int whole = vectors - half_last;
  TileVec right[vectors];
#pragma GCC unroll 16
  for (int v = 0; v < whole; ++v) right[v] = TileLoad(b(v));
#if HWY_TARGET == HWY_AVX3
  __m256 last;
  if constexpr (half_last) last = _mm256_loadu_ps(b(whole));
#endif
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
    const TileVec left = TileRepeat<group>(a(i));
#pragma GCC unroll 16
    for (int v = 0; v < whole; ++v) TileAccumulate<(rows > 2)>(left, right[v], sums[i][v]);
#if HWY_TARGET == HWY_AVX3
    if constexpr (half_last) HalfMulAdd(left, last, sums[i][whole]);
#endif
  }
}

// The range that an activation clips to; false if it does more than that.
inline bool ClipRange(const Epilogue& e, float& low, float& high) {
  low = -std::numeric_limits<float>::infinity();
  high = std::numeric_limits<float>::infinity();
  if (e.activation == Activation::relu) low = 0;
  if (e.activation == Activation::clip) {
    low = e.p0;
    high = e.p1;
  }
  return e.activation == Activation::none || e.activation == Activation::relu ||
         e.activation == Activation::clip;
}

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
inline bool TileFinishes(const Epilogue& e) {
  float low, high;
  return ClipRange(e, low, high) && !(e.residual_last && e.residual != nullptr);
}

// A tile's last vector to its place. AVX2 has masked stores, but some processors take many cycles
// for one, so that a whole vector goes without.
HWY_INLINE void StoreLast(TileVec v, const FirstLanes& lanes, bool whole, float* p) {
  if (whole) return TileStoreVec(v, p);
  lanes.store(v, p);
}

// The lanes of a tile's last vector that hold columns.
template <int vectors>
HWY_INLINE FirstLanes LastColumns(const TileStore& s) {
  return FirstLanes(s.columns - (vectors - 1) * tile_lanes);
}

// sum = alpha * sum + beta * bias.
template <int rows, int vectors>
HWY_INLINE void ScaleTile(TileVec (&sums)[rows][vectors], const TileStore& s) {
  const TileTag d;
  const Epilogue& e = *s.epilogue;
  const TileVec alpha = hn::Set(d, e.alpha);
  if (e.bias_axis == BiasAxis::row && s.bias != nullptr) {
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      const TileVec bias = hn::Set(d, e.beta * s.bias[i]);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sums[i][v] = hn::MulAdd(alpha, sums[i][v], bias);
    }
    return;
  }
  const bool by_column = e.bias_axis == BiasAxis::column && s.bias != nullptr;
  const TileVec beta = hn::Set(d, e.beta);
  const auto last = LastColumns<vectors>(s);
#pragma GCC unroll 4
  for (int v = 0; v < vectors; ++v) {
    TileVec bias = hn::Zero(d);
    if (by_column) {
      const float* at = s.bias + v * tile_lanes;
      bias = hn::Mul(beta, v + 1 < vectors ? hn::LoadU(d, at) : last.load(at));
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) sums[i][v] = hn::MulAdd(alpha, sums[i][v], bias);
  }
}

// Sums still in registers, to their place. The same operations as StoreTile, which knows more.
// Each operation goes over the whole tile, so that what a job does not want is passed over at once.
// `started`: the sums began with their bias and are not scaled.
template <int rows, int vectors>
HWY_INLINE void FinishTile(TileVec (&sums)[rows][vectors], const TileStore& s, bool started) {
  const TileTag d;
  const auto last = LastColumns<vectors>(s);
  if (!started) ScaleTile<rows, vectors>(sums, s);
  if (s.residual != nullptr) {
    const TileVec beta = hn::Set(d, s.epilogue->beta);
    const float* added = s.residual;
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i, added += s.residual_stride) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        const float* at = added + v * tile_lanes;
        sums[i][v] =
            hn::MulAdd(beta, v + 1 < vectors ? hn::LoadU(d, at) : last.load(at), sums[i][v]);
      }
    }
  }
  float low_value, high_value;
  ClipRange(*s.epilogue, low_value, high_value);
  if (low_value != -std::numeric_limits<float>::infinity()) {
    const TileVec low = hn::Set(d, low_value);
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sums[i][v] = math::MaxOrNaN(low, sums[i][v]);
    }
  }
  if (high_value != std::numeric_limits<float>::infinity()) {
    const TileVec high = hn::Set(d, high_value);
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sums[i][v] = math::MinOrNaN(high, sums[i][v]);
    }
  }
  // What the stores might change, for all that the compiler knows, is read once.
  const int64_t stride = s.c_stride;
  const bool whole = s.columns == vectors * tile_lanes;
  float* to = s.c;
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i, to += stride) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      if (v + 1 < vectors) {
        hn::StoreU(sums[i][v], d, to + v * tile_lanes);
      } else {
        StoreLast(sums[i][v], last, whole, to + v * tile_lanes);
      }
    }
  }
}

// What all sums of a job begin with.
template <int vectors>
HWY_INLINE void LoadStart(const float* from, const TileJob& job, TileVec (&start)[vectors]) {
  const TileTag d;
#pragma GCC unroll 4
  for (int v = 0; v < vectors; ++v) start[v] = hn::Zero(d);
  if (from == nullptr) return;
  const auto last = LastColumns<vectors>(*job.store);
#pragma GCC unroll 4
  for (int v = 0; v < vectors; ++v) {
    const float* at = from + v * tile_lanes;
    start[v] = v + 1 < vectors ? hn::LoadU(d, at) : last.load(at);
  }
}
#else
inline bool TileFinishes(const Epilogue&) { return false; }
template <int vectors>
HWY_INLINE void LoadStart(const float*, const TileJob&, TileVec (&start)[vectors]) {
  for (int v = 0; v < vectors; ++v) start[v] = TileZero();
}
template <int rows, int vectors>
HWY_INLINE void FinishTile(TileVec (&)[rows][vectors], const TileStore&, bool) {}
#endif

// Brings near what FinishTile reads and writes, a row at a time while terms are added: more at once
// would hold up what is read meanwhile.
template <int rows, int vectors>
class StoreRows {
 public:
  explicit StoreRows(const TileJob& job) {
    constexpr int64_t min_terms = 32;
    if (job.store == nullptr || job.k < min_terms) return;
    left_ = rows;
    to_ = job.store->c;
    stride_ = job.store->c_stride;
    if (job.store->residual == nullptr) return;
    left_ = 2 * rows;
    residual_ = job.store->residual;
    residual_stride_ = job.store->residual_stride;
  }
  HWY_INLINE void bring_row() {
    if (left_ == 0) return;
    if (left_-- > rows) return bring<0>(residual_, residual_stride_);
    bring<1>(to_, stride_);
  }

 private:
  template <int writes>
  HWY_INLINE static void bring(const float*& from, int64_t stride) {
#pragma GCC unroll 4
    for (int at = 0; at < vectors * tile_lanes; at += 16) __builtin_prefetch(from + at, writes, 3);
    from += stride;
  }

  int left_ = 0;
  const float* to_ = nullptr;
  const float* residual_ = nullptr;
  int64_t stride_ = 0, residual_stride_ = 0;
};

// Adds a job's terms to its sums. half_last: the upper half of a row's last vector holds no
// columns.
template <TileForm form, bool half_last, int panel_vectors, class B, int rows, int vectors>
HWY_INLINE void AddTerms(const TileJob& job, TileVec (&sums)[rows][vectors]) {
  constexpr bool k_major = form == TileForm::k_major, by_offsets = form == TileForm::by_offsets;
  constexpr int group = group_of(form);
  StoreRows<rows, vectors> store_rows(job);
  TileRows<k_major> a = by_offsets ? TileRows<k_major>(job.a, job.a_high, job.a_stride)
                                   : TileRows<k_major>(job.a, job.a_stride);
  const int32_t* offsets = job.offsets;
  const B* b = reinterpret_cast<const B*>(job.b);
  const float* ahead = job.prefetch;
  const int64_t b_stride = job.b_stride;
  const int64_t panel_distance = job.panel_distance;
  const int64_t ahead_stride = job.prefetch_stride;
  const int lines = job.prefetch_lines;
  const auto term = [&](int64_t index, const B* at_b) HWY_ATTR {
    TileTerm<rows, vectors, group, half_last>(
        sums, [&](int i) HWY_ATTR { return a.at(i, index * group); },
        [&](int v) HWY_ATTR {
          return at_b + (v / panel_vectors) * panel_distance + (v % panel_vectors) * tile_lanes;
        });
  };
  // A row's products with several panels of halves wait for memory alone: the processor brings the
  // panels' next pages too late by itself.
  constexpr int panels = vectors / panel_vectors, near_bytes = 2048;
  constexpr bool brings_store = tile_lanes == 16 && rows * vectors >= 8;
  constexpr bool brings_panels = sizeof(B) == 2 && rows == 1 && panels > 1;
  const auto bring = [&]() HWY_ATTR {
    if constexpr (brings_store) store_rows.bring_row();
    for (int line = 0; line < lines; ++line, ahead += ahead_stride) {
      __builtin_prefetch(ahead, 0, 2);
    }
    for (int p = 0; brings_panels && p < panels; ++p) {
      const char* next = reinterpret_cast<const char*>(b + p * panel_distance) + near_bytes;
      for (int line = 0; line < 2; ++line) __builtin_prefetch(next + line * 64, 0, 3);
    }
  };
  // Where sums fill the registers, two terms would make the compiler keep some in memory.
  constexpr int together = rows * vectors > 24 ? 1 : 2;
  int64_t k = job.k;
#pragma GCC unroll 1
  for (; k >= together; k -= together) {
    if (together == 2 || k % 2 == 0) bring();
#pragma GCC unroll 2
    for (int i = 0; i < together; ++i) term(by_offsets ? offsets[i] : i, b + i * b_stride);
    by_offsets ? void(offsets += together) : a.skip(together * group);
    b += together * b_stride;
  }
  if (k != 0) term(by_offsets ? offsets[0] : 0, b);
}

// By rows or by offsets.
template <TileForm form, int rows, int vectors>
HWY_INLINE void AddWholeOrHalf(const TileJob& job, TileVec (&sums)[rows][vectors]) {
#if HWY_TARGET == HWY_AVX3
  if (job.half_empty) return AddTerms<form, true, vectors, float>(job, sums);
#endif
  AddTerms<form, false, vectors, float>(job, sums);
}

// All forms of a job in one function, which share what comes before and behind their loops.
// panel_vectors < vectors: B comes in several panels of that many vectors each. B: what it holds.
// Several panels, and halves, there are by rows alone and without `start` and `store`; three
// vectors k-major alone.
template <int rows, int vectors, int panel_vectors = vectors, class B = float>
void TileProduct(const TileJob& job) {
  TileVec sums[rows][vectors];
  constexpr int width = vectors * tile_lanes;
  constexpr bool is_wide = panel_vectors < vectors || !std::is_same_v<B, float>;
  if (job.resume) {
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 16
      for (int v = 0; v < vectors; ++v)
        sums[i][v] = TileLoad(job.sums + i * width + v * tile_lanes);
    }
  } else {
    TileVec start[vectors];
    LoadStart<vectors>(is_wide ? nullptr : job.start, job, start);
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 16
      for (int v = 0; v < vectors; ++v) sums[i][v] = start[v];
    }
  }
  if constexpr (is_wide) {
    AddTerms<TileForm::by_rows, false, panel_vectors, B>(job, sums);
  } else if constexpr (vectors == max_tile_vectors) {
    AddTerms<TileForm::k_major, false, vectors, B>(job, sums);
  } else {
    switch (job.form) {
      case TileForm::by_rows: AddWholeOrHalf<TileForm::by_rows>(job, sums); break;
      case TileForm::k_major: AddTerms<TileForm::k_major, false, vectors, B>(job, sums); break;
      case TileForm::by_offsets: AddWholeOrHalf<TileForm::by_offsets>(job, sums); break;
      case TileForm::by_twos: AddTerms<TileForm::by_twos, false, vectors, B>(job, sums); break;
      case TileForm::by_fours: AddTerms<TileForm::by_fours, false, vectors, B>(job, sums); break;
      case TileForm::by_eights:
        if constexpr (tile_lanes >= 8) AddTerms<TileForm::by_eights, false, vectors, B>(job, sums);
        break;
    }
  }
  if constexpr (!is_wide) {
    if (job.store != nullptr)
      return FinishTile<rows, vectors>(sums, *job.store, job.start != nullptr);
  }
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) {
      TileStoreVec(sums[i][v], job.sums + i * width + v * tile_lanes);
    }
  }
}

template <int vectors, int... row>
void FillTiles(TileKernels& kernels, std::integer_sequence<int, row...>) {
  ((kernels.tiles[row + 1][vectors] = &TileProduct<row + 1, vectors>), ...);
}

// Few rows times panels of halves, several at a time where there are as many.
template <class B>
Float16Tiles MakeFloat16Tiles() {
  constexpr int few = has_32_registers ? 8 : 4;
  Float16Tiles t;
  t.wide[1] = &TileProduct<1, few, 2, B>;
  t.wide[2] = &TileProduct<2, few, 2, B>;
  t.wide[3] = &TileProduct<3, 4, 2, B>;
  t.wide[4] = &TileProduct<4, 4, 2, B>;
  t.one[1][1] = &TileProduct<1, 1, 1, B>;
  t.one[1][2] = &TileProduct<1, 2, 2, B>;
  t.one[2][1] = &TileProduct<2, 1, 1, B>;
  t.one[2][2] = &TileProduct<2, 2, 2, B>;
  t.one[3][1] = &TileProduct<3, 1, 1, B>;
  t.one[3][2] = &TileProduct<3, 2, 2, B>;
  t.one[4][1] = &TileProduct<4, 1, 1, B>;
  t.one[4][2] = &TileProduct<4, 2, 2, B>;
  return t;
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#endif
