#include "kernels/elementwise/select.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/select.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
void Select(const uint8_t* condition, const T* a, const T* b, T* y, int64_t n) {
  const hn::ScalableTag<T> d;
  const hn::Rebind<uint8_t, decltype(d)> bytes;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto choose = [&](auto c, auto p, auto q) HWY_ATTR {
    if constexpr (sizeof(T) == 1)
      return hn::IfThenElse(hn::Ne(c, hn::Zero(d)), p, q);
    else
      return hn::IfThenElse(hn::Ne(hn::PromoteTo(d, c), hn::Zero(d)), p, q);
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v =
        choose(hn::LoadU(bytes, condition + i), hn::LoadU(d, a + i), hn::LoadU(d, b + i));
    hn::StoreU(v, d, y + i);
  }
  for (; i < n; ++i) y[i] = condition[i] != 0 ? a[i] : b[i];
}

void Select8(const uint8_t* condition, const uint8_t* a, const uint8_t* b, uint8_t* y, int64_t n) {
  Select(condition, a, b, y, n);
}
void Select16(const uint8_t* condition, const uint16_t* a, const uint16_t* b, uint16_t* y,
              int64_t n) {
  Select(condition, a, b, y, n);
}
void Select32(const uint8_t* condition, const uint32_t* a, const uint32_t* b, uint32_t* y,
              int64_t n) {
  Select(condition, a, b, y, n);
}
void Select64(const uint8_t* condition, const uint64_t* a, const uint64_t* b, uint64_t* y,
              int64_t n) {
#if HWY_TARGET == HWY_SCALAR
  for (int64_t i = 0; i < n; ++i) y[i] = condition[i] != 0 ? a[i] : b[i];
#else
  // Bytes are made words of 64 bits by way of 32.
  const hn::ScalableTag<uint64_t> d;
  const hn::Rebind<uint8_t, decltype(d)> bytes;
  const hn::Rebind<uint32_t, decltype(d)> words;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto c = hn::PromoteTo(d, hn::PromoteTo(words, hn::LoadU(bytes, condition + i)));
    const auto v = hn::IfThenElse(hn::Ne(c, hn::Zero(d)), hn::LoadU(d, a + i), hn::LoadU(d, b + i));
    hn::StoreU(v, d, y + i);
  }
  for (; i < n; ++i) y[i] = condition[i] != 0 ? a[i] : b[i];
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(Select8);
HWY_EXPORT(Select16);
HWY_EXPORT(Select32);
HWY_EXPORT(Select64);

void select(const uint8_t* condition, const uint8_t* a, const uint8_t* b, uint8_t* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(Select8)(condition, a, b, y, n);
}
void select(const uint8_t* condition, const uint16_t* a, const uint16_t* b, uint16_t* y,
            int64_t n) {
  HWY_DYNAMIC_DISPATCH(Select16)(condition, a, b, y, n);
}
void select(const uint8_t* condition, const uint32_t* a, const uint32_t* b, uint32_t* y,
            int64_t n) {
  HWY_DYNAMIC_DISPATCH(Select32)(condition, a, b, y, n);
}
void select(const uint8_t* condition, const uint64_t* a, const uint64_t* b, uint64_t* y,
            int64_t n) {
  HWY_DYNAMIC_DISPATCH(Select64)(condition, a, b, y, n);
}

}  // namespace sardonyx::kernels
#endif
