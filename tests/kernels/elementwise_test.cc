// Element-wise operators against plain formulas, on every instruction set.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

#include "kernels/convert/cast.h"
#include "kernels/convert/low_precision.h"
#include "kernels/elementwise/binary.h"
#include "kernels/elementwise/unary.h"
#include "kernels/rows_support.h"

namespace sardonyx::kernels {
namespace {

using test::each_target;
using test::one_thread;
using test::random_floats;
using test::two_threads;
using Shape = std::vector<int64_t>;

// ---- broadcasting ----

int64_t count(const Shape& shape) {
  int64_t n = 1;
  for (const int64_t d : shape) n *= d;
  return n;
}

// The input element that output element `at` meets, worked out dimension by dimension.
int64_t source_of(const Shape& output, const Shape& input, int64_t at) {
  int64_t offset = 0, stride = 1;
  for (size_t k = 0; k < output.size(); ++k) {
    const int64_t index = at % output[output.size() - 1 - k];
    at /= output[output.size() - 1 - k];
    if (k >= input.size()) continue;
    const int64_t dim = input[input.size() - 1 - k];
    if (dim != 1) offset += index * stride;
    stride *= dim;
  }
  return offset;
}

struct Broadcast {
  Shape output, a, b;
};

const Broadcast broadcasts[] = {
    {{}, {}, {}},
    {{1}, {}, {1}},
    {{7}, {7}, {}},
    {{5, 33}, {5, 33}, {33}},
    {{5, 33}, {5, 1}, {5, 33}},
    {{5, 33}, {5, 1}, {1, 33}},
    {{2, 3, 4, 5}, {2, 1, 4, 1}, {3, 1, 5}},
    {{2, 3, 4, 5}, {1, 1, 1, 1}, {2, 3, 4, 5}},
    {{3, 1, 1}, {1, 1}, {3, 1, 1}},
    {{4, 6}, {1}, {1, 1}},
    {{3, 40000}, {3, 1}, {40000}},
    {{0, 4}, {4}, {0, 1}},
    {{4000, 3}, {4000, 3}, {4000, 1}},
    {{4000, 3}, {3}, {4000, 1}},
    {{1030, 31}, {31}, {1030, 31}},
    {{500, 3, 12}, {500, 1, 12}, {3, 12}},
    {{3000, 2, 5}, {3000, 1, 5}, {2, 1}},
    {{2, 9, 700, 2}, {9, 1, 2}, {2, 1, 700, 1}},
    {{3, 1100, 4}, {1100, 4}, {3, 1, 1}},
    {{2, 1, 2, 1, 2, 1, 2, 1, 2, 2},
     {1, 1, 2, 1, 1, 1, 2, 1, 1, 2},
     {2, 1, 1, 1, 2, 1, 1, 1, 2, 1}},
};

TEST(Broadcast, AddMeetsTheRightElements) {
  each_target([] {
    for (const Broadcast& c : broadcasts) {
      const auto a = random_floats(count(c.a), -3, 3, 1), b = random_floats(count(c.b), -3, 3, 2);
      const auto plan = plan_broadcast(c.output, {c.a, c.b});
      std::vector<float> y(static_cast<size_t>(count(c.output))), z(y.size());
      binary(BinaryOp::sub, ElementType::float32, plan, a.data(), b.data(), y.data(), one_thread());
      binary(BinaryOp::sub, ElementType::float32, plan, a.data(), b.data(), z.data(),
             two_threads());
      test::expect_same_bits(y, z);
      for (size_t i = 0; i < y.size(); ++i) {
        const auto at = static_cast<int64_t>(i);
        const float left = a[static_cast<size_t>(source_of(c.output, c.a, at))];
        ASSERT_EQ(y[i], left - b[static_cast<size_t>(source_of(c.output, c.b, at))]);
      }
    }
  });
}

// Loops of other types see the same elements, however rows are put together.
TEST(Broadcast, IntegersBooleansAndWhere) {
  for (const Broadcast& c : broadcasts) {
    const auto random = [](const Shape& shape, uint32_t seed) {
      std::vector<int64_t> values;
      for (const float v : random_floats(count(shape), -3, 3, seed))
        values.push_back(static_cast<int64_t>(v));
      return values;
    };
    const auto a = random(c.a, 1), b = random(c.b, 2);
    const auto plan = plan_broadcast(c.output, {c.a, c.b});
    std::vector<int64_t> y(static_cast<size_t>(count(c.output))), z(y.size());
    std::vector<uint8_t> same(y.size());
    binary(BinaryOp::sub, ElementType::int64, plan, a.data(), b.data(), y.data(), two_threads());
    binary(BinaryOp::equal, ElementType::int64, plan, a.data(), b.data(), same.data(),
           two_threads());
    const std::vector<uint8_t> condition(same);
    where(Cell::bytes8, plan_broadcast(c.output, {c.output, c.a, c.b}),
          reinterpret_cast<const bool*>(condition.data()), a.data(), b.data(), z.data(),
          two_threads());
    for (size_t i = 0; i < y.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      const int64_t left = a[static_cast<size_t>(source_of(c.output, c.a, at))],
                    right = b[static_cast<size_t>(source_of(c.output, c.b, at))];
      ASSERT_EQ(y[i], left - right);
      ASSERT_EQ(same[i] != 0, left == right);
      ASSERT_EQ(z[i], same[i] != 0 ? left : right);
    }
  }
}

TEST(Broadcast, MergesAndRefuses) {
  const auto same = plan_broadcast(Shape{2, 3, 4}, {Shape{2, 3, 4}, Shape{2, 3, 4}});
  EXPECT_EQ(same.rank, 1);
  EXPECT_TRUE(same.is_same(0));
  EXPECT_FALSE(same.is_scalar(1));
  EXPECT_EQ(plan_broadcast(Shape{8, 2, 3, 4}, {Shape{8, 2, 3, 4}, Shape{2, 1, 1}}).rank, 3);
  EXPECT_TRUE(plan_broadcast(Shape{2, 3}, {Shape{2, 3}, Shape{1}}).is_scalar(1));
  EXPECT_THROW(plan_broadcast(Shape{2, 3}, {Shape{2}}), Error);
  EXPECT_THROW(plan_broadcast(Shape{3}, {Shape{1, 3}}), Error);
  EXPECT_THROW(plan_broadcast(Shape{-1}, {Shape{1}}), Error);
  EXPECT_THROW(plan_broadcast(Shape{int64_t{1} << 40, int64_t{1} << 40}, {Shape{1}}), Error);
  Shape ones, twos;
  for (int i = 0; i < 30; ++i) {
    ones.push_back(i % 2 + 1);
    twos.push_back(2);
  }
  const auto message = test::error_of([&] { plan_broadcast(twos, {ones}); });
  EXPECT_NE(message.find("nested loops"), std::string::npos) << message;
}

// ---- unary ----

struct UnaryCase {
  UnaryOp op;
  std::function<double(double, double, double)> formula;  // x, alpha, beta
  double alpha = 0, beta = 0;
  double low = -3, high = 3;
};

double clamp01(double v) { return std::min(std::max(v, 0.0), 1.0); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return std::log1p(std::exp(x)); }

const std::vector<UnaryCase>& unary_cases() {
  using D = double;
  static const std::vector<UnaryCase> cases{
      {UnaryOp::abs, [](D x, D, D) { return std::fabs(x); }},
      {UnaryOp::neg, [](D x, D, D) { return -x; }},
      {UnaryOp::exp, [](D x, D, D) { return std::exp(x); }},
      {UnaryOp::log, [](D x, D, D) { return std::log(x); }, 0, 0, 0.01, 9},
      {UnaryOp::sqrt, [](D x, D, D) { return std::sqrt(x); }, 0, 0, 0, 9},
      {UnaryOp::reciprocal, [](D x, D, D) { return 1 / x; }},
      {UnaryOp::floor, [](D x, D, D) { return std::floor(x); }},
      {UnaryOp::ceil, [](D x, D, D) { return std::ceil(x); }},
      {UnaryOp::round, [](D x, D, D) { return std::nearbyint(x); }},
      {UnaryOp::sign, [](D x, D, D) { return static_cast<D>((x > 0) - (x < 0)); }},
      {UnaryOp::relu, [](D x, D, D) { return std::max(x, 0.0); }},
      {UnaryOp::leaky_relu, [](D x, D a, D) { return x < 0 ? a * x : x; }, 0.1},
      {UnaryOp::elu, [](D x, D a, D) { return x < 0 ? a * std::expm1(x) : x; }, 1.5},
      {UnaryOp::celu,
       [](D x, D a, D) { return std::max(0.0, x) + std::min(0.0, a * std::expm1(x / a)); }, 2},
      {UnaryOp::selu, [](D x, D a, D b) { return b * (x < 0 ? a * std::expm1(x) : x); }, 1.67,
       1.05},
      {UnaryOp::gelu, [](D x, D, D) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); }},
      {UnaryOp::gelu_tanh,
       [](D x, D, D) {
         return x / 2 *
                (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
       }},
      {UnaryOp::sigmoid, [](D x, D, D) { return sigmoid(x); }},
      {UnaryOp::tanh, [](D x, D, D) { return std::tanh(x); }},
      {UnaryOp::hard_sigmoid, [](D x, D a, D b) { return clamp01(a * x + b); }, 0.4, 0.6},
      {UnaryOp::hard_swish, [](D x, D, D) { return x * clamp01(x / 6 + 0.5); }, 0, 0, -6, 6},
      {UnaryOp::mish, [](D x, D, D) { return x * std::tanh(softplus(x)); }, 0, 0, -30, 30},
      {UnaryOp::softplus, [](D x, D, D) { return softplus(x); }, 0, 0, -40, 40},
      {UnaryOp::softsign, [](D x, D, D) { return x / (1 + std::fabs(x)); }},
      {UnaryOp::thresholded_relu, [](D x, D a, D) { return x > a ? x : 0; }, 0.7},
      {UnaryOp::shrink, [](D x, D a, D b) { return x < -a  ? x + b
                                                   : x > a ? x - b
                                                           : 0; }, 1, 0.5},
      {UnaryOp::swish, [](D x, D a, D) { return x * sigmoid(a * x); }, 1.7},
      {UnaryOp::erf, [](D x, D, D) { return std::erf(x); }},
      {UnaryOp::sin, [](D x, D, D) { return std::sin(x); }},
      {UnaryOp::cos, [](D x, D, D) { return std::cos(x); }},
      {UnaryOp::tan, [](D x, D, D) { return std::tan(x); }, 0, 0, -1.5, 1.5},
      {UnaryOp::asin, [](D x, D, D) { return std::asin(x); }, 0, 0, -1, 1},
      {UnaryOp::acos, [](D x, D, D) { return std::acos(x); }, 0, 0, -1, 1},
      {UnaryOp::atan, [](D x, D, D) { return std::atan(x); }},
      {UnaryOp::sinh, [](D x, D, D) { return std::sinh(x); }},
      {UnaryOp::cosh, [](D x, D, D) { return std::cosh(x); }},
      {UnaryOp::asinh, [](D x, D, D) { return std::asinh(x); }},
      {UnaryOp::acosh, [](D x, D, D) { return std::acosh(x); }, 0, 0, 1, 9},
      {UnaryOp::atanh, [](D x, D, D) { return std::atanh(x); }, 0, 0, -0.99, 0.99},
      {UnaryOp::clamp, [](D x, D a, D b) { return std::min(std::max(x, a), b); }, -1, 2},
      {UnaryOp::square, [](D x, D, D) { return x * x; }},
  };
  return cases;
}

std::vector<double> expected_of(const UnaryCase& c, const std::vector<float>& x) {
  std::vector<double> y;
  for (const float v : x) y.push_back(c.formula(static_cast<double>(v), c.alpha, c.beta));
  return y;
}

std::vector<float> inputs_of(const UnaryCase& c, int64_t n) {
  return random_floats(n, static_cast<float>(c.low), static_cast<float>(c.high), 7);
}

TEST(Unary, FloatFormulas) {
  each_target([] {
    for (const UnaryCase& c : unary_cases()) {
      for (const int64_t n : {0, 1, 3, 8, 17, 63, 1000, 70003}) {
        const auto x = inputs_of(c, n);
        std::vector<float> y(x.size()), z = x;
        unary(c.op, ElementType::float32, x.data(), y.data(), n, {c.alpha, c.beta}, one_thread());
        unary(c.op, ElementType::float32, z.data(), z.data(), n, {c.alpha, c.beta}, two_threads());
        test::expect_same_bits(y, z);
        SCOPED_TRACE("operator " + std::to_string(static_cast<int>(c.op)));
        test::expect_near(y, expected_of(c, x), 2e-6);
      }
    }
  });
}

TEST(Unary, EveryOperatorIsListedAbove) {
  for (int op = 0; op < static_cast<int>(UnaryOp::is_nan); ++op) {
    const bool listed =
        std::any_of(unary_cases().begin(), unary_cases().end(),
                    [&](const UnaryCase& c) { return static_cast<int>(c.op) == op; });
    EXPECT_TRUE(listed) << op;
    EXPECT_TRUE(supports(static_cast<UnaryOp>(op), ElementType::float32)) << op;
    EXPECT_NE(unary_tile(static_cast<UnaryOp>(op)), nullptr) << op;
  }
}

// NaN stays NaN, but where the standard gives 0 to all that fails a comparison.
TEST(Unary, NanStays) {
  each_target([] {
    const std::vector<float> x(37, std::nanf(""));
    for (const UnaryCase& c : unary_cases()) {
      std::vector<float> y(x.size());
      unary(c.op, ElementType::float32, x.data(), y.data(), 37, {c.alpha, c.beta}, one_thread());
      if (c.op == UnaryOp::shrink || c.op == UnaryOp::thresholded_relu) continue;
      for (const float v : y) ASSERT_TRUE(std::isnan(v)) << static_cast<int>(c.op);
    }
  });
}

TEST(Unary, Doubles) {
  each_target([] {
    for (const UnaryCase& c : unary_cases()) {
      const auto x = inputs_of(c, 1500);
      const std::vector<double> wide(x.begin(), x.end());
      std::vector<double> y(x.size());
      unary(c.op, ElementType::float64, wide.data(), y.data(), 1500, {c.alpha, c.beta},
            two_threads());
      for (size_t i = 0; i < x.size(); ++i) {
        const double expected = c.formula(wide[i], c.alpha, c.beta);
        ASSERT_NEAR(y[i], expected, 1e-13 * (1 + std::fabs(expected))) << static_cast<int>(c.op);
      }
      const double nan = NAN;
      double of_nan = 0;
      unary(c.op, ElementType::float64, &nan, &of_nan, 1, {c.alpha, c.beta}, one_thread());
      const bool compares = c.op == UnaryOp::thresholded_relu || c.op == UnaryOp::shrink;
      EXPECT_TRUE(std::isnan(of_nan) || compares) << static_cast<int>(c.op);
    }
  });
}

TEST(Unary, Halves) {
  for (const UnaryCase& c : unary_cases()) {
    const auto x = inputs_of(c, 1500);
    for (const ElementType type : {ElementType::float16, ElementType::bfloat16}) {
      std::vector<uint16_t> narrow(x.size()), narrow_y(x.size());
      std::vector<float> read(x.size()), y(x.size()), expected(x.size());
      to_float16(type, x.data(), narrow.data(), 1500);
      unary(c.op, type, narrow.data(), narrow_y.data(), 1500, {c.alpha, c.beta}, two_threads());
      to_floats(type, narrow.data(), read.data(), 1500);
      unary(c.op, ElementType::float32, read.data(), expected.data(), 1500, {c.alpha, c.beta},
            one_thread());
      std::vector<uint16_t> rounded(x.size());
      to_float16(type, expected.data(), rounded.data(), 1500);
      test::expect_same_bits(narrow_y, rounded);
    }
  }
}

TEST(Unary, RoundsHalfToEven) {
  each_target([] {
    const std::vector<float> x{0.5f,       1.5f,  2.5f,       -0.5f, -1.5f, 0.49999997f,
                               8388609.0f, -2.5f, 4503599.5f, 1e30f, -0.2f};
    std::vector<float> y(x.size());
    unary(UnaryOp::round, ElementType::float32, x.data(), y.data(), 11, {}, one_thread());
    EXPECT_EQ(y,
              (std::vector<float>{0, 2, 2, -0.0f, -2, 0, 8388609.0f, -2, 4503600, 1e30f, -0.0f}));
  });
}

TEST(Unary, IntegersAndTheRest) {
  const std::vector<int8_t> x{-128, -5, 0, 5, 127};
  std::vector<int8_t> y(5);
  const auto run = [&](UnaryOp op, UnaryParams params) {
    unary(op, ElementType::int8, x.data(), y.data(), 5, params, one_thread());
    return y;
  };
  EXPECT_EQ(run(UnaryOp::abs, {}), (std::vector<int8_t>{-128, 5, 0, 5, 127}));
  EXPECT_EQ(run(UnaryOp::neg, {}), (std::vector<int8_t>{-128, 5, 0, -5, -127}));
  EXPECT_EQ(run(UnaryOp::sign, {}), (std::vector<int8_t>{-1, -1, 0, 1, 1}));
  EXPECT_EQ(run(UnaryOp::relu, {}), (std::vector<int8_t>{0, 0, 0, 5, 127}));
  EXPECT_EQ(run(UnaryOp::bitwise_not, {}), (std::vector<int8_t>{127, 4, -1, -6, -128}));
  EXPECT_EQ(run(UnaryOp::clamp, {-4, 6}), (std::vector<int8_t>{-4, -4, 0, 5, 6}));
  EXPECT_EQ(run(UnaryOp::clamp, {-1e9, 1e9}), x);
  const std::vector<float> f{NAN, INFINITY, -INFINITY, 1};
  std::vector<uint8_t> flags(4);
  unary(UnaryOp::is_nan, ElementType::float32, f.data(), flags.data(), 4, {}, one_thread());
  EXPECT_EQ(flags, (std::vector<uint8_t>{1, 0, 0, 0}));
  unary(UnaryOp::is_inf, ElementType::float32, f.data(), flags.data(), 4, {0, 1}, one_thread());
  EXPECT_EQ(flags, (std::vector<uint8_t>{0, 1, 0, 0}));
  const std::vector<uint8_t> fold_predicates{0, 1, 5};
  unary(UnaryOp::logical_not, ElementType::boolean, fold_predicates.data(), flags.data(), 3, {},
        one_thread());
  EXPECT_EQ(flags[0] * 4 + flags[1] * 2 + flags[2], 4);
  EXPECT_FALSE(supports(UnaryOp::exp, ElementType::int32));
  EXPECT_THROW(unary(UnaryOp::exp, ElementType::int32, nullptr, nullptr, 1, {}, one_thread()),
               Error);
}

TEST(Unary, Clip) {
  const std::vector<int64_t> x{INT64_MIN, -1, 0, (int64_t{1} << 53) + 1, INT64_MAX};
  const int64_t low = -1, high = (int64_t{1} << 53) + 1;
  std::vector<int64_t> y(5);
  clip(ElementType::int64, x.data(), y.data(), 5, &low, &high, one_thread());
  EXPECT_EQ(y, (std::vector<int64_t>{-1, -1, 0, high, high}));
  clip(ElementType::int64, x.data(), y.data(), 5, nullptr, nullptr, one_thread());
  EXPECT_EQ(y, x);
  const std::vector<float> f{NAN, -5, 5};
  const float above = 2, below = 1;  // bounds the wrong way round: the upper one wins
  std::vector<float> g(3);
  clip(ElementType::float32, f.data(), g.data(), 3, &above, &below, one_thread());
  EXPECT_TRUE(std::isnan(g[0]));
  EXPECT_EQ(g[1], 1);
  EXPECT_EQ(g[2], 1);
}

// ---- binary ----

TEST(Binary, FloatOperators) {
  struct Case {
    BinaryOp op;
    double (*formula)(double, double);
  };
  const Case cases[] = {
      {BinaryOp::add, [](double a, double b) { return a + b; }},
      {BinaryOp::sub, [](double a, double b) { return a - b; }},
      {BinaryOp::mul, [](double a, double b) { return a * b; }},
      {BinaryOp::div, [](double a, double b) { return a / b; }},
      {BinaryOp::min, [](double a, double b) { return std::min(a, b); }},
      {BinaryOp::max, [](double a, double b) { return std::max(a, b); }},
      {BinaryOp::fmod, [](double a, double b) { return std::fmod(a, b); }},
      {BinaryOp::mod, [](double a, double b) { return a - b * std::floor(a / b); }},
      {BinaryOp::prelu, [](double a, double b) { return a < 0 ? a * b : a; }},
      {BinaryOp::gate, [](double a, double b) { return a > 0 ? b : 0; }},
      {BinaryOp::pow, [](double a, double b) { return std::pow(a, b); }},
  };
  each_target([&] {
    for (const Case& c : cases) {
      const float low = c.op == BinaryOp::pow ? 0.1f : -3;
      const auto a = random_floats(3 * 41, low, 3, 3), b = random_floats(3 * 41, -3, 3, 4);
      for (const Broadcast& shape :
           {Broadcast{{3, 41}, {3, 41}, {3, 41}}, Broadcast{{3, 41}, {}, {3, 41}},
            Broadcast{{3, 41}, {3, 41}, {1}}}) {
        const auto plan = plan_broadcast(shape.output, {shape.a, shape.b});
        std::vector<float> y(3 * 41);
        std::vector<double> expected;
        for (int64_t i = 0; i < 3 * 41; ++i) {
          expected.push_back(
              c.formula(a[static_cast<size_t>(source_of(shape.output, shape.a, i))],
                        b[static_cast<size_t>(source_of(shape.output, shape.b, i))]));
        }
        binary(c.op, ElementType::float32, plan, a.data(), b.data(), y.data(), two_threads());
        SCOPED_TRACE("operator " + std::to_string(static_cast<int>(c.op)));
        test::expect_near(y, expected, 1e-6);
        for (const ElementType type : {ElementType::float16, ElementType::bfloat16}) {
          if (c.op == BinaryOp::mod || c.op == BinaryOp::fmod)
            continue;  // jumps where inputs round
          std::vector<uint16_t> ha(a.size()), hb(b.size()), hy(y.size());
          to_float16(type, a.data(), ha.data(), 3 * 41);
          to_float16(type, b.data(), hb.data(), 3 * 41);
          binary(c.op, type, plan, ha.data(), hb.data(), hy.data(), two_threads());
          std::vector<float> read(y.size());
          to_floats(type, hy.data(), read.data(), 3 * 41);
          test::expect_near(read, expected, type == ElementType::float16 ? 0.02 : 0.1);
        }
      }
    }
  });
}

TEST(Binary, Doubles) {
  each_target([] {
    for (const auto& shapes : {std::pair{Shape{3001}, Shape{3001}},
                               {Shape{3001}, Shape{}},
                               {Shape{50, 7}, Shape{50, 1}}}) {
      const auto& output = shapes.first;
      const auto& shape = shapes.second;
      const auto left = random_floats(count(output), -3, 3, 1),
                 right = random_floats(count(shape), 1, 3, 2);
      const std::vector<double> a(left.begin(), left.end()), b(right.begin(), right.end());
      const auto plan = plan_broadcast(output, {output, shape});
      std::vector<double> y(a.size());
      const auto check = [&](BinaryOp op, auto expected) {
        binary(op, ElementType::float64, plan, a.data(), b.data(), y.data(), two_threads());
        for (size_t i = 0; i < y.size(); ++i) {
          const double other =
              b[static_cast<size_t>(source_of(output, shape, static_cast<int64_t>(i)))];
          ASSERT_EQ(y[i], expected(a[i], other));
        }
      };
      check(BinaryOp::add, [](double p, double q) { return p + q; });
      check(BinaryOp::sub, [](double p, double q) { return p - q; });
      check(BinaryOp::mul, [](double p, double q) { return p * q; });
      check(BinaryOp::div, [](double p, double q) { return p / q; });
      check(BinaryOp::max, [](double p, double q) { return std::max(p, q); });
      for (const double exponent : {1.0, 2.0, 3.0, 0.5}) {
        pow(ElementType::float64, ElementType::float64, plan_broadcast(output, {output, Shape{}}),
            a.data(), &exponent, y.data(), one_thread());
        for (size_t i = 0; i < y.size(); ++i) {
          const double expected = std::pow(a[i], exponent);
          if (std::isnan(expected)) {
            ASSERT_TRUE(std::isnan(y[i]));
          } else {
            ASSERT_DOUBLE_EQ(y[i], expected);
          }
        }
      }
    }
  });
}

TEST(Binary, ScalarPowersAreRight) {
  each_target([] {
    const std::vector<float> x{-2, -0.0f, 0, 1.5f, INFINITY, -INFINITY, NAN};
    const auto plan = plan_broadcast(Shape{7}, {Shape{7}, Shape{}});
    for (const float e : {0.0f, 0.5f, 1.0f, 2.0f, 3.0f, -1.0f}) {
      std::vector<float> y(7);
      binary(BinaryOp::pow, ElementType::float32, plan, x.data(), &e, y.data(), one_thread());
      for (size_t i = 0; i < 7; ++i) {
        const float expected = std::pow(x[i], e);
        if (std::isnan(expected)) {
          EXPECT_TRUE(std::isnan(y[i]));
        } else {
          EXPECT_EQ(y[i], expected) << x[i] << "^" << e;
        }
      }
    }
  });
}

TEST(Binary, NanInMinAndMax) {
  each_target([] {
    const std::vector<float> a{NAN, 1, NAN, 2}, b{1, NAN, NAN, 3};
    const auto plan = plan_broadcast(Shape{4}, {Shape{4}, Shape{4}});
    for (const BinaryOp op : {BinaryOp::min, BinaryOp::max}) {
      std::vector<float> y(4);
      binary(op, ElementType::float32, plan, a.data(), b.data(), y.data(), one_thread());
      EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]) && std::isnan(y[2]));
      EXPECT_EQ(y[3], op == BinaryOp::min ? 2 : 3);
    }
  });
}

