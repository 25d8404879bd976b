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
}

TEST_F(DimTest, BoundsDecideMinAndMax) {
  EXPECT_EQ(max(n, n + Dim(2)), n + Dim(2));
  EXPECT_EQ(min(n, Dim(-1)), Dim(-1));
  EXPECT_EQ(max(n - Dim(1), Dim(0)).to_string(), "max(n - 1, 0)");
}

TEST_F(DimTest, BroadcastTakesTheOtherOfOne) {
  EXPECT_EQ(broadcast(Dim(1), n), n);
  EXPECT_EQ(broadcast(n, Dim(5)), Dim(5));
  const Dim both = broadcast(n, m);
  const int64_t sizes_ok[] = {1, 7}, sizes_bad[] = {2, 7};
  EXPECT_EQ(both.evaluate(sizes_ok), 7);
  EXPECT_EQ(both.evaluate(sizes_bad), std::nullopt);
}

TEST_F(DimTest, UnboundAndOverflowingSizesHaveNoValue) {
  const int64_t unbound[] = {-1, 3}, huge[] = {INT64_MAX, INT64_MAX};
  EXPECT_EQ((n + m).evaluate(unbound), std::nullopt);
  EXPECT_EQ((n * m).evaluate(huge), std::nullopt);
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
