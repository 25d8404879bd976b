#include "kernels/rows/reduce.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "kernels/elementwise/unary.h"
#include "kernels/rows/grain.h"
#include "kernels/rows/row_math.h"
#include "kernels/rows/values.h"
#include "kernels/shape_text.h"

namespace sardonyx::kernels {
namespace {

constexpr int64_t block = 1024;       // columns reduced together, at most
constexpr int64_t small_block = 256;  // of short rows, and where there are too few for all threads

// Walks positions of a few dimensions.
struct Steps {
  const int64_t* dims;
  const int64_t* strides;
  int32_t rank;
  int64_t index[ReducePlan::max_rank] = {};
  int64_t offset = 0;

  Steps(const int64_t* d, const int64_t* s, int32_t r, int64_t position)
      : dims(d), strides(s), rank(r) {
    for (int32_t i = rank; i-- > 0;) {
      index[i] = position % dims[i];
      position /= dims[i];
      offset += index[i] * strides[i];
    }
  }
  void step() {
    for (int32_t i = rank; i-- > 0;) {
      offset += strides[i];
      if (++index[i] < dims[i]) return;
      offset -= dims[i] * strides[i];
      index[i] = 0;
    }
  }
};

// What is folded before the end of the operator is applied.
using Fold = ColumnOp;

Fold fold_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::max: return Fold::max;
    case ReduceOp::min: return Fold::min;
    case ReduceOp::prod: return Fold::product;
    case ReduceOp::l1: return Fold::sum_abs;
    case ReduceOp::l2:
    case ReduceOp::sum_square: return Fold::sum_squares;
    default: return Fold::sum;
  }
}

template <class C>
C neutral(Fold fold) {
  switch (fold) {
    case Fold::max: return min_of<C>();
    case Fold::min: return greatest_of<C>();
    case Fold::product: return C{1};
    default: return C{0};
  }
}

template <class C>
C folded_row(Fold fold, const C* x, int64_t n) {
  if constexpr (std::is_integral_v<C>) {
    return fold_row(fold, x, n);
  } else {
    switch (fold) {
      case Fold::max: return row_max(x, n);
      case Fold::min: return row_min(x, n);
      case Fold::product: return row_product(x, n);
      case Fold::sum_abs: return row_sum_abs(x, n);
      case Fold::sum_squares: return row_sum_squares(x, C{0}, n);
      default: return row_sum(x, n);
    }
  }
}

template <class C>
C joined(Fold fold, C a, C b) {
  switch (fold) {
    case Fold::max: return larger(a, b);
    case Fold::min: return smaller(a, b);
    case Fold::product: return times(a, b);
    default: return plus(a, b);
  }
}

template <class C>
C finished(ReduceOp op, C value, int64_t n) {
  if constexpr (std::is_floating_point_v<C>) {
    switch (op) {
      case ReduceOp::mean: return value / static_cast<C>(n);
      case ReduceOp::l2: return std::sqrt(value);
      case ReduceOp::log_sum: return std::log(value);
      default: return value;
    }
  } else {
    return op != ReduceOp::mean ? value : n == 0 ? C{0} : value / static_cast<C>(n);
  }
}

// log(sum exp) from the largest value and the sum of exponentials below it. An infinite largest
// value is the answer itself.
template <class C>
C log_sum_exp(C top, C sum) {
  return std::isinf(top) ? top : top + std::log(sum);
}

// An infinite center would make NaN of inf - inf.
template <class C>
C safe_center(C top) {
  return std::isinf(top) ? C{0} : top;
}

template <class C>
class Reduction {
 public:
  Reduction(ReduceOp op, ElementType type, const ReducePlan& plan, const void* x, void* y)
      : op_(op), fold_(fold_of(op)), type_(type), plan_(plan), x_(x), y_(y) {}