template <class T>
std::vector<T> run_binary(BinaryOp op, ElementType type, const std::vector<T>& a,
                          const std::vector<T>& b) {
  const auto n = static_cast<int64_t>(a.size());
  std::vector<T> y(a.size());
  binary(op, type, plan_broadcast(Shape{n}, {Shape{n}, Shape{n}}), a.data(), b.data(), y.data(),
         one_thread());
  return y;
}

// Numbers of all magnitudes, and what is special beside each other.
template <class T>
std::vector<T> numbers_to_divide(uint64_t seed, size_t count) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> special{0, 1, 2, 3, 7, Limits::max(), Limits::lowest(), Limits::max() / 2};
  if constexpr (std::is_floating_point_v<T>) {
    special.insert(special.end(),
                   {T(-0.0), Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(),
                    Limits::min(), Limits::denorm_min(), T(0.1), T(1) - Limits::epsilon() / 2});
  } else {
    special.insert(special.end(), {T(-1), T(-2), T(-7), T(int64_t{1} << 50), T(-(int64_t{1} << 50)),
                                   T((int64_t{1} << 50) - 1), T(int64_t{1} << 53)});
  }
  std::vector<T> x;
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const auto bits = static_cast<int64_t>(seed >> 8);
    if (i % 37 < 2) {
      x.push_back(special[(seed >> 33) % special.size()]);
    } else if constexpr (std::is_floating_point_v<T>) {
      const auto value = std::ldexp(T(bits % 100003) - 50001, static_cast<int>((seed >> 40) % 20));
      x.push_back(i % 2 == 0 ? value : value / 1000);
    } else {
      const auto shift = 1 + static_cast<int>((seed >> 57) % (8 * sizeof(T) - 1));
      x.push_back(static_cast<T>(static_cast<T>(bits << 8) >> shift));
    }
  }
  return x;
}

