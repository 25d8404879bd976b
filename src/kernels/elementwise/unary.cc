#include "kernels/elementwise/unary.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "base/fail.h"
#include "kernels/convert/cast.h"
#include "kernels/elementwise/float_tiles.h"
#include "kernels/elementwise/walk.h"

namespace sardonyx::kernels {
namespace {

constexpr int64_t tile = 1024;

bool is_half(ElementType type) {
  return type == ElementType::float16 || type == ElementType::bfloat16;
}

bool is_float8(ElementType type) { return is_floating(type) && bit_width(type) == 8; }

bool is_whole_integer(ElementType type) { return is_integer(type) && bit_width(type) >= 8; }

bool takes_integers(UnaryOp op) {
  switch (op) {
    case UnaryOp::abs:
    case UnaryOp::neg:
    case UnaryOp::sign:
    case UnaryOp::relu:
    case UnaryOp::leaky_relu:
    case UnaryOp::shrink:
    case UnaryOp::thresholded_relu:
    case UnaryOp::clamp:
    case UnaryOp::square:
    case UnaryOp::floor:
    case UnaryOp::ceil:
    case UnaryOp::round:
    case UnaryOp::bitwise_not: return true;
    default: return false;
  }
}

template <class T, class F>
void map_integers(const T* x, T* y, int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(f(x[i]));
}

// A result of double arithmetic as an integer: truncated, held at the bounds.
template <class T>
T held(double v) {
  if (!(v > static_cast<double>(std::numeric_limits<T>::min()))) {
    return v == v ? std::numeric_limits<T>::min() : T{0};
  }
  if (v >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(v);
}

// Integer arithmetic wraps, as the machine's does.
template <class T>
void integer_row(UnaryOp op, const T* x, T* y, int64_t n, const UnaryParams& params) {
  using Wrapping = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;
  const double alpha = params.alpha;
  const double beta = params.beta;
  const auto negated = [](T v) { return static_cast<T>(Wrapping{0} - static_cast<Wrapping>(v)); };
  switch (op) {
    case UnaryOp::abs: return map_integers(x, y, n, [&](T v) { return v < T{0} ? negated(v) : v; });
    case UnaryOp::neg: return map_integers(x, y, n, negated);
    case UnaryOp::sign: return map_integers(x, y, n, [](T v) { return (v > T{0}) - (v < T{0}); });
    case UnaryOp::relu: return map_integers(x, y, n, [](T v) { return v < T{0} ? T{0} : v; });
    case UnaryOp::bitwise_not: return map_integers(x, y, n, [](T v) { return ~v; });
    case UnaryOp::square:
      return map_integers(x, y, n, [](T v) { return Wrapping(v) * Wrapping(v); });
    case UnaryOp::clamp: {
      const T low = held<T>(alpha);
      const T high = held<T>(beta);
      return map_integers(x, y, n, [=](T v) { return std::min(std::max(v, low), high); });
    }
    case UnaryOp::leaky_relu:
      return map_integers(
          x, y, n, [=](T v) { return v < T{0} ? held<T>(alpha * static_cast<double>(v)) : v; });
    case UnaryOp::thresholded_relu:
      return map_integers(x, y, n, [=](T v) { return static_cast<double>(v) <= alpha ? T{0} : v; });
    case UnaryOp::shrink:
      return map_integers(x, y, n, [=](T v) {
        const auto d = static_cast<double>(v);
        return d < -alpha ? held<T>(d + beta) : d > alpha ? held<T>(d - beta) : T{0};
      });
    default: return map_integers(x, y, n, [](T v) { return v; });  // floor, ceil, round
  }
}

void integer_range(UnaryOp op, ElementType type, const void* x, void* y, int64_t begin, int64_t n,
                   const UnaryParams& params) {
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    integer_row(op, static_cast<const T*>(x) + begin, static_cast<T*>(y) + begin, n, params);
  };
  switch (type) {
    case ElementType::int8: return run(int8_t{});
    case ElementType::int16: return run(int16_t{});
    case ElementType::int32: return run(int32_t{});
    case ElementType::int64: return run(int64_t{});
    case ElementType::uint8: return run(uint8_t{});
    case ElementType::uint16: return run(uint16_t{});
    case ElementType::uint32: return run(uint32_t{});
    default: return run(uint64_t{});
  }
}

template <class F>
void classify(UnaryOp op, const F* x, uint8_t* y, int64_t n, const UnaryParams& params) {
  constexpr F infinity = std::numeric_limits<F>::infinity();
  const bool low = params.alpha != 0;
  const bool high = params.beta != 0;
  if (op == UnaryOp::is_nan) {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] != x[i];
  } else {
    for (int64_t i = 0; i < n; ++i)
      y[i] = (low & (x[i] == -infinity)) | (high & (x[i] == infinity));
  }
}

bool classifies(UnaryOp op) { return op == UnaryOp::is_nan || op == UnaryOp::is_inf; }

// Narrow floats [begin, begin + n), tile by tile through float.
void narrow_range(UnaryOp op, ElementType type, const void* x, void* y, int64_t begin, int64_t n,
                  const UnaryParams& params) {
  alignas(64) float values[tile];
  const int64_t width = bit_width(type) / 8;
  const UnaryTile f = unary_tile(op);
  for (int64_t i = begin; i < begin + n; i += tile) {
    const int64_t some = std::min(tile, begin + n - i);
    to_floats(type, static_cast<const uint8_t*>(x) + i * width, values, some);
    if (classifies(op)) {
      classify(op, values, static_cast<uint8_t*>(y) + i, some, params);
    } else {
      f(values, values, some, params);
      to_float16(type, values, static_cast<uint8_t*>(y) + i * width, some);
    }
  }
}

void range_of(UnaryOp op, ElementType type, const void* x, void* y, int64_t begin, int64_t n,
              const UnaryParams& params) {
  if (type == ElementType::float32) {
    const float* from = static_cast<const float*>(x) + begin;
    if (classifies(op)) return classify(op, from, static_cast<uint8_t*>(y) + begin, n, params);
    unary_tile(op)(from, static_cast<float*>(y) + begin, n, params);
  } else if (type == ElementType::float64) {
    const double* from = static_cast<const double*>(x) + begin;
    if (classifies(op)) return classify(op, from, static_cast<uint8_t*>(y) + begin, n, params);
    double_unary(op)(from, static_cast<double*>(y) + begin, n, params);
  } else if (type == ElementType::boolean) {
    const uint8_t* from = static_cast<const uint8_t*>(x) + begin;
    uint8_t* to = static_cast<uint8_t*>(y) + begin;
    for (int64_t i = 0; i < n; ++i) to[i] = from[i] == 0;
  } else if (is_integer(type)) {
    integer_range(op, type, x, y, begin, n, params);
  } else {
    narrow_range(op, type, x, y, begin, n, params);
  }
}

template <class T>
void clip_row(const T* x, T* y, int64_t n, T low, T high) {
  for (int64_t i = 0; i < n; ++i) {
    const T raised = x[i] < low ? low : x[i];
    y[i] = raised > high ? high : raised;
  }
}

template <class T>
void clip_all(const void* x, void* y, int64_t n, const void* low, const void* high,
              ThreadPool& pool) {
  using Limits = std::numeric_limits<T>;
  T least = Limits::lowest(), most = Limits::max();
  if constexpr (std::is_floating_point_v<T>) least = -Limits::infinity(), most = Limits::infinity();
  if (low != nullptr) least = *static_cast<const T*>(low);
  if (high != nullptr) most = *static_cast<const T*>(high);
  for_chunks(n, pool, [&](int64_t begin, int64_t end) {
    clip_row(static_cast<const T*>(x) + begin, static_cast<T*>(y) + begin, end - begin, least,
             most);
  });
}

// float32 and the halves, through the clamp operator.
void clip_floats(ElementType type, const void* x, void* y, int64_t n, const void* low,
                 const void* high, ThreadPool& pool) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  float least = -infinity, most = infinity;
  if (low != nullptr) to_floats(type, low, &least, 1);
  if (high != nullptr) to_floats(type, high, &most, 1);
  unary(UnaryOp::clamp, type, x, y, n, {least, most}, pool);
}

}  // namespace