  void run(ThreadPool& pool) const {
    if (plan_.kept == 0) return;
    const bool along_rows =
        plan_.reduced_rank > 0 && plan_.reduced_strides[plan_.reduced_rank - 1] == 1;
    if (along_rows && splits()) return run_split(pool);
    if (along_rows && short_rows()) {
      return for_rows_of(plan_.kept, plan_.reduced, pool, [&](int64_t begin, int64_t end) {
        if (logs_exp())
          log_sum_exp_short(begin, end);
        else
          fold_short(begin, end);
      });
    }
    if (along_rows && whole_rows()) {
      return for_rows_of(plan_.kept, plan_.reduced, pool,
                         [&](int64_t begin, int64_t end) { fold_whole(begin, end); });
    }
    if (along_rows || plan_.kept_rank == 0 || plan_.reduced == 0) {
      return for_rows_of(plan_.kept, plan_.reduced, pool,
                         [&](int64_t begin, int64_t end) { rows(begin, end); });
    }
    const int64_t inner = plan_.kept_dims[plan_.kept_rank - 1];
    if (splits_columns(inner)) return run_split_columns(inner, pool);
    const int64_t outer = plan_.kept / inner;
    const auto blocks_of = [&](int64_t width) { return (inner + width - 1) / width; };
    const int64_t width = outer * blocks_of(block) < 2 * pool.threads() ? small_block : block;
    const int64_t blocks = blocks_of(width);
    for_rows_of(outer * blocks, plan_.reduced * std::min(inner, width), pool,
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i)
                    columns(i / blocks, i % blocks * width, width);
                });
  }

 private:
  bool logs_exp() const { return op_ == ReduceOp::log_sum_exp; }
  // Folds of plan_.reduced elements, some, to results.
  void finish_all(C* values, int64_t n) const {
    if (op_ != ReduceOp::mean && op_ != ReduceOp::l2 && op_ != ReduceOp::log_sum) return;
    if constexpr (std::is_floating_point_v<C>) {
      if (op_ == ReduceOp::mean)
        return row_divide(values, static_cast<C>(plan_.reduced), values, n);
    }
    for (int64_t i = 0; i < n; ++i) values[i] = finished(op_, values[i], plan_.reduced);
  }

  // Rows of a few elements, for which a call each would cost more than what it does.
  static constexpr int64_t short_row = 16;
  bool short_rows() const {
    return plan_.reduced_rank == 1 && plan_.reduced <= short_row && type_ == element_of<C>();
  }

  // `size` is plan_.reduced, known to the compiler where it is an integral_constant.
  template <class Size, class Combine>
  void fold_each_of(Size size, int64_t begin, int64_t end, Combine&& combine) const {
    const auto* x = static_cast<const C*>(x_);
    auto* y = static_cast<C*>(y_);
    const int64_t n = size;
    const C start = neutral<C>(fold_);
    const auto fold = [&](const C* row, int64_t k) {
      C value = start;
      for (int64_t i = 0; i < n; ++i) value = combine(value, row[i]);
      y[k] = value;
    };
    if (plan_.kept_rank == 1) {
      const int64_t stride = plan_.kept_strides[0];
      for (int64_t k = begin; k < end; ++k) fold(x + k * stride, k);
    } else {
      Steps at(plan_.kept_dims, plan_.kept_strides, plan_.kept_rank, begin);
      for (int64_t k = begin; k < end; ++k, at.step()) fold(x + at.offset, k);
    }
    finish_all(y + begin, end - begin);
  }
  template <class Combine>
  void fold_each(int64_t begin, int64_t end, Combine&& combine) const {
    if constexpr (std::is_same_v<C, float>) {
      switch (plan_.reduced) {
        case 2: return fold_each_of(std::integral_constant<int64_t, 2>(), begin, end, combine);
        case 3: return fold_each_of(std::integral_constant<int64_t, 3>(), begin, end, combine);
        case 4: return fold_each_of(std::integral_constant<int64_t, 4>(), begin, end, combine);
        default: break;
      }
    }
    fold_each_of(plan_.reduced, begin, end, combine);
  }

  void fold_short(int64_t begin, int64_t end) const {
    switch (fold_) {
      case Fold::max: return fold_each(begin, end, [](C a, C b) { return larger(a, b); });
      case Fold::min: return fold_each(begin, end, [](C a, C b) { return smaller(a, b); });
      case Fold::product: return fold_each(begin, end, [](C a, C b) { return times(a, b); });
      case Fold::sum_squares:
        return fold_each(begin, end, [](C a, C b) { return plus(a, times(b, b)); });
      case Fold::sum_abs:
        return fold_each(begin, end, [](C a, C b) { return plus(a, magnitude(b)); });
      case Fold::sum: return fold_each(begin, end, [](C a, C b) { return plus(a, b); });
    }
  }

  // Rows that lie at equal distances, each in one piece.
  bool whole_rows() const {
    return plan_.reduced_rank == 1 && plan_.kept_rank == 1 && !logs_exp() &&
           type_ == element_of<C>();
  }
  void fold_whole(int64_t begin, int64_t end) const {
    const int64_t n = plan_.reduced, stride = plan_.kept_strides[0];
    const C* x = static_cast<const C*>(x_) + begin * stride;
    C* y = static_cast<C*>(y_) + begin;
    if constexpr (std::is_same_v<C, float>) {
      fold_rows(fold_, x, stride, end - begin, n, y);
    } else {
      for (int64_t k = 0; k < end - begin; ++k) y[k] = folded_row(fold_, x + k * stride, n);
    }
    finish_all(y, end - begin);
  }

  // Short rows stand side by side, so that vectors hold an element of many.
  void log_sum_exp_short(int64_t begin, int64_t end) const {
    alignas(64) C side_by_side[short_row * small_block];
    Steps at(plan_.kept_dims, plan_.kept_strides, plan_.kept_rank, begin);
    for (int64_t k = begin; k < end; k += small_block) {
      const int64_t width = std::min(small_block, end - k);
      for (int64_t j = 0; j < width; ++j, at.step()) {
        const C* x = static_cast<const C*>(x_) + at.offset;
        for (int64_t i = 0; i < plan_.reduced; ++i) side_by_side[i * small_block + j] = x[i];
      }
      columns_log_sum_exp(width, static_cast<C*>(y_) + k, [&](auto&& visit) {
        for (int64_t i = 0; i < plan_.reduced; ++i) visit(side_by_side + i * small_block, 0, width);
      });
    }
  }

  // One long row is cut into parts of a size that depends on its length alone.
  static constexpr int64_t parts = 64;
  bool splits() const {
    return plan_.kept == 1 && plan_.reduced_rank == 1 && !logs_exp() &&
           plan_.reduced >= parts * row_grain / 8;
  }

  void run_split(ThreadPool& pool) const {
    C partial[parts];
    const int64_t size = (plan_.reduced + parts - 1) / parts;
    pool.parallel_for(parts, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = std::min(i * size, plan_.reduced);
        partial[i] = fold_run(first, std::min(size, plan_.reduced - first));
      }
    });
    C value = neutral<C>(fold_);
    for (const C part : partial) value = joined(fold_, value, part);
    put_value(type_, y_, 0, finished(op_, value, plan_.reduced));
  }

  // Many rows of one matrix are cut into parts, so that each thread reads what it wrote itself.
  static constexpr int64_t row_parts = 8;
  static constexpr int64_t part_values = 65536 / sizeof(C);
  bool splits_columns(int64_t inner) const {
    constexpr int64_t fewest = 16;  // rows in a part
    return plan_.kept == inner && !logs_exp() && plan_.reduced >= row_parts * fewest &&
           plan_.reduced * inner >= 2 * row_grain && inner * row_parts <= part_values;
  }

  void run_split_columns(int64_t inner, ThreadPool& pool) const {
    alignas(64) C parts_of[part_values];
    const int64_t size = (plan_.reduced + row_parts - 1) / row_parts;
    pool.parallel_for(row_parts, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t p = begin; p < end; ++p) {
        C* value = parts_of + p * inner;
        std::fill_n(value, inner, neutral<C>(fold_));
        const int64_t first = std::min(p * size, plan_.reduced),
                      last = std::min(first + size, plan_.reduced);
        for (int64_t column = 0; column < inner; column += block)
          columns_folded(column, std::min(block, inner - column), first, last, value + column);
      }
    });
    for (int64_t i = 0; i < inner; ++i) {
      C value = neutral<C>(fold_);
      for (int64_t p = 0; p < row_parts; ++p) value = joined(fold_, value, parts_of[p * inner + i]);
      put_value(type_, y_, i, finished(op_, value, plan_.reduced));
    }
  }

  C fold_run(int64_t offset, int64_t n) const {
    C value = neutral<C>(fold_);
    visit_values<C>(type_, x_, offset, n, [&](const C* v, int64_t, int64_t some) {
      value = joined(fold_, value, folded_row(fold_, v, some));
    });
    return value;
  }

  // visit(offset, n) for the contiguous runs that make the output element at `base`.
  template <class Visit>
  void visit_runs(int64_t base, Visit&& visit) const {
    if (plan_.reduced == 0) return;
    if (plan_.reduced_rank == 0) return visit(base, int64_t{1});
    const int32_t last = plan_.reduced_rank - 1;
    const bool contiguous = plan_.reduced_strides[last] == 1;
    const int64_t n = contiguous ? plan_.reduced_dims[last] : 1;
    Steps at(plan_.reduced_dims, plan_.reduced_strides, contiguous ? last : last + 1, 0);
    for (int64_t i = 0; i < plan_.reduced / n; ++i, at.step()) visit(base + at.offset, n);
  }

  C row_value(int64_t base) const {
    if constexpr (std::is_floating_point_v<C>) {
      if (logs_exp()) {
        C top = min_of<C>();
        visit_runs(base, [&](int64_t at, int64_t n) {
          visit_values<C>(type_, x_, at, n, [&](const C* v, int64_t, int64_t some) {
            top = larger(top, row_max(v, some));
          });
        });
        C sum = 0;
        visit_runs(base, [&](int64_t at, int64_t n) {
          visit_values<C>(type_, x_, at, n, [&](const C* v, int64_t, int64_t some) {
            sum += row_sum_exp(v, safe_center(top), some);
          });
        });
        return log_sum_exp(top, sum);
      }
    }
    C value = neutral<C>(fold_);
    visit_runs(base, [&](int64_t at, int64_t n) { value = joined(fold_, value, fold_run(at, n)); });
    return finished(op_, value, plan_.reduced);
  }

  void rows(int64_t begin, int64_t end) const {
    Steps at(plan_.kept_dims, plan_.kept_strides, plan_.kept_rank, begin);
    for (int64_t k = begin; k < end; ++k, at.step()) put_value(type_, y_, k, row_value(at.offset));
  }

  // Up to `max_width` columns of the innermost kept dimension, at position `outer` of those around
  // it.
  void columns(int64_t outer, int64_t column, int64_t max_width) const {
    const int32_t last = plan_.kept_rank - 1;
    const int64_t inner = plan_.kept_dims[last];
    const int64_t width = std::min(max_width, inner - column);
    const Steps around(plan_.kept_dims, plan_.kept_strides, last, outer);
    const int64_t base = around.offset + column;
    alignas(64) C value[block];
    if (!logs_exp() || std::is_integral_v<C>) {
      std::fill_n(value, width, neutral<C>(fold_));
      columns_folded(base, width, 0, plan_.reduced, value);
      finish_all(value, width);
    } else {
      columns_log_sum_exp(width, value, [&](auto&& visit) { each_row(base, width, visit); });
    }
    const int64_t to = outer * inner + column;
    if (type_ == element_of<C>()) {
      std::copy_n(value, width, static_cast<C*>(y_) + to);
    } else {
      for (int64_t i = 0; i < width; ++i) put_value(type_, y_, to + i, value[i]);
    }
  }

  // Rows [first, last). Groups of them are summed apart, so that rounding does not grow with their
  // number.
  void columns_folded(int64_t base, int64_t width, int64_t first, int64_t last, C* value) const {
    constexpr int64_t group = 128;
    alignas(64) C apart[block];
    const bool equidistant = plan_.reduced_rank == 1 && type_ == element_of<C>();
    Steps at(plan_.reduced_dims, plan_.reduced_strides, plan_.reduced_rank, first);
    for (int64_t begin = first; begin < last; begin += group) {
      const int64_t end = std::min(begin + group, last);
      const bool first_group = begin == first;
      C* const part = first_group ? value : apart;
      std::fill_n(part, width, neutral<C>(fold_));
      if (equidistant) {
        const int64_t stride = plan_.reduced_strides[0];
        const C* rows = static_cast<const C*>(x_) + base + begin * stride;
        column_steps(fold_, rows, stride, end - begin, part, width);
      } else {
        for (int64_t i = begin; i < end; ++i, at.step()) {
          visit_values<C>(type_, x_, base + at.offset, width,
                          [&](const C* v, int64_t j, int64_t some) {
                            column_steps(fold_, v, 0, 1, part + j, some);
                          });
        }
      }
      if (first_group) continue;
      for (int64_t i = 0; i < width; ++i) value[i] = joined(fold_, value[i], part[i]);
    }
  }

  // Of `width` columns, by each_row(visit) with visit(values, column, n) for parts of rows.
  template <class EachRow>
  void columns_log_sum_exp(int64_t width, C* value, EachRow&& each_row) const {
    if constexpr (std::is_floating_point_v<C>) {
      alignas(64) C top[block], center[block];
      std::fill_n(top, width, min_of<C>());
      std::fill_n(value, width, C{0});
      each_row([&](const C* v, int64_t at, int64_t some) {
        column_steps(ColumnOp::max, v, 0, 1, top + at, some);
      });
      for (int64_t i = 0; i < width; ++i) center[i] = safe_center(top[i]);
      each_row([&](const C* v, int64_t at, int64_t some) {
        column_exp(v, center + at, static_cast<C*>(nullptr), value + at, some);
      });
      logarithms(value, width);
      for (int64_t i = 0; i < width; ++i)
        value[i] = std::isinf(top[i]) ? top[i] : top[i] + value[i];
    } else {
      (void)width, (void)value, (void)each_row;
    }
  }

  static void logarithms(C* values, int64_t n) {
    if constexpr (std::is_same_v<C, float>) {
      unary_tile(UnaryOp::log)(values, values, n, {});
    } else {
      for (int64_t i = 0; i < n; ++i) values[i] = std::log(values[i]);
    }
  }

  template <class Visit>
  void each_row(int64_t base, int64_t width, Visit&& visit) const {
    Steps at(plan_.reduced_dims, plan_.reduced_strides, plan_.reduced_rank, 0);
    for (int64_t i = 0; i < plan_.reduced; ++i, at.step()) {
      visit_values<C>(type_, x_, base + at.offset, width, visit);
    }
  }

  ReduceOp op_;
  Fold fold_;
  ElementType type_;
  const ReducePlan& plan_;
  const void* x_;
  void* y_;
};