template <class T>
T expected_division(BinaryOp op, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    const T r = std::fmod(a, b);
    if (op == BinaryOp::fmod) return r;
    if (r == 0) return std::copysign(r, b);
    return (r < 0) != (b < 0) ? r + b : r;
  } else {
    if (b == 0) return 0;
    const auto p = static_cast<__int128>(a), q = static_cast<__int128>(b);
    if (op == BinaryOp::div) return static_cast<T>(p / q);
    const auto r = p % q;
    return static_cast<T>(op == BinaryOp::mod && r != 0 && (r < 0) != (q < 0) ? r + q : r);
  }
}

template <class T>
void check_divisions(ElementType type, std::initializer_list<BinaryOp> operators) {
  constexpr int64_t n = 40009;
  const auto a = numbers_to_divide<T>(1, n), b = numbers_to_divide<T>(2, n);
  for (const BinaryOp op : operators) {
    for (const Shape& shape : {Shape{n}, Shape{}}) {
      std::vector<T> y(n), z = a;
      const T* divisors = shape.empty() ? b.data() + 5 : b.data();
      const auto plan = plan_broadcast(Shape{n}, {Shape{n}, shape});
      binary(op, type, plan, a.data(), divisors, y.data(), two_threads());
      binary(op, type, plan, z.data(), divisors, z.data(), one_thread());
      test::expect_same_bits(y, z);
      for (size_t i = 0; i < y.size(); ++i) {
        const T divisor = shape.empty() ? *divisors : divisors[i];
        const T expected = expected_division(op, a[i], divisor);
        if (expected != expected) {
          ASSERT_NE(y[i], y[i]) << a[i] << " by " << divisor;
          continue;
        }
        ASSERT_EQ(y[i], expected) << a[i] << " by " << divisor;
        if constexpr (std::is_floating_point_v<T>) {
          ASSERT_EQ(std::signbit(y[i]), std::signbit(expected)) << a[i] << " by " << divisor;
        }
      }
    }
  }
}

