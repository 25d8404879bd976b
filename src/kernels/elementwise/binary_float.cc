// The float32 forms of the arithmetic operators that have a vector form.
#include <cstdint>

#include "kernels/elementwise/float_tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/binary_float.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/elementwise/float_ops-inl.h"
#include "kernels/elementwise/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <auto op>
void BothSides(const float* a, const float* b, float* y, int64_t n) {
  MapRows(a, b, y, n, op);
}
template <auto op>
void ScalarA(const float* a, const float* b, float* y, int64_t n) {
  const float value = *a;
  MapRow(b, y, n, [&](auto d, auto v) HWY_ATTR { return op(d, hn::Set(d, value), v); });
}
template <auto op>
void ScalarB(const float* a, const float* b, float* y, int64_t n) {
  const float value = *b;
  MapRow(a, y, n, [&](auto d, auto v) HWY_ATTR { return op(d, v, hn::Set(d, value)); });
}

template <auto op>
BinaryTile Choose(Sides sides) {
  switch (sides) {
    case Sides::scalar_a: return ScalarA<op>;
    case Sides::scalar_b: return ScalarB<op>;
    default: return BothSides<op>;
  }
}

BinaryTile FindBinary(BinaryOp op, Sides sides) {
  switch (op) {
    case BinaryOp::add: return Choose<add_of>(sides);
    case BinaryOp::sub: return Choose<sub_of>(sides);
    case BinaryOp::mul: return Choose<mul_of>(sides);
    case BinaryOp::div: return Choose<div_of>(sides);
    case BinaryOp::min: return Choose<min_of>(sides);
    case BinaryOp::max: return Choose<max_of>(sides);
    case BinaryOp::prelu: return Choose<prelu_of>(sides);
    case BinaryOp::gate: return Choose<gate_of>(sides);
    default: return nullptr;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(FindBinary);

BinaryTile vector_binary(BinaryOp op, Sides sides) {
  return HWY_DYNAMIC_DISPATCH(FindBinary)(op, sides);
}

}  // namespace sardonyx::kernels
#endif
