// Matrix multiplication against the definition in double precision.
#include "kernels/gemm/gemm.h"

#include <gtest/gtest.h>

#include <random>

#include "base/thread_pool.h"
#include "gemm_support.h"
#include "kernels/convert/cast.h"
#include "kernels/gemm/matmul_any.h"
#include "kernels/rows_support.h"
#include "sanitized.h"

namespace sardonyx::kernels::test {
namespace {

struct Problem {
  int64_t M, N, K;
  bool a_transposed = false;
  bool b_transposed = false;
  int64_t spread = 1;  // floats between neighbours in A and B
  int64_t slack = 0;   // unused floats at the end of each row of A, B and C
};

// A matrix in memory that is NaN wherever the matrix is not.
struct Operand {
  Operand(int64_t rows, int64_t columns, bool transposed, int64_t spread, int64_t slack,
          uint32_t seed)
      : rows(rows),
        columns(columns),
        memory(std::max<int64_t>(1, (transposed ? columns : rows) *
                                        ((transposed ? rows : columns) * spread + slack)),
               3) {
    const int64_t line = (transposed ? rows : columns) * spread + slack;
    view.data = memory.data();
    view.row_stride = transposed ? spread : line;
    view.column_stride = transposed ? line : spread;
    std::vector<float> values(static_cast<size_t>(rows * columns));
    fill_random(values.data(), rows * columns, seed);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) at(i, j) = values[static_cast<size_t>(i * columns + j)];
    }
  }
  float& at(int64_t i, int64_t j) { return memory[i * view.row_stride + j * view.column_stride]; }

  int64_t rows, columns;
  Guarded memory;
  StridedMatrix view;
};

// A sum's terms without their signs, for how much rounding may lose.
double magnitude_at(Operand& a, Operand& b, int64_t i, int64_t j) {
  double sum = 0;
  for (int64_t k = 0; k < a.columns; ++k) sum += std::abs(double{a.at(i, k)} * b.at(k, j));
  return sum;
}

double sum_at(Operand& a, Operand& b, int64_t i, int64_t j) {
  double sum = 0;
  for (int64_t k = 0; k < a.columns; ++k) sum += double{a.at(i, k)} * b.at(k, j);
  return sum;
}

class GemmTest : public ::testing::TestWithParam<int64_t> {
 protected:
  GemmTest() : target_(GetParam()) {}

  // Runs the problem with 1 and 2 threads, packed (where A's rows are dense) and plain, and
  // compares all of C.
  void check(const Problem& p, const Epilogue& epilogue = {}) {
    SCOPED_TRACE(::testing::Message()
                 << p.M << "x" << p.N << "x" << p.K << " transposed " << p.a_transposed
                 << p.b_transposed << " spread " << p.spread);
    Operand a(p.M, p.K, p.a_transposed, p.spread, p.slack, 1);
    Operand b(p.K, p.N, p.b_transposed, p.spread, p.slack, 2);
    const int64_t ldc = p.N + p.slack;
    for (const bool packed : {false, true}) {
      if (packed && (p.a_transposed || p.spread != 1)) continue;
      SCOPED_TRACE(packed ? "packed" : "plain");
      Guarded one(std::max<int64_t>(1, p.M * ldc)), two(std::max<int64_t>(1, p.M * ldc));
      run(p, packed, a, b, one, ldc, epilogue, one_);
      run(p, packed, a, b, two, ldc, epilogue, two_);
      EXPECT_EQ(
          std::memcmp(one.data(), two.data(), sizeof(float) * static_cast<size_t>(one.size())), 0)
          << "one and two threads differ";
      compare(p, a, b, one, ldc, epilogue);
    }
  }

