#include "kernels/gemm/wide_tiles.h"

#include <algorithm>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/wide_tiles.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/masked-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using Tag = hn::CappedTag<T, 64 / sizeof(T)>;
template <class T>
int64_t LanesOf() {
  return static_cast<int64_t>(hn::Lanes(Tag<T>()));
}

// Terms whose part of B is transposed at a time where its columns are dense, not its rows.
constexpr int64_t transposed_terms = 128;
constexpr int vectors = 2;  // of a tile's columns
// Rows of a tile: as many as there are registers for.
constexpr int tile_rows = HWY_TARGET == HWY_AVX2 ? 4 : 8;

template <class V>
HWY_INLINE V AddProduct(V a, V b, V sum) {
  if constexpr (std::is_floating_point_v<hn::TFromV<V>>)
    return hn::MulAdd(a, b, sum);
  else
    return hn::Add(hn::Mul(a, b), sum);
}

// A tile of C, `last` of whose lanes count in its last vector.
template <class T>
struct Tile {
  int64_t k;
  const T* a;
  int64_t a_row, a_column;
  const T* b;
  int64_t b_row;
  T* c;
  int64_t ldc;
  int64_t last;
  bool goes_on;  // adds to what C holds
};

template <int rows, int width, class T>
void Multiply(const Tile<T>& t) {
  const Tag<T> d;
  const int64_t lanes = LanesOf<T>();
  const bool whole = t.last == lanes;
  const auto some = hn::FirstN(d, static_cast<size_t>(t.last));
  const auto load = [&](const T* from, int v) HWY_ATTR {
    return v + 1 == width && !whole ? masked::Load(some, d, from + v * lanes)
                                    : hn::LoadU(d, from + v * lanes);
  };
  hn::Vec<Tag<T>> sums[rows][width];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < width; ++v) sums[r][v] = t.goes_on ? load(t.c + r * t.ldc, v) : hn::Zero(d);
  }
  const T* a = t.a;
  const T* b = t.b;
  for (int64_t k = 0; k < t.k; ++k, a += t.a_column, b += t.b_row) {
    hn::Vec<Tag<T>> right[width];
#pragma GCC unroll 2
    for (int v = 0; v < width; ++v) right[v] = load(b, v);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const auto left = hn::Set(d, a[r * t.a_row]);
#pragma GCC unroll 2
      for (int v = 0; v < width; ++v) sums[r][v] = AddProduct(left, right[v], sums[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < width; ++v) {
      if (v + 1 == width && !whole)
        masked::Store(sums[r][v], some, d, t.c + r * t.ldc + v * lanes);
      else
        hn::StoreU(sums[r][v], d, t.c + r * t.ldc + v * lanes);
    }
  }
}

template <int width, class T>
void MultiplyRows(int64_t rows, const Tile<T>& t) {
  switch (rows) {
    case 8: return Multiply<HWY_MIN(8, tile_rows), width>(t);
    case 7: return Multiply<HWY_MIN(7, tile_rows), width>(t);
    case 6: return Multiply<HWY_MIN(6, tile_rows), width>(t);
    case 5: return Multiply<HWY_MIN(5, tile_rows), width>(t);
    case 4: return Multiply<4, width>(t);
    case 3: return Multiply<3, width>(t);
    case 2: return Multiply<2, width>(t);
    default: return Multiply<1, width>(t);
  }
}

template <class T>
void MultiplyTile(int64_t rows, int64_t columns, Tile<T>& t) {
  const int64_t lanes = LanesOf<T>();
  const auto multiply = [&](int64_t some) {
    if (columns > lanes)
      MultiplyRows<2>(some, t);
    else
      MultiplyRows<1>(some, t);
  };
  t.last = columns > lanes ? columns - lanes : columns;
  if (rows <= tile_rows) return multiply(rows);
  static_assert(2 * tile_rows >= wide_tile_rows);
  multiply(tile_rows);
  const T* const a = t.a;
  T* const c = t.c;
  t.a += tile_rows * t.a_row, t.c += tile_rows * t.ldc;
  multiply(rows - tile_rows);
  t.a = a, t.c = c;
}

template <class T>
void ByTiles(const WideProduct<T>& p) {
  const int64_t step = vectors * LanesOf<T>();
  alignas(64) T transposed[transposed_terms * vectors * hn::MaxLanes(Tag<T>())];
  for (int64_t j = 0; j < p.N; j += step) {
    const int64_t columns = std::min(step, p.N - j);
    Tile<T> t{p.K,     p.a,     p.a_row, p.a_column, p.b + j * p.b_column,
              p.b_row, p.c + j, p.ldc,   0,          false};
    if (p.b_column == 1 || p.K == 0) {
      MultiplyTile(p.rows, columns, t);
      continue;
    }
    t.b = transposed, t.b_row = step;
    for (int64_t first = 0; first < p.K; first += transposed_terms) {
      t.k = std::min(transposed_terms, p.K - first);
      for (int64_t n = 0; n < columns; ++n) {
        const T* from = p.b + (j + n) * p.b_column + first * p.b_row;
        for (int64_t k = 0; k < t.k; ++k) transposed[k * step + n] = from[k * p.b_row];
      }
      MultiplyTile(p.rows, columns, t);
      t.a += t.k * p.a_column;
      t.goes_on = true;
    }
  }
}