bool is_wide_integer(ElementType type) { return is_integer(type) && bit_width(type) >= 32; }
bool is_float_below_64(ElementType type) {
  return is_floating(type) && bit_width(type) >= 8 && type != ElementType::float64;
}

// Appends a dimension, merged with the one before where the walk allows it.
void append(int64_t size, int64_t stride, int32_t& rank, int64_t* dims, int64_t* strides) {
  if (size == 1) return;
  if (rank > 0 && strides[rank - 1] == stride * size) {
    dims[rank - 1] *= size;
    strides[rank - 1] = stride;
    return;
  }
  if (rank == ReducePlan::max_rank) {
    fail(ErrorCode::unsupported, "a reduction needs more than {} nested loops",
         ReducePlan::max_rank);
  }
  dims[rank] = size;
  strides[rank] = stride;
  ++rank;
}

// Max and Min of nothing for the integers below 64 bits.
int64_t bound_of(ReduceOp op, ElementType type) {
  const bool greatest = op == ReduceOp::min;
  if (type == ElementType::boolean) return greatest;
  const int bits = bit_width(type);
  if (is_signed_integer(type)) {
    const int64_t most = static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1);
    return greatest ? most : -most - 1;
  }
  return greatest ? static_cast<int64_t>((uint64_t{1} << bits) - 1) : 0;
}

}  // namespace

