#include "kernels/rows/scale_shift.h"

#include <algorithm>

#include "kernels/rows/grain.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rows/scale_shift.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/gemm/epilogue-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <Activation activation>
void Pixels(const float* x, const float* factor, const float* term, float* y, int64_t pixels,
            int64_t channels, const Epilogue& e) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < pixels; ++i, x += channels, y += channels) {
    int64_t c = 0;
    for (; c + lanes <= channels; c += lanes) {
      const auto v =
          hn::MulAdd(hn::LoadU(d, x + c), hn::LoadU(d, factor + c), hn::LoadU(d, term + c));
      hn::StoreU(Activate<activation>(d, v, e), d, y + c);
    }
    if (c == channels) continue;
    const auto left = static_cast<size_t>(channels - c);
    const auto v = hn::MulAdd(LoadFirst(d, x + c, left), LoadFirst(d, factor + c, left),
                              LoadFirst(d, term + c, left));
    StoreFirst(d, Activate<activation>(d, v, e), y + c, left);
  }
}

void ScaleShift(const float* x, const float* factor, const float* term, float* y, int64_t pixels,
                int64_t channels, const Epilogue& e) {
  WithActivation(e.activation, [&](auto a) HWY_ATTR {
    Pixels<decltype(a)::value>(x, factor, term, y, pixels, channels, e);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(ScaleShift);

void scale_shift(const float* x, const float* factor, const float* term, float* y, int64_t pixels,
                 int64_t channels, const Epilogue& activation, ThreadPool& pool) {
  for_rows_of(pixels, channels, pool, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(ScaleShift)
    (x + begin * channels, factor, term, y + begin * channels, end - begin, channels, activation);
  });
}

}  // namespace sardonyx::kernels
#endif
