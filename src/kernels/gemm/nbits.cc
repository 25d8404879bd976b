#include "kernels/gemm/nbits.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/gemm/gemm.h"
#include "kernels/gemm/nbits_int8.h"
#include "kernels/gemm/nbits_job.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/nbits.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
// Of blocks that are no whole number of those vectors' bytes.
using ShortTag = hn::CappedTag<float, 8>;
// Single numbers: the portable target. Rows and columns at once would only be more code there.
constexpr bool one_by_one = HWY_TARGET == HWY_SCALAR;

template <class D>
bool WholeVectors(const NBitsMatrix& b) {
  return b.block_bytes() % static_cast<int64_t>(hn::Lanes(D())) == 0;
}

// Of the vectors that the blocks of `b` are read in; 0: of none.
int64_t Lanes(const NBitsMatrix& b) {
  if (WholeVectors<FloatTag>(b)) return static_cast<int64_t>(hn::Lanes(FloatTag()));
  return WholeVectors<ShortTag>(b) ? static_cast<int64_t>(hn::Lanes(ShortTag())) : 0;
}

// One row, so that the elements that share a byte with others of their place in it lie side by
// side: [chunk][place in the byte][lane]. What is beyond k is 0.
template <class D>
void ArrangeFor(const NBitsMatrix& b, const float* row, float* out) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  const int64_t places = 8 / b.bits, chunk = lanes * places;
  const int64_t blocks = b.blocks();
  for (int64_t i = 0; i < blocks; ++i) {
    for (int64_t c = i * b.block; c < (i + 1) * b.block; c += chunk) {
      for (int64_t p = 0; p < places; ++p) {
        float* to = out + c + p * lanes;
        for (int64_t l = 0; l < lanes; ++l) {
          const int64_t from = c + l * places + p;
          to[l] = from < b.k ? row[from] : 0.0f;
        }
      }
    }
  }
}

void Arrange(const NBitsMatrix& b, const float* row, float* out) {
  (WholeVectors<FloatTag>(b) ? ArrangeFor<FloatTag> : ArrangeFor<ShortTag>)(b, row, out);
}

// The elements at one place in `lanes` bytes, as floats.
template <int bits, class D, class V>
HWY_INLINE hn::Vec<D> Elements(D d, V bytes, int place) {
  const hn::RebindToSigned<D> di;
  const hn::RebindToUnsigned<D> du;
  auto q = bytes;
  if (place > 0) q = hn::ShiftRightSame(q, place * bits);
  if (bits < 8 && (place + 1) * bits < 8) q = hn::And(q, hn::Set(du, (1u << bits) - 1));
  return hn::ConvertTo(d, hn::BitCast(di, q));
}

// The whole vectors of one block as floats, side by side; returns how many elements that were.
template <int bits>
int64_t WidenBlock(const uint8_t* bytes, int64_t count, float zero, float scale, float* out) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> du;
  const hn::Rebind<uint8_t, FloatTag> d8;
  constexpr int places = 8 / bits;
  const int64_t chunk = static_cast<int64_t>(hn::Lanes(d)) * places;
  const auto zeros = hn::Set(d, zero), scales = hn::Set(d, scale);
  int64_t i = 0;
  for (; i + chunk <= count; i += chunk) {
    const auto q = hn::PromoteTo(du, hn::LoadU(d8, bytes + i / places));
    const auto value = [&](int place) HWY_ATTR {
      return hn::Mul(hn::Sub(Elements<bits>(d, q, place), zeros), scales);
    };
    if constexpr (bits == 8) {
      hn::StoreU(value(0), d, out + i);
    } else if constexpr (bits == 4) {
      hn::StoreInterleaved2(value(0), value(1), d, out + i);
    } else {
      hn::StoreInterleaved4(value(0), value(1), value(2), value(3), d, out + i);
    }
  }
  return i;
}

int64_t Widen(int bits, const uint8_t* bytes, int64_t count, float zero, float scale, float* out) {
  if (bits == 2) return WidenBlock<2>(bytes, count, zero, scale, out);
  if (bits == 4) return WidenBlock<4>(bytes, count, zero, scale, out);
  return WidenBlock<8>(bytes, count, zero, scale, out);
}

