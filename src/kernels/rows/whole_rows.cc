// Plain loops, compiled for each instruction set.
#include "kernels/rows/whole_rows.h"

#include <limits>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rows/whole_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {

template <ColumnOp op, class T>
HWY_INLINE T Joined(T a, T v) {
  using U = std::make_unsigned_t<T>;
  const auto to = static_cast<U>(a), with = static_cast<U>(v);
  switch (op) {
    case ColumnOp::sum: return static_cast<T>(to + with);
    case ColumnOp::sum_abs: return static_cast<T>(to + (v < T{} ? U{} - with : with));
    case ColumnOp::sum_squares: return static_cast<T>(to + with * with);
    case ColumnOp::product: return static_cast<T>(to * with);
    case ColumnOp::max: return a > v ? a : v;
    case ColumnOp::min: return a < v ? a : v;
  }
}

template <ColumnOp op, class T>
constexpr T Neutral() {
  switch (op) {
    case ColumnOp::product: return T{1};
    case ColumnOp::max: return std::numeric_limits<T>::lowest();
    case ColumnOp::min: return std::numeric_limits<T>::max();
    default: return T{};
  }
}

template <class T>
T FoldRow(ColumnOp op, const T* x, int64_t n) {
  const auto fold = [&](auto as) {
    constexpr ColumnOp kind = decltype(as)::value;
    T value = Neutral<kind, T>();
    for (int64_t i = 0; i < n; ++i) value = Joined<kind>(value, x[i]);
    return value;
  };
  using O = ColumnOp;
  switch (op) {
    case O::sum: return fold(std::integral_constant<O, O::sum>());
    case O::sum_abs: return fold(std::integral_constant<O, O::sum_abs>());
    case O::sum_squares: return fold(std::integral_constant<O, O::sum_squares>());
    case O::product: return fold(std::integral_constant<O, O::product>());
    case O::max: return fold(std::integral_constant<O, O::max>());
    default: return fold(std::integral_constant<O, O::min>());
  }
}

template <class T>
void StepColumns(ColumnOp op, const T* x, int64_t stride, int64_t rows, T* y, int64_t n) {
  const auto step = [&](auto as) {
    for (int64_t r = 0; r < rows; ++r) {
      const T* row = x + r * stride;
      for (int64_t i = 0; i < n; ++i) y[i] = Joined<decltype(as)::value>(y[i], row[i]);
    }
  };
  using O = ColumnOp;
  switch (op) {
    case O::sum: return step(std::integral_constant<O, O::sum>());
    case O::sum_abs: return step(std::integral_constant<O, O::sum_abs>());
    case O::sum_squares: return step(std::integral_constant<O, O::sum_squares>());
    case O::product: return step(std::integral_constant<O, O::product>());
    case O::max: return step(std::integral_constant<O, O::max>());
    default: return step(std::integral_constant<O, O::min>());
  }
}

int32_t FoldInts(ColumnOp op, const int32_t* x, int64_t n) { return FoldRow(op, x, n); }
int64_t FoldLongs(ColumnOp op, const int64_t* x, int64_t n) { return FoldRow(op, x, n); }
uint64_t FoldNaturals(ColumnOp op, const uint64_t* x, int64_t n) { return FoldRow(op, x, n); }
void StepInts(ColumnOp op, const int32_t* x, int64_t stride, int64_t rows, int32_t* y, int64_t n) {
  StepColumns(op, x, stride, rows, y, n);
}
void StepLongs(ColumnOp op, const int64_t* x, int64_t stride, int64_t rows, int64_t* y, int64_t n) {
  StepColumns(op, x, stride, rows, y, n);
}
void StepNaturals(ColumnOp op, const uint64_t* x, int64_t stride, int64_t rows, uint64_t* y,
                  int64_t n) {
  StepColumns(op, x, stride, rows, y, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(FoldInts);
HWY_EXPORT(FoldLongs);
HWY_EXPORT(FoldNaturals);
HWY_EXPORT(StepInts);
HWY_EXPORT(StepLongs);
HWY_EXPORT(StepNaturals);

int32_t fold_row(ColumnOp op, const int32_t* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(FoldInts)(op, x, n);
}
int64_t fold_row(ColumnOp op, const int64_t* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(FoldLongs)(op, x, n);
}
uint64_t fold_row(ColumnOp op, const uint64_t* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(FoldNaturals)(op, x, n);
}
void column_steps(ColumnOp op, const int32_t* x, int64_t stride, int64_t rows, int32_t* y,
                  int64_t n) {
  HWY_DYNAMIC_DISPATCH(StepInts)(op, x, stride, rows, y, n);
}
void column_steps(ColumnOp op, const int64_t* x, int64_t stride, int64_t rows, int64_t* y,
                  int64_t n) {
  HWY_DYNAMIC_DISPATCH(StepLongs)(op, x, stride, rows, y, n);
}
void column_steps(ColumnOp op, const uint64_t* x, int64_t stride, int64_t rows, uint64_t* y,
                  int64_t n) {
  HWY_DYNAMIC_DISPATCH(StepNaturals)(op, x, stride, rows, y, n);
}

}  // namespace sardonyx::kernels
#endif
