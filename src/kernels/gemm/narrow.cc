#include "kernels/gemm/narrow.h"

#include <algorithm>

#include "kernels/gemm/block.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/narrow.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/gemm/dot_products-inl.h"
#include "kernels/gemm/transpose-inl.h"
#include "kernels/simd/masked-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows of few terms are transposed, so that a vector holds a term of many.
bool SideBySide([[maybe_unused]] int64_t n, [[maybe_unused]] int64_t k) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
  return k <= 16 * n;
#else
  return false;
#endif
}

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
constexpr int64_t group_rows = 4;

// sums[r * n + j] of `rows` rows.
template <int rows, int n>
HWY_INLINE void AddLanes(const TileVec (&sum)[rows][n], float* sums) {
  const TileTag d;
  const hn::Full128<float> quad;
#pragma GCC unroll 4
  for (int j = 0; j < n; ++j) {
    const auto four = FourSums(d, sum[0][j], sum[1 % rows][j], sum[2 % rows][j], sum[3 % rows][j]);
    if constexpr (n == 1 && rows == group_rows) {
      hn::StoreU(four, quad, sums);
    } else {
      alignas(16) float lanes[4];
      hn::Store(four, quad, lanes);
      for (int r = 0; r < rows; ++r) sums[r * n + j] = lanes[r];
    }
  }
}

template <int rows, int n>
HWY_INLINE void Dots(const float* a, int64_t a_stride, const float* columns, int64_t k,
                     float* sums) {
  const TileTag d;
  TileVec sum[rows][n];
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < n; ++j) sum[r][j] = hn::Zero(d);
  }
  AddProducts(a, a_stride, columns, k, k, sum);
  AddLanes<rows, n>(sum, sums);
}

// n sums for each of a vector's rows.
template <int n>
HWY_INLINE void StoreSums(const TileVec (&sum)[n], float* to) {
  const TileTag d;
  if constexpr (n == 1) {
    hn::StoreU(sum[0], d, to);
  } else if constexpr (n == 2) {
    hn::StoreInterleaved2(sum[0], sum[1], d, to);
  } else if constexpr (n == 3) {
    hn::StoreInterleaved3(sum[0], sum[1], sum[2], d, to);
  } else {
    hn::StoreInterleaved4(sum[0], sum[1], sum[2], sum[3], d, to);
  }
}

template <int n>
void TransposedRows(const float* a, int64_t a_stride, int64_t rows, const float* columns, int64_t k,
                    float* sums) {
  const TileTag d;
  for (int64_t r = 0; r < rows; r += tile_lanes) {
    const int64_t some = std::min<int64_t>(tile_lanes, rows - r);
    TileVec sum[n];
#pragma GCC unroll 4
    for (int j = 0; j < n; ++j) sum[j] = hn::Zero(d);
    for (int64_t i = 0; i < k; i += tile_lanes) {
      const int64_t terms = std::min<int64_t>(tile_lanes, k - i);
      const FirstLanes used(terms);
      const float* from = a + r * a_stride + i;
      TileVec v[tile_lanes];
      if (some == tile_lanes) {
#pragma GCC unroll 16
        for (int x = 0; x < tile_lanes; ++x) v[x] = used.load(from + x * a_stride);
      } else {
#pragma GCC unroll 16
        for (int x = 0; x < tile_lanes; ++x)
          v[x] = x < some ? used.load(from + x * a_stride) : hn::Zero(d);
      }
      TransposeVecs(v);
#pragma GCC unroll 16
      for (int x = 0; x < tile_lanes; ++x) {
        if (x == terms) break;
#pragma GCC unroll 4
        for (int j = 0; j < n; ++j)
          sum[j] = hn::MulAdd(v[x], hn::Set(d, columns[j * k + i + x]), sum[j]);
      }
    }
    if (some == tile_lanes) {
      StoreSums<n>(sum, sums + r * n);
    } else {
      alignas(64) float last[n * tile_lanes];
      StoreSums<n>(sum, last);
      std::copy_n(last, some * n, sums + r * n);
    }
  }
}

