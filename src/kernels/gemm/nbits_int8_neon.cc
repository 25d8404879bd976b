// What nbits_int8.h declares, where an Arm processor has dot products of bytes: of two signed
// factors, so that weights take part as they count from 8.
#include "base/cpu.h"
#include "kernels/gemm/nbits_int8.h"

#ifdef SARDONYX_NEON_DOT
#include <arm_neon.h>
#include <cmath>
#include <limits>

namespace sardonyx::kernels {
namespace {

constexpr int64_t chunk_values = 32;  // a vector of weights
constexpr int64_t chunk_bytes = 16;
constexpr int64_t chunk_lanes = 4;
constexpr int64_t lane_values = 8;
constexpr int64_t scaled_chunks = 4;  // that share what one is worth

// The digits, high to low, of the values in the low halves of weights' bytes and in the high ones;
// the sums of the values that share a lane; what one is worth.
struct alignas(64) Chunk {
  int8_t digits[3][2][chunk_bytes];
  float sums[chunk_lanes];
  float worth;
};

int64_t chunks_of(const NBitsMatrix& b) { return b.blocks() * b.block / chunk_values; }

DigitScale scale_of(const float* values, int64_t count) {
  float most = 0, total = 0;
  bool finite = true;
  for (int64_t i = 0; i < count; ++i) {
    const float size = std::fabs(values[i]);
    finite &= size <= std::numeric_limits<float>::max();
    most = std::max(most, size);
    total += size;
  }
  DigitScale scale(finite ? most : 0, total);
  scale.precise &= finite;
  return scale;
}

void arrange_chunk(const float* values, int64_t count, const DigitScale& scale, Chunk& out) {
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
  for (int64_t lane = 0; lane < chunk_lanes; ++lane)
    out.sums[lane] = static_cast<float>(sums[lane]);
}

// The products of values with weights, exactly: 8 of 22 bits times 8 are below 2^29.
SARDONYX_NEON_DOT inline int32x4_t dots(const Chunk& chunk, int8x16_t low, int8x16_t high) {
  const auto digit = [&](int index) SARDONYX_NEON_DOT {
    const int32x4_t sum = vdotq_s32(vdupq_n_s32(0), low, vld1q_s8(chunk.digits[index][0]));
    return vdotq_s32(sum, high, vld1q_s8(chunk.digits[index][1]));
  };
  const int32x4_t base = vdupq_n_s32(256);
  return vmlaq_s32(digit(2), vmlaq_s32(digit(1), digit(0), base), base);
}

enum class Zeros { plain, bytes, floats };

// How far the zero of a block is from 8.
template <Zeros zeros>
float zero_of(const NBitsMatrix& b, int64_t block) {
  if constexpr (zeros == Zeros::bytes) return static_cast<float>(b.zeros[block]) - 8;
  if constexpr (zeros == Zeros::floats) return b.float_zeros[block] - 8;
  return 0;
}

template <int rows, int columns, Zeros zeros>
SARDONYX_NEON_DOT void columns_of(const NBitsMatrix& b, const DigitJob& job, int64_t column) {
  const int64_t bytes = b.column_bytes(), blocks = b.blocks(), chunks = chunks_of(b);
  const int64_t chunks_each = b.block / chunk_values;  // of a block
  const auto* row = static_cast<const Chunk*>(job.rows);
  const uint8_t* data = b.data + column * bytes;
  const uint8x16_t nibble = vdupq_n_u8(15);
  const int8x16_t eight = vdupq_n_s8(8);
  float32x4_t sums[rows][columns];
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) sums[r][c] = vdupq_n_f32(0);
  }
  for (int64_t block = 0; block < blocks; ++block) {
    float scale[columns], zero[columns];
#pragma GCC unroll 4
    for (int c = 0; c < columns; ++c) {
      const int64_t at = (column + c) * blocks + block;
      scale[c] = b.scales[at], zero[c] = zero_of<zeros>(b, at);
    }
    for (int64_t i = 0; i < chunks_each; ++i, ++row, data += chunk_bytes) {
#pragma GCC unroll 4
      for (int c = 0; c < columns; ++c) {
        const uint8_t* const at = data + c * bytes;
        __builtin_prefetch(at + columns_ahead * columns * bytes, 0, 3);
        const uint8x16_t q = vld1q_u8(at);
        const int8x16_t low = vsubq_s8(vreinterpretq_s8_u8(vandq_u8(q, nibble)), eight);
        const int8x16_t high = vsubq_s8(vreinterpretq_s8_u8(vshrq_n_u8(q, 4)), eight);
#pragma GCC unroll 4
        for (int r = 0; r < rows; ++r) {
          const Chunk& chunk = row[r * chunks];
          float32x4_t value = vcvtq_f32_s32(dots(chunk, low, high));
          if constexpr (zeros != Zeros::plain)
            value = vfmsq_n_f32(value, vld1q_f32(chunk.sums), zero[c]);
          sums[r][c] = vfmaq_n_f32(sums[r][c], value, scale[c] * chunk.worth);
        }
      }
    }
  }
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) {
      const float bias = job.bias ? job.bias[column + c] : 0.0f;
      job.y[r * b.n + column + c] = vaddvq_f32(sums[r][c]) + bias;
    }
  }
}

template <int rows, Zeros zeros>
void rows_of(const NBitsMatrix& b, const DigitJob& job) {
  constexpr int together = rows <= 2 ? 4 : 2;
  int64_t column = job.begin;
  for (; column + together <= job.end; column += together)
    columns_of<rows, together, zeros>(b, job, column);
  for (; column < job.end; ++column) columns_of<rows, 1, zeros>(b, job, column);
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
  return has_neon_dot() && b.bits == 4 && b.group == nullptr && b.block % chunk_values == 0;
}

int64_t digit_row_bytes(const NBitsMatrix& b) {
  return chunks_of(b) * static_cast<int64_t>(sizeof(Chunk));
}

bool arrange_digits(const NBitsMatrix& b, const float* row, void* out) {
  auto* chunks = static_cast<Chunk*>(out);
  const int64_t count = chunks_of(b);
  const auto left = [&](int64_t i) { return std::max<int64_t>(b.k - i * chunk_values, 0); };
  for (int64_t first = 0; first < count; first += scaled_chunks) {
    const DigitScale scale = scale_of(row + std::min(first * chunk_values, b.k),
                                      std::min(left(first), scaled_chunks * chunk_values));
    if (!scale.precise) return false;
    for (int64_t i = first; i < std::min(first + scaled_chunks, count); ++i)
      arrange_chunk(row + std::min(i * chunk_values, b.k), std::min(left(i), chunk_values), scale,
                    chunks[i]);
  }
  return true;
}

void multiply_digits(const NBitsMatrix& b, int rows, const DigitJob& job) {
  if (b.zeros != nullptr) return multiply<Zeros::bytes>(b, rows, job);
  if (b.float_zeros != nullptr) return multiply<Zeros::floats>(b, rows, job);
  multiply<Zeros::plain>(b, rows, job);
}

}  // namespace sardonyx::kernels
#endif