bool supports(UnaryOp op, ElementType type) {
  switch (op) {
    case UnaryOp::logical_not: return type == ElementType::boolean;
    case UnaryOp::bitwise_not: return is_whole_integer(type);
    case UnaryOp::is_nan:
    case UnaryOp::is_inf:
      if (is_float8(type)) return true;
      break;
    case UnaryOp::count_: return false;
    default: break;
  }
  if (type == ElementType::float32 || type == ElementType::float64 || is_half(type)) return true;
  return is_whole_integer(type) && takes_integers(op);
}

void unary(UnaryOp op, ElementType type, const void* x, void* y, int64_t n,
           const UnaryParams& params, ThreadPool& pool) {
  if (!supports(op, type)) {
    fail(ErrorCode::unsupported, "this element-wise operator does not take {}", name_of(type));
  }
  for_chunks(n, pool, [&](int64_t begin, int64_t end) {
    range_of(op, type, x, y, begin, end - begin, params);
  });
}

void clip(ElementType type, const void* x, void* y, int64_t n, const void* low, const void* high,
          ThreadPool& pool) {
  switch (type) {
    case ElementType::float32:
    case ElementType::float16:
    case ElementType::bfloat16: return clip_floats(type, x, y, n, low, high, pool);
    case ElementType::float64: return clip_all<double>(x, y, n, low, high, pool);
    case ElementType::int8: return clip_all<int8_t>(x, y, n, low, high, pool);
    case ElementType::int16: return clip_all<int16_t>(x, y, n, low, high, pool);
    case ElementType::int32: return clip_all<int32_t>(x, y, n, low, high, pool);
    case ElementType::int64: return clip_all<int64_t>(x, y, n, low, high, pool);
    case ElementType::uint8: return clip_all<uint8_t>(x, y, n, low, high, pool);
    case ElementType::uint16: return clip_all<uint16_t>(x, y, n, low, high, pool);
    case ElementType::uint32: return clip_all<uint32_t>(x, y, n, low, high, pool);
    case ElementType::uint64: return clip_all<uint64_t>(x, y, n, low, high, pool);
    default: fail(ErrorCode::unsupported, "Clip does not take {}", name_of(type));
  }
}

UnaryTile unary_tile(UnaryOp op) { return vector_unary(op); }

}  // namespace sardonyx::kernels
