#include "kernels/gemm/bf16x3.h"

#include "base/cpu.h"

#if defined(__x86_64__) && defined(__linux__)
#include <immintrin.h>

#include <algorithm>
#include <limits>

#include "kernels/gemm/tile_config.h"

namespace sardonyx::kernels {
namespace {

#define SARDONYX_BF16X3 __attribute__((target("avx512f,avx512bw,avx512dq,amx-tile,amx-bf16")))

constexpr int64_t tile_floats = 256;              // 16 rows of 64 bytes
constexpr int64_t part_floats = 2 * tile_floats;  // of a step
constexpr int64_t step_floats = 3 * part_floats;

// Two vectors of floats as three vectors of bfloat16: in each of 32 bits, the first one's below the
// second one's. All operands are cut so, terms t and t + 16 of a step becoming neighbours.
struct Parts {
  __m512i part[3];
};

SARDONYX_BF16X3 inline __m512i rounded(__m512 x) {
  return _mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x8000));
}
SARDONYX_BF16X3 inline __m512i joined(__m512i low, __m512i high) {
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000));
  // (low >> 16) | (high & upper)
  return _mm512_ternarylogic_epi32(_mm512_srli_epi32(low, 16), high, upper, 0xf8);
}
SARDONYX_BF16X3 inline __m512 rest(__m512 x, __m512i near) {
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000));
  return _mm512_sub_ps(x, _mm512_castsi512_ps(_mm512_and_si512(near, upper)));
}

// Into `count` parts: where they are fewer than three, the last is the nearest to what is left.
template <int count>
SARDONYX_BF16X3 inline Parts split(__m512 x, __m512 y) {
  Parts out;
  for (int i = 0; i < 2; ++i) {
    const __m512i near_x = rounded(x), near_y = rounded(y);
    out.part[i] = joined(near_x, near_y);
    if (i + 1 == count) return out;
    x = rest(x, near_x);
    y = rest(y, near_y);
  }
  out.part[2] = joined(_mm512_castps_si512(x), _mm512_castps_si512(y));
  return out;
}

SARDONYX_BF16X3 inline __m512i larger(__m512i most, __m512 x) {
  const __m512i magnitude = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
  return _mm512_max_epu32(most, magnitude);
}

float as_magnitude(const uint32_t* most) {
  const uint32_t bits = *std::max_element(most, most + 16);
  if (bits >= 0x7f800000) return std::numeric_limits<float>::infinity();
  float value;
  static_assert(sizeof value == sizeof bits);
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

template <Bf16x3From from>
struct Source;
template <>
struct Source<Bf16x3From::float32> {
  static constexpr int parts = 3, bytes = 4;
  SARDONYX_BF16X3 static __m512 load(const char* at) { return _mm512_loadu_ps(at); }
};
template <>
struct Source<Bf16x3From::coarse> : Source<Bf16x3From::float32> {
  static constexpr int parts = 2;
};
template <>
struct Source<Bf16x3From::float16> {
  static constexpr int parts = 2, bytes = 2;
  SARDONYX_BF16X3 static __m512 load(const char* at) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
  }
};
template <>
struct Source<Bf16x3From::bfloat16> {
  static constexpr int parts = 1, bytes = 2;
  SARDONYX_BF16X3 static __m512 load(const char* at) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
};

template <Bf16x3From from>
SARDONYX_BF16X3 inline void split_some(Bf16x3Panel& p, int64_t count) {
  using From = Source<from>;
  const int64_t end = std::min(p.done + count, p.pairs());
  __m512i most = _mm512_load_si512(p.most);
  for (; p.done < end; ++p.done) {
    const int64_t step = p.done / 16, i = p.done % 16, t = step * bf16x3_terms + i;
    const char* row = static_cast<const char*>(p.from.data) + t * p.stride * From::bytes;
    float* out = p.parts + step * step_floats + i * 16;
    for (int v = 0; v < p.vectors; ++v) {
      const char* at = row + v * 16 * From::bytes;
      const __m512 x = t < p.terms ? From::load(at) : _mm512_setzero_ps();
      const __m512 y =
          t + 16 < p.terms ? From::load(at + 16 * p.stride * From::bytes) : _mm512_setzero_ps();
      most = larger(larger(most, x), y);
      const Parts parts = split<From::parts>(x, y);
      for (int part = 0; part < From::parts; ++part) {
        _mm512_store_si512(out + part * part_floats + v * tile_floats, parts.part[part]);
      }
    }
  }
  _mm512_store_si512(p.most, most);
}

