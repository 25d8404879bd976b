// The elementary functions on every instruction set, against the C library in double.
#include <cmath>
#include <limits>

#include "kernels/elementwise/unary.h"
#include "kernels/gemm/tiles.h"
#include "kernels/rows_support.h"

namespace sardonyx::kernels {
namespace {

struct Function {
  UnaryOp op;
  double (*reference)(double);
  double bound;  // ulp
};

template <class F>
F softplus(F x) {
  return std::max(x, F{0}) + std::log1p(std::exp(-std::fabs(x)));
}

const Function functions[] = {
    {UnaryOp::exp, [](double x) { return std::exp(x); }, 2.5},
    {UnaryOp::log, [](double x) { return std::log(x); }, 2.5},
    {UnaryOp::tanh, [](double x) { return std::tanh(x); }, 2.5},
    {UnaryOp::erf, [](double x) { return std::erf(x); }, 2.5},
    {UnaryOp::sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, 2.5},
    {UnaryOp::sin, [](double x) { return std::sin(x); }, 2.5},
    {UnaryOp::cos, [](double x) { return std::cos(x); }, 2.5},
    {UnaryOp::sqrt, [](double x) { return std::sqrt(x); }, 0.5001},
    {UnaryOp::softplus, softplus<double>, 3.5},
    {UnaryOp::tan, [](double x) { return std::tan(x); }, 2.5},
    {UnaryOp::asin, [](double x) { return std::asin(x); }, 2.5},
    {UnaryOp::acos, [](double x) { return std::acos(x); }, 2.5},
    {UnaryOp::atan, [](double x) { return std::atan(x); }, 2.5},
    {UnaryOp::sinh, [](double x) { return std::sinh(x); }, 2.5},
    {UnaryOp::cosh, [](double x) { return std::cosh(x); }, 2.5},
    {UnaryOp::asinh, [](double x) { return std::asinh(x); }, 2.5},
    {UnaryOp::acosh, [](double x) { return std::acosh(x); }, 2.5},
    {UnaryOp::atanh, [](double x) { return std::atanh(x); }, 2.5},
};

void check_function(const Function& f, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  unary(f.op, ElementType::float32, x.data(), y.data(), static_cast<int64_t>(x.size()), {},
        test::one_thread());
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = f.reference(static_cast<double>(x[i]));
    ASSERT_LE(test::ulps(y[i], expected), f.bound)
        << "operator " << static_cast<int>(f.op) << " of " << x[i] << " gave " << y[i] << " for "
        << expected;
    if (expected == 0) {
      ASSERT_EQ(std::signbit(y[i]), std::signbit(expected)) << x[i];
    }
  }
}

TEST(Math, SampledOverAllFloats) {
  test::each_target([] {
    for (const Function& f : functions) {
      std::vector<float> x;
      for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 65521) {
        x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
      }
      check_function(f, x);
    }
  });
}

// In units in the last place of a double.
double double_ulps(double found, long double expected) {
  if (std::isnan(expected) || std::isnan(found))
    return std::isnan(expected) == std::isnan(found) ? 0 : 1e30;
  const auto rounded = static_cast<double>(expected);
  if (std::isinf(rounded) || std::isinf(found)) return found == rounded ? 0 : 1e30;
  int exponent;
  std::frexp(std::max(std::fabs(rounded), std::numeric_limits<double>::min()), &exponent);
  return static_cast<double>(std::fabs(static_cast<long double>(found) - expected) /
                             std::ldexp(1.0L, exponent - 53));
}

struct DoubleFunction {
  UnaryOp op;
  long double (*reference)(long double);
  double bound;  // ulp
};

const DoubleFunction double_functions[] = {
    {UnaryOp::exp, [](long double x) { return std::exp(x); }, 1.01},
    {UnaryOp::log, [](long double x) { return std::log(x); }, 1.01},
    {UnaryOp::sigmoid, [](long double x) { return 1 / (1 + std::exp(-x)); }, 2.5},
    {UnaryOp::tanh, [](long double x) { return std::tanh(x); }, 2.5},
    {UnaryOp::erf, [](long double x) { return std::erf(x); }, 2.5},
    {UnaryOp::softplus, softplus<long double>, 2.5},
    {UnaryOp::sin, [](long double x) { return std::sin(x); }, 2},
    {UnaryOp::cos, [](long double x) { return std::cos(x); }, 2},
    {UnaryOp::tan, [](long double x) { return std::tan(x); }, 2.5},
    {UnaryOp::asin, [](long double x) { return std::asin(x); }, 2.5},
    {UnaryOp::acos, [](long double x) { return std::acos(x); }, 2.5},
    {UnaryOp::atan, [](long double x) { return std::atan(x); }, 2.5},
    {UnaryOp::sinh, [](long double x) { return std::sinh(x); }, 2.5},
    {UnaryOp::cosh, [](long double x) { return std::cosh(x); }, 2.5},
    {UnaryOp::asinh, [](long double x) { return std::asinh(x); }, 2.5},
    {UnaryOp::acosh, [](long double x) { return std::acosh(x); }, 2.5},
    {UnaryOp::atanh, [](long double x) { return std::atanh(x); }, 2.5},
    {UnaryOp::elu, [](long double x) { return x < 0 ? std::expm1(x) : x; }, 2.5},
};

