#include "kernels/elementwise/optimizer.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/optimizer.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/masked-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// What the rules make of vectors: `x` becomes the new parameter, `v` and `h` the new averages.

template <class D, class V>
HWY_INLINE void Apply(D d, const MomentumRule& rule, V& x, V gradient, V& v, V& /*h*/) {
  using T = hn::TFromD<D>;
  const V alpha = hn::Set(d, static_cast<T>(rule.alpha));
  const V g = hn::MulAdd(hn::Set(d, static_cast<T>(rule.norm)), x, gradient);
  v = hn::MulAdd(alpha, v, hn::Mul(hn::Set(d, static_cast<T>(rule.beta)), g));
  const V direction = rule.nesterov ? hn::MulAdd(alpha, v, g) : v;
  x = hn::NegMulAdd(hn::Set(d, static_cast<T>(rule.rate)), direction, x);
}

template <class D, class V>
HWY_INLINE void Apply(D d, const AdagradRule& rule, V& x, V gradient, V& /*v*/, V& h) {
  using T = hn::TFromD<D>;
  const V g = hn::MulAdd(hn::Set(d, static_cast<T>(rule.norm)), x, gradient);
  h = hn::MulAdd(g, g, h);
  const V scale = hn::Add(hn::Sqrt(h), hn::Set(d, static_cast<T>(rule.epsilon)));
  x = hn::Sub(x, hn::Div(hn::Mul(hn::Set(d, static_cast<T>(rule.rate)), g), scale));
}

template <class D, class V>
HWY_INLINE void Apply(D d, const AdamRule& rule, V& x, V gradient, V& v, V& h) {
  using T = hn::TFromD<D>;
  const V g = hn::MulAdd(hn::Set(d, static_cast<T>(rule.norm)), x, gradient);
  v = hn::MulAdd(hn::Set(d, static_cast<T>(rule.alpha)), v,
                 hn::Mul(hn::Set(d, static_cast<T>(1 - rule.alpha)), g));
  h = hn::MulAdd(hn::Set(d, static_cast<T>(rule.beta)), h,
                 hn::Mul(hn::Set(d, static_cast<T>(1 - rule.beta)), hn::Mul(g, g)));
  const V scale = hn::Add(hn::Sqrt(h), hn::Set(d, static_cast<T>(rule.epsilon)));
  const V moved = hn::NegMulAdd(hn::Set(d, static_cast<T>(rule.rate)), hn::Div(v, scale), x);
  x = hn::Mul(hn::Set(d, static_cast<T>(1 - rule.norm_post)), moved);
}

template <class D, class V>
HWY_INLINE void Apply(D d, const AdamWRule& rule, V& x, V gradient, V& v, V& h) {
  using T = hn::TFromD<D>;
  const auto number = [&](double value) HWY_ATTR { return hn::Set(d, static_cast<T>(value)); };
  v = hn::MulAdd(number(rule.alpha), v, hn::Mul(number(rule.alpha_rest), gradient));
  h = hn::MulAdd(number(rule.beta), h,
                 hn::Mul(number(rule.beta_rest), hn::Mul(gradient, gradient)));
  const V below = hn::MulAdd(hn::Sqrt(h), number(1 / rule.spread), number(rule.epsilon));
  const V direction = hn::Div(hn::Mul(v, number(1 / rule.share)), below);
  x = hn::NegMulAdd(number(rule.rate), hn::MulAdd(number(rule.decay), x, direction), x);
}

// All pointers are set that the rule reads and writes. The last vector is a part of one, so that an
// element comes out the same wherever a thread's share ends.
template <class Rule, class T>
void Optimize(const Rule& rule, const OptimizerData<T>& data, int64_t n) {
  constexpr bool has_v = !std::is_same_v<Rule, AdagradRule>;
  constexpr bool has_h = !std::is_same_v<Rule, MomentumRule>;
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    auto x = hn::LoadU(d, data.x + i), v = hn::Zero(d), h = hn::Zero(d);
    if constexpr (has_v) v = hn::LoadU(d, data.v + i);
    if constexpr (has_h) h = hn::LoadU(d, data.h + i);
    Apply(d, rule, x, hn::LoadU(d, data.g + i), v, h);
    hn::StoreU(x, d, data.new_x + i);
    if constexpr (has_v) hn::StoreU(v, d, data.new_v + i);
    if constexpr (has_h) hn::StoreU(h, d, data.new_h + i);
  }
  if (i == n) return;
  const auto some = hn::FirstN(d, static_cast<size_t>(n - i));
  auto x = masked::Load(some, d, data.x + i), v = hn::Zero(d), h = hn::Zero(d);
  if constexpr (has_v) v = masked::Load(some, d, data.v + i);
  if constexpr (has_h) h = masked::Load(some, d, data.h + i);
  Apply(d, rule, x, masked::Load(some, d, data.g + i), v, h);
  masked::Store(x, some, d, data.new_x + i);
  if constexpr (has_v) masked::Store(v, some, d, data.new_v + i);
  if constexpr (has_h) masked::Store(h, some, d, data.new_h + i);
}

void OptimizeFloat(const OptimizerRule& rule, const OptimizerData<float>& data, int64_t n) {
  std::visit([&](const auto& one) HWY_ATTR { Optimize(one, data, n); }, rule);
}
void OptimizeDouble(const OptimizerRule& rule, const OptimizerData<double>& data, int64_t n) {
  std::visit([&](const auto& one) HWY_ATTR { Optimize(one, data, n); }, rule);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {
namespace {

HWY_EXPORT(OptimizeFloat);
HWY_EXPORT(OptimizeDouble);

constexpr int64_t grain = 1 << 14;
constexpr int64_t block = 1 << 10;

template <class T>
T* moved(T* data, int64_t i) {
  return data != nullptr ? data + i : nullptr;
}

// Block by block; what is not wanted of a result goes to a block that is left.
template <class T, class Kernel>
void by_blocks(const OptimizerData<T>& data, int64_t n, ThreadPool& pool, Kernel kernel) {
  pool.parallel_for(n, grain, [&](int64_t begin, int64_t end, int) {
    T unwanted[block];
    const auto wanted = [&](T* to, int64_t i) { return to != nullptr ? to + i : unwanted; };
    for (int64_t i = begin; i < end; i += block) {
      OptimizerData<T> part;
      part.x = data.x + i, part.g = data.g + i;
      part.v = moved(data.v, i), part.h = moved(data.h, i);
      part.new_x = wanted(data.new_x, i);
      part.new_v = wanted(data.new_v, i), part.new_h = wanted(data.new_h, i);
      kernel(part, std::min(block, end - i));
    }
  });
}

}  // namespace

void optimize(const OptimizerRule& rule, const OptimizerData<float>& data, int64_t n,
              ThreadPool& pool) {
  by_blocks(data, n, pool, [&](const auto& part, int64_t count) {
    HWY_DYNAMIC_DISPATCH(OptimizeFloat)(rule, part, count);
  });
}
void optimize(const OptimizerRule& rule, const OptimizerData<double>& data, int64_t n,
              ThreadPool& pool) {
  by_blocks(data, n, pool, [&](const auto& part, int64_t count) {
    HWY_DYNAMIC_DISPATCH(OptimizeDouble)(rule, part, count);
  });
}

}  // namespace sardonyx::kernels
#endif