constexpr TileConfig tile_config;

SARDONYX_BF16X3 void set_up() { _tile_loadconfig(&tile_config); }
SARDONYX_BF16X3 void release() { _tile_release(); }

constexpr int64_t tile_stride = 64;  // bytes

// Tiles 0 to 3 hold the sums, 4 and 5 rows, 6 and 7 columns.
template <bool two_rows, bool two_columns>
SARDONYX_BF16X3 inline void multiply() {
  _tile_dpbf16ps(0, 4, 6);
  if constexpr (two_columns) _tile_dpbf16ps(1, 4, 7);
  if constexpr (two_rows) _tile_dpbf16ps(2, 5, 6);
  if constexpr (two_rows && two_columns) _tile_dpbf16ps(3, 5, 7);
}
template <bool two>
SARDONYX_BF16X3 inline void load_rows(const float* at) {
  _tile_loadd(4, at, tile_stride);
  if constexpr (two) _tile_loadd(5, at + tile_floats, tile_stride);
}
template <bool two>
SARDONYX_BF16X3 inline void load_columns(const float* at) {
  _tile_loadd(6, at, tile_stride);
  if constexpr (two) _tile_loadd(7, at + tile_floats, tile_stride);
}

// Stores a tile, some rows at a time. The tile is copied field by field: a compiler's copy, in
// vectors, might wait for what was written just before.
class RowsStored {
 public:
  explicit RowsStored(const Bf16x3Job& job) : store_(job.store) {
    if (job.before == nullptr) return;
    const TileStore& tile = *job.before;
    left_ = tile.rows;
    some_.columns = tile.columns;
    some_.epilogue = tile.epilogue;
    some_.bias = tile.bias;
    some_.sums = tile.sums;
    some_.sums_stride = tile.sums_stride;
    some_.c = tile.c;
    some_.c_stride = tile.c_stride;
    some_.residual = tile.residual;
    some_.residual_stride = tile.residual_stride;
  }

  void store_some(int64_t rows) {
    rows = std::min(rows, left_);
    if (rows <= 0) return;
    left_ -= rows;
    some_.rows = rows;
    store_(some_);
    some_.sums += rows * some_.sums_stride;
    some_.c += rows * some_.c_stride;
    if (some_.residual != nullptr) some_.residual += rows * some_.residual_stride;
    if (some_.bias != nullptr && some_.epilogue->bias_axis == BiasAxis::row) some_.bias += rows;
  }

 private:
  TileStoreKernel store_;
  int64_t left_ = 0;
  TileStore some_;
};