template <int n>
void Rows(const float* a, int64_t a_stride, int64_t rows, const float* columns, int64_t k,
          float* sums) {
  if (SideBySide(n, k)) return TransposedRows<n>(a, a_stride, rows, columns, k, sums);
  int64_t r = 0;
  for (; r + group_rows <= rows; r += group_rows)
    Dots<group_rows, n>(a + r * a_stride, a_stride, columns, k, sums + r * n);
  for (; r < rows; ++r) Dots<1, n>(a + r * a_stride, a_stride, columns, k, sums + r * n);
}
#else
template <int n>
void Rows(const float* a, int64_t a_stride, int64_t rows, const float* columns, int64_t k,
          float* sums) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int j = 0; j < n; ++j) {
      TileVec sum = TileZero();
      int64_t i = 0;
      for (; i + tile_lanes <= k; i += tile_lanes)
        sum = TileMulAdd(TileLoad(a + r * a_stride + i), TileLoad(columns + j * k + i), sum);
      float lanes[tile_lanes];
      TileStoreVec(sum, lanes);
      float total = 0;
      for (const float lane : lanes) total += lane;
      for (; i < k; ++i) total += a[r * a_stride + i] * columns[j * k + i];
      sums[r * n + j] = total;
    }
  }
}
#endif

void NarrowProduct(const float* a, int64_t a_stride, int64_t rows, const float* columns, int64_t n,
                   int64_t k, float* sums) {
  switch (n) {
    case 1: return Rows<1>(a, a_stride, rows, columns, k, sums);
    case 2: return Rows<2>(a, a_stride, rows, columns, k, sums);
    case 3: return Rows<3>(a, a_stride, rows, columns, k, sums);
    default: return Rows<4>(a, a_stride, rows, columns, k, sums);
  }
}

void OuterProduct(const float* a, int64_t a_stride, int64_t rows, const float* b, int64_t n,
                  float* c, int64_t ldc) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto zero = hn::Zero(d);  // what every sum begins with: -0 becomes 0
  for (int64_t r = 0; r < rows; ++r, c += ldc) {
    const auto factor = hn::Set(d, a[r * a_stride]);
    int64_t j = 0;
    for (; j + 2 * lanes <= n; j += 2 * lanes) {
      hn::StoreU(hn::MulAdd(factor, hn::LoadU(d, b + j), zero), d, c + j);
      hn::StoreU(hn::MulAdd(factor, hn::LoadU(d, b + j + lanes), zero), d, c + j + lanes);
    }
    for (; j < n; j += lanes) {
      const auto some = hn::FirstN(d, static_cast<size_t>(HWY_MIN(lanes, n - j)));
      masked::Store(hn::MulAdd(factor, masked::Load(some, d, b + j), zero), some, d, c + j);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(NarrowProduct);
HWY_EXPORT(SideBySide);
HWY_EXPORT(OuterProduct);

bool narrow_pays(int64_t M, int64_t N, int64_t K, int64_t lanes) {
  constexpr int64_t fewest_rows = 64;  // worth transposing the columns
  constexpr int64_t last_sum = 3;      // adding up a vector's lanes costs as many products
  if (M < fewest_rows || N > max_narrow || K <= 0) return false;
  return HWY_DYNAMIC_DISPATCH(SideBySide)(N, K) || 10 * N * (K / lanes + last_sum) < 7 * K;
}

void narrow_product(const float* a, int64_t a_stride, int64_t rows, const float* columns, int64_t n,
                    int64_t k, float* sums) {
  HWY_DYNAMIC_DISPATCH(NarrowProduct)(a, a_stride, rows, columns, n, k, sums);
}

void outer_product(const float* a, int64_t a_stride, int64_t rows, const float* b, int64_t n,
                   float* c, int64_t ldc) {
  HWY_DYNAMIC_DISPATCH(OuterProduct)(a, a_stride, rows, b, n, c, ldc);
}

void narrow_block(const TileKernels& kernels, const float* a, int64_t a_stride,
                  const float* columns, int64_t k, const Epilogue& epilogue, float* c, int64_t ldc,
                  int64_t row, int64_t column, int64_t rows, int64_t n) {
  alignas(64) float sums[narrow_rows * max_narrow];
  float bias[narrow_rows * max_narrow];
  narrow_product(a, a_stride, rows, columns, n, k, sums);
  TileStore store = store_at(epilogue, c, ldc, row, column, rows, n);
  store.sums = sums;
  store.sums_stride = n;
  const bool by_row = store.bias != nullptr && epilogue.bias_axis == BiasAxis::row;
  const bool dense = ldc == n && (store.residual == nullptr || store.residual_stride == n);
  if (!dense || (by_row && n > 1)) return kernels.store(store);
  // Where rows lie one behind the other, they are one long row.
  Epilogue flat = epilogue;
  store.epilogue = &flat;
  store.rows = 1, store.columns = rows * n;
  if (by_row) {
    flat.bias_axis = BiasAxis::column;
  } else if (store.bias != nullptr) {
    for (int64_t i = 0; i < rows * n; ++i) bias[i] = i < n ? store.bias[i] : bias[i - n];
    store.bias = bias;
  }
  kernels.store(store);
}

}  // namespace sardonyx::kernels
#endif