  void run(const Problem& p, bool packed, Operand& a, Operand& b, Guarded& c, int64_t ldc,
           Epilogue epilogue, ThreadPool& pool) {
    if (epilogue.residual != nullptr) {  // the residual is what C held before
      for (int64_t i = 0; i < p.M; ++i) fill_random(c.data() + i * ldc, p.N, 77);
      epilogue.residual = c.data();
      epilogue.residual_stride = ldc;
    }
    if (packed) {
      Guarded panels(packed_b_size(p.K, p.N) / 4);
      pack_b(b.view.data, b.view.row_stride, b.view.column_stride, p.K, p.N, panels.data(), &pool);
      EXPECT_TRUE(panels.intact());
      const auto scratch_bytes = [&](int threads) {
        return gemm_packed_b_scratch_bytes(p.M, p.N, p.K, a.view.row_stride, threads);
      };
      // What was bound for several threads may run on one.
      EXPECT_LE(scratch_bytes(1), scratch_bytes(2));
      EXPECT_LE(scratch_bytes(1), scratch_bytes(5));
      Guarded scratch(scratch_bytes(pool.threads()) / 4);
      gemm_packed_b(p.M, p.N, p.K, a.view.data, a.view.row_stride, {panels.data()}, c.data(), ldc,
                    epilogue, scratch.data(), pool);
      EXPECT_TRUE(scratch.intact());
      if (epilogue.residual == nullptr)
        check_backwards(p, a, panels, c, ldc, epilogue, scratch, pool);
    } else {
      Guarded scratch(gemm_scratch_bytes(p.M, p.N, p.K, a.view, b.view, pool.threads()) / 4);
      gemm(p.M, p.N, p.K, a.view, b.view, c.data(), ldc, epilogue, scratch.data(), pool);
      EXPECT_TRUE(scratch.intact());
    }
    EXPECT_TRUE(c.intact());
  }

  // The order of the work changes nothing.
  static void check_backwards(const Problem& p, Operand& a, Guarded& panels, Guarded& c,
                              int64_t ldc, const Epilogue& epilogue, Guarded& scratch,
                              ThreadPool& pool) {
    Guarded again(c.size());
    gemm_packed_b(p.M, p.N, p.K, a.view.data, a.view.row_stride, {panels.data()}, again.data(), ldc,
                  epilogue, scratch.data(), pool, true);
    EXPECT_TRUE(again.intact());
    for (int64_t i = 0; i < p.M; ++i) {
      EXPECT_EQ(std::memcmp(again.data() + i * ldc, c.data() + i * ldc,
                            sizeof(float) * static_cast<size_t>(p.N)),
                0);
    }
  }

  void check_float16(ElementType type, int64_t M, int64_t N, int64_t K, bool transposed) {
    Operand a(M, K, false, 1, 0, 1), b(K, N, false, 1, 0, 2);
    std::vector<uint16_t> halves(static_cast<size_t>(K * N));
    for (int64_t k = 0; k < K; ++k) {
      for (int64_t j = 0; j < N; ++j) {
        uint16_t& half = halves[static_cast<size_t>(transposed ? j * K + k : k * N + j)];
        to_float16(type, &b.at(k, j), &half, 1);
        to_floats(type, &half, &b.at(k, j), 1);
      }
    }
    Guarded panels((packed_b_size(K, N, type) + 3) / 4);
    pack_b(halves.data(), transposed ? 1 : N, transposed ? K : 1, K, N, panels.data(), &two_, type);
    EXPECT_TRUE(panels.intact());
    Guarded one(M * N), two(M * N);
    for (auto [c, pool] : {std::pair<Guarded*, ThreadPool*>{&one, &one_}, {&two, &two_}}) {
      Guarded scratch(gemm_packed_b_scratch_bytes(M, N, K, K, pool->threads(), type) / 4);
      gemm_packed_b(M, N, K, a.view.data, K, {panels.data(), type}, c->data(), N, {},
                    scratch.data(), *pool);
      EXPECT_TRUE(scratch.intact());
      EXPECT_TRUE(c->intact());
    }
    EXPECT_EQ(std::memcmp(one.data(), two.data(), sizeof(float) * static_cast<size_t>(M * N)), 0);
    for (int64_t i = 0; i < M; ++i) {
      for (int64_t j = 0; j < N; ++j) {
        ASSERT_NEAR(one[i * N + j], sum_at(a, b, i, j), 0x1p-15 * magnitude_at(a, b, i, j))
            << "at " << i << ", " << j;
      }
    }
  }

