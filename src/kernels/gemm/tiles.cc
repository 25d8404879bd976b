// The kernel tables of tiles.h.
#include "kernels/gemm/tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/tiles.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "base/cpu.h"
#include "kernels/gemm/blocking.h"
#include "kernels/gemm/dot_products-inl.h"
#include "kernels/gemm/epilogue-inl.h"
#include "kernels/gemm/microkernel-inl.h"
#include "kernels/gemm/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Single numbers: the portable target. Rows and columns at once would only be more code there.
constexpr bool one_by_one = HWY_TARGET == HWY_SCALAR;

// One or two vectors of columns of a tile, or, where not `whole`, what is left of one: scaled, with
// bias and residual, activated. `clip` is any activation that clips.
template <Activation activation, int vectors, bool whole>
struct StoreColumns {
  using D = hn::ScalableTag<float>;
  using V = hn::Vec<D>;
  static constexpr bool clips = activation == Activation::clip;
  // Long chains of operations, of which so many overlap, are the more code the more rows; a tile
  // has twice as many.
  static constexpr int rows_at_once = one_by_one                ? 1
                                      : !takes_long(activation) ? 4 / vectors
                                      : whole                   ? tile_rows / 2
                                                                : 2;

  StoreColumns(const TileStore& store, int64_t column)
      : s(store),
        e(*store.epilogue),
        j(column),
        count(static_cast<size_t>(std::min(lanes(), store.columns - column))),
        per_row(e.bias_axis == BiasAxis::row && s.bias != nullptr),
        alpha(hn::Set(d, e.alpha)),
        beta(hn::Set(d, e.beta)) {
    ClipRange(e, low, high);
  }
  static int64_t lanes() { return static_cast<int64_t>(hn::Lanes(D())); }