ReducePlan plan_reduce(std::span<const int64_t> shape, std::span<const int64_t> axes) {
  std::vector<bool> reduced(shape.size());
  for (const int64_t axis : axes) {
    const auto at = static_cast<size_t>(axis);
    if (axis < 0 || at >= shape.size() || reduced[at]) {
      fail(ErrorCode::bad_input, "axes {} do not fit shape {}: each must be in [0, {}), once",
           shape_text(axes), shape_text(shape), shape.size());
    }
    reduced[at] = true;
  }
  if (!checked_count(shape)) fail(ErrorCode::bad_input, "{} is no shape", shape_text(shape));
  ReducePlan plan;
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0; stride *= std::max<int64_t>(shape[d], 1)) {
    strides[d] = stride;
    (reduced[d] ? plan.reduced : plan.kept) *= shape[d];
  }
  if (plan.kept == 0 || plan.reduced == 0) return plan;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (reduced[d]) {
      append(shape[d], strides[d], plan.reduced_rank, plan.reduced_dims, plan.reduced_strides);
    } else {
      append(shape[d], strides[d], plan.kept_rank, plan.kept_dims, plan.kept_strides);
    }
  }
  return plan;
}

bool supports(ReduceOp op, ElementType type) {
  if (op < ReduceOp{} || op >= ReduceOp::count_) return false;
  if (is_float_below_64(type) || type == ElementType::float64 || is_wide_integer(type)) return true;
  const bool extreme = op == ReduceOp::max || op == ReduceOp::min;
  return extreme && (type == ElementType::boolean || (is_integer(type) && bit_width(type) >= 8));
}