  void compare(const Problem& p, Operand& a, Operand& b, Guarded& c, int64_t ldc,
               const Epilogue& epilogue) {
    std::vector<float> before(static_cast<size_t>(p.N));
    fill_random(before.data(), p.N, 77);
    const double terms = static_cast<double>(p.K);
    const double tolerance = 1e-6 + 1e-6 * std::sqrt(terms) + 6e-8 * terms;
    for (int64_t i = 0; i < p.M; ++i) {
      for (int64_t j = 0; j < p.N; ++j) {
        const double expected =
            finish(epilogue, sum_at(a, b, i, j), i, j, before[static_cast<size_t>(j)]);
        ASSERT_NEAR(c[i * ldc + j], expected, tolerance) << "at " << i << ", " << j;
      }
      for (int64_t j = p.N; j < ldc && i * ldc + j < c.size(); ++j) {
        ASSERT_TRUE(std::isnan(c[i * ldc + j])) << "wrote between the rows";
      }
    }
  }

  UseTarget target_;
  ThreadPool one_{1};
  ThreadPool two_{2};
};

TEST_P(GemmTest, EveryRemainderOfTheTiles) {
  for (int64_t M = 1; M <= 31; ++M) {
    for (const int64_t N : {1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 47, 48, 65, 129, 160}) {
      check({M, N, (M * 7 + N) % 23});
    }
  }
}

TEST_P(GemmTest, VeryFewColumns) {
  for (const int64_t M : {8, 15, 64, 67, 130, 1030}) {
    for (int64_t N = 1; N <= 4; ++N) {
      for (const int64_t K : {1, 5, 12, 16, 17, 33, 65, 100, 257}) check({M, N, K});
    }
  }
  for (int64_t N = 1; N <= 4; ++N) {
    for (const int64_t K : {7, 200}) {
      check({70, N, K, false, false, 1, 5});
      check({70, N, K, false, true});
    }
  }
}

TEST_P(GemmTest, SingleTerms) {
  for (const int64_t M : {1, 2, 9, 130}) {
    for (const int64_t N : {3, 16, 31, 64, 200}) {
      for (const bool a_transposed : {false, true}) check({M, N, 1, a_transposed, false, 1, 3});
      check({M, N, 1, false, true});
      check({M, N, 1, false, false, 2});
    }
  }
  const float a[]{-0.0f, 1}, b[33]{};
  float c[66];
  gemm(2, 33, 1, {a, 1, 1}, {b, 33, 1}, c, 33, {}, nullptr, one_);
  for (const float sum : c) EXPECT_FALSE(std::signbit(sum));
}

TEST_P(GemmTest, EmptySizes) {
  std::vector<float> bias(40, 0.25f);
  Epilogue epilogue;
  epilogue.bias = bias.data();
  epilogue.bias_axis = BiasAxis::column;
  for (const int64_t M : {0, 1, 20}) {
    for (const int64_t N : {0, 1, 40}) {
      for (const int64_t K : {0, 3}) check({M, N, K}, epilogue);
    }
  }
}

TEST_P(GemmTest, TurnedAndSpreadOperands) {
  for (const auto [M, N, K] : {std::array<int64_t, 3>{1, 70, 33},
                               {3, 70, 33},
                               {5, 40, 17},
                               {33, 1, 40},
                               {33, 3, 20},
                               {29, 50, 64},
                               {100, 70, 31},
                               {64, 20, 9}}) {
    for (const bool a_transposed : {false, true}) {
      for (const bool b_transposed : {false, true}) {
        for (const int64_t spread : {1, 2}) {
          check({M, N, K, a_transposed, b_transposed, spread, 5});
        }
      }
    }
  }
}

