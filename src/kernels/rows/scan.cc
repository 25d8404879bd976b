#include "kernels/rows/scan.h"

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "base/fail.h"
#include "kernels/rows/grain.h"
#include "kernels/rows/row_math.h"
#include "kernels/rows/values.h"

namespace sardonyx::kernels {
namespace {

constexpr int64_t block = 256;

// Columns [column, column + width) of one [n, inner] matrix beginning at element `base`.
template <class C>
void cumulate_columns(ScanOp op, ElementType type, const void* x, void* y, int64_t base, int64_t n,
                      int64_t inner, int64_t width, bool exclusive, bool reverse) {
  alignas(64) C total[block];
  std::fill_n(total, width, op == ScanOp::sum ? C{0} : C{1});
  for (int64_t i = 0; i < n; ++i) {
    const int64_t row = base + (reverse ? n - 1 - i : i) * inner;
    map_values<C>(type, x, y, row, width, [&](const C* v, C* to, int64_t at, int64_t some) {
      C* sum = total + at;
      for (int64_t j = 0; j < some; ++j) {
        const C next = op == ScanOp::sum ? plus(sum[j], v[j]) : times(sum[j], v[j]);
        to[j] = exclusive ? sum[j] : next;
        sum[j] = next;
      }
    });
  }
}

// One row of n elements side by side. In reverse the tiles come from the end.
template <class C>
void cumulate_row(ScanOp op, ElementType type, const void* x, void* y, int64_t base, int64_t n,
                  bool exclusive, bool reverse) {
  C total = op == ScanOp::sum ? C{0} : C{1};
  const auto step = [&](const C* v, C* to, int64_t j) {
    const C next = op == ScanOp::sum ? plus(total, v[j]) : times(total, v[j]);
    to[j] = exclusive ? total : next;
    total = next;
  };
  for (int64_t i = 0; i < n; i += value_tile) {
    const int64_t some = std::min(value_tile, n - i);
    const int64_t begin = base + (reverse ? n - i - some : i);
    map_values<C>(type, x, y, begin, some, [&](const C* v, C* to, int64_t, int64_t count) {
      if (reverse) {
        for (int64_t j = count; j-- > 0;) step(v, to, j);
      } else {
        for (int64_t j = 0; j < count; ++j) step(v, to, j);
      }
    });
  }
}

template <class C>
void cumulate_all(ScanOp op, ElementType type, const void* x, void* y, int64_t outer, int64_t n,
                  int64_t inner, bool exclusive, bool reverse, ThreadPool& pool) {
  if (inner == 1) {
    return for_rows_of(outer, 4 * n, pool, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        cumulate_row<C>(op, type, x, y, o * n, n, exclusive, reverse);
      }
    });
  }
  const int64_t blocks = (inner + block - 1) / block;
  for_rows_of(outer * blocks, 2 * n * std::min(inner, block), pool,
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const int64_t column = i % blocks * block;
                  cumulate_columns<C>(op, type, x, y, i / blocks * n * inner + column, n, inner,
                                      std::min(block, inner - column), exclusive, reverse);
                }
              });
}

template <class C>
struct Ranked {
  C value;
  int64_t position;
};

// NaN is above every number.
template <class C>
bool above(C a, C b) {
  if constexpr (std::is_floating_point_v<C>) {
    if (a != a) return b == b;
    if (b != b) return false;
  }
  return a > b;
}

// A few of many: they are kept in order, and blocks without a better one cost a comparison an
// element.
constexpr int64_t few = 32;
template <class C, bool largest>
class FewBest {
 public:
  explicit FewBest(int64_t k) : k_(k) {}

  void look_at(const C* x, int64_t at, int64_t n) {
    int64_t i = 0;
    for (; i < n && count_ < k_; ++i) insert({x[i], at + i});
    constexpr int64_t together = 16;
    for (; i + together <= n; i += together) {
      const C worst = best_[k_ - 1].value;
      int any = 0;
      for (int64_t j = 0; j < together; ++j) any |= may_be_better(x[i + j], worst);
      if (any == 0) continue;
      for (int64_t j = 0; j < together; ++j) offer({x[i + j], at + i + j});
    }
    for (; i < n; ++i) offer({x[i], at + i});
  }
  const Ranked<C>* begin() const { return best_; }

 private:
  // True for NaN on either side.
  static int may_be_better(C a, C b) { return largest ? !(a <= b) : !(a >= b); }
  static bool better(C a, C b) { return largest ? above(a, b) : above(b, a); }

  void offer(Ranked<C> one) {
    if (!better(one.value, best_[k_ - 1].value)) return;
    --count_;
    insert(one);
  }
  // Behind those that are as good: these stand further in front in the row.
  void insert(Ranked<C> one) {
    int64_t at = count_++;
    for (; at > 0 && better(one.value, best_[at - 1].value); --at) best_[at] = best_[at - 1];
    best_[at] = one;
  }

