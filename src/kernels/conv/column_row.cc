#include "kernels/conv/column_row.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/column_row.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/masked-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;

HWY_INLINE hn::Mask<Floats> FirstLanes(int64_t n) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  return hn::FirstN(d, static_cast<size_t>(HWY_MAX(int64_t{0}, HWY_MIN(n, lanes))));
}

// A vector of a phase, from its element i on.
HWY_INLINE hn::Vec<Floats> PhaseAt(const ColumnRow& job, int64_t phase, int64_t i) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t first = phase == 0 ? 0 : job.ends[phase - 1], last = job.ends[phase];
  auto sum = hn::Set(d, job.bias);
  for (int64_t l = 0; l < job.line_count; ++l) {
    for (int64_t t = first; t < last; ++t) {
      const ColumnTap& tap = job.taps[t];
      const int64_t begin = tap.to - i, end = begin + tap.n;  // lanes
      const float* from = job.lines[l] + tap.from - begin;
      if (begin <= 0 && end >= lanes) {
        sum = hn::Add(sum, hn::LoadU(d, from));
      } else if (begin < lanes && end > 0) {
        const auto some = hn::AndNot(FirstLanes(begin), FirstLanes(end));
        sum = hn::Add(sum, masked::Load(some, d, from));
      }
    }
  }
  return sum;
}

HWY_INLINE void StoreSome(hn::Vec<Floats> v, int64_t n, float* to) {
  const Floats d;
  if (n >= static_cast<int64_t>(hn::Lanes(d)))
    hn::StoreU(v, d, to);
  else
    masked::Store(v, FirstLanes(n), d, to);
}

void SumColumns(const ColumnRow& job, float* row) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t length = (job.floats + job.stride - 1) / job.stride;
  if (job.stride == 1) {
    for (int64_t i = 0; i < length; i += lanes) StoreSome(PhaseAt(job, 0, i), length - i, row + i);
  } else if (job.stride == 2) {
    for (int64_t i = 0; i < length; i += lanes) {
      const auto even = PhaseAt(job, 0, i), odd = PhaseAt(job, 1, i);
      if (2 * (i + lanes) <= job.floats) {
        hn::StoreInterleaved2(even, odd, d, row + 2 * i);
        continue;
      }
      HWY_ALIGN float last[2 * hn::MaxLanes(d)];
      hn::StoreInterleaved2(even, odd, d, last);
      for (int64_t k = 2 * i; k < job.floats; ++k) row[k] = last[k - 2 * i];
    }
  } else {
    for (int64_t p = 0; p < job.stride; ++p, row += length)
      for (int64_t i = 0; i < length; i += lanes) hn::StoreU(PhaseAt(job, p, i), d, row + i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(SumColumns);
void sum_columns(const ColumnRow& job, float* row) { HWY_DYNAMIC_DISPATCH(SumColumns)(job, row); }

}  // namespace sardonyx::kernels
#endif