TEST_P(GemmTest, RandomSizes) {
  std::mt19937 random(42);
  const auto up_to = [&](int64_t most) {
    return std::uniform_int_distribution<int64_t>(1, most)(random);
  };
  for (int i = 0; i < 60; ++i) {
    const bool large = i % 6 == 0;
    check({up_to(large ? 300 : 60), up_to(large ? 300 : 100), up_to(large ? 400 : 90), i % 3 == 0,
           i % 2 == 0, 1, i % 4});
  }
}

TEST_P(GemmTest, LongSumsInChunks) {
  for (const int64_t K : {4096, 4097, 9000}) {
    check({20, 40, K});
    check({2, 33, K});
    // Several strips, and a matrix that is as wide as a panel: it is read where it lies.
    for (const int64_t N : {8, 16, 32}) check({64, N, K, true});
    check({20, 3, K});
  }
}

TEST_P(GemmTest, RowsThatCollideInTheCache) {
  check({30, 70, 1024});
  check({30, 70, 1024, true, true});
  check({9, 40, 2048});
}

TEST_P(GemmTest, ManyBlocks) {
  check({700, 64, 64});
  check({260, 100, 1030});
  check({1500, 5, 20});
}

// B is packed a part of its columns at a time.
TEST_P(GemmTest, LargeSecondOperands) {
  std::vector<float> bias(530);
  fill_random(bias.data(), 530, 5);
  static const float some = 0;
  Epilogue e;
  e.bias_axis = BiasAxis::column;
  e.bias = bias.data();
  e.residual = &some;
  check({260, 530, 1100}, e);
  check({260, 530, 1100, true, true, 1, 3});
}

TEST_P(GemmTest, EpilogueOfEveryKind) {
  std::vector<float> bias(100);
  fill_random(bias.data(), 100, 5);
  for (int activation = 0; activation <= static_cast<int>(Activation::gelu_tanh); ++activation) {
    for (const BiasAxis axis : {BiasAxis::none, BiasAxis::row, BiasAxis::column}) {
      for (int residual = 0; residual < 3; ++residual) {
        Epilogue e;
        e.activation = static_cast<Activation>(activation);
        e.p0 = e.activation == Activation::clip ? -0.5f : 0.2f;
        e.p1 = 0.6f;
        e.bias_axis = axis;
        e.bias = bias.data();
        static const float some = 0;
        e.residual = residual > 0 ? &some : nullptr;
        e.residual_last = residual == 2;
        e.alpha = residual == 1 ? 1.5f : 1.0f;
        e.beta = axis == BiasAxis::row ? -0.75f : 1.0f;
        check({17, 37, 6}, e);
        check({2, 35, 6}, e);
        check({40, 3, 6}, e);
        check({90, 1, 30}, e);
        check({70, 2, 12}, e);
      }
    }
  }
}

TEST_P(GemmTest, NanAndInfinityStayWhereTheyBelong) {
  const int64_t M = 30, N = 45, K = 21;
  Operand a(M, K, false, 1, 0, 1), b(K, N, false, 1, 0, 2);
  a.at(4, 3) = std::numeric_limits<float>::quiet_NaN();
  b.at(20, 44) = std::numeric_limits<float>::infinity();
  for (const Activation activation : {Activation::none, Activation::relu, Activation::clip}) {
    Epilogue epilogue;
    epilogue.activation = activation;
    epilogue.p0 = -1;
    epilogue.p1 = 1;
    for (const bool packed : {false, true}) {
      Guarded c(M * N);
      run({M, N, K}, packed, a, b, c, N, epilogue, two_);
      for (int64_t i = 0; i < M; ++i) {
        for (int64_t j = 0; j < N; ++j) {
          EXPECT_EQ(std::isnan(c[i * N + j]), i == 4) << i << ", " << j;
          if (activation == Activation::none && i != 4) {
            EXPECT_EQ(std::isinf(c[i * N + j]), j == 44);
          }
        }
      }
    }
  }
}