// `terms` more terms of a row of C: as many rows of B are read side by side.
template <int terms, class T>
HWY_INLINE void AddTerms(const T* a, int64_t a_column, const T* b, int64_t b_row, bool goes_on,
                         T* c, int64_t n) {
  const Tag<T> d;
  const int64_t lanes = LanesOf<T>();
  hn::Vec<Tag<T>> left[terms];
#pragma GCC unroll 8
  for (int k = 0; k < terms; ++k) left[k] = hn::Set(d, a[k * a_column]);
  const auto add = [&](const auto& load, int64_t j) HWY_ATTR {
    auto sum = goes_on ? load(c + j) : hn::Zero(d);
#pragma GCC unroll 8
    for (int k = 0; k < terms; ++k) sum = AddProduct(left[k], load(b + k * b_row + j), sum);
    return sum;
  };
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    hn::StoreU(add([&](const T* at) HWY_ATTR { return hn::LoadU(d, at); }, j), d, c + j);
  }
  if (j < n) {
    const auto some = hn::FirstN(d, static_cast<size_t>(n - j));
    masked::Store(add([&](const T* at) HWY_ATTR { return masked::Load(some, d, at); }, j), some, d,
                  c + j);
  }
}

// Few rows: B, by rows, is read in long pieces, not down its columns.
constexpr int64_t few_rows = 2;
template <class T>
void ByTerms(const WideProduct<T>& p) {
  constexpr int64_t piece = 4096 / sizeof(T);  // columns
  for (int64_t j = 0; j < p.N; j += piece) {
    const int64_t columns = std::min(piece, p.N - j);
    for (int64_t k = 0; k < p.K;) {
      const bool many = p.K - k >= 8;
      for (int64_t r = 0; r < p.rows; ++r) {
        const T* a = p.a + r * p.a_row + k * p.a_column;
        const T* b = p.b + k * p.b_row + j;
        T* c = p.c + r * p.ldc + j;
        if (many)
          AddTerms<8>(a, p.a_column, b, p.b_row, k > 0, c, columns);
        else
          AddTerms<1>(a, p.a_column, b, p.b_row, k > 0, c, columns);
      }
      k += many ? 8 : 1;
    }
  }
}

// Integers, whose terms may be added in any order: vectors along the terms.
template <int rows, class T>
HWY_INLINE void Dots(const T* a, int64_t a_row, const T* b, int64_t k, T* c, int64_t ldc) {
  const Tag<T> d;
  const int64_t lanes = LanesOf<T>();
  hn::Vec<Tag<T>> sums[rows];
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) sums[r] = hn::Zero(d);
  const auto step = [&](const auto& load, int64_t i) HWY_ATTR {
    const auto right = load(b + i);
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) sums[r] = AddProduct(load(a + r * a_row + i), right, sums[r]);
  };
  int64_t i = 0;
  for (; i + lanes <= k; i += lanes)
    step([&](const T* at) HWY_ATTR { return hn::LoadU(d, at); }, i);
  if (i < k) {
    const auto some = hn::FirstN(d, static_cast<size_t>(k - i));
    step([&](const T* at) HWY_ATTR { return masked::Load(some, d, at); }, i);
  }
  // Lane by lane: the intrinsics add the last ones as signed numbers, which must not overflow.
  HWY_ALIGN T lane[hn::MaxLanes(d)];
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) {
    hn::StoreU(sums[r], d, lane);
    T sum = 0;
    for (int64_t i = 0; i < LanesOf<T>(); ++i) sum = static_cast<T>(sum + lane[i]);
    c[r * ldc] = sum;
  }
}
constexpr int64_t few_columns = 4;
template <class T>
void ByDots(const WideProduct<T>& p) {
  for (int64_t j = 0; j < p.N; ++j) {
    const T* b = p.b + j * p.b_column;
    int64_t r = 0;
    for (; r + 4 <= p.rows; r += 4)
      Dots<4>(p.a + r * p.a_row, p.a_row, b, p.K, p.c + r * p.ldc + j, p.ldc);
    for (; r < p.rows; ++r) Dots<1>(p.a + r * p.a_row, p.a_row, b, p.K, p.c + r * p.ldc + j, p.ldc);
  }
}

template <class T>
void MultiplyWide(const WideProduct<T>& p) {
  if constexpr (std::is_integral_v<T>) {
    if (p.a_column == 1 && p.b_row == 1 && (p.N <= few_columns || p.rows <= few_rows))
      return ByDots(p);
  }
  if (p.rows <= few_rows && p.b_column == 1 && p.K > 0) return ByTerms(p);
  ByTiles(p);
}
void MultiplyDoubles(const WideProduct<double>& p) { MultiplyWide(p); }
void MultiplyWords(const WideProduct<uint32_t>& p) { MultiplyWide(p); }
void MultiplyLongs(const WideProduct<uint64_t>& p) { MultiplyWide(p); }

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(MultiplyDoubles);
HWY_EXPORT(MultiplyWords);
HWY_EXPORT(MultiplyLongs);

void multiply_wide(const WideProduct<double>& p) { HWY_DYNAMIC_DISPATCH(MultiplyDoubles)(p); }
void multiply_wide(const WideProduct<uint32_t>& p) { HWY_DYNAMIC_DISPATCH(MultiplyWords)(p); }
void multiply_wide(const WideProduct<uint64_t>& p) { HWY_DYNAMIC_DISPATCH(MultiplyLongs)(p); }

}  // namespace sardonyx::kernels
#endif