  int64_t k_, count_ = 0;
  Ranked<C> best_[few];
};

template <class C, bool largest>
void few_top(ElementType type, const void* x, void* y, int64_t* positions, int64_t base,
             int64_t out_base, int64_t n, int64_t k) {
  FewBest<C, largest> best(k);
  visit_values<C>(type, x, base, n,
                  [&](const C* v, int64_t at, int64_t some) { best.look_at(v, at, some); });
  for (int64_t i = 0; i < k; ++i) {
    put_value<C>(type, y, out_base + i, best.begin()[i].value);
    positions[out_base + i] = best.begin()[i].position;
  }
}

template <class C>
void top_of(ElementType type, const void* x, void* y, int64_t* positions, int64_t base,
            int64_t out_base, int64_t n, int64_t inner, int64_t k, bool largest,
            Ranked<C>* ranked) {
  if (inner == 1 && k <= few && k <= n / 4) {
    const auto find = largest ? few_top<C, true> : few_top<C, false>;
    return find(type, x, y, positions, base, out_base, n, k);
  }
  if (inner == 1) {
    visit_values<C>(type, x, base, n, [&](const C* v, int64_t at, int64_t some) {
      for (int64_t j = 0; j < some; ++j) ranked[at + j] = {v[j], at + j};
    });
  } else {
    for (int64_t i = 0; i < n; ++i) ranked[i] = {value_at<C>(type, x, base + i * inner), i};
  }
  const auto before = [largest](const Ranked<C>& a, const Ranked<C>& b) {
    if (largest ? above(a.value, b.value) : above(b.value, a.value)) return true;
    if (largest ? above(b.value, a.value) : above(a.value, b.value)) return false;
    return a.position < b.position;
  };
  if (k < n) std::nth_element(ranked, ranked + k, ranked + n, before);
  std::sort(ranked, ranked + k, before);
  for (int64_t i = 0; i < k; ++i) {
    put_value<C>(type, y, out_base + i * inner, ranked[i].value);
    positions[out_base + i * inner] = ranked[i].position;
  }
}

template <class C>
void topk_all(ElementType type, const void* x, void* y, int64_t* positions, int64_t outer,
              int64_t n, int64_t inner, int64_t k, bool largest, void* scratch, ThreadPool& pool) {
  const int64_t grain = std::max<int64_t>(1, row_grain / (8 * n));
  pool.parallel_for(outer * inner, grain, [&](int64_t begin, int64_t end, int worker) {
    auto* ranked = static_cast<Ranked<C>*>(scratch) + worker * n;
    for (int64_t r = begin; r < end; ++r) {
      const int64_t o = r / inner, i = r % inner;
      top_of<C>(type, x, y, positions, o * n * inner + i, o * k * inner + i, n, inner, k, largest,
                ranked);
    }
  });
}

template <class Call>
void by_value_type(const char* op, ElementType type, Call&& call) {
  if (is_floating(type) && bit_width(type) >= 8) {
    return type == ElementType::float64 ? call(double{}) : call(float{});
  }
  if (is_integer(type) && bit_width(type) >= 8) {
    return type == ElementType::uint64 ? call(uint64_t{}) : call(int64_t{});
  }
  fail(ErrorCode::unsupported, "{} does not take {}", op, name_of(type));
}

}  // namespace

void cumulate(ScanOp op, ElementType type, const void* x, void* y, int64_t outer, int64_t n,
              int64_t inner, bool exclusive, bool reverse, ThreadPool& pool) {
  by_value_type(op == ScanOp::sum ? "CumSum" : "CumProd", type, [&](auto zero) {
    cumulate_all<decltype(zero)>(op, type, x, y, outer, n, inner, exclusive, reverse, pool);
  });
}

int64_t topk_scratch_bytes(int64_t n, int threads) {
  int64_t bytes;
  if (__builtin_mul_overflow(n, threads * static_cast<int64_t>(sizeof(Ranked<int64_t>)), &bytes)) {
    fail(ErrorCode::out_of_memory, "TopK over {} elements needs too much memory", n);
  }
  return bytes;
}

void topk(ElementType type, const void* x, void* y, int64_t* positions, int64_t outer, int64_t n,
          int64_t inner, int64_t k, bool largest, void* scratch, ThreadPool& pool) {
  if (k < 0 || k > n) {
    fail(ErrorCode::run_failed, "TopK: k must be in [0, {}], the size of the axis; got {}", n, k);
  }
  if (k == 0 || outer == 0 || inner == 0) return;
  by_value_type("TopK", type, [&](auto zero) {
    topk_all<decltype(zero)>(type, x, y, positions, outer, n, inner, k, largest, scratch, pool);
  });
}

}  // namespace sardonyx::kernels
