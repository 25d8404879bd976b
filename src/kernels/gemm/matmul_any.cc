#include "kernels/gemm/matmul_any.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/fail.h"
#include "kernels/gemm/wide_tiles.h"

namespace sardonyx::kernels {
namespace {

constexpr int64_t row_work = 1 << 16;  // multiply-adds worth a chunk

// Integers are multiplied as unsigned, so that overflow wraps.
template <class T>
using Wrapping = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                             std::type_identity<T>>::type;

// Where a product of the batch begins in each operand.
struct Begins {
  int64_t a = 0, b = 0, c = 0;
};
Begins begins_of(const GemmBatch& batch, int64_t product) {
  Begins at;
  for (int d = batch.rank - 1; d >= 0; --d) {
    const int64_t i = product % batch.size[d];
    product /= batch.size[d];
    at.a += i * batch.a_stride[d];
    at.b += i * batch.b_stride[d];
    at.c += i * batch.c_stride[d];
  }
  return at;
}

template <class T>
void products(const GemmBatch& batch, int64_t M, int64_t N, int64_t K, const AnyMatrix& a,
              const AnyMatrix& b, void* c, int64_t ldc, ThreadPool& pool) {
  using W = Wrapping<T>;
  const int64_t strips = (M + wide_tile_rows - 1) / wide_tile_rows;
  const int64_t work = std::max<int64_t>(1, wide_tile_rows * N * std::max<int64_t>(K, 1));
  pool.parallel_for(
      batch.count() * strips, std::max<int64_t>(1, row_work / work),
      [&](int64_t begin, int64_t end, int) {
        for (int64_t task = begin; task < end; ++task) {
          const Begins at = begins_of(batch, task / strips);
          const int64_t first = task % strips * wide_tile_rows;
          multiply_wide(WideProduct<W>{
              std::min(wide_tile_rows, M - first), N, K,
              static_cast<const W*>(a.data) + at.a + first * a.row_stride, a.row_stride,
              a.column_stride, static_cast<const W*>(b.data) + at.b, b.row_stride, b.column_stride,
              static_cast<W*>(c) + at.c + first * ldc, ldc});
        }
      });
}

// What values are multiplied by. Integers wrap where it is a whole number, too; where it is none,
// they are scaled in double and rounded towards zero.
template <class T>
class Factor {
 public:
  explicit Factor(double by) : by_(by) {
    if constexpr (std::is_integral_v<T>) {
      is_whole_ = std::trunc(by) == by && std::fabs(by) < 0x1p63;
      if (is_whole_) whole_ = static_cast<Wrapping<T>>(static_cast<int64_t>(by));
    }
  }
  Wrapping<T> times(T value) const {
    if (by_ == 1) return static_cast<Wrapping<T>>(value);
    if (is_whole_) return static_cast<Wrapping<T>>(value) * whole_;
    return static_cast<Wrapping<T>>(static_cast<T>(static_cast<double>(value) * by_));
  }

 private:
  double by_;
  Wrapping<T> whole_ = 0;
  bool is_whole_ = false;
};

template <class T>
void scale_rows(int64_t M, int64_t N, double alpha, double beta, const void* c, int64_t c_row,
                int64_t c_column, void* y, ThreadPool& pool) {
  const int64_t grain = std::max<int64_t>(1, row_work / std::max<int64_t>(1, N));
  const Factor<T> of_y(alpha), of_c(beta);
  pool.parallel_for(M, grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      T* row = static_cast<T*>(y) + i * N;
      const T* other = c ? static_cast<const T*>(c) + i * c_row : nullptr;
      for (int64_t j = 0; j < N; ++j) {
        Wrapping<T> sum = of_y.times(row[j]);
        if (other) sum += of_c.times(other[j * c_column]);
        row[j] = static_cast<T>(sum);
      }
    }
  });
}

template <class Call>
void by_type(ElementType type, Call&& call) {
  switch (type) {
    case ElementType::float64: return call(double());
    case ElementType::int32: return call(int32_t());
    case ElementType::uint32: return call(uint32_t());
    case ElementType::int64: return call(int64_t());
    case ElementType::uint64: return call(uint64_t());
    default: fail(ErrorCode::unsupported, "no matrix product for {}", name_of(type));
  }
}

}  // namespace

bool supports_matmul_any(ElementType type) {
  return type == ElementType::float64 || type == ElementType::int32 ||
         type == ElementType::uint32 || type == ElementType::int64 || type == ElementType::uint64;
}

void matmul_any(ElementType type, const GemmBatch& batch, int64_t M, int64_t N, int64_t K,
                const AnyMatrix& a, const AnyMatrix& b, void* c, int64_t ldc, ThreadPool& pool) {
  if (M == 0 || N == 0) return;
  by_type(type, [&](auto zero) { products<decltype(zero)>(batch, M, N, K, a, b, c, ldc, pool); });
}

void scale_and_add(ElementType type, int64_t M, int64_t N, double alpha, double beta, const void* c,
                   int64_t c_row_stride, int64_t c_column_stride, void* y, ThreadPool& pool) {
  if (M == 0 || N == 0 || (alpha == 1 && c == nullptr)) return;
  by_type(type, [&](auto zero) {
    scale_rows<decltype(zero)>(M, N, alpha, beta, c, c_row_stride, c_column_stride, y, pool);
  });
}

}  // namespace sardonyx::kernels
