#include "kernels/gemm/nbits_int8.h"

#include "base/cpu.h"

#if defined(__x86_64__)
#include <algorithm>
#include <cstring>

#include "kernels/gemm/nbits_int8_avx2.h"
#include "kernels/simd/vnni.h"

namespace sardonyx::kernels {
namespace {

constexpr int64_t chunk_values = 128;  // a vector of weights
constexpr int64_t lane_values = 8;     // of which four bytes hold so many
constexpr int64_t chunk_lanes = 16;

// The digits, high to low, of the values in the low halves of weights' bytes and in the high ones;
// for each of the digits its products with weights of -8; and what one is worth. Behind the chunks
// of a row are the sums of its values in each block.
struct alignas(64) Chunk {
  int8_t digits[3][2][64];
  int32_t centres[3][chunk_lanes];
  float worth;
};

int64_t chunks_of(const NBitsMatrix& b) {
  return (b.blocks() * b.block + chunk_values - 1) / chunk_values;
}

// Those and the sums behind them.
int64_t row_chunks_of(const NBitsMatrix& b) {
  const int64_t sum_bytes = (b.blocks() + 15) / 16 * 64;
  return chunks_of(b) + (sum_bytes + static_cast<int64_t>(sizeof(Chunk)) - 1) /
                            static_cast<int64_t>(sizeof(Chunk));
}
const float* block_sums_of(const Chunk* row, int64_t chunks) {
  return reinterpret_cast<const float*>(row + chunks);
}

// One digit's products with weights, exactly.
SARDONYX_VNNI inline __m512i dot(const Chunk& chunk, int digit, __m512i low, __m512i high) {
  const __m512i sum =
      _mm512_dpbusd_epi32(_mm512_setzero_si512(), low, _mm512_load_si512(chunk.digits[digit][0]));
  return _mm512_dpbusd_epi32(sum, high, _mm512_load_si512(chunk.digits[digit][1]));
}

SARDONYX_VNNI inline __mmask16 first(int64_t count) {
  return static_cast<__mmask16>(
      _bzhi_u32(0xffff, static_cast<unsigned>(std::clamp<int64_t>(count, 0, chunk_lanes))));
}

SARDONYX_VNNI bool arrange_chunk(const float* values, int64_t count, Chunk& out) {
  __m512 v[8];
  __m512 most = _mm512_setzero_ps(), total = most;
  __mmask16 odd = 0;
  for (int64_t i = 0; i < 8; ++i) {
    const int64_t left = std::max<int64_t>(count - 16 * i, 0);
    v[i] = left > 0 ? _mm512_maskz_loadu_ps(first(left), values + 16 * i) : _mm512_setzero_ps();
    odd |= _mm512_fpclass_ps_mask(v[i], 0x99);  // not a number, or infinite
    most = _mm512_max_ps(most, _mm512_abs_ps(v[i]));
    total = _mm512_add_ps(total, _mm512_abs_ps(v[i]));
  }
  if (odd != 0) return false;
  const DigitScale scale(_mm512_reduce_max_ps(most), _mm512_reduce_add_ps(total));
  if (!scale.precise) return false;
  out.worth = scale.worth;
  const __m512 inverse = _mm512_set1_ps(scale.inverse);
  const __m512i even_index =
      _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odd_index = _mm512_add_epi32(even_index, _mm512_set1_epi32(1));
  const __m512i half = _mm512_set1_epi32(128);
  for (int64_t i = 0; i < 4; ++i) {
    const __m512i a = _mm512_cvtps_epi32(_mm512_mul_ps(v[2 * i], inverse));
    const __m512i b = _mm512_cvtps_epi32(_mm512_mul_ps(v[2 * i + 1], inverse));
    for (int side = 0; side < 2; ++side) {
      __m512i x = _mm512_permutex2var_epi32(a, side == 0 ? even_index : odd_index, b);
      for (int digit = 2; digit >= 0; --digit) {
        _mm_store_si128(reinterpret_cast<__m128i*>(out.digits[digit][side] + 16 * i),
                        _mm512_cvtepi32_epi8(x));
        x = _mm512_srai_epi32(_mm512_add_epi32(x, half), 8);
      }
    }
  }
  const __m512i eights = _mm512_set1_epi8(8);
  for (int digit = 0; digit < 3; ++digit) {
    const __m512i eightfold = dot(out, digit, eights, eights);
    _mm512_store_si512(out.centres[digit], _mm512_sub_epi32(_mm512_setzero_si512(), eightfold));
  }
  return true;
}

SARDONYX_VNNI float sum_of(const float* values, int64_t count) {
  __m512 sum = _mm512_setzero_ps();
  for (int64_t i = 0; i < count; i += 16)
    sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(first(count - i), values + i));
  return _mm512_reduce_add_ps(sum);
}

// Where blocks stand in a column: its bytes, its chunks, and of a chunk's lanes the block.
struct Layout {
  explicit Layout(const NBitsMatrix& b)
      : chunks(chunks_of(b)),
        row_chunks(row_chunks_of(b)),
        bytes(b.column_bytes()),
        blocks(b.blocks()),
        blocks_each(std::max<int64_t>(1, chunk_values / b.block)),
        chunks_each(std::max<int64_t>(1, b.block / chunk_values)) {
    for (int64_t i = 0; i < chunk_lanes; ++i)
      block_of_lane[i] = static_cast<int32_t>(i * lane_values / b.block % blocks_each);
  }