  HWY_INLINE V Load(const float* p) const {
    if constexpr (whole) return hn::LoadU(d, p);
    return LoadFirst(d, p, count);
  }
  HWY_INLINE V Activated(V v) const {
    if constexpr (clips) return Clamp(d, v, low, high);
    return Activate<activation>(d, v, e);
  }
  // The next `rows` rows. `residual`: 0 none, 1 before the activation, 2 behind it if there is one.
  template <int rows, int residual>
  HWY_INLINE void Rows(const float* sums, const float* addend, float* to, const float* bias_at,
                       const V (&bias)[vectors], int64_t sums_stride, int64_t addend_stride,
                       int64_t to_stride) const {
    V v[rows][vectors];
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 2
      for (int k = 0; k < vectors; ++k) {
        const V offset = bias_at != nullptr ? hn::Set(d, e.beta * bias_at[i]) : bias[k];
        v[i][k] = hn::MulAdd(alpha, Load(sums + i * sums_stride + k * lanes()), offset);
        if constexpr (residual == 1)
          v[i][k] = hn::MulAdd(beta, Load(addend + i * addend_stride + k * lanes()), v[i][k]);
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 2
      for (int k = 0; k < vectors; ++k) {
        v[i][k] = Activated(v[i][k]);
        if (residual == 2 && addend != nullptr)
          v[i][k] = hn::MulAdd(beta, Load(addend + i * addend_stride + k * lanes()), v[i][k]);
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 2
      for (int k = 0; k < vectors; ++k) {
        float* place = to + i * to_stride + k * lanes();
        if constexpr (whole) {
          hn::StoreU(v[i][k], d, place);
        } else {
          StoreFirst(d, v[i][k], place, count);
        }
      }
    }
  }
  template <int residual>
  HWY_INLINE void AllWith() const {
    // What the stores might change, for all that the compiler knows, is read once.
    const int64_t sums_stride = s.sums_stride, addend_stride = s.residual_stride,
                  to_stride = s.c_stride;
    const float* sums = s.sums + j;
    const float* addend = residual != 0 && s.residual != nullptr ? s.residual + j : nullptr;
    const float* bias_at = per_row ? s.bias : nullptr;
    float* to = s.c + j;
    V bias[vectors];
#pragma GCC unroll 2
    for (int k = 0; k < vectors; ++k) {
      const bool by_column = e.bias_axis == BiasAxis::column && s.bias != nullptr;
      bias[k] = by_column ? hn::Mul(beta, Load(s.bias + j + k * lanes())) : hn::Zero(d);
    }
    int64_t left = s.rows;
    const auto step = [&](auto rows) HWY_ATTR {
      constexpr int n = decltype(rows)::value;
      for (; left >= n; left -= n) {
        Rows<n, residual>(sums, addend, to, bias_at, bias, sums_stride, addend_stride, to_stride);
        sums += n * sums_stride, to += n * to_stride;
        if (addend != nullptr) addend += n * addend_stride;
        if (bias_at != nullptr) bias_at += n;
      }
    };
    if constexpr (rows_at_once > 1) step(std::integral_constant<int, rows_at_once>());
    step(std::integral_constant<int, 1>());
  }
  void All() const {
    if constexpr (clips) {
      if (s.residual == nullptr) return AllWith<0>();
      if (!e.residual_last) return AllWith<1>();
    }
    AllWith<2>();
  }

  D d;
  const TileStore& s;
  const Epilogue& e;
  int64_t j;
  size_t count;
  bool per_row;
  V alpha, beta;
  float low, high;
};

// A residual stands behind the activation, unless that clips. Two vectors side by side are for what
// takes no longer than loading them.
template <Activation activation>
void StoreTileAs(const TileStore& s) {
  const int64_t lanes = StoreColumns<activation, 1, true>::lanes();
  int64_t j = 0;
  if constexpr (!one_by_one && !takes_long(activation)) {
    for (; j + 2 * lanes <= s.columns; j += 2 * lanes)
      StoreColumns<activation, 2, true>(s, j).All();
  }
  for (; j + lanes <= s.columns; j += lanes) StoreColumns<activation, 1, true>(s, j).All();
  if constexpr (!one_by_one) {
    if (j < s.columns) StoreColumns<activation, 1, false>(s, j).All();
  }
}

void StoreActivated(const TileStore& s) {
  WithActivation(s.epilogue->activation, [&](auto a) HWY_ATTR {
    constexpr Activation activation = decltype(a)::value;
    constexpr bool clips = activation == Activation::none || activation == Activation::relu;
    StoreTileAs<clips ? Activation::clip : activation>(s);
  });
}

// A residual before an activation that does more than to clip: by way of a block that stays in the
// first-level cache.
void StoreBlock(const TileStore& s, float* block, int64_t width) {
  Epilogue sums = *s.epilogue, activated = *s.epilogue;
  sums.activation = Activation::none;
  activated.alpha = 1;
  activated.bias_axis = BiasAxis::none;
  TileStore to_block = s, from_block = s;
  to_block.epilogue = &sums;
  to_block.c = block;
  to_block.c_stride = width;
  from_block.epilogue = &activated;
  from_block.sums = block;
  from_block.sums_stride = width;
  from_block.bias = nullptr;
  from_block.residual = nullptr;
  StoreActivated(to_block);
  StoreActivated(from_block);
}

void StoreTile(const TileStore& s) {
  const Epilogue& e = *s.epilogue;
  float low, high;
  if (s.residual == nullptr || e.residual_last || ClipRange(e, low, high)) return StoreActivated(s);
  constexpr int64_t block_floats = 1024, max_columns = 256;
  HWY_ALIGN float block[block_floats];
  const int64_t columns = std::min(s.columns, max_columns);
  const int64_t width = round_up(columns, StoreColumns<Activation::clip, 1, true>::lanes());
  const int64_t rows = block_floats / width;
  for (int64_t i = 0; i < s.rows; i += rows) {
    for (int64_t j = 0; j < s.columns; j += columns) {
      TileStore part = s;
      part.sums += i * s.sums_stride + j;
      part.rows = std::min(rows, s.rows - i);
      part.columns = std::min(columns, s.columns - j);
      part.c += i * s.c_stride + j;
      if (s.bias != nullptr && e.bias_axis != BiasAxis::none)
        part.bias += e.bias_axis == BiasAxis::row ? i : j;
      part.residual += i * s.residual_stride + j;
      StoreBlock(part, block, width);
    }
  }
}

constexpr int64_t transposed_stride = (tile_rows + tile_lanes - 1) / tile_lanes * tile_lanes;

void StoreTransposedBlocks(const TileStore& store) {
  HWY_ALIGN float transposed[2 * tile_lanes * transposed_stride];
  TransposeBlocks(store.sums, store.sums_stride, transposed_stride, store.rows, transposed,
                  transposed_stride);
  TileStore rows = store;
  rows.sums = transposed;
  rows.sums_stride = transposed_stride;
  StoreTile(rows);
}

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
// A whole vector of output rows, from registers to their places.
template <bool residual>
void StoreTransposedAs(const TileStore& s) {
  const hn::ScalableTag<float> d;
  const Epilogue& e = *s.epilogue;
  const TileVec alpha = hn::Set(d, e.alpha);
  const TileVec beta = hn::Set(d, e.beta);
  float low, high;
  ClipRange(e, low, high);
  const FirstLanes used(s.columns);
  for (int64_t row = 0; row < s.rows; row += tile_lanes) {
    TileVec v[tile_lanes];
#pragma GCC unroll 16
    for (int i = 0; i < tile_lanes; ++i) {
      // What memory holds beyond the tile could be subnormal, and those are slow.
      v[i] = i < s.columns ? TileLoad(s.sums + i * s.sums_stride + row) : TileZero();
    }
    TransposeVecs(v);
    const float* bias = s.bias == nullptr ? nullptr : s.bias + row;
    const float* added = s.residual + row * s.residual_stride;
    float* to = s.c + row * s.c_stride;
#pragma GCC unroll 16
    for (int i = 0; i < tile_lanes; ++i) {
      const TileVec offset = bias == nullptr ? hn::Zero(d) : hn::Mul(beta, hn::Set(d, bias[i]));
      TileVec x = hn::MulAdd(alpha, v[i], offset);
      if constexpr (residual) {
        x = hn::MulAdd(beta, used.load(added + i * s.residual_stride), x);
      }
      used.store(Clamp(d, x, low, high), to + i * s.c_stride);
    }
  }
}

// The common epilogues; false: not one of them.
bool StoreTransposed(const TileStore& s) {
  const Epilogue& e = *s.epilogue;
  float low, high;
  if (s.rows % tile_lanes != 0 || s.columns > tile_lanes || e.bias_axis == BiasAxis::column ||
      (e.residual_last && s.residual != nullptr) || !ClipRange(e, low, high)) {
    return false;
  }
  s.residual != nullptr ? StoreTransposedAs<true>(s) : StoreTransposedAs<false>(s);
  return true;
}
#else
bool StoreTransposed(const TileStore&) { return false; }
#endif

void StoreTileTransposed(const TileStore& store) {
  if (!StoreTransposed(store)) StoreTransposedBlocks(store);
}

void TransposeKMajor(const float* in, int64_t stride, int count, int64_t k, float* out,
                     int64_t out_stride) {
  int64_t t = 0;
  for (; t + tile_lanes <= k; t += tile_lanes) {
    TileVec v[tile_lanes];
    for (int i = 0; i < tile_lanes; ++i) {
      v[i] = i < count ? TileLoad(in + i * stride + t) : TileZero();
    }
    TransposeVecs(v);
    for (int i = 0; i < tile_lanes; ++i) TileStoreVec(v[i], out + (t + i) * out_stride);
  }
  for (; t < k; ++t) {
    for (int i = 0; i < tile_lanes; ++i) {
      float value = 0;
      if (i < count) memcpy(&value, static_cast<const void*>(in + i * stride + t), sizeof value);
      out[t * out_stride + i] = value;
    }
  }
}

void CopyKMajor(const float* in, int64_t stride, int count, int64_t k, float* out, int width) {
  const int whole = count / tile_lanes * tile_lanes;
  const hn::ScalableTag<float> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  for (int64_t t = 0; t < k; ++t, in += stride, out += width) {
    int j = 0;
    for (; j < whole; j += tile_lanes) TileStoreVec(TileLoad(in + j), out + j);
    for (; j < count; j += lanes) {
      hn::StoreU(LoadFirst(d, in + j, static_cast<size_t>(std::min(lanes, count - j))), d, out + j);
    }
    for (; j < width; j += lanes) hn::StoreU(hn::Zero(d), d, out + j);
  }
}

// `columns` (1 to 4) dot products of one row of A. What lies `ahead` floats behind B's lines is
// fetched meanwhile: lines of a cold matrix are too short for the processor to do so.
template <int columns>
HWY_INLINE void DotRow(int64_t k, const float* a, const float* b, int64_t b_stride, int64_t ahead,
                       float* sums) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  // Two sums each, so that the additions of neighbours need not wait for each other.
  V even[columns], odd[columns];
  for (int j = 0; j < columns; ++j) even[j] = odd[j] = hn::Zero(d);
  int64_t i = 0;
  for (; i + 2 * lanes <= k; i += 2 * lanes) {
    const V a0 = hn::LoadU(d, a + i);
    const V a1 = hn::LoadU(d, a + i + lanes);
    for (int j = 0; j < columns; ++j) {
      const float* line = b + j * b_stride + i;
      if (ahead != 0) {
        for (int64_t at = 0; at < 2 * lanes; at += 16) __builtin_prefetch(line + ahead + at, 0, 2);
      }
      even[j] = hn::MulAdd(a0, hn::LoadU(d, line), even[j]);
      odd[j] = hn::MulAdd(a1, hn::LoadU(d, line + lanes), odd[j]);
    }
  }
  for (; i < k; i += lanes) {
    const size_t count = static_cast<size_t>(std::min(lanes, k - i));
    const V a0 = LoadFirst(d, a + i, count);
    for (int j = 0; j < columns; ++j) {
      even[j] = hn::MulAdd(a0, LoadFirst(d, b + j * b_stride + i, count), even[j]);
    }
  }
  for (int j = 0; j < columns; ++j) {
    sums[j] = hn::GetLane(hn::SumOfLanes(d, hn::Add(even[j], odd[j])));
  }
}

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
// As many rows as leave room for their sums in registers, times four columns.
constexpr int max_dot_rows = HWY_TARGET == HWY_AVX2 ? 2 : 4;

