#include "kernels/gemm/matmul_any.h"

#include <algorithm>
#include <type_traits>

#include "base/fail.h"
#include "kernels/gemm/doubles.h"

namespace sardonyx::kernels {
namespace {

constexpr int64_t row_work = 1 << 16;  // multiply-adds worth a chunk

// Integers are multiplied as unsigned, so that overflow wraps.
template <class T>
using Wrapping = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                             std::type_identity<T>>::type;

template <class T>
void product_row(int64_t N, int64_t K, const T* a, int64_t a_stride, const T* b, int64_t b_row,
                 int64_t b_column, T* c) {
  std::fill(c, c + N, T(0));
  if (b_column != 1 && b_row == 1) {  // B is stored transposed: dot products walk memory
    for (int64_t j = 0; j < N; ++j) {
      T sum = 0;
      for (int64_t k = 0; k < K; ++k) sum += a[k * a_stride] * b[j * b_column + k];
      c[j] = sum;
    }
    return;
  }
  for (int64_t k = 0; k < K; ++k) {
    const T factor = a[k * a_stride];
    const T* row = b + k * b_row;
    if (b_column == 1) {
      for (int64_t j = 0; j < N; ++j) c[j] += factor * row[j];
    } else {
      for (int64_t j = 0; j < N; ++j) c[j] += factor * row[j * b_column];
    }
  }
}

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

// Calls rows(product, first, count) for all rows of all products, `together` at a time.
template <class Rows>
void for_product_rows(const GemmBatch& batch, int64_t M, int64_t N, int64_t K, int64_t together,
                      ThreadPool& pool, Rows&& rows) {
  const int64_t strips = (M + together - 1) / together;
  const int64_t work = std::max<int64_t>(1, together * N * std::max<int64_t>(K, 1));
  pool.parallel_for(batch.count() * strips, std::max<int64_t>(1, row_work / work),
                    [&](int64_t begin, int64_t end, int) {
                      for (int64_t at = begin; at < end; ++at) {
                        const int64_t first = at % strips * together;
                        rows(begins_of(batch, at / strips), first, std::min(together, M - first));
                      }
                    });
}

template <class T>
void products(const GemmBatch& batch, int64_t M, int64_t N, int64_t K, const AnyMatrix& a,
              const AnyMatrix& b, void* c, int64_t ldc, ThreadPool& pool) {
  if constexpr (std::is_same_v<T, double>) {
    for_product_rows(
        batch, M, N, K, double_tile_rows, pool,
        [&](const Begins& at, int64_t first, int64_t count) {
          multiply_doubles(
              count, N, K, static_cast<const double*>(a.data) + at.a + first * a.row_stride,
              a.row_stride, a.column_stride, static_cast<const double*>(b.data) + at.b,
              b.row_stride, b.column_stride, static_cast<double*>(c) + at.c + first * ldc, ldc);
        });
  } else {
    using W = Wrapping<T>;
    for_product_rows(batch, M, N, K, 1, pool, [&](const Begins& at, int64_t first, int64_t) {
      product_row<W>(N, K, static_cast<const W*>(a.data) + at.a + first * a.row_stride,
                     a.column_stride, static_cast<const W*>(b.data) + at.b, b.row_stride,
                     b.column_stride, static_cast<W*>(c) + at.c + first * ldc);
    });
  }
}

template <class T>
void scale_rows(int64_t M, int64_t N, double alpha, double beta, const void* c, int64_t c_row,
                int64_t c_column, void* y, ThreadPool& pool) {
  const int64_t grain = std::max<int64_t>(1, row_work / std::max<int64_t>(1, N));
  const auto scaled = [](T value, double by) -> T {
    return by == 1 ? value : static_cast<T>(static_cast<double>(value) * by);
  };
  pool.parallel_for(M, grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      T* row = static_cast<T*>(y) + i * N;
      const T* other = c ? static_cast<const T*>(c) + i * c_row : nullptr;
      for (int64_t j = 0; j < N; ++j) {
        using W = Wrapping<T>;
        W sum = static_cast<W>(scaled(row[j], alpha));
        if (other) sum += static_cast<W>(scaled(other[j * c_column], beta));
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
