// Operators of two inputs, element by element, with broadcasting; and Where.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/elementwise/broadcast.h"
#include "kernels/move/cell.h"
#include "sardonyx/element_type.h"

namespace sardonyx::kernels {

enum class BinaryOp : int32_t {
  add,
  sub,
  mul,
  div,  // integers: towards zero; x / 0 is 0 and the least / -1 wraps to itself
  pow,  // same type on both sides; see pow() for mixed ones
  min,
  max,    // NaN on either side gives NaN
  mod,    // sign of the divisor, as Python's %; integers: x mod 0 is 0
  fmod,   // sign of the dividend, as C's fmod
  prelu,  // a below 0: a b, else a
  gate,   // a above 0: b, else 0; what the derivative of relu does; floats only
  bit_and,
  bit_or,
  bit_xor,
  shift_left,
  shift_right,  // from the width on all bits are shifted out; right: the sign moves in
  logical_and,
  logical_or,
  logical_xor,  // boolean
  equal,
  less,
  greater,
  less_equal,
  greater_equal,  // boolean output
  count_
};

bool supports(BinaryOp op, ElementType type);
// True for operators that write booleans whatever the inputs are.
bool gives_boolean(BinaryOp op);

// y = op(a, b), `plan` made from (output, {a, b}); `type` is that of both inputs. y may be an input
// that has the output's shape and element size. float16, bfloat16 are computed in float32. `equal`
// also compares std::string elements. Throws Error (unsupported) where !supports(op, type).
void binary(BinaryOp op, ElementType type, const BroadcastPlan& plan, const void* a, const void* b,
            void* y, ThreadPool& pool);

// y = a ^ b where y has a's type: floats, int32, int64 on the left (and the other integers),
// any number type on the right.
void pow(ElementType base_type, ElementType exponent_type, const BroadcastPlan& plan, const void* a,
         const void* b, void* y, ThreadPool& pool);

// y = condition ? a : b, `plan` made from (output, {condition, a, b}); condition is one byte an
// element. Every element type that has a Cell.
void where(Cell cell, const BroadcastPlan& plan, const bool* condition, const void* a,
           const void* b, void* y, ThreadPool& pool);

// The float32 form of arithmetic operators (add to gate) alone, on the calling thread: both sides
// rows of n, or one side a single value. y may be an input. Null for the other operators.
enum class Sides : int32_t { both, scalar_a, scalar_b };
using BinaryTile = void (*)(const float* a, const float* b, float* y, int64_t n);
BinaryTile binary_tile(BinaryOp op, Sides sides);

// Dense rows of one operator on the calling thread: what binary() does without broadcasting.
class BinaryRow {
 public:
  // Throws Error (unsupported) where !supports(op, type).
  BinaryRow(BinaryOp op, ElementType type);

  // y = op(a, b), n elements each; y may be an input that has its element size.
  void operator()(const void* a, const void* b, void* y, int64_t n) const;

 private:
  using Plain = void (*)(const void* a, const void* b, void* y, int64_t n, int64_t sa, int64_t sb);
  ElementType type_;
  bool gives_boolean_;
  Plain plain_ = nullptr;
  BinaryTile floats_ = nullptr;  // null where the operator has no such form
};

}  // namespace sardonyx::kernels