template <int rows>
HWY_INLINE void DotRows(int64_t k, const float* a, int64_t a_stride, const float* b,
                        int64_t b_stride, int64_t ahead, float* sums, int64_t sums_stride) {
  const TileTag d;
  TileVec each[rows][4];
#pragma GCC unroll 4
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) each[i][j] = hn::Zero(d);
  }
  AddProducts<rows, 4>(a, a_stride, b, b_stride, k, each, ahead);
#pragma GCC unroll 4
  for (int i = 0; i < rows; ++i)
    hn::StoreU(FourSums(d, each[i][0], each[i][1], each[i][2], each[i][3]), hn::Full128<float>(),
               sums + i * sums_stride);
}

// Of up to max_dot_rows rows; returns how many it has taken.
HWY_INLINE int DotSeveral(int64_t k, const float* a, int64_t a_stride, int rows, const float* b,
                          int64_t b_stride, int64_t ahead, float* sums, int64_t sums_stride) {
  switch (std::min(rows, max_dot_rows)) {
    case 2: DotRows<2>(k, a, a_stride, b, b_stride, ahead, sums, sums_stride); return 2;
#if HWY_TARGET != HWY_AVX2
    case 3: DotRows<3>(k, a, a_stride, b, b_stride, ahead, sums, sums_stride); return 3;
    case 4: DotRows<4>(k, a, a_stride, b, b_stride, ahead, sums, sums_stride); return 4;
#endif
    default: DotRow<4>(k, a, b, b_stride, ahead, sums); return 1;
  }
}
#else
HWY_INLINE int DotSeveral(int64_t k, const float* a, int64_t, int, const float* b, int64_t b_stride,
                          int64_t ahead, float* sums, int64_t) {
  DotRow<4>(k, a, b, b_stride, ahead, sums);
  return 1;
}
#endif

