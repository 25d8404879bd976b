#include "kernels/gemm/nbits_int8_avx2.h"

#if defined(__x86_64__)
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/cpu.h"

#ifdef __GNUC__
#pragma GCC diagnostic ignored "-Wuninitialized"  // GCC 12 finds it in its own intrinsics
#endif
#include <immintrin.h>

#define SARDONYX_AVX2 __attribute__((target("avx2,fma")))

namespace sardonyx::kernels {
namespace {

constexpr int64_t chunk_values = 64;  // a vector of weights
constexpr int64_t chunk_bytes = 32;
constexpr int64_t chunk_lanes = 8;
constexpr int64_t lane_values = 8;  // of which four bytes hold so many
constexpr int64_t min_block = 16;

// The digits, high to low, of the values in the low halves of weights' bytes and in the high ones;
// the sums of the values that share a lane, as they are and eightfold; what one is worth.
struct alignas(64) Chunk {
  int8_t digits[3][2][chunk_bytes];
  int32_t eights[chunk_lanes];
  float sums[chunk_lanes];
  float worth;
};

int64_t chunks_of(const NBitsMatrix& b) {
  return (b.blocks() * b.block + chunk_values - 1) / chunk_values;
}

bool arrange_chunk(const float* values, int64_t count, Chunk& out) {
  float most = 0, total = 0;
  bool finite = true;
  for (int64_t i = 0; i < count; ++i) {
    const float size = std::fabs(values[i]);
    finite &= size <= std::numeric_limits<float>::max();
    most = std::max(most, size);
    total += size;
  }
  const DigitScale scale(finite ? most : 0, total);
  if (!finite || !scale.precise) return false;
  out.worth = scale.worth;
  int32_t sums[chunk_lanes] = {};
  for (int64_t i = 0; i < chunk_values; ++i) {
    // Floats near 1.5 * 2^23 have the integers as their last bits, rounded to the nearest even one.
    constexpr float magic = 12582912.0f;
    const float shifted = (i < count ? values[i] * scale.inverse : 0.0f) + magic;
    int32_t x = std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(magic);
    sums[i / lane_values] += x;
    for (int digit = 2; digit >= 0; --digit) {
      out.digits[digit][i % 2][i / 2] = static_cast<int8_t>(x);
      x = (x + 128) >> 8;
    }
  }
  for (int64_t lane = 0; lane < chunk_lanes; ++lane) {
    out.sums[lane] = static_cast<float>(sums[lane]);
    out.eights[lane] = 8 * sums[lane];
  }
  return true;
}

// The products of values with weights, exactly: 8 of 22 bits times 15 are below 2^29. Two products
// of a digit are at most 3,840, four of them still fit 16 bits.
SARDONYX_AVX2 inline __m256i dots(const Chunk& chunk, __m256i low, __m256i high) {
  const auto digit = [&](int index) SARDONYX_AVX2 {
    const auto* at = reinterpret_cast<const __m256i*>(chunk.digits[index][0]);
    return _mm256_add_epi16(_mm256_maddubs_epi16(low, _mm256_load_si256(at)),
                            _mm256_maddubs_epi16(high, _mm256_load_si256(at + 1)));
  };
  const __m256i one = _mm256_set1_epi16(1), base = _mm256_set1_epi16(256);
  const __m256i upper =
      _mm256_add_epi32(_mm256_madd_epi16(digit(0), base), _mm256_madd_epi16(digit(1), one));
  return _mm256_add_epi32(_mm256_slli_epi32(upper, 8), _mm256_madd_epi16(digit(2), one));
}

// The first lanes of a vector.
SARDONYX_AVX2 inline __m256i first(int64_t count) {
  alignas(32) static constexpr int32_t lanes[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
  const auto from = 8 - std::clamp<int64_t>(count, 0, 8);
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lanes + from));
}

SARDONYX_AVX2 inline __m256 floats_of(const float* at, int64_t count, bool safe) {
  return safe ? _mm256_castps128_ps256(_mm_loadu_ps(at)) : _mm256_maskload_ps(at, first(count));
}

enum class Zeros { plain, bytes, floats };

// Where blocks stand in a column: its bytes, its chunks, and of a chunk's lanes the block.
struct Layout {
  explicit Layout(const NBitsMatrix& b)
      : chunks(chunks_of(b)),
        bytes(b.column_bytes()),
        blocks(b.blocks()),
        blocks_each(std::max<int64_t>(1, chunk_values / b.block)),
        chunks_each(std::max<int64_t>(1, b.block / chunk_values)) {
    for (int64_t i = 0; i < chunk_lanes; ++i)
      block_of_lane[i] = static_cast<int32_t>(i * lane_values / b.block % blocks_each);
  }

