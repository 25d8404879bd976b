// The elementary functions on every instruction set, against the C library in double.
#include <cmath>
#include <limits>

#include "kernels/elementwise/unary.h"
#include "kernels/rows_support.h"

namespace sardonyx::kernels {
namespace {

struct Function {
  UnaryOp op;
  double (*reference)(double);
  double bound;  // ulp
};

const Function functions[] = {
    {UnaryOp::exp, [](double x) { return std::exp(x); }, 2.5},
    {UnaryOp::log, [](double x) { return std::log(x); }, 2.5},
    {UnaryOp::tanh, [](double x) { return std::tanh(x); }, 2.5},
    {UnaryOp::erf, [](double x) { return std::erf(x); }, 2.5},
    {UnaryOp::sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, 2.5},
    {UnaryOp::sin, [](double x) { return std::sin(x); }, 2.5},
    {UnaryOp::cos, [](double x) { return std::cos(x); }, 2.5},
    {UnaryOp::sqrt, [](double x) { return std::sqrt(x); }, 0.5001},
    {UnaryOp::softplus,
     [](double x) { return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))); }, 3.5},
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
  const std::vector<float> x{0.0f,    -0.0f,    infinity,       -infinity, std::nanf(""),
                             1e-45f,  -1e-45f,  1.1754942e-38f, 88.72f,    88.73f,
                             -103.9f, -104.1f,  3.4e38f,        -3.4e38f,  1.0f,
                             -1.0f,   30000.0f, 30001.0f,       1e10f};
  test::each_target([&] {
    for (const Function& f : functions) check_function(f, x);
  });
}

}  // namespace
}  // namespace sardonyx::kernels
