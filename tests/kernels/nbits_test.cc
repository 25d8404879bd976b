// Products with weights of a few bits, against sums of doubles.
#include "kernels/gemm/nbits.h"

#include <cmath>
#include <limits>

#include "kernels/rows_support.h"

namespace sardonyx::kernels {
namespace {

enum class Zeros { plain, bytes, floats };

struct Weights {
  Weights(int64_t k, int64_t n, int bits, int64_t block, Zeros zeros) {
    b.k = k, b.n = n, b.bits = bits, b.block = block;
    std::mt19937 engine(7);
    data.resize(static_cast<size_t>(n * b.column_bytes()));
    for (uint8_t& byte : data) byte = static_cast<uint8_t>(engine());
    scales = test::random_floats(n * b.blocks(), 0.01f, 0.2f, 3);
    b.data = data.data(), b.scales = scales.data();
    for (int64_t i = 0; i < n * b.blocks(); ++i) {
      byte_zeros.push_back(static_cast<uint8_t>(engine() % (1u << bits)));
      float_zeros.push_back(static_cast<float>(engine() % 100) / 10);
    }
    if (zeros == Zeros::bytes) b.zeros = byte_zeros.data();
    if (zeros == Zeros::floats) b.float_zeros = float_zeros.data();
  }
  double at(int64_t row, int64_t column) const {
    const int64_t block = column * b.blocks() + row / b.block, per_byte = 8 / b.bits;
    const uint8_t byte = data[static_cast<size_t>(column * b.column_bytes() + row / per_byte)];
    const int q = byte >> (row % per_byte * b.bits) & ((1 << b.bits) - 1);
    const double zero = b.zeros         ? b.zeros[block]
                        : b.float_zeros ? static_cast<double>(b.float_zeros[block])
                                        : 1 << (b.bits - 1);
    const auto scale = static_cast<double>(scales[static_cast<size_t>(block)]);
    return (q - zero) * scale;
  }

  NBitsMatrix b;
  std::vector<uint8_t> data, byte_zeros;
  std::vector<float> scales, float_zeros;
};

std::vector<float> product(const NBitsMatrix& b, int64_t m, const std::vector<float>& a,
                           const float* bias, ThreadPool& pool) {
  std::vector<float> y(static_cast<size_t>(m * b.n), std::nanf(""));
  const auto bytes = static_cast<size_t>(nbits_scratch_bytes(b, m, pool.threads()));
  std::vector<std::byte> memory(bytes + 64);
  void* scratch = memory.data();
  size_t room = memory.size();
  std::align(64, bytes, scratch, room);
  nbits_product(b, m, a.data(), bias, y.data(), scratch, test::one_thread(), pool);
  return y;
}

// As precise as sums of floats, whose error grows with the terms' magnitudes.
void expect_product(const Weights& w, int64_t m, const std::vector<float>& a,
                    const std::vector<float>& y, const float* bias) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < w.b.n; ++j) {
      double sum = bias ? static_cast<double>(bias[j]) : 0, magnitude = std::fabs(sum);
      for (int64_t t = 0; t < w.b.k; ++t) {
        const auto left = static_cast<double>(a[static_cast<size_t>(i * w.b.k + t)]);
        sum += left * w.at(t, j);
        magnitude += std::fabs(left * w.at(t, j));
      }
      ASSERT_NEAR(static_cast<double>(y[static_cast<size_t>(i * w.b.n + j)]), sum,
                  3e-7 * magnitude + 1e-42)
          << "row " << i << ", column " << j;
    }
  }
}

void check(int64_t m, int64_t k, int64_t n, int bits, int64_t block, Zeros zeros) {
  SCOPED_TRACE(testing::Message() << m << " x " << k << " x " << n << ", " << bits
                                  << " bits in blocks of " << block);
  const Weights w(k, n, bits, block, zeros);
  const std::vector<float> a = test::random_floats(m * k), bias = test::random_floats(n);
  const std::vector<float> y = product(w.b, m, a, bias.data(), test::one_thread());
  expect_product(w, m, a, y, bias.data());
  test::expect_same_bits(y, product(w.b, m, a, bias.data(), test::two_threads()));
}