  int64_t chunks, row_chunks, bytes, blocks;
  int64_t blocks_each;  // of a chunk; or so many chunks of a block:
  int64_t chunks_each;
  alignas(64) int32_t block_of_lane[chunk_lanes];
};

// The sums of the lanes of up to four vectors, each in the same order.
template <int count>
SARDONYX_VNNI inline void total(const __m512 (&sums)[count], float (&out)[4]) {
  __m256 halves[4];
  for (int i = 0; i < 4; ++i) {
    const __m512 v = i < count ? sums[i] : _mm512_setzero_ps();
    halves[i] = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  }
  const __m256 pairs =
      _mm256_hadd_ps(_mm256_hadd_ps(halves[0], halves[1]), _mm256_hadd_ps(halves[2], halves[3]));
  _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(pairs), _mm256_extractf128_ps(pairs, 1)));
}

enum class Zeros { plain, bytes, floats };

// What zeros are beyond 8, of up to 16 blocks. `ahead`: so many blocks further on are wanted soon.
template <Zeros zeros>
SARDONYX_VNNI inline __m512 zeros_of(const NBitsMatrix& b, int64_t at, __mmask16 some,
                                     int64_t ahead) {
  const __m512 eight = _mm512_set1_ps(8);
  if constexpr (zeros == Zeros::bytes) {
    __builtin_prefetch(b.zeros + at + ahead, 0, 3);
    const __m512i bytes = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(some, b.zeros + at));
    return _mm512_sub_ps(_mm512_cvtepi32_ps(bytes), eight);
  }
  __builtin_prefetch(b.float_zeros + at + ahead, 0, 3);
  return _mm512_sub_ps(_mm512_maskz_loadu_ps(some, b.float_zeros + at), eight);
}

// One chunk of some columns, whose blocks begin at `block` in the first of them. What is not there
// of it is 0.
template <int rows, int columns>
SARDONYX_VNNI inline void add_chunk(const NBitsMatrix& b, const Layout& layout, const Chunk* chunk,
                                    const uint8_t* data, int64_t block, __mmask64 there,
                                    __mmask16 blocks_there, __m512 (&sums)[rows][columns]) {
  const __m512i block_of_lane = _mm512_load_si512(layout.block_of_lane);
  const __m512i nibble = _mm512_set1_epi8(15);
  const __m512 base = _mm512_set1_ps(256);
  __m512i low[columns], high[columns];
  __m512 scale[columns];
#pragma GCC unroll 4
  for (int c = 0; c < columns; ++c) {
    const uint8_t* bytes = data + c * layout.bytes;
    // As much of columns further on, and their scales: the processor sees too few of these in a row
    // to fetch them by itself.
    __builtin_prefetch(bytes + columns_ahead * columns * layout.bytes, 0, 3);
    const __m512i q = _mm512_maskz_loadu_epi8(there, bytes);
    low[c] = _mm512_and_si512(q, nibble);
    high[c] = _mm512_and_si512(_mm512_srli_epi16(q, 4), nibble);
    const float* scales = b.scales + block + c * layout.blocks;
    __builtin_prefetch(scales + columns_ahead * columns * layout.blocks, 0, 3);
    scale[c] = _mm512_permutexvar_ps(block_of_lane, _mm512_maskz_loadu_ps(blocks_there, scales));
  }
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) {
    const Chunk& row = chunk[r * layout.row_chunks];
    __m512i dots[3][columns];
    // The columns take turns, so that none waits for its own last sum.
#pragma GCC unroll 4
    for (int digit = 0; digit < 3; ++digit) {
      const __m512i lows = _mm512_load_si512(row.digits[digit][0]);
      const __m512i highs = _mm512_load_si512(row.digits[digit][1]);
      const __m512i centre = _mm512_load_si512(row.centres[digit]);
#pragma GCC unroll 4
      for (int c = 0; c < columns; ++c) dots[digit][c] = _mm512_dpbusd_epi32(centre, low[c], lows);
#pragma GCC unroll 4
      for (int c = 0; c < columns; ++c)
        dots[digit][c] = _mm512_dpbusd_epi32(dots[digit][c], high[c], highs);
    }
    const __m512 worth = _mm512_set1_ps(row.worth);
#pragma GCC unroll 4
    for (int c = 0; c < columns; ++c) {
      // Shifts of whole numbers would wait for the same unit as their products.
      __m512 value = _mm512_cvtepi32_ps(dots[0][c]);
      value = _mm512_fmadd_ps(value, base, _mm512_cvtepi32_ps(dots[1][c]));
      value = _mm512_fmadd_ps(value, base, _mm512_cvtepi32_ps(dots[2][c]));
      sums[r][c] = _mm512_fmadd_ps(value, _mm512_mul_ps(scale[c], worth), sums[r][c]);
    }
  }
}