template <Bf16x3From from, bool two_rows, bool two_columns>
SARDONYX_BF16X3 void product(const Bf16x3Job& job) {
  constexpr int64_t width = two_columns ? 32 : 16;
  constexpr int64_t sums_stride = width * 4;
  float* below = job.sums + 16 * width;
  if (job.resume) {
    _tile_loadd(0, job.sums, sums_stride);
    if constexpr (two_columns) _tile_loadd(1, job.sums + 16, sums_stride);
    if constexpr (two_rows) _tile_loadd(2, below, sums_stride);
    if constexpr (two_rows && two_columns) _tile_loadd(3, below + 16, sums_stride);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const float* a = job.strip;
  const float* b = job.panel;
  const char* ahead = job.ahead;
  RowsStored before(job);
  constexpr bool full = from == Bf16x3From::float32;
  const float* near_a = a;
  const float* near_b = b;
  // With every product of tiles a sixth of the next step's operands is brought near; fewer products
  // gain nothing by it.
  const auto bring = [&] {
    if constexpr (full) {
      for (int64_t i = 0; i < tile_floats; i += 16) {
        __builtin_prefetch(near_a + step_floats + i, 0, 3);
        __builtin_prefetch(near_b + step_floats + i, 0, 3);
      }
      near_a += tile_floats;
      near_b += tile_floats;
    }
    for (int64_t i = 0; i < job.ahead_lines; ++i, ahead += 64) __builtin_prefetch(ahead, 0, 2);
    before.store_some(job.before_rows);
  };
  const auto times_columns = [&](int part) SARDONYX_BF16X3 {
    load_columns<two_columns>(b + part * part_floats);
    multiply<two_rows, two_columns>();
    bring();
  };
  const auto times_rows = [&](int part) SARDONYX_BF16X3 {
    load_rows<two_rows>(a + part * part_floats);
    multiply<two_rows, two_columns>();
    bring();
  };
  for (int64_t t = 0; t < job.terms; t += bf16x3_terms, a += step_floats, b += step_floats) {
    load_rows<two_rows>(a);
    if constexpr (full) times_columns(2);
    if constexpr (from != Bf16x3From::bfloat16) times_columns(1);
    if (job.next_pairs > 0) split_some<from>(*job.next, job.next_pairs);
    times_columns(0);
    if constexpr (full) times_rows(2);
    times_rows(1);
    if constexpr (full) times_columns(1);
  }
  before.store_some(bf16x3_size);
  _tile_stored(0, job.sums, sums_stride);
  if constexpr (two_columns) _tile_stored(1, job.sums + 16, sums_stride);
  if constexpr (two_rows) _tile_stored(2, below, sums_stride);
  if constexpr (two_rows && two_columns) _tile_stored(3, below + 16, sums_stride);
}

double up(int64_t n, int64_t to) { return static_cast<double>((n + to - 1) / to * to); }

}  // namespace

// As measured: six products of tiles of 16 x 16 with 32 terms take 100, of which coarse ones are
// three; a value of A takes 0.8 to split; one of B 1.4, but for the first panel's meanwhile; and a
// stored tile costs a little more than one that never left its registers.
double bf16x3_cycles(int64_t M, int64_t N, int64_t K, bool coarse) {
  const double rows = up(M, 16), columns = up(N, 16), terms = up(K, 32);
  return std::max(rows * (coarse ? 50 : 100) / (16 * 16 * 32), 1.4) * columns * terms +
         0.8 * rows * terms + 16 * terms + up(M, 32) * up(N, 32) / 4;
}

// Vectors do 27 multiply-adds in a cycle.
bool bf16x3_pays(int64_t lanes, int64_t M, int64_t N, int64_t K) {
  // Less is done before its operands have come: networks of small products gain nothing, nor do
  // products of few rows, which do not hide the splitting of B.
  const int64_t min_work = M < 64 ? 24'000'000 : 12'000'000;
  if (lanes != 16 || !has_amx() || M < 32 || N < 32 || K < 24) return false;
  if (M < min_work / (N * K)) return false;
  const double vectors = static_cast<double>(M) * up(N, 16) * static_cast<double>(K) / 27;
  return bf16x3_cycles(M, N, K, false) < 0.85 * vectors;
}

