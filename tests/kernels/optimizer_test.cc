// The update rules of the optimisers, against their definition.
#include "kernels/elementwise/optimizer.h"

#include <array>

#include "rows_support.h"

namespace sardonyx::kernels::test {
namespace {

// What a rule makes of one element.
struct Element {
  double x, g, v, h;
};

void apply(const MomentumRule& rule, Element& e) {
  const double g = rule.norm * e.x + e.g;
  e.v = rule.alpha * e.v + rule.beta * g;
  e.x -= rule.rate * (rule.nesterov ? g + rule.alpha * e.v : e.v);
}
void apply(const AdagradRule& rule, Element& e) {
  const double g = rule.norm * e.x + e.g;
  e.h += g * g;
  e.x -= rule.rate * g / (std::sqrt(e.h) + rule.epsilon);
}
void apply(const AdamRule& rule, Element& e) {
  const double g = rule.norm * e.x + e.g;
  e.v = rule.alpha * e.v + (1 - rule.alpha) * g;
  e.h = rule.beta * e.h + (1 - rule.beta) * g * g;
  e.x = (1 - rule.norm_post) * (e.x - rule.rate * e.v / (std::sqrt(e.h) + rule.epsilon));
}

template <class T>
using Tensors = std::array<std::vector<T>, 4>;  // x, g, v, h

template <class T>
OptimizerData<T> data_of(const Tensors<T>& in, T* x, T* v, T* h) {
  return {in[0].data(), in[1].data(), in[2].data(), in[3].data(), x, v, h};
}

template <class T, class Rule>
void check(const Rule& rule, int64_t n) {
  SCOPED_TRACE(n);
  Tensors<T> in, expected;
  for (size_t which = 0; which < in.size(); ++which) {
    const auto drawn = random_floats(n, which == 3 ? 0.5f : -2.0f, 2, static_cast<uint32_t>(which));
    in[which].assign(drawn.begin(), drawn.end());
  }
  expected = in;
  for (size_t i = 0; i < in[0].size(); ++i) {
    Element e{static_cast<double>(in[0][i]), static_cast<double>(in[1][i]),
              static_cast<double>(in[2][i]), static_cast<double>(in[3][i])};
    apply(rule, e);
    expected[0][i] = static_cast<T>(e.x), expected[2][i] = static_cast<T>(e.v);
    expected[3][i] = static_cast<T>(e.h);
  }
  constexpr double tolerance = sizeof(T) == 4 ? 2e-6 : 1e-14;
  const auto expect_all = [&](const Tensors<T>& made) {
    for (const size_t which : {0, 2, 3}) {
      for (size_t i = 0; i < made[which].size(); ++i)
        ASSERT_NEAR(made[which][i], expected[which][i], tolerance) << which << " at " << i;
    }
  };
  // Beside the inputs, with guards that stay.
  constexpr T guard = 77;
  auto apart = in;
  for (auto& one : apart) one.push_back(guard);
  optimize(rule, data_of(in, apart[0].data(), apart[2].data(), apart[3].data()), n, one_thread());
  for (auto& one : apart) {
    ASSERT_EQ(one.back(), guard);
    one.pop_back();
  }
  expect_all(apart);
  // In their place, on two threads.
  auto place = in;
  optimize(rule, data_of(place, place[0].data(), place[2].data(), place[3].data()), n,
           two_threads());
  EXPECT_EQ(place, apart);
  // One result alone.
  for (const size_t which : {0, 2, 3}) {
    std::vector<T> alone(in[0].size());
    const auto at = [&](size_t i) { return i == which ? alone.data() : nullptr; };
    auto data = data_of(in, at(0), at(2), at(3));
    optimize(rule, data, n, two_threads());
    if (apart[which] == in[which]) continue;  // the rule doesn't have it
    EXPECT_EQ(alone, apart[which]) << which;
  }
}

template <class Rule>
void check_sizes(const Rule& rule) {
  each_target([&] {
    for (const int64_t n : {0, 1, 3, 8, 16, 17, 1023, 1024, 1025, 40000}) {
      check<float>(rule, n);
      check<double>(rule, n);
    }
  });
}

TEST(Optimizer, Momentum) {
  check_sizes(MomentumRule{0.1, 0.01, 0.9, 0.5, false});
  check_sizes(MomentumRule{0.1, 0.01, 0.9, 0.5, true});
}
TEST(Optimizer, Adagrad) { check_sizes(AdagradRule{0.1, 0.01, 1e-6}); }
TEST(Optimizer, Adam) { check_sizes(AdamRule{0.1, 0.01, 0.001, 0.9, 0.999, 1e-8}); }

}  // namespace
}  // namespace sardonyx::kernels::test
