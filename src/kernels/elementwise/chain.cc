#include "kernels/elementwise/chain.h"

#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/chain.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/elementwise/float_ops-inl.h"
#include "kernels/simd/masked-inl.h"

#ifndef SARDONYX_KERNELS_ELEMENTWISE_CHAIN_CC_
#define SARDONYX_KERNELS_ELEMENTWISE_CHAIN_CC_
namespace sardonyx::kernels {

constexpr int32_t forms = 4;  // of a link of two values: its value is b, its operand is single
constexpr int32_t first_unary = 2;
constexpr int32_t first_binary = first_unary + static_cast<int32_t>(UnaryOp::count_);

constexpr int32_t code_of(UnaryOp op) { return first_unary + static_cast<int32_t>(op); }
constexpr int32_t code_of(BinaryOp op, bool value_is_b, bool single) {
  return first_binary + static_cast<int32_t>(op) * forms + 2 * value_is_b + single;
}

// The light operators.
// clang-format off
#define SARDONYX_LIGHT_UNARY(X)                                                                 \
  X(abs) X(neg) X(sqrt) X(reciprocal) X(floor) X(ceil) X(round) X(square) X(relu) X(leaky_relu) \
  X(clamp) X(hard_sigmoid) X(hard_swish) X(thresholded_relu)
#define SARDONYX_LIGHT_BINARY(X) X(add) X(sub) X(mul) X(div) X(min) X(max) X(prelu) X(gate)
// clang-format on

}  // namespace sardonyx::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {

using Tag = hn::ScalableTag<float>;
using Vec = hn::Vec<Tag>;

// As many vectors go along a chain together as registers hold beside their operands.
constexpr int max_vectors = HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON ? 8 : 4;

// Memory that a link reads or writes: whole vectors, or the first `count` elements of one.
struct Whole {
  HWY_INLINE Vec load(const float* at) const { return hn::LoadU(Tag(), at); }
  HWY_INLINE void store(Vec v, float* at) const { hn::StoreU(v, Tag(), at); }
};
struct First {
  hn::Mask<Tag> some;
  HWY_INLINE Vec load(const float* at) const { return masked::Load(some, Tag(), at); }
  HWY_INLINE void store(Vec v, float* at) const { masked::Store(v, some, Tag(), at); }
};

template <int vectors, class Access>
struct Values {
  Vec v[vectors];
  int64_t at;
  Access access;

  template <class T>
  HWY_INLINE T* place(T* memory, int i) const {
    return memory + at + i * static_cast<int64_t>(hn::Lanes(Tag()));
  }
  HWY_INLINE void load(const ChainLink& link) {
    for (int i = 0; i < vectors; ++i) {
      v[i] = link.single ? hn::Set(Tag(), *link.from) : access.load(place(link.from, i));
    }
  }
  HWY_INLINE void store(const ChainLink& link) const {
    for (int i = 0; i < vectors; ++i) access.store(v[i], place(link.to, i));
  }
  template <auto op>
  HWY_INLINE void unary(const ChainLink& link) {
    const Constants<float> c{link.alpha, link.beta};
    for (int i = 0; i < vectors; ++i) v[i] = op(Tag(), v[i], c);
  }
  template <auto op, bool value_is_b, bool single>
  HWY_INLINE void binary(const ChainLink& link) {
    const Vec one = single ? hn::Set(Tag(), *link.from) : hn::Zero(Tag());
    for (int i = 0; i < vectors; ++i) {
      const Vec other = single ? one : access.load(place(link.from, i));
      v[i] = value_is_b ? op(Tag(), other, v[i]) : op(Tag(), v[i], other);
    }
  }
};

#define SARDONYX_UNARY(name)                \
  case code_of(UnaryOp::name):              \
    values.template unary<name##_of>(link); \
    break;
#define SARDONYX_BINARY_FORM(name, value_is_b, single)           \
  case code_of(BinaryOp::name, value_is_b, single):              \
    values.template binary<name##_of, value_is_b, single>(link); \
    break;
#define SARDONYX_BINARY(name)              \
  SARDONYX_BINARY_FORM(name, false, false) \
  SARDONYX_BINARY_FORM(name, false, true)  \
  SARDONYX_BINARY_FORM(name, true, false)  \
  SARDONYX_BINARY_FORM(name, true, true)

template <int vectors, class Access>
HWY_INLINE void RunBlock(const ChainLink* links, int count, int64_t at, Access access) {
  Values<vectors, Access> values;
  values.at = at;
  values.access = access;
  values.load(links[0]);
  for (int k = 1; k < count; ++k) {
    const ChainLink& link = links[k];
    switch (link.code) {
      case static_cast<int32_t>(ChainLink::Kind::store):
        values.store(link);
        break;
        SARDONYX_LIGHT_UNARY(SARDONYX_UNARY)
        SARDONYX_LIGHT_BINARY(SARDONYX_BINARY)
      default: break;
    }
  }
}

void RunChain(const ChainLink* links, int count, int64_t n) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Tag()));
  int64_t at = 0;
  for (; at + max_vectors * lanes <= n; at += max_vectors * lanes) {
    RunBlock<max_vectors>(links, count, at, Whole());
  }
  for (; at + lanes <= n; at += lanes) RunBlock<1>(links, count, at, Whole());
  if (at < n) {
    RunBlock<1>(links, count, at, First{hn::FirstN(Tag(), static_cast<size_t>(n - at))});
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {
namespace {

#define SARDONYX_IS_UNARY(name) || op == UnaryOp::name
#define SARDONYX_IS_BINARY(name) || op == BinaryOp::name
bool is_light(UnaryOp op) { return false SARDONYX_LIGHT_UNARY(SARDONYX_IS_UNARY); }
bool is_light(BinaryOp op) { return false SARDONYX_LIGHT_BINARY(SARDONYX_IS_BINARY); }

}  // namespace

HWY_EXPORT(RunChain);

int32_t chain_code(const ChainLink& link) {
  switch (link.kind) {
    case ChainLink::Kind::load:
    case ChainLink::Kind::store: return static_cast<int32_t>(link.kind);
    case ChainLink::Kind::unary: return is_light(link.unary) ? code_of(link.unary) : -1;
    case ChainLink::Kind::binary: break;
  }
  return is_light(link.binary) ? code_of(link.binary, link.value_is_b, link.single) : -1;
}

void run_chain(const ChainLink* links, int count, int64_t n) {
  HWY_DYNAMIC_DISPATCH(RunChain)(links, count, n);
}

}  // namespace sardonyx::kernels
#endif
