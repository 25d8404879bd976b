#include "kernels/move/pad.h"

#include <algorithm>
#include <string>
#include <type_traits>

#include "base/checked.h"
#include "base/fail.h"
#include "kernels/elementwise/walk.h"
#include "kernels/move/by_cell.h"
#include "kernels/shape_text.h"

namespace sardonyx::kernels {
namespace {

// One axis: output position i shows element `source(i)` of the input, or the constant.
struct PadAxis {
  int64_t in = 1, out = 1;
  int64_t before = 0;
  int64_t first = 0, kept = 1;  // what cropping leaves of the input

  int64_t source(PadMode mode, int64_t i) const {
    if (mode == PadMode::constant) {
      const int64_t at = i - before;
      return at >= 0 && at < in ? at : -1;
    }
    int64_t at = i - std::max<int64_t>(before, 0);
    if (at >= 0 && at < kept) return first + at;
    if (mode == PadMode::edge) return first + std::clamp<int64_t>(at, 0, kept - 1);
    const int64_t period = mode == PadMode::wrap ? kept : std::max<int64_t>(2 * (kept - 1), 1);
    at %= period;
    if (at < 0) at += period;
    if (at >= kept) at = period - at;
    return first + at;
  }

  // Output positions [begin, end) show consecutive input elements.
  int64_t plain_begin() const { return std::clamp<int64_t>(before, 0, out); }
  int64_t plain_end(PadMode mode) const {
    const int64_t end =
        mode == PadMode::constant ? before + in : std::max<int64_t>(before, 0) + kept;
    return std::clamp<int64_t>(end, plain_begin(), out);
  }
};

struct PadPlan {
  static constexpr int max_rank = 16;
  PadMode mode = PadMode::constant;
  int rank = 0;  // axes that are walked; the last is the one rows run along
  PadAxis axes[max_rank];
  int64_t inner = 1;  // elements below the last padded axis
  int64_t rows = 1;
};

PadAxis make_axis(PadMode mode, int64_t in, int64_t before, int64_t after) {
  const auto grown = checked_add(in, before);
  const auto out = grown ? checked_add(*grown, after) : std::nullopt;
  if (!out || *out < 0) {
    fail(ErrorCode::bad_input, "padding an axis of {} elements by {} and {} gives no valid size",
         in, before, after);
  }
  PadAxis axis{in, *out, before, 0, in};
  if (mode == PadMode::constant || *out == 0) return axis;
  axis.first = before < 0 ? -before : 0;
  axis.kept = in - axis.first - (after < 0 ? -after : 0);
  if (axis.kept <= 0) {
    fail(ErrorCode::bad_input,
         "padding by {} and {} leaves nothing of an axis of {} elements to "
         "repeat; use mode constant",
         before, after, in);
  }
  return axis;
}

PadPlan make_plan(PadMode mode, std::span<const int64_t> shape, std::span<const int64_t> before,
                  std::span<const int64_t> after) {
  const size_t rank = shape.size();
  if (before.size() != rank || after.size() != rank) {
    fail(ErrorCode::bad_input, "{} and {} paddings for the {} axes of shape {}", before.size(),
         after.size(), rank, shape_text(shape));
  }
  PadPlan plan;
  plan.mode = mode;
  const auto padded = [&](size_t d) { return before[d] != 0 || after[d] != 0; };
  size_t last = rank;
  while (last > 0 && !padded(last - 1)) plan.inner *= shape[--last];
  bool merging = false;
  for (size_t d = 0; d < last; ++d) {
    const PadAxis axis = make_axis(mode, shape[d], before[d], after[d]);
    if (merging && !padded(d)) {
      PadAxis& previous = plan.axes[plan.rank - 1];
      previous.in = previous.out = previous.kept = previous.in * shape[d];
      continue;
    }
    merging = !padded(d);
    if (plan.rank == PadPlan::max_rank) {
      fail(ErrorCode::unsupported, "padding more than {} axes of shape {}", PadPlan::max_rank,
           shape_text(shape));
    }
    plan.axes[plan.rank++] = axis;
  }
  if (plan.rank == 0) plan.axes[plan.rank++] = PadAxis{};
  for (int d = 0; d + 1 < plan.rank; ++d) {
    if (__builtin_mul_overflow(plan.rows, plan.axes[d].out, &plan.rows)) {
      fail(ErrorCode::bad_input, "padding shape {} gives too many elements", shape_text(shape));
    }
  }
  return plan;
}

// What the ends of all rows show where the last axis is not constant: few elements before what is
// plain, and few behind it.
struct RowEnds {
  static constexpr int64_t most = 64;
  explicit RowEnds(const PadPlan& plan) {
    const PadAxis& axis = plan.axes[plan.rank - 1];
    begin = axis.plain_begin(), end = axis.plain_end(plan.mode);
    known = plan.mode != PadMode::constant && plan.inner == 1 && begin <= most &&
            axis.out - end <= most;
    for (int64_t i = 0; known && i < begin; ++i) before[i] = axis.source(plan.mode, i);
    for (int64_t i = end; known && i < axis.out; ++i) after[i - end] = axis.source(plan.mode, i);
  }
  int64_t begin, end;  // what is plain
  bool known;
  int64_t before[most], after[most];
};

template <class T>
void pad_row(const PadPlan& plan, const RowEnds& ends, const T* x, const T& value, T* y) {
  const PadAxis& axis = plan.axes[plan.rank - 1];
  const int64_t begin = ends.begin, end = ends.end;
  if (ends.known && begin < end) {
    for (int64_t i = 0; i < begin; ++i) y[i] = x[ends.before[i]];
    std::copy_n(x + axis.source(plan.mode, begin), end - begin, y + begin);
    for (int64_t i = end; i < axis.out; ++i) y[i] = x[ends.after[i - end]];
    return;
  }
  const auto odd = [&](int64_t i) {
    const int64_t source = axis.source(plan.mode, i);
    if (source < 0) {
      std::fill_n(y + i * plan.inner, plan.inner, value);
    } else {
      std::copy_n(x + source * plan.inner, plan.inner, y + i * plan.inner);
    }
  };
  // Beside what is plain there is nothing but the constant, where there is one.
  const auto odd_ones = [&](int64_t first, int64_t last) {
    if (plan.mode == PadMode::constant) {
      std::fill(y + first * plan.inner, y + last * plan.inner, value);
    } else {
      for (int64_t i = first; i < last; ++i) odd(i);
    }
  };
  odd_ones(0, begin);
  if (begin < end) {
    std::copy_n(x + axis.source(plan.mode, begin) * plan.inner, (end - begin) * plan.inner,
                y + begin * plan.inner);
  }
  odd_ones(end, axis.out);
}

// The input row that output row `row` shows, or -1 where it is all constant.
int64_t source_row(const PadPlan& plan, int64_t row) {
  int64_t at = 0;
  int64_t stride = 1;
  for (int d = plan.rank - 1; d-- > 0;) {
    const PadAxis& axis = plan.axes[d];
    const int64_t source = axis.source(plan.mode, row % axis.out);
    row /= axis.out;
    if (source < 0) return -1;
    at += source * stride;
    stride *= axis.in;
  }
  return at;
}

template <class T>
void pad_all(const PadPlan& plan, const T* x, const T& value, T* y, ThreadPool& pool) {
  const PadAxis& last = plan.axes[plan.rank - 1];
  const int64_t in_row = last.in * plan.inner;
  const int64_t out_row = last.out * plan.inner;
  if (out_row == 0 || plan.rows == 0) return;
  const RowEnds ends(plan);
  const auto run = [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t source = source_row(plan, row);
      if (source < 0) {
        std::fill_n(y + row * out_row, out_row, value);
      } else {
        pad_row(plan, ends, x + source * in_row, value, y + row * out_row);
      }
    }
  };
  const int64_t grain = std::max<int64_t>(1, element_grain / out_row);
  if (plan.rows <= grain) return run(0, plan.rows, 0);
  pool.parallel_for(plan.rows, grain, run);
}

}  // namespace

void pad(Cell cell, PadMode mode, std::span<const int64_t> shape, std::span<const int64_t> before,
         std::span<const int64_t> after, const void* value, const void* x, void* y,
         ThreadPool& pool) {
  const PadPlan plan = make_plan(mode, shape, before, after);
  by_cell(cell, [&](const auto& zero) {
    using T = std::remove_cvref_t<decltype(zero)>;
    const T& constant = value != nullptr ? *static_cast<const T*>(value) : zero;
    pad_all(plan, static_cast<const T*>(x), constant, static_cast<T*>(y), pool);
  });
}

}  // namespace sardonyx::kernels
