// Reductions and scans against plain loops in double.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "kernels/rows/arg_extreme.h"
#include "kernels/rows/reduce.h"
#include "kernels/rows/scan.h"
#include "lines_support.h"
#include "sanitized.h"

namespace sardonyx::kernels {
namespace {

using test::both_pools;
using test::Box;
using test::boxes;
using test::Doubles;
using test::each_line;
using test::each_target;
using test::f32;
using test::index;
using test::one_thread;
using test::other_floats;
using test::random_floats;
using test::Shape;
using test::through;
using test::tolerance_of;
using test::two_threads;

double finish(ReduceOp op, const Doubles& v) {
  double sum = 0, sum_abs = 0, squares = 0, product = 1, exps = 0;
  double most = -INFINITY, least = INFINITY;
  for (const double e : v) {
    sum += e;
    sum_abs += std::fabs(e);
    squares += e * e;
    product *= e;
    most = std::max(most, e);
    least = std::min(least, e);
  }
  for (const double e : v) exps += std::exp(e - most);
  switch (op) {
    case ReduceOp::sum: return sum;
    case ReduceOp::mean: return sum / double(v.size());
    case ReduceOp::max: return most;
    case ReduceOp::min: return least;
    case ReduceOp::prod: return product;
    case ReduceOp::l1: return sum_abs;
    case ReduceOp::l2: return std::sqrt(squares);
    case ReduceOp::log_sum: return std::log(sum);
    case ReduceOp::log_sum_exp: return most + std::log(exps);
    default: return squares;
  }
}

// One group of values for each output element.
std::vector<Doubles> groups_of(const Shape& shape, const Shape& axes, const std::vector<float>& x) {
  int64_t outputs = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (std::find(axes.begin(), axes.end(), int64_t(d)) == axes.end()) outputs *= shape[d];
  }
  std::vector<Doubles> groups(index(outputs));
  for (int64_t i = 0; i < int64_t(x.size()); ++i) {
    int64_t rest = i, at = 0, stride = 1;
    for (size_t d = shape.size(); d-- > 0;) {
      if (std::find(axes.begin(), axes.end(), int64_t(d)) == axes.end()) {
        at += rest % shape[d] * stride;
        stride *= shape[d];
      }
      rest /= shape[d];
    }
    groups[index(at)].push_back(x[index(i)]);
  }
  return groups;
}

struct ReduceCase {
  Shape shape, axes;
};
const ReduceCase reduce_cases[] = {
    {{7}, {0}},
    {{}, {}},
    {{5, 40}, {1}},
    {{5, 40}, {0}},
    {{3, 4, 5}, {1}},
    {{3, 4, 5}, {0, 2}},
    {{3, 4, 5}, {2, 1}},
    {{2, 3, 4, 5}, {1, 3}},
    {{2, 3, 4, 5}, {0, 2}},
    {{3, 4}, {}},
    {{3, 1, 300}, {1}},
    {{200000}, {0}},
    {{700, 300}, {0}},
    {{1, 1}, {0, 1}},
    {{2, 1000, 1, 3}, {1, 2}},
    {{50, 60, 70}, {1}},
    {{3000, 3}, {1}},
    {{2, 500, 16}, {2}},
    {{700, 2}, {1}},
};

TEST(Reduce, FloatFormulas) {
  each_target([] {
    for (const ReduceCase& c : reduce_cases) {
      int64_t n = 1;
      for (const int64_t d : c.shape) n *= d;
      // Products of up to many elements stay in range near 1.
      const auto x = random_floats(n, 0.9f, 1.1f, 5);
      const auto groups = groups_of(c.shape, c.axes, x);
      const auto plan = plan_reduce(c.shape, c.axes);
      for (int op = 0; op < static_cast<int>(ReduceOp::count_); ++op) {
        const auto kind = static_cast<ReduceOp>(op);
        if (kind == ReduceOp::prod && plan.reduced > 2000) continue;
        const auto y = both_pools(plan.kept, [&](float* to, ThreadPool& pool) {
          reduce(kind, f32, plan, x.data(), to, pool);
        });
        Doubles expected;
        for (const Doubles& group : groups) expected.push_back(finish(kind, group));
        SCOPED_TRACE("reduction " + std::to_string(op));
        test::expect_near(y, expected, kind == ReduceOp::prod ? 1e-4 : 2e-6);
        if (n > 10000) continue;
        for (const ElementType type : other_floats) {
          const auto z = through(type, x, plan.kept, [&](const void* from, void* to) {
            reduce(kind, type, plan, from, to, two_threads());
          });
          test::expect_near(z, expected, kind == ReduceOp::prod ? 1 : 2 * tolerance_of(type));
        }
      }
    }
  });
}

// Every fold of whole numbers and of float64, along rows and columns, against plain loops. Sums
// wrap.
template <class T>
void check_folds(int64_t rows, int64_t n) {
  std::mt19937_64 engine(9);
  std::vector<T> x(index(rows * n));
  for (T& v : x) {
    if constexpr (std::is_floating_point_v<T>)
      v = static_cast<T>(static_cast<int64_t>(engine())) / static_cast<T>(INT64_MAX);
    else
      v = static_cast<T>(engine());
  }
  const ElementType type = std::is_same_v<T, double>     ? ElementType::float64
                           : std::is_same_v<T, int32_t>  ? ElementType::int32
                           : std::is_same_v<T, uint64_t> ? ElementType::uint64
                                                         : ElementType::int64;
  using Sum = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;
  for (const bool along : {true, false}) {
    const int64_t kept = along ? rows : n, folded = along ? n : rows;
    const auto plan = plan_reduce(Shape{rows, n}, Shape{along ? 1 : 0});
    for (const auto op : {ReduceOp::sum, ReduceOp::l1, ReduceOp::sum_square, ReduceOp::max,
                          ReduceOp::min, ReduceOp::prod}) {
      std::vector<T> y(index(kept)), two(y);
      reduce(op, type, plan, x.data(), y.data(), one_thread());
      reduce(op, type, plan, x.data(), two.data(), two_threads());
      ASSERT_EQ(y, two);
      for (int64_t k = 0; k < kept; ++k) {
        Sum sum = 0, product = 1;
        T most = x[index(along ? k * n : k)], least = most;
        for (int64_t i = 0; i < folded; ++i) {
          const T v = x[index(along ? k * n + i : i * n + k)];
          const auto s = static_cast<Sum>(v);
          most = std::max(most, v), least = std::min(least, v), product *= s;
          sum += op == ReduceOp::sum_square ? s * s : op == ReduceOp::l1 && v < T{} ? -s : s;
        }
        const T found = y[index(k)];
        if (op == ReduceOp::max || op == ReduceOp::min)
          ASSERT_EQ(found, op == ReduceOp::max ? most : least);
        else if constexpr (std::is_floating_point_v<T>)
          ASSERT_NEAR(found, op == ReduceOp::prod ? product : sum, 1e-11);
        else
          ASSERT_EQ(found, static_cast<T>(op == ReduceOp::prod ? product : sum));
      }
    }
  }
}

TEST(Reduce, WholeNumbersAndDoubles) {
  each_target([] {
    for (const int64_t rows : {1, 7, 40, 600}) {
      for (const int64_t n : {1, 2, 3, 4, 5, 17, 67, 300}) {
        SCOPED_TRACE(::testing::Message() << rows << "x" << n);
        check_folds<int32_t>(rows, n);
        check_folds<int64_t>(rows, n);
        check_folds<uint64_t>(rows, n);
        check_folds<double>(rows, n);
      }
    }
    for (int64_t at = 0; at < 50; ++at) {
      std::vector<double> x(50, 1);
      x[index(at)] = NAN;
      for (const auto op : {ReduceOp::max, ReduceOp::min}) {
        double y = 0;
        reduce(op, ElementType::float64, plan_reduce(Shape{1, 50}, Shape{1}), x.data(), &y,
               one_thread());
        EXPECT_TRUE(std::isnan(y)) << at;
      }
    }
  });
}

TEST(Reduce, Integers) {
  const std::vector<int32_t> x{5, -7, 2, INT32_MAX, INT32_MAX, 3};
  const auto plan = plan_reduce(Shape{2, 3}, Shape{1});
  const auto run = [&](ReduceOp op) {
    std::vector<int32_t> y(2);
    reduce(op, ElementType::int32, plan, x.data(), y.data(), one_thread());
    return y;
  };
  using V = std::vector<int32_t>;
  EXPECT_EQ(run(ReduceOp::sum), (V{0, 1}));
  EXPECT_EQ(run(ReduceOp::max), (V{5, INT32_MAX}));
  EXPECT_EQ(run(ReduceOp::min), (V{-7, 3}));
  EXPECT_EQ(run(ReduceOp::l1)[0], 14);
  EXPECT_EQ(run(ReduceOp::prod)[0], -70);
  EXPECT_EQ(run(ReduceOp::sum_square)[0], 78);
  EXPECT_EQ(run(ReduceOp::l2)[0], 8);
  EXPECT_EQ(run(ReduceOp::mean), (V{0, 1431655765}));
  const std::vector<uint8_t> bytes{3, 200, 7};
  uint8_t most;
  reduce(ReduceOp::max, ElementType::uint8, plan_reduce(Shape{3}, Shape{0}), bytes.data(), &most,
         one_thread());
  EXPECT_EQ(most, 200);
  const std::vector<uint8_t> fold_predicates{0, 5, 0};
  reduce(ReduceOp::max, ElementType::boolean, plan_reduce(Shape{3}, Shape{0}),
         fold_predicates.data(), &most, one_thread());
  EXPECT_EQ(most, 1);
  EXPECT_FALSE(supports(ReduceOp::sum, ElementType::uint8));
  EXPECT_FALSE(supports(ReduceOp::sum, ElementType::string));
}

TEST(Reduce, NothingToReduce) {
  const auto plan = plan_reduce(Shape{2, 0}, Shape{1});
  const auto value = [&](ReduceOp op) {
    float y[2] = {5, 5};
    reduce(op, f32, plan, nullptr, y, one_thread());
    EXPECT_TRUE(y[0] == y[1] || (std::isnan(y[0]) && std::isnan(y[1])));
    return y[0];
  };
  EXPECT_EQ(value(ReduceOp::sum), 0);
  EXPECT_EQ(value(ReduceOp::prod), 1);
  EXPECT_TRUE(std::isnan(value(ReduceOp::mean)));
  EXPECT_EQ(value(ReduceOp::max), -INFINITY);
  EXPECT_EQ(value(ReduceOp::min), INFINITY);
  EXPECT_EQ(value(ReduceOp::log_sum_exp), -INFINITY);
  int8_t y[2];
  reduce(ReduceOp::max, ElementType::int8, plan, nullptr, y, one_thread());
  EXPECT_EQ(y[0], -128);
  reduce(ReduceOp::min, ElementType::int8, plan, nullptr, y, one_thread());
  EXPECT_EQ(y[1], 127);
  reduce(ReduceOp::sum, f32, plan_reduce(Shape{0, 2}, Shape{1}), nullptr, nullptr, one_thread());
}

TEST(Reduce, NanAndInfinityAndBadAxes) {
  each_target([] {
    std::vector<float> x(100, 1);
    x[50] = NAN;
    float y;
    const auto plan = plan_reduce(Shape{100}, Shape{0});
    for (const ReduceOp op : {ReduceOp::max, ReduceOp::min, ReduceOp::sum, ReduceOp::log_sum_exp}) {
      reduce(op, f32, plan, x.data(), &y, one_thread());
      EXPECT_TRUE(std::isnan(y));
    }
    x[50] = INFINITY;
    reduce(ReduceOp::log_sum_exp, f32, plan, x.data(), &y, one_thread());
    EXPECT_EQ(y, INFINITY);
  });
  EXPECT_THROW(plan_reduce(Shape{2, 3}, Shape{2}), Error);
  EXPECT_THROW(plan_reduce(Shape{2, 3}, Shape{-1}), Error);
  EXPECT_THROW(plan_reduce(Shape{2, 3}, Shape{0, 0}), Error);
}

// Rows of any length with ties, infinities and NaN, and the columns of their transpose.
TEST(ArgExtreme, RowsOfEveryLength) {
  each_target([] {
    std::mt19937 engine(3);
    for (int64_t n = 1; n < 90; ++n) {
      const int64_t rows = 6;
      std::vector<float> x(index(rows * n)), turned(x.size());
      for (int64_t i = 0; i < rows * n; ++i) {
        const auto drawn = engine() % 7;
        const int64_t row = i / n;
        x[index(i)] = row == 0 ? -INFINITY : row == 1 ? INFINITY : row == 2 ? NAN : float(drawn);
        if (row == 4 && drawn == 0) x[index(i)] = NAN;
        if (row == 5) x[index(i)] = drawn < 3 ? -0.0f : 0.0f;
        turned[index(i % n * rows + row)] = x[index(i)];
      }
      for (const bool largest : {false, true}) {
        for (const bool last : {false, true}) {
          std::vector<int64_t> y(rows), columns(rows);
          arg_extreme(largest, last, f32, x.data(), y.data(), rows, n, 1, one_thread());
          arg_extreme(largest, last, f32, turned.data(), columns.data(), 1, n, rows, one_thread());
          for (int64_t r = 0; r < rows; ++r) {
            int64_t best = 0;
            for (int64_t i = 1; i < n; ++i) {
              const float v = x[index(r * n + i)], b = x[index(r * n + best)];
              const bool tie = v == b || (v != v && b != b);
              const bool better = b == b && (v != v || (largest ? v > b : v < b));
              if (better || (last && tie)) best = i;
            }
            ASSERT_EQ(y[index(r)], best) << "row " << r << " of " << n << (last ? " last" : "");
            ASSERT_EQ(columns[index(r)], best) << "column " << r << " of " << n;
          }
        }
      }
    }
  });
}

TEST(ArgExtreme, LinesTiesAndNan) {
  each_target([] {
    for (const Box& b : boxes) {
      auto x = random_floats(b.count(), -4, 4);
      for (float& v : x) v = std::round(v);
      for (const bool largest : {false, true}) {
        for (const bool last : {false, true}) {
          Doubles expected;
          each_line(b, x, expected, [&](const Doubles& v, Doubles& y) {
            size_t best = 0;
            for (size_t i = 1; i < v.size(); ++i) {
              const bool better = largest ? v[i] > v[best] : v[i] < v[best];
              if (better || (last && v[i] == v[best])) best = i;
            }
            std::fill(y.begin(), y.end(), double(best));
          });
          std::vector<int64_t> y(index(b.outer * b.inner));
          arg_extreme(largest, last, f32, x.data(), y.data(), b.outer, b.n, b.inner, two_threads());
          for (int64_t i = 0; i < b.outer * b.inner; ++i) {
            ASSERT_EQ(y[index(i)], expected[index(i / b.inner * b.n * b.inner + i % b.inner)]);
          }
        }
      }
    }
    const std::vector<float> nan{1, NAN, 2, NAN};
    int64_t at;
    arg_extreme(true, false, f32, nan.data(), &at, 1, 4, 1, one_thread());
    EXPECT_EQ(at, 1);
    arg_extreme(false, true, f32, nan.data(), &at, 1, 4, 1, one_thread());
    EXPECT_EQ(at, 3);
    std::vector<int64_t> columns(2);
    arg_extreme(true, false, f32, nan.data(), columns.data(), 1, 2, 2, one_thread());
    EXPECT_EQ(columns, (std::vector<int64_t>{1, 0}));
    EXPECT_THROW(arg_extreme(true, false, f32, nullptr, &at, 1, 0, 1, one_thread()), Error);
  });
}

// ---- scans ----

// Columns of every type, where they lie and in place.
template <class T>
void check_scans(ElementType type, int64_t n, int64_t inner) {
  std::mt19937 engine(4);
  std::vector<T> x(index(n * inner)), y(x.size());
  for (T& v : x) v = static_cast<T>(static_cast<int32_t>(engine() % 7)) - T{3};
  for (const auto op : {ScanOp::sum, ScanOp::product}) {
    for (const bool exclusive : {false, true}) {
      for (const bool reverse : {false, true}) {
        cumulate(op, type, x.data(), y.data(), 1, n, inner, exclusive, reverse, one_thread());
        std::vector<T> in_place = x;
        cumulate(op, type, in_place.data(), in_place.data(), 1, n, inner, exclusive, reverse,
                 two_threads());
        ASSERT_EQ(in_place, y);
        for (int64_t j = 0; j < inner; ++j) {
          T total = op == ScanOp::sum ? T{0} : T{1};
          for (int64_t k = 0; k < n; ++k) {
            const size_t i = index((reverse ? n - 1 - k : k) * inner + j);
            const T next = op == ScanOp::sum ? total + x[i] : total * x[i];
            ASSERT_EQ(y[i], exclusive ? total : next) << "column " << j << ", term " << k;
            total = next;
          }
        }
      }
    }
  }
}

TEST(Cumulate, Columns) {
  each_target([] {
    for (const int64_t n : {1, 3, 9}) {
      for (const int64_t inner : {2, 15, 16, 63, 130, 300}) {
        SCOPED_TRACE(::testing::Message() << n << "x" << inner);
        check_scans<float>(f32, n, inner);
        check_scans<double>(ElementType::float64, n, inner);
        check_scans<int32_t>(ElementType::int32, n, inner);
        check_scans<int64_t>(ElementType::int64, n, inner);
        check_scans<uint64_t>(ElementType::uint64, n, inner);
      }
    }
  });
}

TEST(Cumulate, EveryDirection) {
  for (const Box& b : boxes) {
    const auto x = random_floats(b.count(), 0.5f, 1.5f);
    for (const bool exclusive : {false, true}) {
      for (const bool reverse : {false, true}) {
        Doubles expected;
        each_line(b, x, expected, [&](const Doubles& v, Doubles& y) {
          double sum = 0;
          for (size_t k = 0; k < v.size(); ++k) {
            const size_t i = reverse ? v.size() - 1 - k : k;
            y[i] = exclusive ? sum : sum + v[i];
            sum += v[i];
          }
        });
        const auto run = [&](ElementType type, double tolerance) {
          const auto y = through(type, x, b.count(), [&](const void* from, void* to) {
            cumulate(ScanOp::sum, type, from, to, b.outer, b.n, b.inner, exclusive, reverse,
                     two_threads());
          });
          test::expect_near(y, expected, tolerance);
        };
        run(f32, 1e-4);
        run(ElementType::float64, 1e-6);
        if (b.n < 100) run(ElementType::float16, 1e-2);
      }
    }
  }
  const std::vector<int32_t> x{2, 3, 4};
  std::vector<int32_t> y(3);
  cumulate(ScanOp::product, ElementType::int32, x.data(), y.data(), 1, 3, 1, false, false,
           one_thread());
  EXPECT_EQ(y, (std::vector<int32_t>{2, 6, 24}));
}

TEST(TopK, SortedTiesAndNan) {
  for (const Box& b : boxes) {
    auto x = random_floats(b.count(), -9, 9);
    for (float& v : x) v = std::round(v);
    for (const int64_t k :
         {int64_t{0}, int64_t{1}, std::min<int64_t>(b.n, 32), b.n / 8, b.n / 2, b.n}) {
      for (const bool largest : {false, true}) {
        std::vector<double> scratch(index(topk_scratch_bytes(b.n, 2) / 8 + 1));
        std::vector<float> y(index(b.outer * k * b.inner));
        std::vector<int64_t> at(y.size());
        topk(f32, x.data(), y.data(), at.data(), b.outer, b.n, b.inner, k, largest, scratch.data(),
             two_threads());
        for (int64_t r = 0; r < b.outer * b.inner; ++r) {
          std::vector<int64_t> order(index(b.n));
          std::iota(order.begin(), order.end(), 0);
          const auto value = [&](int64_t j) {
            return x[index((r / b.inner * b.n + j) * b.inner + r % b.inner)];
          };
          std::stable_sort(order.begin(), order.end(), [&](int64_t p, int64_t q) {
            return largest ? value(p) > value(q) : value(p) < value(q);
          });
          for (int64_t j = 0; j < k; ++j) {
            const size_t place = index((r / b.inner * k + j) * b.inner + r % b.inner);
            ASSERT_EQ(at[place], order[index(j)]);
            ASSERT_EQ(y[place], value(order[index(j)]));
          }
        }
      }
    }
  }
  const std::vector<float> nan{1, NAN, 3};
  std::vector<double> scratch(100);
  float y[3];
  int64_t at[3];
  topk(f32, nan.data(), y, at, 1, 3, 1, 3, true, scratch.data(), one_thread());
  EXPECT_EQ(at[0], 1);
  topk(f32, nan.data(), y, at, 1, 3, 1, 3, false, scratch.data(), one_thread());
  EXPECT_EQ(at[2], 1);
  EXPECT_THROW(topk(f32, nan.data(), y, at, 1, 3, 1, 4, true, scratch.data(), one_thread()), Error);
}

// Long rows, of which most is never looked at closely, in orders that are good and bad for that.
template <class T>
void expect_top(ElementType type, const Box& b, int64_t k, bool largest, const std::vector<T>& x) {
  std::vector<double> scratch(index(topk_scratch_bytes(b.n, 2) / 8 + 1));
  std::vector<T> y(index(b.outer * k * b.inner));
  std::vector<int64_t> at(y.size());
  topk(type, x.data(), y.data(), at.data(), b.outer, b.n, b.inner, k, largest, scratch.data(),
       two_threads());
  for (int64_t r = 0; r < b.outer * b.inner; ++r) {
    const auto value = [&](int64_t j) {
      return x[index((r / b.inner * b.n + j) * b.inner + r % b.inner)];
    };
    const auto above = [](T p, T q) { return p > q || (p != p && q == q); };
    std::vector<int64_t> order(index(b.n));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t p, int64_t q) {
      return largest ? above(value(p), value(q)) : above(value(q), value(p));
    });
    for (int64_t j = 0; j < k; ++j) {
      const size_t place = index((r / b.inner * k + j) * b.inner + r % b.inner);
      ASSERT_EQ(at[place], order[index(j)]) << b.n << ' ' << k << ' ' << largest;
      ASSERT_EQ(
          std::memcmp(&y[place], &x[index((r / b.inner * b.n + at[place]) * b.inner + r % b.inner)],
                      sizeof(T)),
          0);
    }
  }
}