  int64_t chunks, bytes, blocks;
  int64_t blocks_each;  // of a chunk; or so many chunks of a block:
  int64_t chunks_each;
  alignas(32) int32_t block_of_lane[chunk_lanes];
};

// Of the `count` blocks that have a share in a chunk, at most four. `safe`: four of them there may
// be read.
template <Zeros zeros>
SARDONYX_AVX2 inline __m256 zeros_of(const NBitsMatrix& b, int64_t at, int64_t count, bool safe) {
  if constexpr (zeros == Zeros::bytes) {
    uint32_t four = 0;
    if (safe) {
      std::memcpy(&four, b.zeros + at, sizeof four);
    } else {
      for (int64_t i = 0; i < count; ++i) four |= uint32_t{b.zeros[at + i]} << 8 * i;
    }
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_cvtsi32_si128(static_cast<int>(four))));
  }
  if constexpr (zeros == Zeros::floats) return floats_of(b.float_zeros + at, count, safe);
  return _mm256_setzero_ps();
}

SARDONYX_AVX2 inline __m256i weights_at(const uint8_t* bytes, int64_t left) {
  if (left >= chunk_bytes) return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes));
  alignas(32) uint8_t some[chunk_bytes] = {};
  std::memcpy(some, bytes, static_cast<size_t>(left));
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(some));
}

SARDONYX_AVX2 inline float total(__m256 v) {
  __m128 half = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  half = _mm_add_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
}

// Some chunks of some columns, of which the first is `column`, and what is to be added to.
template <int rows, int columns>
struct Part {
  const NBitsMatrix& b;
  const Layout& layout;
  const Chunk* row_chunks;
  int64_t column;
  int64_t begin, end;  // chunks
  __m256 sums[rows][columns];
};

// `whole`: the chunks are all there, and of each column and chunk four blocks may be read.
template <int rows, int columns, Zeros zeros, bool whole>
SARDONYX_AVX2 __attribute__((noinline)) void add_chunks(Part<rows, columns>& part) {
  const NBitsMatrix& b = part.b;
  const Layout& layout = part.layout;
  __m256 sums[rows][columns];
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < columns; ++c) sums[r][c] = part.sums[r][c];
  }
  const __m256i block_of_lane =
      _mm256_load_si256(reinterpret_cast<const __m256i*>(layout.block_of_lane));
  const __m256i nibble = _mm256_set1_epi8(15);
  const int64_t column_bytes = layout.bytes, column_blocks = layout.blocks, chunks = layout.chunks,
                first_block = part.column * column_blocks;
  int64_t block = first_block + part.begin / layout.chunks_each * layout.blocks_each;
  int64_t left_in_block = layout.chunks_each - part.begin % layout.chunks_each;
  const uint8_t* data = b.data + part.column * column_bytes + part.begin * chunk_bytes;
  const Chunk* chunk = part.row_chunks + part.begin;
  const float* const scales = b.scales;
  for (int64_t i = part.begin; i < part.end; ++i, ++chunk, data += chunk_bytes) {
    const int64_t some = std::min(layout.blocks_each, first_block + column_blocks - block);
#pragma GCC unroll 4
    for (int c = 0; c < columns; ++c) {
      const uint8_t* bytes = data + c * column_bytes;
      const int64_t at = block + c * column_blocks;
      // As much of columns further on.
      if (i % 2 == 0) _mm_prefetch(bytes + 3 * columns * column_bytes, _MM_HINT_T0);
      if (i % 4 == 0) _mm_prefetch(scales + at + 3 * columns * column_blocks, _MM_HINT_T0);
      const __m256i q = weights_at(bytes, whole ? chunk_bytes : column_bytes - chunk_bytes * i);
      const __m256i low = _mm256_and_si256(q, nibble);
      const __m256i high = _mm256_and_si256(_mm256_srli_epi16(q, 4), nibble);
      const __m256 scale =
          _mm256_permutevar8x32_ps(floats_of(scales + at, some, whole), block_of_lane);
      const __m256 zero =
          _mm256_permutevar8x32_ps(zeros_of<zeros>(b, at, some, whole), block_of_lane);
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) {
        const Chunk& row = chunk[r * chunks];
        __m256i exact = dots(row, low, high);
        if constexpr (zeros == Zeros::plain) {
          exact = _mm256_sub_epi32(exact,
                                   _mm256_load_si256(reinterpret_cast<const __m256i*>(row.eights)));
        }
        __m256 value = _mm256_cvtepi32_ps(exact);
        if constexpr (zeros != Zeros::plain)
          value = _mm256_fnmadd_ps(zero, _mm256_load_ps(row.sums), value);
        const __m256 factor = _mm256_mul_ps(scale, _mm256_set1_ps(row.worth));
        sums[r][c] = _mm256_fmadd_ps(value, factor, sums[r][c]);
      }
    }
    if (--left_in_block > 0) continue;
    left_in_block = layout.chunks_each;
    block += layout.blocks_each;
  }
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < columns; ++c) part.sums[r][c] = sums[r][c];
  }
}