TEST(Binary, DivisionsAreExact) {
  each_target([] {
    check_divisions<int32_t>(ElementType::int32, {BinaryOp::div, BinaryOp::mod, BinaryOp::fmod});
    check_divisions<int64_t>(ElementType::int64, {BinaryOp::div, BinaryOp::mod, BinaryOp::fmod});
    check_divisions<uint32_t>(ElementType::uint32, {BinaryOp::div, BinaryOp::mod});
    check_divisions<float>(ElementType::float32, {BinaryOp::mod, BinaryOp::fmod});
    check_divisions<double>(ElementType::float64, {BinaryOp::mod, BinaryOp::fmod});
  });
}

TEST(Binary, IntegersNeverTrap) {
  const std::vector<int32_t> a{INT32_MIN, 7, -7, 7, INT32_MAX}, b{-1, 0, 2, -2, 2};
  using V = std::vector<int32_t>;
  EXPECT_EQ(run_binary(BinaryOp::div, ElementType::int32, a, b),
            (V{INT32_MIN, 0, -3, -3, INT32_MAX / 2}));
  EXPECT_EQ(run_binary(BinaryOp::mod, ElementType::int32, a, b), (V{0, 0, 1, -1, 1}));
  EXPECT_EQ(run_binary(BinaryOp::fmod, ElementType::int32, a, b), (V{0, 0, -1, 1, 1}));
  EXPECT_EQ(run_binary(BinaryOp::mul, ElementType::int32, a, b), (V{INT32_MIN, 0, -14, -14, -2}));
  EXPECT_EQ(run_binary(BinaryOp::pow, ElementType::int32, a, b), (V{0, 1, 49, 0, 1}));
  using W = std::vector<uint16_t>;
  EXPECT_EQ(run_binary(BinaryOp::mul, ElementType::uint16, W{65535}, W{65535}), W{1});
  using U = std::vector<uint8_t>;
  EXPECT_EQ(run_binary(BinaryOp::shift_left, ElementType::uint8, U{3, 3, 3, 255}, U{1, 7, 8, 200}),
            (U{6, 128, 0, 0}));
  EXPECT_EQ(run_binary(BinaryOp::shift_right, ElementType::uint8, U{200, 255}, U{3, 8}),
            (U{25, 0}));
  EXPECT_EQ(run_binary(BinaryOp::bit_xor, ElementType::uint8, U{6}, U{3}), U{5});
  EXPECT_EQ(run_binary(BinaryOp::logical_and, ElementType::boolean, U{0, 1, 2}, U{1, 4, 0}),
            (U{0, 1, 0}));
  const std::vector<uint64_t> big{UINT64_MAX}, one{1};
  EXPECT_EQ(run_binary(BinaryOp::max, ElementType::uint64, big, one)[0], UINT64_MAX);
  EXPECT_FALSE(supports(BinaryOp::bit_and, ElementType::float32));
  EXPECT_FALSE(supports(BinaryOp::add, ElementType::boolean));
  EXPECT_FALSE(supports(BinaryOp::less, ElementType::string));
}

