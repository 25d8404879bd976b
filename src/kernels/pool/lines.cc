#include "kernels/pool/lines.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pool/lines.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr auto total = [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); };
// NaN wins.
constexpr auto largest = [](auto a, auto b) HWY_ATTR {
  return hn::IfThenElse(hn::Or(hn::IsNaN(b), hn::Gt(b, a)), b, a);
};

// body(place, mask) for vectors of n elements; the mask of all but the last is full.
template <class D, class Body>
HWY_INLINE void Vectors(D d, int64_t n, const Body& body) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  const auto all = hn::FirstN(d, hn::Lanes(d));
  for (; i + lanes <= n; i += lanes) body(i, all);
  if (i < n) body(i, hn::FirstN(d, static_cast<size_t>(n - i)));
}

template <class Op>
HWY_INLINE void JoinDown(const Op& op, const float* plane, int64_t in, int64_t step,
                         const PoolColumn* columns, int64_t rows, float* lines, int64_t pitch) {
  const hn::ScalableTag<float> d;
  for (int64_t r = 0; r < rows; ++r, lines += pitch) {
    const int64_t count = columns[r].count;
    if (count == 0) continue;
    const float* from = plane + columns[r].first;
    Vectors(d, in, [&](int64_t i, auto mask) HWY_ATTR {
      auto v = hn::MaskedLoad(mask, d, from + i);
      for (int64_t j = 1; j < count; ++j) v = op(v, hn::MaskedLoad(mask, d, from + i + j * step));
      hn::BlendedStore(v, mask, d, lines + i);
    });
  }
}

void PoolColumns(PoolKind kind, const float* plane, int64_t in, int64_t step,
                 const PoolColumn* columns, int64_t rows, float* lines, int64_t pitch) {
  if (kind == PoolKind::max)
    JoinDown(largest, plane, in, step, columns, rows, lines, pitch);
  else
    JoinDown(total, plane, in, step, columns, rows, lines, pitch);
}

// What is joined lies behind what is written.
template <class Op>
HWY_INLINE void JoinAlong(const Op& op, float* lines, int64_t n, int64_t kernel, int64_t dilation) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes) {
    auto v = hn::LoadU(d, lines + i);
    for (int64_t j = 1; j < kernel; ++j) v = op(v, hn::LoadU(d, lines + i + j * dilation));
    hn::StoreU(v, d, lines + i);
  }
}

void PoolLines(PoolKind kind, float* lines, int64_t rows, int64_t pitch, int64_t kernel,
               int64_t dilation, int64_t stride, int64_t out, const float* rows_inside,
               const float* columns_inside, float* y) {
  const hn::ScalableTag<float> d;
  const int64_t n = rows * pitch - (kernel - 1) * dilation;
  if (kind == PoolKind::max)
    JoinAlong(largest, lines, n, kernel, dilation);
  else
    JoinAlong(total, lines, n, kernel, dilation);
  for (int64_t r = 0; r < rows; ++r, lines += pitch, y += out) {
    if (stride == 1) {
      Vectors(d, out, [&](int64_t k, auto mask) HWY_ATTR {
        hn::BlendedStore(hn::LoadU(d, lines + k), mask, d, y + k);
      });
#if HWY_TARGET != HWY_SCALAR
    } else if (stride == 2) {
      const auto lanes = static_cast<int64_t>(hn::Lanes(d));
      Vectors(d, out, [&](int64_t k, auto mask) HWY_ATTR {
        const float* from = lines + 2 * k;
        const auto v = hn::ConcatEven(d, hn::LoadU(d, from + lanes), hn::LoadU(d, from));
        hn::BlendedStore(v, mask, d, y + k);
      });
#endif
    } else {
      for (int64_t k = 0; k < out; ++k) y[k] = lines[k * stride];
    }
    if (kind == PoolKind::max) continue;
    const auto inside = hn::Set(d, rows_inside[r]);
    Vectors(d, out, [&](int64_t k, auto mask) HWY_ATTR {
      const auto count = hn::Mul(inside, hn::LoadU(d, columns_inside + k));
      hn::BlendedStore(hn::Div(hn::MaskedLoad(mask, d, y + k), count), mask, d, y + k);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(PoolColumns);
HWY_EXPORT(PoolLines);

void pool_columns(PoolKind kind, const float* plane, int64_t in, int64_t step,
                  const PoolColumn* columns, int64_t rows, float* lines, int64_t pitch) {
  HWY_DYNAMIC_DISPATCH(PoolColumns)(kind, plane, in, step, columns, rows, lines, pitch);
}

void pool_lines(PoolKind kind, float* lines, int64_t rows, int64_t pitch, int64_t kernel,
                int64_t dilation, int64_t stride, int64_t out, const float* rows_inside,
                const float* columns_inside, float* y) {
  HWY_DYNAMIC_DISPATCH(PoolLines)
  (kind, lines, rows, pitch, kernel, dilation, stride, out, rows_inside, columns_inside, y);
}

}  // namespace sardonyx::kernels
#endif