// Every exponent of both signs, densely where the functions bend, and what is special.
std::vector<double> doubles_to_try() {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> x{0.0,
                        infinity,
                        NAN,
                        709.78,
                        709.79,
                        710.4758,
                        710.476,
                        708.3,
                        745.1,
                        745.2,
                        1e300,
                        5e-324,
                        1.0,
                        0.5,
                        2.0,
                        0.875,
                        5.93,
                        20.0,
                        0x1p28,
                        67108864,
                        67108865.0,
                        1e22,
                        2.2250738585072014e-308,
                        0.4142,
                        2.4142,
                        1.0000001,
                        0.9999999};
  uint64_t state = 1;
  for (uint64_t exponent = 0; exponent < 2047; ++exponent) {
    for (int i = 0; i < 5; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      x.push_back(std::bit_cast<double>(exponent << 52 | state >> 12));
    }
  }
  for (double v = 0; v < 10; v += 0.000317) x.push_back(v);
  for (double v = 10; v < 760; v += 0.0171) x.push_back(v);
  for (double v = 1e-9; v < 1; v *= 1.01) x.insert(x.end(), {1 - v, 1 + v});
  const size_t positive = x.size();
  for (size_t i = 0; i < positive; ++i) x.push_back(-x[i]);
  return x;
}

TEST(Math, FunctionsOfDoubles) {
#ifdef _WIN32
  GTEST_SKIP()
      << "the functions of long doubles to compare with are less exact than what is tested";
#endif
  const std::vector<double> x = doubles_to_try();
  std::vector<long double> expected(x.size());
  for (const DoubleFunction& f : double_functions) {
    for (size_t i = 0; i < x.size(); ++i) expected[i] = f.reference(x[i]);
    test::each_target([&] {
      std::vector<double> y(x.size());
      unary(f.op, ElementType::float64, x.data(), y.data(), static_cast<int64_t>(x.size()), {1, 0},
            test::one_thread());
      for (size_t i = 0; i < x.size(); ++i) {
        ASSERT_LE(double_ulps(y[i], expected[i]), f.bound)
            << "operator " << static_cast<int>(f.op) << " of " << x[i] << " gave " << y[i]
            << " for " << expected[i];
        if (expected[i] == 0) {
          ASSERT_EQ(std::signbit(y[i]), std::signbit(expected[i])) << x[i];
        }
      }
    });
  }
}

TEST(Math, DenseWhereTheFunctionsAreUsed) {
  test::each_target([] {
    for (const Function& f : functions) {
      std::vector<float> x;
      for (float v = -20; v < 20; v += 0.00037f) x.push_back(v);
      check_function(f, x);
    }
  });
}

TEST(Math, Specials) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> x{
      0.0f,           -0.0f,      infinity, -infinity, std::nanf(""), 1e-45f,      -1e-45f,
      1.1754942e-38f, 88.72f,     88.73f,   -103.9f,   -104.1f,       3.4e38f,     -3.4e38f,
      1.0f,           -1.0f,      30000.0f, 30001.0f,  1e10f,         1.0000001f,  -1.5f,
      0.99999994f,    89.415985f, 89.416f,  -89.416f,  0.5f,          0.50000006f, 0x1p28f};
  test::each_target([&] {
    for (const Function& f : functions) check_function(f, x);
  });
}

// silu as tiles are stored with it.
std::vector<float> stored_silu(std::vector<float> x) {
  constexpr int64_t columns = 19;  // neither whole vectors nor pairs of them
  const auto count = static_cast<int64_t>(x.size()), rows = (count + columns - 1) / columns;
  x.resize(static_cast<size_t>(rows * columns));
  std::vector<float> y(x.size());
  Epilogue epilogue;
  epilogue.activation = Activation::silu;
  TileStore store;
  store.sums = x.data();
  store.c = y.data();
  store.sums_stride = store.c_stride = store.columns = columns;
  store.rows = rows;
  store.epilogue = &epilogue;
  tile_kernels().store(store);
  y.resize(static_cast<size_t>(count));
  return y;
}

TEST(Math, SiluOfTiles) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr double hidden = 3e-37;  // smaller results may become -0
  test::each_target([] {
    std::vector<float> x{0.0f, -0.0f, std::nanf(""), infinity, 3.4e38f, -3.4e38f, 1e-45f, -1e-45f};
    for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 65521) {
      x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    }
    for (float v = -20; v < 20; v += 0.00037f) x.push_back(v);
    const std::vector<float> y = stored_silu(x);
    for (size_t i = 0; i < x.size(); ++i) {
      const auto value = static_cast<double>(x[i]);
      if (std::isinf(value) && value < 0) continue;  // infinity times 0
      const double expected = value / (1 + std::exp(-value));
      ASSERT_TRUE(test::ulps(y[i], expected) <= 2.5 ||
                  (value < -88 && std::fabs(static_cast<double>(y[i]) - expected) < hidden))
          << "silu of " << x[i] << " gave " << y[i] << " for " << expected;
      if (expected == 0 && value != 0) {  // adding a bias of 0 makes 0 of -0
        ASSERT_EQ(std::signbit(y[i]), std::signbit(x[i])) << x[i];
      }
    }
  });
}

}  // namespace
}  // namespace sardonyx::kernels
