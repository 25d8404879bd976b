#include "kernels/rows/column_scan.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rows/column_scan.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/masked-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// `vectors` vectors of columns, whose totals stay in registers meanwhile; only the lanes of `some`
// where it is not whole.
template <ScanOp op, bool exclusive, bool whole, int vectors, class T>
HWY_INLINE void ScanVectors(const ColumnScan<T>& s, int64_t column, size_t some) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto mask = hn::FirstN(d, some);
  const auto load = [&](const T* from) HWY_ATTR {
    return whole ? hn::LoadU(d, from) : masked::Load(mask, d, from);
  };
  const auto store = [&](auto v, T* to) HWY_ATTR {
    if constexpr (whole)
      hn::StoreU(v, d, to);
    else
      masked::Store(v, mask, d, to);
  };
  hn::Vec<decltype(d)> total[vectors];
#pragma GCC unroll 16
  for (int v = 0; v < vectors; ++v) total[v] = load(s.totals + column + v * lanes);
  const T* x = s.x + column;
  T* y = s.y + column;
  for (int64_t row = 0; row < s.rows; ++row, x += s.stride, y += s.stride) {
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) {
      const auto next = op == ScanOp::sum ? hn::Add(total[v], load(x + v * lanes))
                                          : hn::Mul(total[v], load(x + v * lanes));
      store(exclusive ? total[v] : next, y + v * lanes);
      total[v] = next;
    }
  }
#pragma GCC unroll 16
  for (int v = 0; v < vectors; ++v) store(total[v], s.totals + column + v * lanes);
}

template <ScanOp op, bool exclusive, class T>
void Scan(const ColumnScan<T>& s) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  constexpr int most = HWY_TARGET == HWY_AVX3 ? 16 : 8;  // what registers have room for
  int64_t i = 0;
  for (; i + most * lanes <= s.n; i += most * lanes)
    ScanVectors<op, exclusive, true, most>(s, i, 0);
  for (; i + 4 * lanes <= s.n; i += 4 * lanes) ScanVectors<op, exclusive, true, 4>(s, i, 0);
  for (; i + lanes <= s.n; i += lanes) ScanVectors<op, exclusive, true, 1>(s, i, 0);
  if (i < s.n) ScanVectors<op, exclusive, false, 1>(s, i, static_cast<size_t>(s.n - i));
}

template <class T>
void ScanAny(const ColumnScan<T>& s) {
  if (s.op == ScanOp::sum)
    return s.exclusive ? Scan<ScanOp::sum, true>(s) : Scan<ScanOp::sum, false>(s);
  return s.exclusive ? Scan<ScanOp::product, true>(s) : Scan<ScanOp::product, false>(s);
}
void ScanFloats(const ColumnScan<float>& s) { ScanAny(s); }
void ScanDoubles(const ColumnScan<double>& s) { ScanAny(s); }
void ScanIntegers(const ColumnScan<int64_t>& s) { ScanAny(s); }
void ScanNaturals(const ColumnScan<uint64_t>& s) { ScanAny(s); }

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(ScanFloats);
HWY_EXPORT(ScanDoubles);
HWY_EXPORT(ScanIntegers);
HWY_EXPORT(ScanNaturals);

void scan_columns(const ColumnScan<float>& s) { HWY_DYNAMIC_DISPATCH(ScanFloats)(s); }
void scan_columns(const ColumnScan<double>& s) { HWY_DYNAMIC_DISPATCH(ScanDoubles)(s); }
void scan_columns(const ColumnScan<int64_t>& s) { HWY_DYNAMIC_DISPATCH(ScanIntegers)(s); }
void scan_columns(const ColumnScan<uint64_t>& s) { HWY_DYNAMIC_DISPATCH(ScanNaturals)(s); }

}  // namespace sardonyx::kernels
#endif
