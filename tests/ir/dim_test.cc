#include "ir/dim.h"

#include <gtest/gtest.h>

#include <random>

namespace sardonyx::ir {
namespace {

class DimTest : public ::testing::Test {
 protected:
  SymbolTable symbols;
  Dim n{symbols.named("n")}, m{symbols.named("m")};
};

TEST_F(DimTest, PrintsInAStableOrder) {
  EXPECT_EQ((Dim(3) + m * Dim(2) + n).to_string(), "2*m + n + 3");
  EXPECT_EQ((n - m - Dim(1)).to_string(), "n - m - 1");
  EXPECT_EQ(floor_div(n + Dim(1), Dim(2)).to_string(), "floor((n + 1)/2)");
}

TEST_F(DimTest, EqualSumsAreEqualWhateverTheirOrder) {
  EXPECT_EQ((n + m) * (n + m), n * n + Dim(2) * m * n + m * m);
  EXPECT_EQ(n - n, Dim(0));
  EXPECT_FALSE(n == m);
}

TEST_F(DimTest, DividesWhatDivides) {
  EXPECT_EQ(exact_div(Dim(6) * n * m, Dim(2) * m), Dim(3) * n);
  EXPECT_EQ(exact_div(n + m, n), std::nullopt);
  EXPECT_EQ(floor_div(Dim(4) * n + Dim(3), Dim(2)), Dim(2) * n + Dim(1));
  EXPECT_EQ(ceil_div(Dim(7), Dim(2)), Dim(4));
  EXPECT_EQ(ceil_div(Dim(7), Dim(INT64_MAX)), Dim(1));
  EXPECT_EQ(ceil_div(Dim(-7), Dim(2)), Dim(-3));
}

TEST_F(DimTest, BoundsDecideMinAndMax) {
  EXPECT_EQ(max(n, n + Dim(2)), n + Dim(2));
  EXPECT_EQ(min(n, Dim(-1)), Dim(-1));
  EXPECT_EQ(max(n - Dim(1), Dim(0)).to_string(), "max(n - 1, 0)");
}

TEST_F(DimTest, BoundsDecideWhereADifferenceOverflows) {
  const Dim low = Dim(INT64_MIN) - Dim(2) * n;
  EXPECT_EQ(max(low, Dim(0)), Dim(0));
  EXPECT_EQ(min(low, Dim(0)), low);
}

TEST_F(DimTest, WhatDoesNotCountMayOverflow) {
  const Dim low = n - m + Dim(INT64_MIN);
  const int64_t sizes[] = {2, 5};
  EXPECT_EQ(low.evaluate(sizes), std::nullopt);
  EXPECT_EQ(max(low, Dim(0)).evaluate(sizes), 0);
  EXPECT_EQ(min(n, m - n - Dim(INT64_MAX) - Dim(9)).evaluate(sizes), std::nullopt);
}

TEST_F(DimTest, BroadcastTakesTheOtherOfOne) {
  EXPECT_EQ(broadcast(Dim(1), n), n);
  EXPECT_EQ(broadcast(n, Dim(5)), Dim(5));
  const Dim both = broadcast(n, m);
  const int64_t sizes_ok[] = {1, 7}, sizes_bad[] = {2, 7};
  EXPECT_EQ(both.evaluate(sizes_ok), 7);
  EXPECT_EQ(both.evaluate(sizes_bad), std::nullopt);
  EXPECT_EQ(broadcast(min(n, Dim(512)), n), n);  // a table of 512 positions, cut to n
  EXPECT_FALSE(broadcast(min(n, Dim(1)), n) == n);
}

TEST_F(DimTest, UnboundAndOverflowingSizesHaveNoValue) {
  const int64_t unbound[] = {-1, 3}, huge[] = {INT64_MAX, INT64_MAX};
  EXPECT_EQ((n + m).evaluate(unbound), std::nullopt);
  EXPECT_EQ((n * m).evaluate(huge), std::nullopt);
}

TEST_F(DimTest, DividesPolynomials) {
  const Dim b{symbols.named("b")};
  EXPECT_EQ(exact_div(b * n + b * m, n + m), b);
  EXPECT_EQ(exact_div((n + m) * (n - m) * Dim(6), Dim(2) * n + Dim(2) * m),
            Dim(3) * n - Dim(3) * m);
  EXPECT_EQ(exact_div(n * n + m, n + m), std::nullopt);
}

TEST_F(DimTest, QuotientsHaveOneForm) {
  EXPECT_EQ(floor_div(floor_div(n + Dim(1), Dim(2)) + Dim(1), Dim(2)),
            floor_div(n + Dim(3), Dim(4)));
  EXPECT_EQ(floor_div(Dim(2) * n + Dim(1), Dim(4)), floor_div(n, Dim(2)));
  EXPECT_EQ(floor_div(Dim(5) * n + Dim(3), Dim(2)).to_string(), "floor((n + 1)/2) + 2*n + 1");
  EXPECT_EQ(floor_div(Dim(INT64_MIN), Dim(3)), Dim(INT64_MIN / 3 - 1));
}

TEST_F(DimTest, ProvesOrderByCases) {
  EXPECT_TRUE(surely_at_least(n, floor_div(n, Dim(2))));
  EXPECT_TRUE(surely_at_least(n, min(n, m)));
  EXPECT_TRUE(surely_at_least(max(n, m), m));
  EXPECT_TRUE(surely_at_least(n + m, max(n, m)));
  EXPECT_FALSE(surely_at_least(n, m));
  // An element may be the least number there is, and a sum of it wrap.
  const Dim v{symbols.unknown_value()}, at_least_zero = max(v, Dim(0));
  EXPECT_TRUE(surely_at_least(v, v));
  EXPECT_TRUE(surely_at_least(v, min(v, n)));
  EXPECT_FALSE(surely_at_least(v, v - Dim(1)));
  EXPECT_FALSE(surely_at_least(v * Dim(2) + n, v * Dim(2)));
  EXPECT_TRUE(surely_at_least(at_least_zero + n, at_least_zero));
  EXPECT_EQ(max(max(n - m, Dim(0)), Dim(0)), max(n - m, Dim(0)));
  EXPECT_EQ(min(n, floor_div(n + Dim(1), Dim(2)) + Dim(1)).to_string(),
            "min(floor((n + 1)/2) + 1, n)");
}

TEST_F(DimTest, OverflowIsIndefiniteAndSpreads) {
  for (const Dim& beyond : {Dim(INT64_MAX) + Dim(1), Dim(INT64_MIN) * n * Dim(2),
                            floor_div(Dim(INT64_MIN), Dim(-1)), Dim(0) - Dim(INT64_MIN)}) {
    EXPECT_TRUE(beyond.is_indefinite());
    EXPECT_FALSE(beyond.is_constant());
    EXPECT_FALSE(beyond == beyond);
    EXPECT_TRUE((beyond + Dim(1)).is_indefinite());
    EXPECT_TRUE((beyond * Dim(7)).is_indefinite());
    EXPECT_TRUE(floor_div(n, beyond).is_indefinite());
    EXPECT_TRUE(max(beyond, n).is_indefinite());
    EXPECT_EQ(beyond.evaluate({}), std::nullopt);
    EXPECT_EQ(beyond.to_string(), "?");
  }
  EXPECT_EQ(exact_div(Dim(INT64_MIN), Dim(-1)), std::nullopt);
  EXPECT_EQ(exact_div(Dim(INT64_MIN) * n, Dim(-1)), std::nullopt);
  EXPECT_EQ(exact_div(Dim(INT64_MIN), Dim(3)), std::nullopt);
  const int64_t least[] = {0, 0};
  EXPECT_EQ(floor_div(Dim(INT64_MIN) + n, m - Dim(1)).evaluate(least), std::nullopt);
}

// Constructs that would nest or double without end stop at the limits, with what bounds they have.
TEST_F(DimTest, GrowthEnds) {
  Dim deep = n;
  for (int i = 0; i < 50'000; ++i) deep = floor_div(deep + m, m + Dim(2));
  EXPECT_TRUE(deep.is_indefinite());
  Dim doubling = n;
  for (int i = 0; i < 200; ++i)
    doubling = max(floor_div(doubling + m, Dim(3)), floor_div(doubling + n, Dim(2)));
  EXPECT_EQ(doubling.lower(), 0);
  Dim square = n + m;
  for (int i = 0; i < 100; ++i) square = square * square;
  EXPECT_TRUE(square.is_indefinite());
  EXPECT_EQ(min(square, Dim(5)).upper(), 5);
  Dim sum = n;
  for (int i = 0; i < 1000; ++i) sum = sum + Dim(symbols.named(std::to_string(i)));
  EXPECT_TRUE(sum.is_indefinite());
  EXPECT_EQ(sum.lower(), 0);
}

// They may stand in the types of all values.
TEST_F(DimTest, LongNamesAreCutAndStayApart) {
  const std::string text(1 << 20, 'x');
  const Symbol *one = symbols.named(text + "1"), *other = symbols.named(text + "2");
  EXPECT_NE(one, other);
  EXPECT_NE(one->name, other->name);
  EXPECT_LT(one->name.size(), 300u);
  EXPECT_EQ(symbols.named(text + "1"), one);
  EXPECT_EQ(symbols.find(text + "2"), other);
}

TEST_F(DimTest, LearnsWhatSymbolsStandFor) {
  const Dim total{symbols.named("total")}, u{symbols.unknown()}, v{symbols.unknown_value()};
  EXPECT_TRUE(symbols.learn_equal(total, n + m));
  EXPECT_EQ(symbols.resolved(Dim(2) * total + Dim(1)), Dim(2) * n + Dim(2) * m + Dim(1));
  EXPECT_TRUE(symbols.learn_equal(n, u));  // the unknown is explained, not the name
  EXPECT_EQ(symbols.resolved(u), n);
  EXPECT_TRUE(symbols.learn_equal(v + Dim(1), m));
  EXPECT_EQ(symbols.resolved(v), m - Dim(1));
  EXPECT_TRUE(symbols.learn_equal(m, Dim(64)));
  EXPECT_EQ(symbols.resolved(total), n + Dim(64));
  EXPECT_FALSE(symbols.learn_equal(total, n + m));
  EXPECT_FALSE(symbols.learn_equal(n, n * n + Dim(1)));
  EXPECT_EQ(*symbols.explanation(total.as_symbol()->id), n + m);
}

TEST_F(DimTest, ElementsMayBeNegative) {
  const Dim v{symbols.unknown_value()};
  EXPECT_EQ(v.lower(), std::nullopt);
  EXPECT_FALSE(max(v, Dim(0)) == v);
  const int64_t bound[] = {0, 0, -5}, open[] = {0, 0, INT64_MIN};
  EXPECT_EQ((v + Dim(1)).evaluate(bound), -4);
  EXPECT_EQ(v.evaluate(open), std::nullopt);
}

// Random expressions, built symbolically and computed with numbers beside it.
TEST_F(DimTest, AgreesWithArithmetic) {
  std::mt19937 random(7);
  const auto pick = [&](int k) { return static_cast<int>(random() % static_cast<unsigned>(k)); };
  for (int round = 0; round < 2000; ++round) {
    const int64_t sizes[] = {pick(9), pick(9)};
    Dim expression = n;
    int64_t value = sizes[0];
    for (int step = 0; step < 6; ++step) {
      const int64_t number = pick(5) + 1;
      const bool use_m = pick(2) == 0;
      const Dim operand = use_m ? m : Dim(number);
      const int64_t with = use_m ? sizes[1] : number;
      switch (pick(6)) {
        case 0: expression = expression + operand, value += with; break;
        case 1: expression = expression - operand, value -= with; break;
        case 2: expression = expression * operand, value *= with; break;
        case 3: expression = max(expression, operand), value = std::max(value, with); break;
        case 4: expression = min(expression, operand), value = std::min(value, with); break;
        default: {
          expression = floor_div(expression, Dim(number));
          const int64_t q = value / number;
          value = q - (value % number != 0 && value < 0);
        }
      }
    }
    EXPECT_EQ(expression.evaluate(sizes), value)
        << expression.to_string() << " with n=" << sizes[0] << " m=" << sizes[1];
    const auto low = expression.lower(), high = expression.upper();
    EXPECT_LE(low.value_or(value), value) << expression.to_string();
    EXPECT_GE(high.value_or(value), value) << expression.to_string();
    EXPECT_EQ(expression.substitute(0, Dim(sizes[0])).substitute(1, Dim(sizes[1])), Dim(value));
  }
}

}  // namespace
}  // namespace sardonyx::ir