TEST(NBits, FewRows) {
  test::each_target([] {
    for (const Zeros zeros : {Zeros::plain, Zeros::bytes, Zeros::floats}) {
      for (const int64_t m : {1, 2, 3, 4, 7, 8}) check(m, 256, 37, 4, 32, zeros);
      for (const int64_t block : {16, 32, 64, 128, 256}) check(2, 512, 9, 4, block, zeros);
      for (const int bits : {2, 8}) check(3, 128, 10, bits, 32, zeros);
    }
  });
}

TEST(NBits, ColumnsThatEndWithinAVector) {
  test::each_target([] {
    for (const int64_t k : {1, 31, 33, 100, 129, 160, 300}) {
      for (const int64_t block : {16, 32, 128}) check(1, k, 5, 4, block, Zeros::bytes);
    }
    check(1, 4800, 3, 4, 16, Zeros::bytes);  // in more blocks than a byte counts
    check(2, 4800, 3, 4, 16, Zeros::floats);
  });
}

TEST(NBits, ManyRows) {
  check(9, 160, 40, 4, 32, Zeros::bytes);
  check(40, 96, 70, 4, 32, Zeros::plain);
}

TEST(NBits, ExtremeMagnitudes) {
  const Weights w(256, 12, 4, 32, Zeros::plain);
  for (const float factor : {1e-44f, 1e-38f, 1e-20f, 1e20f, 1e35f}) {
    std::vector<float> a = test::random_floats(256, -1, 1);
    for (float& v : a) v *= factor;
    expect_product(w, 1, a, product(w.b, 1, a, nullptr, test::one_thread()), nullptr);
  }
  std::vector<float> a = test::random_floats(256, -1, 1);  // one value above all others
  a[200] = 3e6f;
  expect_product(w, 1, a, product(w.b, 1, a, nullptr, test::one_thread()), nullptr);
}

// What is large meets weights of 0 alone, and takes no digits from the others.
TEST(NBits, LargeNumbersThatMeetZeroPoints) {
  for (const int bits : {2, 4, 8}) {
    SCOPED_TRACE(bits);
    Weights w(64, 12, bits, 32, Zeros::plain);
    const int64_t row = 5, per_byte = 8 / bits, shift = row % per_byte * bits;
    for (int64_t column = 0; column < w.b.n; ++column) {
      uint8_t& byte = w.data[static_cast<size_t>(column * w.b.column_bytes() + row / per_byte)];
      const int mask = ((1 << bits) - 1) << shift, zero = 1 << (bits - 1) << shift;
      byte = static_cast<uint8_t>((byte & ~mask) | zero);
    }
    std::vector<float> a = test::random_floats(64, -1, 1);
    a[static_cast<size_t>(row)] = 1e5f;
    test::each_target(
        [&] { expect_product(w, 1, a, product(w.b, 1, a, nullptr, test::one_thread()), nullptr); });
  }
}

TEST(NBits, InfinitiesAndNoNumbersStayInTheirRows) {
  const Weights w(128, 20, 4, 32, Zeros::plain);
  for (const float odd : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    std::vector<float> a = test::random_floats(3 * 128);
    a[128 + 50] = odd;
    const std::vector<float> y = product(w.b, 3, a, nullptr, test::one_thread());
    for (int64_t j = 0; j < 20; ++j) {
      ASSERT_FALSE(std::isfinite(y[static_cast<size_t>(20 + j)])) << j;
    }
    a[128 + 50] = 0;
    std::vector<float> rest = y;
    const std::vector<float> plain = product(w.b, 3, a, nullptr, test::one_thread());
    std::copy_n(plain.begin() + 20, 20, rest.begin() + 20);
    expect_product(w, 3, a, rest, nullptr);
  }
}

}  // namespace
}  // namespace sardonyx::kernels