// What columns further on have in the place of block i of these: a processor sees too few of their
// bytes and scales in a row to fetch them by itself.
template <int columns>
HWY_INLINE void FetchAhead(const NBitsMatrix& b, int64_t column, int64_t i) {
  constexpr int64_t line = 64, ahead = columns_ahead * columns, line_scales = 16;
  const int64_t bytes = b.block_bytes() * columns;
  const uint8_t* data = b.data + (column + ahead) * b.column_bytes() + i * bytes;
  for (int64_t at = 0; at < bytes; at += line) __builtin_prefetch(data + at, 0, 3);
  if (i % (line_scales / columns) == 0)
    __builtin_prefetch(b.scales + (column + ahead) * b.blocks() + i * columns, 0, 3);
}

template <class D, int rows, int columns>
HWY_INLINE void Finish(const NBitsMatrix& b, const NBitsJob& job, int64_t column,
                       const hn::Vec<D> (&sums)[rows][columns]) {
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) {
      const float bias = job.bias ? job.bias[column + c] : 0.0f;
      job.y[r * b.n + column + c] = hn::GetLane(hn::SumOfLanes(D(), sums[r][c])) + bias;
    }
  }
}

template <class D, int bits, int rows, int columns>
void Multiply(const NBitsMatrix& b, const NBitsJob& job, int64_t column) {
  const D d;
  const hn::RebindToUnsigned<D> du;
  const hn::Rebind<uint8_t, D> d8;
  using V = hn::Vec<D>;
  constexpr int places = 8 / bits;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t blocks = b.blocks(), block_bytes = b.block_bytes();
  V sums[rows][columns];
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) sums[r][c] = hn::Zero(d);
  }
  const float plain_zero = static_cast<float>(1 << (bits - 1));
  for (int64_t i = 0; i < blocks; ++i) {
    V dots[rows][columns], zeros[columns];
    FetchAhead<columns>(b, column, i);
    for (int c = 0; c < columns; ++c) {
      const int64_t at = (column + c) * blocks + i;
      zeros[c] = hn::Set(d, b.zeros         ? static_cast<float>(b.zeros[at])
                            : b.float_zeros ? b.float_zeros[at]
                                            : plain_zero);
      for (int r = 0; r < rows; ++r) dots[r][c] = hn::Zero(d);
    }
    const float* a = job.rows + i * b.block;
    const uint8_t* data = b.data + column * b.column_bytes() + i * block_bytes;
    for (int64_t byte = 0; byte < block_bytes; byte += lanes) {
      hn::Vec<decltype(du)> bytes[columns];
#pragma GCC unroll 4
      for (int c = 0; c < columns; ++c)
        bytes[c] = hn::PromoteTo(du, hn::LoadU(d8, data + c * b.column_bytes() + byte));
#pragma GCC unroll 4
      for (int p = 0; p < places; ++p) {
        V x[rows];
#pragma GCC unroll 4
        for (int r = 0; r < rows; ++r)
          x[r] = hn::LoadU(d, a + r * job.row_stride + (byte * places + p * lanes));
#pragma GCC unroll 4
        for (int c = 0; c < columns; ++c) {
          // Taken off here: the difference of two sums would lose digits where an activation is
          // large.
          const V w = hn::Sub(Elements<bits>(d, bytes[c], p), zeros[c]);
#pragma GCC unroll 4
          for (int r = 0; r < rows; ++r) dots[r][c] = hn::MulAdd(w, x[r], dots[r][c]);
        }
      }
    }
    for (int c = 0; c < columns; ++c) {
      const V scale = hn::Set(d, b.scales[(column + c) * blocks + i]);
      for (int r = 0; r < rows; ++r) sums[r][c] = hn::MulAdd(scale, dots[r][c], sums[r][c]);
    }
  }
  Finish<D>(b, job, column, sums);
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3 && HWY_MAX_BYTES >= 64
#define SARDONYX_NBITS_TABLES 1
// The same for 4 bits: the 16 values that elements of a block can have are a vector, from which the
// elements are looked up. Of the bits of an index only the lowest four count.
template <int rows, int columns>
void LookUp(const NBitsMatrix& b, const NBitsJob& job, int64_t column) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  const hn::RebindToUnsigned<FloatTag> du;
  const hn::Rebind<uint8_t, FloatTag> d8;
  using V = hn::Vec<FloatTag>;
  constexpr int64_t lanes = 16, most = 64;  // blocks at a time
  const int64_t blocks = b.blocks(), block_bytes = b.block_bytes();
  HWY_ALIGN float zeros[columns][most];
  V sums[rows][columns];
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) sums[r][c] = hn::Zero(d);
  }
  const V steps = hn::ConvertTo(d, hn::Iota(di, 0));
  for (int64_t first = 0; first < blocks; first += most) {
    const int64_t count = HWY_MIN(most, blocks - first);
    for (int c = 0; c < columns; ++c) {
      const int64_t at = (column + c) * blocks + first;
      for (int64_t i = 0; i < count; ++i) {
        zeros[c][i] = b.zeros         ? static_cast<float>(b.zeros[at + i])
                      : b.float_zeros ? b.float_zeros[at + i]
                                      : 8.0f;
      }
    }
    for (int64_t i = first; i < first + count; ++i) {
      V values[columns];
#pragma GCC unroll 4
      for (int c = 0; c < columns; ++c) {
        const V from_zero = hn::Sub(steps, hn::Set(d, zeros[c][i - first]));
        values[c] = hn::Mul(from_zero, hn::Set(d, b.scales[(column + c) * blocks + i]));
      }
      const float* a = job.rows + i * b.block;
      const uint8_t* data = b.data + column * b.column_bytes() + i * block_bytes;
      FetchAhead<columns>(b, column, i);
      for (int64_t byte = 0; byte < block_bytes; byte += lanes) {
        V low[rows], high[rows];
#pragma GCC unroll 4
        for (int r = 0; r < rows; ++r) {
          low[r] = hn::LoadU(d, a + r * job.row_stride + 2 * byte);
          high[r] = hn::LoadU(d, a + r * job.row_stride + 2 * byte + lanes);
        }
#pragma GCC unroll 4
        for (int c = 0; c < columns; ++c) {
          const auto q = hn::PromoteTo(du, hn::LoadU(d8, data + c * b.column_bytes() + byte));
          const V even{_mm512_permutexvar_ps(q.raw, values[c].raw)};
          const V odd{_mm512_permutexvar_ps(hn::ShiftRight<4>(q).raw, values[c].raw)};
#pragma GCC unroll 4
          for (int r = 0; r < rows; ++r) {
            sums[r][c] = hn::MulAdd(even, low[r], sums[r][c]);
            sums[r][c] = hn::MulAdd(odd, high[r], sums[r][c]);
          }
        }
      }
    }
  }
  Finish<FloatTag>(b, job, column, sums);
}
#endif