namespace {

// Two steps of all rows before the next two: what is written stays together, and what is read is
// some lines of each row.
template <int count>
SARDONYX_BF16X3 float split_rows(const float* a, int64_t stride, int64_t rows, int64_t terms,
                                 float* parts) {
  constexpr int64_t at_once = 2 * bf16x3_terms;
  __m512i most = _mm512_setzero_si512();
  const int64_t padded = rows > 16 ? 32 : 16;
  for (int64_t begin = 0; begin < terms; begin += at_once) {
    const int64_t end = std::min(terms, begin + at_once);
    for (int64_t row = 0; row < padded; ++row) {
      float* out =
          parts + begin / bf16x3_terms * step_floats + row / 16 * tile_floats + row % 16 * 16;
      const float* in = a + row * stride;
      for (int64_t t = begin; t < end; t += bf16x3_terms, out += step_floats) {
        __m512 x = _mm512_setzero_ps(), y = x;
        if (row < rows) {
          const int64_t left = terms - t;
          if (left >= bf16x3_terms) {
            x = _mm512_loadu_ps(in + t);
            y = _mm512_loadu_ps(in + t + 16);
          } else {
            const auto mask = static_cast<uint32_t>((uint64_t{1} << left) - 1);
            x = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), in + t);
            y = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> 16), in + t + 16);
          }
          most = larger(larger(most, x), y);
        }
        const Parts p = split<count>(x, y);
        for (int i = 0; i < count; ++i) _mm512_store_si512(out + i * part_floats, p.part[i]);
      }
    }
  }
  alignas(64) uint32_t lanes[16];
  _mm512_store_si512(lanes, most);
  return as_magnitude(lanes);
}

template <Bf16x3From from>
SARDONYX_BF16X3 void product_of(const Bf16x3Job& job) {
  if (job.rows > 16) {
    job.vectors == 2 ? product<from, true, true>(job) : product<from, true, false>(job);
  } else {
    job.vectors == 2 ? product<from, false, true>(job) : product<from, false, false>(job);
  }
}

}  // namespace

float bf16x3_strip(const float* a, int64_t stride, int64_t rows, int64_t terms, int count,
                   float* parts) {
  return (count == 3 ? &split_rows<3> : &split_rows<2>)(a, stride, rows, terms, parts);
}

void bf16x3_pairs(Bf16x3Panel& panel, int64_t count) {
  switch (bf16x3_from(panel.from)) {
    case Bf16x3From::float16: return split_some<Bf16x3From::float16>(panel, count);
    case Bf16x3From::bfloat16: return split_some<Bf16x3From::bfloat16>(panel, count);
    case Bf16x3From::coarse: return split_some<Bf16x3From::coarse>(panel, count);
    default: return split_some<Bf16x3From::float32>(panel, count);
  }
}

float bf16x3_magnitude(const Bf16x3Panel& panel) { return as_magnitude(panel.most); }

bool bf16x3_suits(float strip, float panel) {
  constexpr float large = 0x1p60f, small = 0x1p-40f;
  const auto fine = [](float x) { return x == 0 || (x > small && x < large); };
  return fine(strip) && fine(panel);
}

Bf16x3Tiles::Bf16x3Tiles() { set_up(); }
Bf16x3Tiles::~Bf16x3Tiles() { release(); }

void bf16x3_product(const Bf16x3Job& job) {
  switch (job.from) {
    case Bf16x3From::float16: return product_of<Bf16x3From::float16>(job);
    case Bf16x3From::bfloat16: return product_of<Bf16x3From::bfloat16>(job);
    case Bf16x3From::coarse: return product_of<Bf16x3From::coarse>(job);
    default: return product_of<Bf16x3From::float32>(job);
  }
}

}  // namespace sardonyx::kernels
#else
namespace sardonyx::kernels {

bool bf16x3_pays(int64_t, int64_t, int64_t, int64_t) { return false; }
double bf16x3_cycles(int64_t, int64_t, int64_t, bool) { return 0; }
float bf16x3_strip(const float*, int64_t, int64_t, int64_t, int, float*) { return 0; }
void bf16x3_pairs(Bf16x3Panel&, int64_t) {}
float bf16x3_magnitude(const Bf16x3Panel&) { return 0; }
bool bf16x3_suits(float, float) { return false; }
Bf16x3Tiles::Bf16x3Tiles() {}
Bf16x3Tiles::~Bf16x3Tiles() {}
void bf16x3_product(const Bf16x3Job&) {}

}  // namespace sardonyx::kernels
#endif