template <int rows, int columns, Zeros zeros>
SARDONYX_AVX2 void columns_of(const NBitsMatrix& b, const Layout& layout, const DigitJob& job,
                              int64_t column) {
  // In the last columns there may be no four blocks from the last one on.
  const int64_t whole = column + columns + 3 / layout.blocks < b.n ? layout.bytes / chunk_bytes : 0;
  Part<rows, columns> part{b, layout, static_cast<const Chunk*>(job.rows), column, 0, whole, {}};
  add_chunks<rows, columns, zeros, true>(part);
  if (whole < layout.chunks) {
    part.begin = whole, part.end = layout.chunks;
    add_chunks<rows, columns, zeros, false>(part);
  }
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) {
      const float bias = job.bias ? job.bias[column + c] : 0.0f;
      job.y[r * b.n + column + c] = total(part.sums[r][c]) + bias;
    }
  }
}

template <int rows, Zeros zeros>
void rows_of(const NBitsMatrix& b, const DigitJob& job) {
  constexpr int together = rows <= 2 ? 4 : 2;
  const Layout layout(b);
  int64_t column = job.begin;
  for (; column + together <= job.end; column += together)
    columns_of<rows, together, zeros>(b, layout, job, column);
  for (; column < job.end; ++column) columns_of<rows, 1, zeros>(b, layout, job, column);
}

template <Zeros zeros>
void multiply(const NBitsMatrix& b, int rows, const DigitJob& job) {
  switch (rows) {
    case 1: return rows_of<1, zeros>(b, job);
    case 2: return rows_of<2, zeros>(b, job);
    case 3: return rows_of<3, zeros>(b, job);
    default: return rows_of<4, zeros>(b, job);
  }
}

}  // namespace

bool pair_digits_suit(const NBitsMatrix& b) {
  const bool whole =
      b.block >= min_block && (chunk_values % b.block == 0 || b.block % chunk_values == 0);
  return instruction_set() >= InstructionSet::avx2 && b.bits == 4 && b.group == nullptr && whole;
}

int64_t pair_digit_row_bytes(const NBitsMatrix& b) {
  return chunks_of(b) * static_cast<int64_t>(sizeof(Chunk));
}

bool arrange_pair_digits(const NBitsMatrix& b, const float* row, void* out) {
  auto* chunks = static_cast<Chunk*>(out);
  const int64_t count = chunks_of(b);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t left = std::clamp<int64_t>(b.k - i * chunk_values, 0, chunk_values);
    if (!arrange_chunk(row + i * chunk_values, left, chunks[i])) return false;
  }
  return true;
}

void multiply_pair_digits(const NBitsMatrix& b, int rows, const DigitJob& job) {
  if (b.zeros != nullptr) return multiply<Zeros::bytes>(b, rows, job);
  if (b.float_zeros != nullptr) return multiply<Zeros::floats>(b, rows, job);
  multiply<Zeros::plain>(b, rows, job);
}

}  // namespace sardonyx::kernels
#endif