// Rows and columns whose magnitudes are extreme, beside ordinary ones: whatever multiplies them
// loses no more than float32 does, but for what is nothing beside its 32 rows.
TEST_P(GemmTest, ExtremeMagnitudes) {
  const int64_t M = 100, N = 130, K = sanitized ? 100 : 800;
  for (const float row_scale : {1e-42f, 1e-30f, 1e18f, 1e36f}) {
    for (const float column_scale : {1.0f, 1e-30f, 1e-12f, 1e-39f}) {
      for (const bool whole : {false, true}) {  // all rows of a strip, or one
        SCOPED_TRACE(::testing::Message() << row_scale << " " << column_scale << " " << whole);
        Operand a(M, K, false, 1, 0, 1), b(K, N, false, 1, 0, 2);
        float largest_b = 0;
        for (int64_t k = 0; k < K; ++k) {
          for (int64_t i = 32; i < (whole ? 64 : 33); ++i) a.at(i, k) *= row_scale;
          for (int64_t j = 64; j < 96; ++j) b.at(k, j) *= column_scale;
          for (int64_t j = 0; j < N; ++j) largest_b = std::max(largest_b, std::abs(b.at(k, j)));
        }
        Guarded c(M * N);
        run({M, N, K}, true, a, b, c, N, {}, two_);
        for (int64_t i = 0; i < M; ++i) {
          for (int64_t j = 0; j < N; ++j) {
            const double lost = 0x1p-125 * static_cast<double>(K) * (whole ? 1 : largest_b);
            ASSERT_NEAR(c[i * N + j], sum_at(a, b, i, j), 0x1p-19 * magnitude_at(a, b, i, j) + lost)
                << i << ", " << j;
          }
        }
      }
    }
  }
}

TEST_P(GemmTest, NoNumbersAmongManyRows) {
  const int64_t M = 100, N = 130, K = 40;
  Operand a(M, K, false, 1, 0, 1), b(K, N, false, 1, 0, 2);
  a.at(40, 3) = std::numeric_limits<float>::quiet_NaN();
  a.at(77, 39) = std::numeric_limits<float>::infinity();
  b.at(20, 129) = -std::numeric_limits<float>::infinity();
  Guarded c(M * N);
  run({M, N, K}, true, a, b, c, N, {}, two_);
  for (int64_t i = 0; i < M; ++i) {
    for (int64_t j = 0; j < N; ++j) {
      const double sum = sum_at(a, b, i, j);
      if (std::isfinite(sum)) {
        ASSERT_NEAR(c[i * N + j], sum, 1e-5);
      } else {
        ASSERT_EQ(std::isnan(c[i * N + j]), std::isnan(sum)) << i << ", " << j;
        ASSERT_EQ(std::isinf(c[i * N + j]), std::isinf(sum)) << i << ", " << j;
      }
    }
  }
}

// B in half precision: few rows read it as it is, more make floats of it or split it.
TEST_P(GemmTest, HalvesStayHalves) {
  for (const ElementType type : {ElementType::float16, ElementType::bfloat16}) {
    for (const int64_t M : sizes<int64_t>({1, 2, 3, 4, 5, 20, 33, 70})) {
      for (const int64_t N : sizes<int64_t>({1, 16, 64, 33, 300})) {
        for (const int64_t K : sizes<int64_t>({1, 31, 1030, 100})) {
          for (const bool transposed : {false, true}) {
            SCOPED_TRACE(::testing::Message() << name_of(type) << " " << M << "x" << N << "x" << K);
            check_float16(type, M, N, K, transposed);
          }
        }
      }
    }
  }
}