template <class D, int bits, int rows, int columns>
HWY_INLINE void Product(const NBitsMatrix& b, const NBitsJob& job, int64_t column) {
#ifdef SARDONYX_NBITS_TABLES
  if constexpr (bits == 4 && std::is_same_v<D, FloatTag>)
    return LookUp<rows, columns>(b, job, column);
#endif
  Multiply<D, bits, rows, columns>(b, job, column);
}

template <class D, int bits, int rows>
void MultiplyRows(const NBitsMatrix& b, const NBitsJob& job) {
  constexpr int together = one_by_one ? 1 : rows == 1 ? 4 : 2;
  int64_t column = job.begin;
  if constexpr (together > 1) {
    for (; column + together <= job.end; column += together)
      Product<D, bits, rows, together>(b, job, column);
  }
  for (; column < job.end; ++column) Product<D, bits, rows, 1>(b, job, column);
}

template <class D, int bits>
void MultiplyBits(const NBitsMatrix& b, int rows, const NBitsJob& job) {
  if constexpr (one_by_one) {
    NBitsJob row = job;
    for (int r = 0; r < rows; ++r) {
      MultiplyRows<D, bits, 1>(b, row);
      row.rows += job.row_stride, row.y += b.n;
    }
    return;
  }
  switch (rows) {
    case 1: return MultiplyRows<D, bits, 1>(b, job);
    case 2: return MultiplyRows<D, bits, 2>(b, job);
    case 3: return MultiplyRows<D, bits, 3>(b, job);
    default: return MultiplyRows<D, bits, 4>(b, job);
  }
}

template <class D>
void MultiplyFor(const NBitsMatrix& b, int rows, const NBitsJob& job) {
  if (b.bits == 2) return MultiplyBits<D, 2>(b, rows, job);
  if (b.bits == 4) return MultiplyBits<D, 4>(b, rows, job);
  MultiplyBits<D, 8>(b, rows, job);
}