// Whatever is not 0 is true, of rows and of what repeats along them on either side.
TEST(Binary, BooleansOfAColumn) {
  constexpr int64_t rows = 5, columns = 203;
  const Shape whole{rows, columns}, column{rows, 1}, single{1};
  std::vector<uint8_t> x(rows * columns), wanted(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint8_t>(i * 7 % 5 * (i % 3));
  const std::vector<uint8_t> few{0, 1, 255, 0, 2};
  const auto expected = [](BinaryOp op, bool a, bool b) {
    if (op == BinaryOp::logical_and) return a && b;
    if (op == BinaryOp::logical_or) return a || b;
    return (a != b) == (op == BinaryOp::logical_xor);
  };
  test::each_target([&] {
    for (const BinaryOp op :
         {BinaryOp::logical_and, BinaryOp::logical_or, BinaryOp::logical_xor, BinaryOp::equal}) {
      for (const Shape& shape : {column, single}) {
        for (size_t i = 0; i < x.size(); ++i)
          wanted[i] = expected(op, x[i] != 0, few[shape == single ? 0 : i / columns] != 0);
        std::vector<uint8_t> y(x.size());
        binary(op, ElementType::boolean, plan_broadcast(whole, {whole, shape}), x.data(),
               few.data(), y.data(), one_thread());
        EXPECT_EQ(y, wanted);
        binary(op, ElementType::boolean, plan_broadcast(whole, {shape, whole}), few.data(),
               x.data(), y.data(), one_thread());
        EXPECT_EQ(y, wanted);
      }
    }
  });
}

TEST(Binary, ComparisonsGiveBooleans) {
  const std::vector<double> a{1, 2, NAN}, b{2, 2, NAN};
  const auto plan = plan_broadcast(Shape{3}, {Shape{3}, Shape{3}});
  const auto run = [&](BinaryOp op) {
    std::vector<uint8_t> y(3);
    binary(op, ElementType::float64, plan, a.data(), b.data(), y.data(), one_thread());
    return y[0] * 4 + y[1] * 2 + y[2];
  };
  EXPECT_EQ(run(BinaryOp::equal), 2);
  EXPECT_EQ(run(BinaryOp::less), 4);
  EXPECT_EQ(run(BinaryOp::greater), 0);
  EXPECT_EQ(run(BinaryOp::less_equal), 6);
  EXPECT_EQ(run(BinaryOp::greater_equal), 2);
  const std::vector<std::string> s{"a", "b"}, t{"b"};
  std::vector<uint8_t> y(2);
  binary(BinaryOp::equal, ElementType::string, plan_broadcast(Shape{2}, {Shape{2}, Shape{1}}),
         s.data(), t.data(), y.data(), one_thread());
  EXPECT_EQ(y, (std::vector<uint8_t>{0, 1}));
}

TEST(Binary, MixedPow) {
  const auto plan = plan_broadcast(Shape{3}, {Shape{3}, Shape{3}});
  const std::vector<int32_t> base{2, 3, -2};
  const std::vector<float> exponent{3, 0.5f, 3};
  std::vector<int32_t> y(3);
  pow(ElementType::int32, ElementType::float32, plan, base.data(), exponent.data(), y.data(),
      one_thread());
  EXPECT_EQ(y, (std::vector<int32_t>{8, 1, -8}));
  const std::vector<float> x{2, 4, 9};
  const std::vector<int64_t> e{10, -1, 0};
  std::vector<float> z(3);
  pow(ElementType::float32, ElementType::int64, plan, x.data(), e.data(), z.data(), one_thread());
  EXPECT_EQ(z, (std::vector<float>{1024, 0.25f, 1}));
}

TEST(Where, EveryCell) {
  const Shape out{2, 3, 2}, c{3, 1}, a{2, 1, 1}, b{};
  const auto plan = plan_broadcast(out, {c, a, b});
  const uint8_t condition[3] = {1, 0, 3};
  const auto* fold_predicates = reinterpret_cast<const bool*>(condition);
  const std::vector<std::string> x{"x", "y"}, other{"-"};
  std::vector<std::string> y(12);
  where(Cell::text, plan, fold_predicates, x.data(), other.data(), y.data(), one_thread());
  for (int64_t i = 0; i < 12; ++i) {
    const bool chosen = condition[source_of(out, c, i)] != 0;
    EXPECT_EQ(y[static_cast<size_t>(i)],
              chosen ? x[static_cast<size_t>(source_of(out, a, i))] : "-");
  }
  const std::vector<int64_t> p{5, 6}, q{7};
  std::vector<int64_t> z(12);
  where(Cell::bytes8, plan, fold_predicates, p.data(), q.data(), z.data(), two_threads());
  EXPECT_EQ(z, (std::vector<int64_t>{5, 5, 7, 7, 5, 5, 6, 6, 7, 7, 6, 6}));
}

TEST(Unary, ZerosKeepTheirSigns) {
  const std::vector<float> x{0.0f, -0.0f, 0.25f, -0.25f};
  test::each_target([&] {
    for (const UnaryOp op : {UnaryOp::ceil, UnaryOp::floor, UnaryOp::round}) {
      std::vector<float> y(x.size());
      unary(op, ElementType::float32, x.data(), y.data(), 4, {}, test::one_thread());
      for (size_t i = 0; i < x.size(); ++i)
        EXPECT_EQ(std::signbit(y[i]), std::signbit(x[i])) << x[i];
    }
    float sign = 1;
    unary(UnaryOp::sign, ElementType::float32, &x[1], &sign, 1, {}, test::one_thread());
    EXPECT_EQ(sign, 0);
    EXPECT_FALSE(std::signbit(sign));
  });
}

}  // namespace
}  // namespace sardonyx::kernels