// Larger than what is packed at once: by rows, by columns, and spread.
TEST_P(GemmTest, LargeMatricesArePackedInPieces) {
  constexpr int64_t K = 700, N = 2111;
  for (const ElementType type : {ElementType::float32, ElementType::float16}) {
    const int64_t size = type == ElementType::float32 ? 4 : 2;
    const auto all = static_cast<size_t>(K * N * size);
    std::vector<char> by_rows(all), by_columns(all), spread(2 * all);
    uint32_t state = 1;
    for (char& c : by_rows) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 26);
    for (int64_t k = 0; k < K; ++k) {
      for (int64_t n = 0; n < N; ++n) {
        const char* from = &by_rows[static_cast<size_t>((k * N + n) * size)];
        std::memcpy(&by_columns[static_cast<size_t>((n * K + k) * size)], from,
                    static_cast<size_t>(size));
        std::memcpy(&spread[static_cast<size_t>(2 * (k * N + n) * size)], from,
                    static_cast<size_t>(size));
      }
    }
    const auto pack = [&](const std::vector<char>& b, int64_t row, int64_t column, bool pieces) {
      std::vector<float> packed(static_cast<size_t>(packed_b_size(K, N, type) + 3) / 4);
      const auto* next = reinterpret_cast<const std::byte*>(b.data());
      int64_t count = 0;
      pack_b(b.data(), row, column, K, N, packed.data(), &two_, type,
             [&](std::span<const std::byte> piece) {
               EXPECT_EQ(piece.data(), next);
               next = piece.data() + piece.size();
               ++count;
             });
      if (pieces) {
        EXPECT_EQ(next, reinterpret_cast<const std::byte*>(b.data() + b.size()));
        EXPECT_GE(count, size == 4 ? 2 : 1);
      }
      return packed;
    };
    const auto expected = pack(spread, 2 * N, 2, false);
    EXPECT_TRUE(pack(by_rows, N, 1, true) == expected);
    EXPECT_TRUE(pack(by_columns, 1, K, true) == expected);
  }
}

