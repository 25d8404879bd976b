#include <algorithm>
#include <complex>
#include <string>
#include <type_traits>

#include "base/fail.h"
#include "kernels/convert/low_precision.h"
#include "kernels/elementwise/binary.h"
#include "kernels/elementwise/walk.h"
#include "kernels/move/by_cell.h"
#include "kernels/move/gather.h"
#include "kernels/move/index.h"

namespace sardonyx::kernels {
namespace {

// Updates apply one after the other: where indices repeat, their order is part of the result.

// Elements of a run that a thread takes at least; of long ones it takes a multiple.
constexpr int64_t min_run = 32;

// Columns [begin, end) of `rows` rows, one piece for each thread: rows cut into shorter ones would
// be followed again and again.
template <class Body>
void share_columns(int64_t rows, int64_t columns, ThreadPool& pool, const Body& body) {
  const int64_t each = (columns / pool.threads() + min_run) / min_run * min_run;
  if (columns <= each || stays_alone(rows * columns, pool)) return body(int64_t{0}, columns);
  pool.parallel_for(columns, each, [&](int64_t begin, int64_t end, int) { body(begin, end); });
}

struct Half {
  uint16_t bits;
  static float load(Half v) { return half_to_float(v.bits); }
  static Half store(float v) { return {float_to_half(v)}; }
};
struct Bfloat16 {
  uint16_t bits;
  static float load(Bfloat16 v) { return bfloat16_to_float(v.bits); }
  static Bfloat16 store(float v) { return {float_to_bfloat16(v)}; }
};

struct Truth {
  uint8_t byte;  // any value but 0 is true
};

template <ScatterReduction reduction, class T>
T combined(T old, T update) {
  using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
  switch (reduction) {
    case ScatterReduction::add: return static_cast<T>(Wide(old) + Wide(update));
    case ScatterReduction::mul: return static_cast<T>(Wide(old) * Wide(update));
    case ScatterReduction::max: return old != old || old > update ? old : update;
    case ScatterReduction::min: return old != old || old < update ? old : update;
    default: return update;
  }
}

template <ScatterReduction reduction, class T>
void apply(T& old, T update) {
  if constexpr (std::is_same_v<T, Truth>) {
    constexpr bool both = reduction == ScatterReduction::mul || reduction == ScatterReduction::min;
    old.byte = both ? (old.byte && update.byte) : (old.byte || update.byte);
  } else if constexpr (std::is_arithmetic_v<T>) {
    old = combined<reduction>(old, update);
  } else if constexpr (requires { old.imag(); }) {  // complex numbers have no order
    if constexpr (reduction == ScatterReduction::add)
      old += update;
    else
      old *= update;
  } else {
    old = T::store(combined<reduction>(T::load(old), T::load(update)));
  }
}

// A run of updates to a run of elements.
using ApplyRun = void (*)(void* old, const void* updates, int64_t n);

template <ScatterReduction reduction, class T>
void apply_run(void* old, const void* updates, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    apply<reduction>(static_cast<T*>(old)[i], static_cast<const T*>(updates)[i]);
}

// run(std::integral_constant<ScatterReduction, r>()) for all but none.
template <class Run>
auto by_reduction(ScatterReduction reduction, Run&& run) {
  using enum ScatterReduction;
  switch (reduction) {
    case mul: return run(std::integral_constant<ScatterReduction, mul>());
    case max: return run(std::integral_constant<ScatterReduction, max>());
    case min: return run(std::integral_constant<ScatterReduction, min>());
    default: return run(std::integral_constant<ScatterReduction, add>());
  }
}

template <class T>
ApplyRun apply_run_of(ScatterReduction reduction) {
  return by_reduction(reduction,
                      [](auto r) -> ApplyRun { return apply_run<decltype(r)::value, T>; });
}

ApplyRun apply_run_of(ElementType type, ScatterReduction reduction) {
  switch (type) {
    case ElementType::float32: return apply_run_of<float>(reduction);
    case ElementType::float64: return apply_run_of<double>(reduction);
    case ElementType::float16: return apply_run_of<Half>(reduction);
    case ElementType::bfloat16: return apply_run_of<Bfloat16>(reduction);
    case ElementType::int8: return apply_run_of<int8_t>(reduction);
    case ElementType::int16: return apply_run_of<int16_t>(reduction);
    case ElementType::int32: return apply_run_of<int32_t>(reduction);
    case ElementType::int64: return apply_run_of<int64_t>(reduction);
    case ElementType::uint8: return apply_run_of<uint8_t>(reduction);
    case ElementType::uint16: return apply_run_of<uint16_t>(reduction);
    case ElementType::uint32: return apply_run_of<uint32_t>(reduction);
    case ElementType::uint64: return apply_run_of<uint64_t>(reduction);
    case ElementType::boolean: return apply_run_of<Truth>(reduction);
    case ElementType::complex64: return apply_run_of<std::complex<float>>(reduction);
    case ElementType::complex128: return apply_run_of<std::complex<double>>(reduction);
    default:
      fail(ErrorCode::unsupported, "scattering with a reduction does not take {}", name_of(type));
  }
}

// The same as an element-wise operator. Booleans are ordered false, true.
BinaryOp operator_of(ElementType type, ScatterReduction reduction) {
  const bool boolean = type == ElementType::boolean;
  switch (reduction) {
    case ScatterReduction::mul: return boolean ? BinaryOp::logical_and : BinaryOp::mul;
    case ScatterReduction::max: return boolean ? BinaryOp::logical_or : BinaryOp::max;
    case ScatterReduction::min: return boolean ? BinaryOp::logical_and : BinaryOp::min;
    default: return boolean ? BinaryOp::logical_or : BinaryOp::add;
  }
}

// Runs from this length on go to the vectors of the element-wise operators.
constexpr int64_t min_vector_run = 16;

// `visit_all` calls what it is given for each run of updates.
template <class VisitAll>
void scatter(ElementType type, ScatterReduction reduction, const void* updates, void* y,
             VisitAll&& visit_all) {
  if (reduction == ScatterReduction::none) {
    by_cell(cell_of(type), [&](const auto& zero) {
      using T = std::remove_cvref_t<decltype(zero)>;
      visit_all([&](int64_t to, int64_t from, int64_t n) {
        std::copy_n(static_cast<const T*>(updates) + from, n, static_cast<T*>(y) + to);
      });
    });
    return;
  }
  auto* to_bytes = static_cast<std::byte*>(y);
  const auto* from_bytes = static_cast<const std::byte*>(updates);
  const int64_t width = bit_width(type) / 8;
  const auto visit_runs = [&](const auto& apply) {
    visit_all([&](int64_t to, int64_t from, int64_t n) {
      apply(to_bytes + to * width, from_bytes + from * width, n);
    });
  };
  const ApplyRun one_by_one = apply_run_of(type, reduction);
  if (type == ElementType::complex64 || type == ElementType::complex128)
    return visit_runs(one_by_one);
  const BinaryRow row(operator_of(type, reduction), type);
  const auto by_length = [&](const auto& apply_short) {
    visit_runs([&](void* old, const void* update, int64_t n) {
      n >= min_vector_run ? row(old, update, old, n) : apply_short(old, update, n);
    });
  };
  if (type != ElementType::float32) return by_length(one_by_one);
  by_reduction(reduction, [&](auto r) {  // without a call for each short run
    by_length([](void* old, const void* update, int64_t n) {
      apply_run<decltype(r)::value, float>(old, update, n);
    });
  });
}

// Updates in pieces of `length` that lie `columns` apart.
struct Pieces {
  int64_t begin = 0, length = 0, count = 1, columns = 0;
};

// Shares the updates so that each thread sees all of its own elements' in their order.
template <class Body>
void share_updates(const AxisWalk& walk, ThreadPool& pool, const Body& body) {
  if (walk.count == 0) return;
  const int64_t outer = walk.dims[0], columns = walk.count / outer;
  if (walk.strides[0] != 0) {  // the axis is further in
    if (stays_alone(walk.count, pool)) return body(Pieces{0, walk.count});
    const int64_t grain = (element_grain + columns - 1) / columns;
    return pool.parallel_for(outer, grain, [&](int64_t begin, int64_t end, int) {
      body(Pieces{begin * columns, (end - begin) * columns});
    });
  }
  share_columns(outer, columns, pool, [&](int64_t begin, int64_t end) {
    body(Pieces{begin, end - begin, outer, columns});
  });
}

}  // namespace

void scatter_elements(ElementType type, ScatterReduction reduction, std::span<const int64_t> shape,
                      int64_t axis, std::span<const int64_t> index_shape, const Indices& indices,
                      const void* updates, void* y, ThreadPool& pool) {
  const AxisWalk walk = walk_axis(shape, axis, index_shape);
  check_index_count(indices, walk.count);
  share_updates(walk, pool, [&](const Pieces& pieces) {
    scatter(type, reduction, updates, y, [&](auto&& visit) {
      for (int64_t i = 0; i < pieces.count; ++i) {
        const int64_t begin = pieces.begin + i * pieces.columns;
        visit_places(walk, indices, begin, begin + pieces.length, visit);
      }
    });
  });
}

void scatter_nd(ElementType type, ScatterReduction reduction, std::span<const int64_t> shape,
                std::span<const int64_t> index_shape, const Indices& indices, const void* updates,
                void* y, ThreadPool& pool) {
  const TupleWalk walk = walk_tuples(shape, 0, index_shape);
  check_index_count(indices, walk.tuples * walk.depth);
  if (walk.depth == 0 && walk.inner == 0) return;  // as many tuples as shapes can say
  // Threads share the elements of runs, so that each sees all updates of its own in their order.
  share_columns(walk.tuples, walk.inner, pool, [&](int64_t begin, int64_t end) {
    scatter(type, reduction, updates, y, [&](auto&& visit) {
      for (int64_t i = 0; i < walk.tuples; ++i)
        visit(walk.offset(indices, i) + begin, i * walk.inner + begin, end - begin);
    });
  });
}

}  // namespace sardonyx::kernels