void Dot(int64_t k, const float* a, int64_t a_stride, int rows, const float* b, int64_t b_stride,
         int columns, int64_t cold_columns, float* sums, int64_t sums_stride) {
  for (int j = 0; j < columns; j += 4) {
    const float* right = b + j * b_stride;
    for (int i = 0; i < rows;) {
      float* out = sums + i * sums_stride + j;
      const float* row = a + i * a_stride;
      const int64_t ahead = i == 0 && cold_columns - j >= 8 ? 4 * b_stride : 0;
      switch (std::min(columns - j, 4)) {
        case 1: DotRow<1>(k, row, right, b_stride, 0, out), ++i; break;
        case 2: DotRow<2>(k, row, right, b_stride, 0, out), ++i; break;
        case 3: DotRow<3>(k, row, right, b_stride, 0, out), ++i; break;
        default:
          i += DotSeveral(k, row, a_stride, rows - i, right, b_stride, ahead, out, sums_stride);
      }
    }
  }
}

TileKernels MakeTable() {
  TileKernels table;
  table.lanes = tile_lanes;
  table.tile_rows = tile_rows;
  table.strip_width = transposed_stride;
  table.panel_columns = 2 * tile_lanes;
  table.flat_rows = flat_rows;
  table.portable = is_portable;
  static_assert(2 * tile_lanes % flat_rows == 0);
  constexpr auto all_rows = std::make_integer_sequence<int, tile_rows>();
  FillTiles<1>(table, all_rows);
  FillTiles<2>(table, all_rows);
  FillTiles<max_tile_vectors>(table, std::make_integer_sequence<int, flat_rows>());
  table.halves = HWY_TARGET == HWY_AVX3 && halves_wide_vectors();
  // As many panels as keep enough sums in flight to hide the latency of a multiply-add.
  constexpr int few = has_32_registers ? 4 : 2;
  table.wide[1] = &TileProduct<1, 2 * few, 2>;
  table.wide_panels[1] = few;
  table.wide[2] = &TileProduct<2, 2 * few, 2>;
  table.wide_panels[2] = few;
  table.wide[3] = &TileProduct<3, 4, 2>;
  table.wide_panels[3] = 2;
  if (has_32_registers) {
    table.wide[4] = &TileProduct<4, 4, 2>;
    table.wide_panels[4] = 2;
  }
  table.float16 = MakeFloat16Tiles<Float16Bits>();
  table.bfloat16 = MakeFloat16Tiles<Bfloat16Bits>();
  table.finishes = &TileFinishes;
  table.dot = &Dot;
  table.store = &StoreTile;
  table.store_transposed = &StoreTileTransposed;
  table.transpose_k_major = &TransposeKMajor;
  table.copy_k_major = &CopyKMajor;
  return table;
}

const TileKernels& Table() {
  static const TileKernels table = MakeTable();
  return table;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(Table);
const TileKernels& tile_kernels() { return HWY_DYNAMIC_DISPATCH(Table)(); }

}  // namespace sardonyx::kernels
#endif