TEST_P(GemmTest, BatchesWithRepeatedOperands) {
  const int64_t M = 19, N = 37, K = 11;
  GemmBatch batch;
  batch.rank = 2;
  batch.size[0] = 3;
  batch.size[1] = 2;
  Operand a(2 * M, K, false, 1, 0, 1);  // the same for every outer index
  Operand b(3 * K, N, false, 1, 0, 2);  // the same for every inner index
  batch.a_stride[1] = M * K;
  batch.b_stride[0] = K * N;
  batch.c_stride[0] = 2 * M * N;
  batch.c_stride[1] = M * N;
  Guarded one(6 * M * N), two(6 * M * N);
  fill_random(one.data(), one.size(), 9);
  fill_random(two.data(), two.size(), 9);
  std::vector<float> before(one.data(), one.data() + one.size());
  for (auto [c, pool] : {std::pair<Guarded*, ThreadPool*>{&one, &one_}, {&two, &two_}}) {
    Epilogue epilogue;
    epilogue.residual = c->data();
    epilogue.residual_stride = N;
    Guarded scratch(batched_gemm_scratch_bytes(batch, M, N, K, a.view, b.view, pool->threads()) /
                    4);
    batched_gemm(batch, M, N, K, a.view, b.view, c->data(), N, epilogue, scratch.data(), *pool);
    EXPECT_TRUE(scratch.intact());
    EXPECT_TRUE(c->intact());
  }
  EXPECT_EQ(std::memcmp(one.data(), two.data(), sizeof(float) * static_cast<size_t>(one.size())),
            0);
  for (int64_t x = 0; x < 6; ++x) {
    for (int64_t i = 0; i < M; ++i) {
      for (int64_t j = 0; j < N; ++j) {
        double sum = before[static_cast<size_t>((x * M + i) * N + j)];
        for (int64_t k = 0; k < K; ++k) {
          sum += double{a.at(x % 2 * M + i, k)} * b.at(x / 2 * K + k, j);
        }
        ASSERT_NEAR(one[(x * M + i) * N + j], sum, 1e-5);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, GemmTest, ::testing::ValuesIn(usable_targets()), target_name);

struct AnyProblem {
  int64_t M, N, K;
  bool a_transposed, b_transposed;
};

template <class T>
void check_any(const AnyProblem& p) {
  SCOPED_TRACE(::testing::Message() << p.M << "x" << p.N << "x" << p.K << " transposed "
                                    << p.a_transposed << p.b_transposed);
  const int64_t batch = 3;
  std::mt19937 engine(7);
  std::vector<T> a(static_cast<size_t>(batch * p.M * p.K)), b(static_cast<size_t>(p.K * p.N));
  for (auto* values : {&a, &b}) {
    for (T& v : *values) {
      if constexpr (std::is_floating_point_v<T>)
        v = static_cast<T>(static_cast<int32_t>(engine()) >> 20) / 2048;
      else
        v = static_cast<T>(uint64_t{engine()} << 32 | engine());  // sums wrap
    }
  }
  const AnyMatrix left{a.data(), p.a_transposed ? 1 : p.K, p.a_transposed ? p.M : 1},
      right{b.data(), p.b_transposed ? 1 : p.N, p.b_transposed ? p.K : 1};
  GemmBatch batches;
  batches.rank = 1, batches.size[0] = batch;
  batches.a_stride[0] = p.M * p.K, batches.c_stride[0] = p.M * p.N;
  std::vector<T> one(static_cast<size_t>(batch * p.M * p.N), T{5}), two(one);
  ThreadPool alone(1), both(2);
  const auto type = std::is_same_v<T, double>    ? ElementType::float64
                    : std::is_same_v<T, int32_t> ? ElementType::int32
                                                 : ElementType::int64;
  matmul_any(type, batches, p.M, p.N, p.K, left, right, one.data(), p.N, alone);
  matmul_any(type, batches, p.M, p.N, p.K, left, right, two.data(), p.N, both);
  ASSERT_EQ(one, two);
  for (int64_t at = 0; at < batch * p.M * p.N; ++at) {
    const int64_t i = at / p.N % p.M, j = at % p.N;
    const T* rows = a.data() + at / (p.M * p.N) * p.M * p.K;
    using W = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;
    W sum{};
    double size = 0;
    for (int64_t k = 0; k < p.K; ++k) {
      const W term =
          static_cast<W>(rows[i * left.row_stride + k * left.column_stride]) *
          static_cast<W>(b[static_cast<size_t>(k * right.row_stride + j * right.column_stride)]);
      sum += term;
      size += std::abs(static_cast<double>(term));
    }
    const T found = one[static_cast<size_t>(at)];
    if constexpr (std::is_floating_point_v<T>)
      ASSERT_LE(std::abs(found - sum), 1e-14 * size);
    else
      ASSERT_EQ(found, static_cast<T>(sum));
  }
}

// Rows of B longer than what one pass of a few rows of A takes.
TEST(MatmulAny, LongRows) {
  each_target([] {
    check_any<double>({2, 1037, 19, false, false});
    check_any<int32_t>({1, 1037, 19, true, false});
    check_any<int64_t>({2, 1037, 16, false, false});
  });
}

TEST(MatmulAny, DoublesAndIntegers) {
  each_target([] {
    for (const int64_t M : {1, 2, 3, 8, 21}) {
      for (const int64_t N : sizes<int64_t>({1, 2, 8, 15, 16, 17, 40})) {
        for (const int64_t K : {0, 1, 7, 128, 300}) {
          for (int transposed = 0; transposed < 4; ++transposed) {
            const AnyProblem problem{M, N, K, (transposed & 1) != 0, (transposed & 2) != 0};
            check_any<double>(problem);
            check_any<int32_t>(problem);
            check_any<int64_t>(problem);
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace sardonyx::kernels::test