void reduce(ReduceOp op, ElementType type, const ReducePlan& plan, const void* x, void* y,
            ThreadPool& pool) {
  if (!supports(op, type)) {
    fail(ErrorCode::unsupported, "this reduction does not take {}", name_of(type));
  }
  const bool extreme = op == ReduceOp::max || op == ReduceOp::min;
  if (plan.reduced == 0 && extreme && !is_floating(type) && type != ElementType::uint64) {
    for (int64_t i = 0; i < plan.kept; ++i) put_value(type, y, i, bound_of(op, type));
    return;
  }
  const bool roots = op == ReduceOp::l2 || op == ReduceOp::log_sum || op == ReduceOp::log_sum_exp;
  if (extreme && type == ElementType::int32) {
    Reduction<int32_t>(op, type, plan, x, y).run(pool);
  } else if (is_float_below_64(type)) {
    Reduction<float>(op, type, plan, x, y).run(pool);
  } else if (type == ElementType::float64 || roots) {
    Reduction<double>(op, type, plan, x, y).run(pool);
  } else if (type == ElementType::uint64) {
    Reduction<uint64_t>(op, type, plan, x, y).run(pool);
  } else {
    Reduction<int64_t>(op, type, plan, x, y).run(pool);
  }
}

}  // namespace sardonyx::kernels