void MultiplyColumns(const NBitsMatrix& b, int rows, const NBitsJob& job) {
  if (WholeVectors<FloatTag>(b)) return MultiplyFor<FloatTag>(b, rows, job);
  MultiplyFor<ShortTag>(b, rows, job);
}

#undef SARDONYX_NBITS_TABLES

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(Lanes);
HWY_EXPORT(Arrange);
HWY_EXPORT(MultiplyColumns);
HWY_EXPORT(Widen);

namespace {

constexpr int64_t few_rows = 8;
constexpr int64_t rows_together = 4;
constexpr int64_t slice_floats = int64_t{1} << 18;  // of the columns that one task makes floats

int64_t round_up_to(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

bool reads_directly(const NBitsMatrix& b, int64_t m) {
  return m <= few_rows && b.group == nullptr && HWY_DYNAMIC_DISPATCH(Lanes)(b) != 0;
}

// Of an arranged row.
int64_t row_floats(const NBitsMatrix& b) { return round_up_to(b.blocks() * b.block, 16); }

// Rows as they are multiplied with the matrix as it is: in digits where they can be, so that what
// becomes of one does not depend on the others.
struct ArrangedRows {
  ArrangedRows(const NBitsMatrix& b, int64_t rows, std::byte* space)
      : digit_bytes(digits_suit(b) ? digit_row_bytes(b) : 0),
        row(row_floats(b)),
        digits(space),
        floats(reinterpret_cast<float*>(space + rows * digit_bytes)) {}
  static int64_t bytes(const NBitsMatrix& b, int64_t rows) {
    const ArrangedRows one(b, 0, nullptr);
    return rows * (one.digit_bytes + one.row * 4);
  }

  int64_t digit_bytes, row;  // of each row
  std::byte* digits;
  float* floats;
  bool in_digits[few_rows] = {};
};

void multiply_arranged(const NBitsMatrix& b, const ArrangedRows& rows, int64_t first, int count,
                       int64_t begin, int64_t end, const float* bias, float* y) {
  if (rows.in_digits[first]) {
    const DigitJob job{rows.digits + first * rows.digit_bytes, begin, end, bias, y + first * b.n};
    return multiply_digits(b, count, job);
  }
  NBitsJob job;
  job.rows = rows.floats + first * rows.row, job.row_stride = rows.row;
  job.begin = begin, job.end = end, job.bias = bias, job.y = y + first * b.n;
  HWY_DYNAMIC_DISPATCH(MultiplyColumns)(b, count, job);
}

void multiply_directly(const NBitsMatrix& b, int64_t m, const float* a, const float* bias, float* y,
                       void* scratch, ThreadPool& pool) {
  ArrangedRows rows(b, m, static_cast<std::byte*>(scratch));
  for (int64_t i = 0; i < m; ++i) {
    rows.in_digits[i] =
        rows.digit_bytes > 0 && arrange_digits(b, a + i * b.k, rows.digits + i * rows.digit_bytes);
    if (rows.in_digits[i]) continue;
    HWY_DYNAMIC_DISPATCH(Arrange)
    (b, a + i * b.k, rows.floats + i * rows.row);
  }
  const int64_t grain =
      std::max<int64_t>(4, 131072 / std::max<int64_t>(1, b.blocks() * b.block) / 4 * 4);
  pool.parallel_for(b.n, grain, [&](int64_t begin, int64_t end, int) {
    int count = 0;
    for (int64_t i = 0; i < m; i += count) {
      count = 1;
      while (i + count < m && count < rows_together &&
             rows.in_digits[i + count] == rows.in_digits[i]) {
        ++count;
      }
      multiply_arranged(b, rows, i, count, begin, end, bias, y);
    }
  });
}

class DequantizedColumns : public ColumnSource {
 public:
  explicit DequantizedColumns(const NBitsMatrix& b) : b_(b) {}
  void columns(int64_t begin, int64_t end, float* out) const override {
    dequantize_columns(b_, begin, end, out);
  }

 private:
  const NBitsMatrix& b_;
};

int64_t slice_columns(int64_t n, int64_t k) {
  return std::clamp<int64_t>(slice_floats / std::max<int64_t>(1, k) / 32 * 32, 32,
                             round_up_to(std::max<int64_t>(n, 1), 32));
}

int64_t slice_product_bytes(int64_t m, int64_t n, int64_t k) {
  const int64_t columns = std::min(slice_columns(n, k), n), last = n % slice_columns(n, k);
  int64_t bytes = 0;
  for (const int64_t width : {columns, last}) {
    if (width > 0)
      bytes = std::max(bytes, gemm_scratch_bytes(m, width, k, {nullptr, k, 1}, {nullptr, 1, k}, 1));
  }
  return round_up_to(bytes, 64);
}

int64_t slice_bytes(int64_t n, int64_t k) {
  return round_up_to(std::min(slice_columns(n, k), n) * k * 4, 64);
}

}  // namespace

void dequantize_columns(const NBitsMatrix& b, int64_t begin, int64_t end, float* out) {
  const int64_t blocks = b.blocks(), per_byte = 8 / b.bits;
  const auto mask = static_cast<uint8_t>((1 << b.bits) - 1);
  const auto plain_zero = static_cast<float>(1 << (b.bits - 1));
  const auto zero_of = [&](int64_t at) {
    if (b.zeros) return static_cast<float>(b.zeros[at]);
    return b.float_zeros ? b.float_zeros[at] : plain_zero;
  };
  for (int64_t j = begin; j < end; ++j, out += b.k) {
    const uint8_t* data = b.data + j * b.column_bytes();
    if (b.group != nullptr) {
      for (int64_t i = 0; i < b.k; ++i) {
        const int64_t at = j * blocks + b.group[i];
        const int q = data[i / per_byte] >> (i % per_byte * b.bits) & mask;
        out[i] = (static_cast<float>(q) - zero_of(at)) * b.scales[at];
      }
      continue;
    }
    for (int64_t i = 0; i < b.k; i += b.block) {
      const int64_t at = j * blocks + i / b.block, count = std::min(b.block, b.k - i);
      const float scale = b.scales[at], zero = zero_of(at);
      const uint8_t* bytes = data + i / b.block * b.block_bytes();
      const int64_t done = HWY_DYNAMIC_DISPATCH(Widen)(b.bits, bytes, count, zero, scale, out + i);
      for (int64_t t = done; t < count; ++t) {
        const int q = bytes[t / per_byte] >> (t % per_byte * b.bits) & mask;
        out[i + t] = (static_cast<float>(q) - zero) * scale;
      }
    }
  }
}

int64_t sliced_scratch_bytes(int64_t m, int64_t n, int64_t k, int threads) {
  return (slice_bytes(n, k) + slice_product_bytes(m, n, k)) * threads;
}

void sliced_product(const ColumnSource& b, int64_t m, int64_t n, int64_t k, const float* a,
                    const float* bias, float* y, void* scratch, ThreadPool& alone,
                    ThreadPool& pool) {
  const int64_t columns = slice_columns(n, k), floats = slice_bytes(n, k),
                each = floats + slice_product_bytes(m, n, k);
  const int64_t slices = (n + columns - 1) / columns;
  pool.parallel_for(slices, 1, [&](int64_t begin, int64_t end, int worker) {
    auto* own = static_cast<std::byte*>(scratch) + worker * each;
    auto* slice = reinterpret_cast<float*>(own);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * columns, last = std::min(n, first + columns);
      b.columns(first, last, slice);
      Epilogue epilogue;
      if (bias) epilogue.bias = bias + first, epilogue.bias_axis = BiasAxis::column;
      gemm(m, last - first, k, {a, k, 1}, {slice, 1, k}, y + first, n, epilogue, own + floats,
           alone);
    }
  });
}

int64_t nbits_scratch_bytes(const NBitsMatrix& b, int64_t m, int threads) {
  if (m <= 0 || b.n <= 0) return 0;
  if (reads_directly(b, m)) return ArrangedRows::bytes(b, m);
  return sliced_scratch_bytes(m, b.n, b.k, threads);
}

void nbits_product(const NBitsMatrix& b, int64_t m, const float* a, const float* bias, float* y,
                   void* scratch, ThreadPool& alone, ThreadPool& pool) {
  if (m <= 0 || b.n <= 0) return;
  if (reads_directly(b, m)) return multiply_directly(b, m, a, bias, y, scratch, pool);
  sliced_product(DequantizedColumns(b), m, b.n, b.k, a, bias, y, scratch, alone, pool);
}

}  // namespace sardonyx::kernels
#endif