template <class T>
void expect_tops(ElementType type) {
  std::mt19937 random(7);
  for (const Box& b : {Box{1, 5000, 1}, Box{2, 1300, 3}, Box{3, 77, 35}}) {
    std::vector<T> x(index(b.count()));
    for (const int kind : {0, 1, 2, 3}) {
      for (size_t i = 0; i < x.size(); ++i) {
        const size_t many = x.size();
        x[i] = static_cast<T>(kind == 0   ? random() % 100000
                              : kind == 1 ? i
                              : kind == 2 ? many - i
                                          : random() % 3);
        if constexpr (std::is_signed_v<T>) x[i] -= static_cast<T>(kind == 3 ? 1 : 500);
        if constexpr (std::is_floating_point_v<T>) {
          if (x[i] == 0 && i % 2 == 0) x[i] = -x[i];
          if (random() % 500 == 0) x[i] = std::numeric_limits<T>::quiet_NaN();
        }
      }
      for (const int64_t k : test::sizes<int64_t>({1, 5, 8, 9, 32, 33, 60, 77})) {
        expect_top(type, b, k, true, x);
        expect_top(type, b, k, false, x);
      }
    }
  }
}

TEST(TopK, LongRowsOfEveryKind) {
  each_target([] {
    expect_tops<float>(f32);
    expect_tops<double>(ElementType::float64);
    expect_tops<int32_t>(ElementType::int32);
    expect_tops<int64_t>(ElementType::int64);
    expect_tops<uint64_t>(ElementType::uint64);
  });
  // Among none but what is no number the first are taken.
  const std::vector<float> none(100, NAN);
  expect_top(f32, {1, 100, 1}, 40, true, none);
  expect_top(f32, {1, 100, 1}, 3, false, none);
}

}  // namespace
}  // namespace sardonyx::kernels
