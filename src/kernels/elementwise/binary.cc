#include "kernels/elementwise/binary.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/fail.h"
#include "kernels/convert/cast.h"
#include "kernels/elementwise/binary_plain.h"
#include "kernels/elementwise/expanded.h"
#include "kernels/elementwise/float_tiles.h"
#include "kernels/elementwise/select.h"
#include "kernels/elementwise/walk.h"
#include "kernels/move/by_cell.h"

namespace sardonyx::kernels {

namespace {

bool is_half(ElementType type) {
  return type == ElementType::float16 || type == ElementType::bfloat16;
}

PlainRow text_row(BinaryOp op) {
  if (op != BinaryOp::equal) return nullptr;
  return [](const void* a, const void* b, void* y, int64_t n, int64_t sa, int64_t sb) {
    const auto* x0 = static_cast<const std::string*>(a);
    const auto* x1 = static_cast<const std::string*>(b);
    for (int64_t i = 0; i < n; ++i) static_cast<uint8_t*>(y)[i] = x0[i * sa] == x1[i * sb];
  };
}

void double_power_row(const void* a, const void* b, void* y, int64_t n, int64_t sa, int64_t sb);

PlainRow plain_row_of(BinaryOp op, ElementType type) {
  switch (type) {
    case ElementType::float32: return plain_binary<float>(op);
    case ElementType::float64:
      return op == BinaryOp::pow ? double_power_row : plain_binary<double>(op);
    case ElementType::int8: return plain_binary<int8_t>(op);
    case ElementType::int16: return plain_binary<int16_t>(op);
    case ElementType::int32: return plain_binary<int32_t>(op);
    case ElementType::int64: return plain_binary<int64_t>(op);
    case ElementType::uint8: return plain_binary<uint8_t>(op);
    case ElementType::uint16: return plain_binary<uint16_t>(op);
    case ElementType::uint32: return plain_binary<uint32_t>(op);
    case ElementType::uint64: return plain_binary<uint64_t>(op);
    case ElementType::boolean: return boolean_row(op);
    case ElementType::string: return text_row(op);
    default: return nullptr;
  }
}

int64_t width_of(ElementType type) {
  return type == ElementType::string ? static_cast<int64_t>(sizeof(std::string))
                                     : bit_width(type) / 8;
}

void squares(const float* a, float* y, int64_t n) { unary_tile(UnaryOp::square)(a, y, n, {}); }
void squares(const double* a, double* y, int64_t n) { double_unary(UnaryOp::square)(a, y, n, {}); }

// The scalar powers that networks use, without the general function.
template <class T>
bool simple_power(T exponent, const T* a, T* y, int64_t n) {
  if (exponent == T{1}) {
    std::copy_n(a, n, y);
  } else if (exponent == T{2}) {
    squares(a, y, n);
  } else if (exponent == T{3}) {
    for (int64_t i = 0; i < n; ++i) y[i] = a[i] * a[i] * a[i];
  } else {
    return false;
  }
  return true;
}

// Rows of doubles to a scalar power.
void double_power_row(const void* a, const void* b, void* y, int64_t n, int64_t sa, int64_t sb) {
  const auto* x = static_cast<const double*>(a);
  if (sa == 1 && sb == 0 &&
      simple_power(*static_cast<const double*>(b), x, static_cast<double*>(y), n))
    return;
  plain_binary<double>(BinaryOp::pow)(a, b, y, n, sa, sb);
}

void power_scalar_b(const float* a, const float* b, float* y, int64_t n) {
  const float exponent = *b;
  if (simple_power(exponent, a, y, n)) return;
  for (int64_t i = 0; i < n; ++i) y[i] = std::pow(a[i], exponent);
}

template <BinaryOp op>
BinaryTile plain_tile(Sides sides) {
  switch (sides) {
    case Sides::scalar_a:
      return [](const float* a, const float* b, float* y, int64_t n) {
        plain_binary<float>(op)(a, b, y, n, 0, 1);
      };
    case Sides::scalar_b:
      return [](const float* a, const float* b, float* y, int64_t n) {
        plain_binary<float>(op)(a, b, y, n, 1, 0);
      };
    default:
      return [](const float* a, const float* b, float* y, int64_t n) {
        plain_binary<float>(op)(a, b, y, n, 1, 1);
      };
  }
}

void run_float(BinaryOp op, const BroadcastPlan& plan, const float* a, const float* b, float* y,
               ThreadPool& pool) {
  if (const BinaryTile dense = vector_binary(op, Sides::both); dense && has_short_rows(plan)) {
    return for_expanded(plan, {Repeating{a, sizeof(float)}, Repeating{b, sizeof(float)}}, pool,
                        [&](const void* const* x, int64_t to, int64_t n) {
                          dense(static_cast<const float*>(x[0]), static_cast<const float*>(x[1]),
                                y + to, n);
                        });
  }
  const int64_t sa = row_stride(plan, 0);
  const int64_t sb = row_stride(plan, 1);
  // Where neither side moves along the rows, each output row repeats one value; rows that long
  // only come from an output wider than both inputs.
  const Sides sides = sa == 0 ? Sides::scalar_a : sb == 0 ? Sides::scalar_b : Sides::both;
  const BinaryTile f = binary_tile(op, sides);
  const BinaryTile one = binary_tile(op, Sides::both);
  walk_all(plan, pool, [&](const int64_t* at, int64_t to, int64_t n) {
    if (sa == 0 && sb == 0) {
      one(a + at[0], b + at[1], y + to, 1);
      std::fill_n(y + to + 1, n - 1, y[to]);
    } else {
      f(a + at[0], b + at[1], y + to, n);
    }
  });
}

// Whether the loops of an operator know a row and one number.
bool takes_single(BinaryOp op, ElementType type) {
  if (type == ElementType::boolean) return true;
  switch (op) {
    case BinaryOp::add:
    case BinaryOp::sub:
    case BinaryOp::mul:
    case BinaryOp::div:
    case BinaryOp::mod:
    case BinaryOp::fmod: return true;
    default: return false;
  }
}

void run_plain(BinaryOp op, ElementType type, const BroadcastPlan& plan, const void* a,
               const void* b, void* y, ThreadPool& pool) {
  const PlainRow row = plain_row_of(op, type);
  const int64_t width = width_of(type);
  const int64_t out_width = gives_boolean(op) ? 1 : width;
  const int64_t sa = row_stride(plan, 0);
  const int64_t sb = row_stride(plan, 1);
  // Loops over dense elements are the ones that compilers make vectors of.
  const bool power = op == BinaryOp::pow && type == ElementType::float64 && plan.is_scalar(1);
  const bool moves = takes_single(op, type) ? sa + sb > 0 : sa == 1 && sb == 1;
  if (type != ElementType::string && !power && (!moves || has_short_rows(plan))) {
    return for_expanded(plan, {Repeating{a, width}, Repeating{b, width}}, pool,
                        [&](const void* const* x, int64_t to, int64_t n) {
                          row(x[0], x[1], static_cast<char*>(y) + to * out_width, n, 1, 1);
                        });
  }
  const auto* x0 = static_cast<const char*>(a);
  const auto* x1 = static_cast<const char*>(b);
  walk_all(plan, pool, [&](const int64_t* at, int64_t to, int64_t n) {
    row(x0 + at[0] * width, x1 + at[1] * width, static_cast<char*>(y) + to * out_width, n, sa, sb);
  });
}

// Up to `tile` elements of a row as floats; a row that repeats one element as that element.
constexpr int64_t tile = 1024;

void load_side(ElementType type, const void* x, int64_t at, int64_t n, int64_t stride, float* to) {
  to_floats(type, static_cast<const char*>(x) + at * 2, to, stride == 0 ? 1 : n);
}

void repeat(float* x, int64_t n, int64_t stride) {
  if (stride == 0) std::fill_n(x + 1, n - 1, x[0]);
}

// One row of halves, computed in floats: by `fast` where there is one, which knows its sides, else
// by `plain`.
void half_row(ElementType type, BinaryTile fast, PlainRow plain, bool boolean_output, const void* a,
              const void* b, void* y, int64_t n, int64_t sa, int64_t sb) {
  alignas(64) float x0[tile], x1[tile], out[tile];
  for (int64_t i = 0; i < n; i += tile) {
    const int64_t some = std::min(tile, n - i);
    load_side(type, a, i * sa, some, sa, x0);
    load_side(type, b, i * sb, some, sb, x1);
    if (fast != nullptr) {
      fast(x0, x1, out, some);
    } else {
      repeat(x0, some, sa);
      repeat(x1, some, sb);
      plain(x0, x1, boolean_output ? static_cast<uint8_t*>(y) + i : static_cast<void*>(out), some,
            1, 1);
      if (boolean_output) continue;
    }
    to_float16(type, out, static_cast<uint16_t*>(y) + i, some);
  }
}

void run_half(BinaryOp op, ElementType type, const BroadcastPlan& plan, const void* a,
              const void* b, void* y, ThreadPool& pool) {
  const int64_t sa = row_stride(plan, 0);
  const int64_t sb = row_stride(plan, 1);
  const PlainRow plain = plain_binary<float>(op);
  const bool boolean_output = gives_boolean(op);
  const int64_t width = boolean_output ? 1 : 2;
  const Sides sides = sa == 0 ? Sides::scalar_a : sb == 0 ? Sides::scalar_b : Sides::both;
  const BinaryTile fast = boolean_output || (sa == 0 && sb == 0) ? nullptr : binary_tile(op, sides);
  walk_all(plan, pool, [&](const int64_t* at, int64_t to, int64_t n) {
    half_row(type, fast, plain, boolean_output, static_cast<const uint16_t*>(a) + at[0],
             static_cast<const uint16_t*>(b) + at[1], static_cast<char*>(y) + to * width, n, sa,
             sb);
  });
}

template <class T>
void where_rows(const BroadcastPlan& plan, const uint8_t* condition, const T* a, const T* b, T* y,
                ThreadPool& pool) {
  const int64_t sc = row_stride(plan, 0);
  const int64_t sa = row_stride(plan, 1);
  const int64_t sb = row_stride(plan, 2);
  if constexpr (sizeof(T) <= sizeof(uint64_t)) {
    if (sc != 1 || sa != 1 || sb != 1 || has_short_rows(plan)) {
      constexpr int64_t width = sizeof(T);
      const Repeating inputs[] = {{condition, 1}, {a, width}, {b, width}};
      return for_expanded(plan, inputs, pool, [&](const void* const* x, int64_t to, int64_t n) {
        select(static_cast<const uint8_t*>(x[0]), static_cast<const T*>(x[1]),
               static_cast<const T*>(x[2]), y + to, n);
      });
    }
    walk_all(plan, pool, [&](const int64_t* at, int64_t to, int64_t n) {
      select(condition + at[0], a + at[1], b + at[2], y + to, n);
    });
  } else {
    walk_all(plan, pool, [&](const int64_t* at, int64_t to, int64_t n) {
      for (int64_t i = 0; i < n; ++i)
        y[to + i] = condition[at[0] + i * sc] != 0 ? a[at[1] + i * sa] : b[at[2] + i * sb];
    });
  }
}

[[noreturn]] void refuse(ElementType type) {
  fail(ErrorCode::unsupported, "this element-wise operator does not take {}", name_of(type));
}

}  // namespace

bool gives_boolean(BinaryOp op) { return op >= BinaryOp::logical_and && op < BinaryOp::count_; }

bool supports(BinaryOp op, ElementType type) {
  if (op < BinaryOp{} || op >= BinaryOp::count_) return false;
  if (is_half(type)) return plain_binary<float>(op) != nullptr;
  return plain_row_of(op, type) != nullptr;
}

void binary(BinaryOp op, ElementType type, const BroadcastPlan& plan, const void* a, const void* b,
            void* y, ThreadPool& pool) {
  if (!supports(op, type)) refuse(type);
  if (type == ElementType::float32 && !gives_boolean(op)) {
    return run_float(op, plan, static_cast<const float*>(a), static_cast<const float*>(b),
                     static_cast<float*>(y), pool);
  }
  if (is_half(type)) return run_half(op, type, plan, a, b, y, pool);
  run_plain(op, type, plan, a, b, y, pool);
}

BinaryRow::BinaryRow(BinaryOp op, ElementType type)
    : type_(type), gives_boolean_(kernels::gives_boolean(op)) {
  if (!supports(op, type)) refuse(type);
  const bool floats = type == ElementType::float32 || is_half(type);
  plain_ = is_half(type) ? plain_binary<float>(op) : plain_row_of(op, type);
  if (floats && !gives_boolean_) floats_ = binary_tile(op, Sides::both);
}

void BinaryRow::operator()(const void* a, const void* b, void* y, int64_t n) const {
  if (is_half(type_)) return half_row(type_, floats_, plain_, gives_boolean_, a, b, y, n, 1, 1);
  if (floats_ == nullptr) return plain_(a, b, y, n, 1, 1);
  floats_(static_cast<const float*>(a), static_cast<const float*>(b), static_cast<float*>(y), n);
}

void pow(ElementType base_type, ElementType exponent_type, const BroadcastPlan& plan, const void* a,
         const void* b, void* y, ThreadPool& pool) {
  if (base_type == exponent_type) return binary(BinaryOp::pow, base_type, plan, a, b, y, pool);
  if (!supports(BinaryOp::pow, base_type)) refuse(base_type);
  if (!supports(BinaryOp::pow, exponent_type)) refuse(exponent_type);
  // Both sides as double, or as integers where both are; then back to the base's type.
  const bool whole = is_integer(base_type) && is_integer(exponent_type);
  const auto wide = whole                               ? ElementType::int64
                    : base_type == ElementType::float32 ? ElementType::float32
                                                        : ElementType::float64;
  const PlainRow row = plain_row_of(BinaryOp::pow, wide);
  const int64_t sa = row_stride(plan, 0);
  const int64_t sb = row_stride(plan, 1);
  const int64_t wa = width_of(base_type);
  const int64_t wb = width_of(exponent_type);
  walk_all(plan, pool, [&](const int64_t* at, int64_t to, int64_t n) {
    alignas(64) double x0[tile], x1[tile], out[tile];
    for (int64_t i = 0; i < n; i += tile) {
      const int64_t some = std::min(tile, n - i);
      const auto* p0 = static_cast<const char*>(a) + (at[0] + i * sa) * wa;
      const auto* p1 = static_cast<const char*>(b) + (at[1] + i * sb) * wb;
      cast_row(base_type, wide, p0, x0, sa == 0 ? 1 : some);
      cast_row(exponent_type, wide, p1, x1, sb == 0 ? 1 : some);
      row(x0, x1, out, some, sa, sb);
      cast_row(wide, base_type, out, static_cast<char*>(y) + (to + i) * wa, some);
    }
  });
}

void where(Cell cell, const BroadcastPlan& plan, const bool* condition, const void* a,
           const void* b, void* y, ThreadPool& pool) {
  by_cell(cell, [&](const auto& zero) {
    using T = std::remove_cvref_t<decltype(zero)>;
    where_rows(plan, reinterpret_cast<const uint8_t*>(condition), static_cast<const T*>(a),
               static_cast<const T*>(b), static_cast<T*>(y), pool);
  });
}

BinaryTile binary_tile(BinaryOp op, Sides sides) {
  if (const BinaryTile vector = vector_binary(op, sides)) return vector;
  switch (op) {
    case BinaryOp::pow:
      return sides == Sides::scalar_b ? power_scalar_b : plain_tile<BinaryOp::pow>(sides);
    case BinaryOp::mod: return plain_tile<BinaryOp::mod>(sides);
    case BinaryOp::fmod: return plain_tile<BinaryOp::fmod>(sides);
    default: return nullptr;
  }
}

}  // namespace sardonyx::kernels