// Takes away what zeros other than 8 come to: they times the sums of their blocks.
template <int rows, int columns, Zeros zeros>
SARDONYX_VNNI inline void subtract_zeros(const NBitsMatrix& b, const Layout& layout,
                                         const Chunk* row, int64_t column,
                                         __m512 (&sums)[rows][columns]) {
  for (int64_t i = 0; i < layout.blocks; i += chunk_lanes) {
    const __mmask16 some = first(layout.blocks - i);
#pragma GCC unroll 4
    for (int c = 0; c < columns; ++c) {
      const int64_t at = (column + c) * layout.blocks + i;
      const __m512 scale = _mm512_maskz_loadu_ps(some, b.scales + at);
      const __m512 zero = _mm512_mul_ps(
          scale, zeros_of<zeros>(b, at, some, columns_ahead * columns * layout.blocks));
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) {
        const float* block_sums = block_sums_of(row + r * layout.row_chunks, layout.chunks);
        sums[r][c] = _mm512_fnmadd_ps(zero, _mm512_load_ps(block_sums + i), sums[r][c]);
      }
    }
  }
}

template <int rows, int columns, Zeros zeros>
SARDONYX_VNNI void columns_of(const NBitsMatrix& b, const Layout& layout, const DigitJob& job,
                              int64_t column) {
  __m512 sums[rows][columns];
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) sums[r][c] = _mm512_setzero_ps();
  }
  const uint8_t* data = b.data + column * layout.bytes;
  const auto* row = static_cast<const Chunk*>(job.rows);
  const int64_t whole = layout.bytes / 64;
  const __mmask16 blocks_each = first(layout.blocks_each);
  int64_t block = column * layout.blocks, left_in_block = layout.chunks_each;
  for (int64_t i = 0; i < whole; ++i) {
    add_chunk<rows, columns>(b, layout, row + i, data + 64 * i, block, ~0ull, blocks_each, sums);
    if (--left_in_block > 0) continue;
    left_in_block = layout.chunks_each;
    block += layout.blocks_each;
  }
  if (whole < layout.chunks) {
    const __mmask64 there = _bzhi_u64(~0ull, static_cast<unsigned>(layout.bytes - 64 * whole));
    const __mmask16 blocks_there = first((column + 1) * layout.blocks - block);
    add_chunk<rows, columns>(b, layout, row + whole, data + 64 * whole, block, there, blocks_there,
                             sums);
  }
  if constexpr (zeros != Zeros::plain)
    subtract_zeros<rows, columns, zeros>(b, layout, row, column, sums);
  for (int r = 0; r < rows; ++r) {
    float totals[4];
    total(sums[r], totals);
    for (int c = 0; c < columns; ++c) {
      const float bias = job.bias ? job.bias[column + c] : 0.0f;
      job.y[r * b.n + column + c] = totals[c] + bias;
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

bool digits_suit(const NBitsMatrix& b) {
  if (!has_avx512_vnni()) return pair_digits_suit(b);
  const bool whole =
      b.block >= lane_values && (chunk_values % b.block == 0 || b.block % chunk_values == 0);
  return b.bits == 4 && b.group == nullptr && whole;
}

int64_t digit_row_bytes(const NBitsMatrix& b) {
  if (!has_avx512_vnni()) return pair_digit_row_bytes(b);
  return row_chunks_of(b) * static_cast<int64_t>(sizeof(Chunk));
}

bool arrange_digits(const NBitsMatrix& b, const float* row, void* out) {
  if (!has_avx512_vnni()) return arrange_pair_digits(b, row, out);
  auto* chunks = static_cast<Chunk*>(out);
  const int64_t count = chunks_of(b);
  for (int64_t i = 0; i < count; ++i) {
    if (!arrange_chunk(row + i * chunk_values, b.k - i * chunk_values, chunks[i])) return false;
  }
  auto* sums = reinterpret_cast<float*>(chunks + count);
  for (int64_t i = 0; i < b.blocks(); ++i)
    sums[i] = sum_of(row + i * b.block, std::min(b.block, b.k - i * b.block));
  for (int64_t i = b.blocks(); i % 16 != 0; ++i) sums[i] = 0;
  return true;
}

void multiply_digits(const NBitsMatrix& b, int rows, const DigitJob& job) {
  if (!has_avx512_vnni()) return multiply_pair_digits(b, rows, job);
  if (b.zeros != nullptr) return multiply<Zeros::bytes>(b, rows, job);
  if (b.float_zeros != nullptr) return multiply<Zeros::floats>(b, rows, job);
  multiply<Zeros::plain>(b, rows, job);
}

}  // namespace sardonyx::kernels

#elif !defined(SARDONYX_NEON_DOT)

namespace sardonyx::kernels {

bool digits_suit(const NBitsMatrix&) { return false; }
int64_t digit_row_bytes(const NBitsMatrix&) { return 0; }
bool arrange_digits(const NBitsMatrix&, const float*, void*) { return false; }
void multiply_digits(const NBitsMatrix&, int, const DigitJob&) {}

}  // namespace sardonyx::kernels
#endif
