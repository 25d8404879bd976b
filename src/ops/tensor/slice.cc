// Slice: a regular part of a tensor.
#include <algorithm>
#include <limits>

#include "ops/shared/moving.h"

namespace sardonyx::ops {
namespace slice_unit {
namespace {

// Bounds from here on mean "to the end": exporters write the largest int32 or int64.
constexpr int64_t beyond_32 = std::numeric_limits<int32_t>::max();
constexpr int64_t beyond_64 = int64_t{1} << 62;

// True or false where the sign of a bound is sure, for all sizes.
std::optional<bool> is_negative(const Dim& bound) {
  const auto low = bound.lower(), high = bound.upper();
  if (low && *low >= 0) return false;
  if (high && *high < 0) return true;
  return std::nullopt;
}

// How many elements start:end:step takes of a dimension, where the signs of the bounds are sure.
class TakenSize {
 public:
  TakenSize(InferContext& ctx, const Dim& size) : ctx_(ctx), size_(size) {}

  std::optional<Dim> operator()(const Dim& start, const Dim& end, int64_t step) {
    const auto start_negative = is_negative(start), end_negative = is_negative(end);
    if (!start_negative || !end_negative || step > beyond_32 || step < -beyond_32)
      return std::nullopt;
    return step > 0 ? forward(start, *start_negative, end, *end_negative, step)
                    : backward(start, *start_negative, end, *end_negative, step);
  }

 private:
  // A bound at or above zero that reaches the end of the dimension for sure (or is meant to).
  bool reaches_end(const Dim& bound) {
    if (!bound.is_constant() || size_.is_constant()) return false;
    const int64_t value = *bound.value();
    if (value >= beyond_64) return true;
    if (value < beyond_32) return false;
    ctx_.require_at_least(bound, size_, "a bound that stands for the end of the dimension");
    return true;
  }

  Dim forward(const Dim& start, bool start_negative, const Dim& end, bool end_negative,
              int64_t step) {
    const bool whole = !end_negative && reaches_end(end);
    if (start_negative && whole) return ceil_div(min(Dim(-1) * start, size_), step);
    // A start beyond the end needs no clamping: the difference is below zero then.
    const Dim from = start_negative ? max(size_ + start, 0) : start;
    if (!start_negative && !end_negative && !whole && step == 1) {
      // past : past + seq of a long table: at most seq.
      const Dim asked = end - start;
      if (asked.lower() && *asked.lower() >= 0) return min(asked, max(size_ - start, 0));
    }
    const Dim to = whole ? size_ : end_negative ? size_ + end : min(end, size_);
    return ceil_div(max(to - from, 0), step);
  }

  Dim backward(const Dim& start, bool start_negative, const Dim& end, bool end_negative,
               int64_t step) {
    const Dim last = size_ - Dim(1);
    // A start before the first element is clamped to it, where there is one.
    const Dim from = start == -1 || (!start_negative && reaches_end(start))
                         ? last
                         : min(start_negative ? max(size_ + start, 0) : start, last);
    const bool to_begin = end.is_constant() && *end.value() <= -beyond_32;
    if (to_begin && !size_.is_constant()) return ceil_div(max(from + Dim(1), 0), -step);
    const Dim to = end_negative ? max(size_ + end, -1) : end;
    return ceil_div(max(from - to, 0), -step);
  }

  InferContext& ctx_;
  const Dim& size_;
};

// One axis of a slice on known sizes, clamped as the standard says.
struct Taken {
  int64_t start;
  int64_t count;
};

Taken taken(int64_t size, int64_t start, int64_t end, int64_t step) {
  const auto from_end = [size](int64_t at) {
    return at < 0 ? (at < -size ? -1 - size : at) + size : std::min(at, size);
  };
  start = from_end(start), end = from_end(end);  // now in [-1, size]
  if (step > 0) {
    start = std::max<int64_t>(start, 0), end = std::max<int64_t>(end, 0);
    return {start, end <= start ? 0 : 1 + (end - start - 1) / step};
  }
  // Clamped to [0, size - 1]: one before the first element is at it. Of none, to -1.
  start = std::min(std::max<int64_t>(start, 0), size - 1);
  // -(step + 1) cannot overflow where -step could.
  const uint64_t stride = static_cast<uint64_t>(-(step + 1)) + 1;
  return {
      std::max<int64_t>(start, 0),
      start <= end ? 0 : 1 + static_cast<int64_t>(static_cast<uint64_t>(start - end - 1) / stride)};
}

// The axes a slice names, made non-negative; all by default.
std::vector<int64_t> sliced_axes(const NodeView& node,
                                 const std::optional<std::vector<int64_t>>& given, size_t bounds,
                                 int64_t rank) {
  std::vector<int64_t> axes;
  if (!given) {
    if (static_cast<int64_t>(bounds) > rank)
      node.fail("starts has {} elements; the input has rank {}", bounds, rank);
    for (size_t i = 0; i < bounds; ++i) axes.push_back(static_cast<int64_t>(i));
    return axes;
  }
  if (given->size() != bounds)
    node.fail("axes must have as many elements as starts, {}; it has {}", bounds, given->size());
  std::vector<bool> used(static_cast<size_t>(rank), false);
  for (const int64_t axis : *given) {
    axes.push_back(node.normalized_axis(axis, rank));
    if (used[static_cast<size_t>(axes.back())])
      node.fail("axes must name each axis once; axis {} occurs twice", axes.back());
    used[static_cast<size_t>(axes.back())] = true;
  }
  return axes;
}

void check_steps(const NodeView& node, const std::vector<int64_t>& steps, size_t bounds) {
  if (steps.size() != bounds)
    node.fail("steps must have as many elements as starts, {}; it has {}", bounds, steps.size());
  for (const int64_t step : steps) {
    if (step == 0) node.fail("steps must not be 0");
  }
}

void pass_known(InferContext& ctx, const std::vector<int64_t>& axes, const Dims& starts,
                const Dims& ends, const std::vector<int64_t>& steps) {
  const auto shape = known_shape(ctx, 0);
  if (!shape) return;
  std::vector<int64_t> from(shape->size(), 0), by(shape->size(), 1), out = *shape;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!starts[i].is_constant() || !ends[i].is_constant()) return;
    const auto at = static_cast<size_t>(axes[i]);
    const Taken part = taken((*shape)[at], *starts[i].value(), *ends[i].value(), steps[i]);
    from[at] = part.start, by[at] = steps[i], out[at] = part.count;
  }
  const auto copy = kernels::plan_slice(*shape, from, by, out);
  move_known(ctx, 0, copy, 0, copy.count);
}

void infer(InferContext& ctx) {
  const ElementType type = ctx.element(0);
  const auto& in = ctx.shape(0);
  if (!in) {
    ctx.set(0, ValueType::tensor(type));
    return;
  }
  const auto rank = static_cast<int64_t>(in->size());
  const auto starts = values_of(ctx, 1), ends = values_of(ctx, 2);
  const auto given_axes = numbers_of(ctx, 3);
  std::optional<std::vector<int64_t>> steps = numbers_of(ctx, 4);
  if (!ctx.has_input(4) && starts) steps = std::vector<int64_t>(starts->size(), 1);
  if (ctx.has_input(3) && !given_axes) {  // any dimension may be cut
    Dims out;
    for (const Dim& size : *in) out.push_back(ctx.unknown(size));
    ctx.set(0, type, std::move(out));
    return;
  }
  const auto count = starts       ? std::optional(static_cast<int64_t>(starts->size()))
                     : given_axes ? static_cast<int64_t>(given_axes->size())
                                  : length_of(ctx, 1);
  if (!count) {
    set_rank(ctx, type, rank);
    return;
  }
  const auto bounds = static_cast<size_t>(*count);
  const auto axes = sliced_axes(ctx, given_axes, bounds, rank);
  if (ends && ends->size() != bounds)
    ctx.fail("ends must have as many elements as starts, {}; it has {}", bounds, ends->size());
  if (steps) check_steps(ctx, *steps, bounds);
  Dims out = *in;
  for (size_t i = 0; i < bounds; ++i) {
    Dim& size = out[static_cast<size_t>(axes[i])];
    std::optional<Dim> cut;
    if (starts && ends && steps) {
      const Dim &start = (*starts)[i], &end = (*ends)[i];
      if (size.is_constant() && start.is_constant() && end.is_constant()) {
        cut = Dim(taken(*size.value(), *start.value(), *end.value(), (*steps)[i]).count);
      } else {
        cut = TakenSize(ctx, size)(start, end, (*steps)[i]);
      }
    }
    size = cut ? *cut : ctx.unknown(size);
  }
  ctx.set(0, type, std::move(out));
  if (starts && ends && steps) pass_known(ctx, axes, *starts, *ends, *steps);
}

using Numbers = std::optional<std::vector<int64_t>>;

// Inference sees no bounds that are computed where they can't change the shape: of a scalar, or of
// dimensions of size 0.
void check_bounds(size_t rank, size_t starts, size_t ends, const Numbers& axes,
                  const Numbers& steps) {
  const auto fail = [](std::string message) {
    throw Error(ErrorCode::run_failed, std::move(message));
  };
  if (ends != starts || (axes && axes->size() != starts) || (steps && steps->size() != starts))
    fail(fmt::format("starts, ends, axes and steps must have as many elements; starts has {}",
                     starts));
  if (!axes && starts > rank)
    fail(fmt::format("starts has {} elements; the input has rank {}", starts, rank));
  const auto limit = static_cast<int64_t>(rank);
  for (size_t i = 0; i < starts; ++i) {
    if (axes && ((*axes)[i] < -limit || (*axes)[i] >= limit))
      fail(fmt::format("axes[{}] is {}; the input has rank {}", i, (*axes)[i], rank));
    if (steps && (*steps)[i] == 0) fail("steps must not be 0");
  }
}

// The copy for known sizes and bounds.
kernels::StridedCopy plan(const StepShapes& shapes, const std::vector<int64_t>& starts,
                          const std::vector<int64_t>& ends, const Numbers& axes,
                          const Numbers& steps) {
  const auto shape = shapes.in_shape(0);
  const auto rank = static_cast<int64_t>(shape.size());
  check_bounds(shape.size(), starts.size(), ends.size(), axes, steps);
  std::vector<int64_t> from(shape.size(), 0), by(shape.size(), 1);
  for (size_t i = 0; i < starts.size(); ++i) {
    int64_t axis = axes ? (*axes)[i] : static_cast<int64_t>(i);
    axis += axis < 0 ? rank : 0;
    const auto at = static_cast<size_t>(axis);
    by[at] = steps ? (*steps)[i] : 1;
    from[at] = taken(shape[at], starts[i], ends[i], by[at]).start;
  }
  return kernels::plan_slice(shape, from, by, shapes.out_shape(0));
}

Numbers read(const RunContext& run, int input) {
  if (!run.has_input(input)) return std::nullopt;
  std::vector<int64_t> numbers(static_cast<size_t>(run.in_size(input)));
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = integer_at(run, input, static_cast<int64_t>(i));
  return numbers;
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const Numbers starts = constant_numbers(ctx, 1), ends = constant_numbers(ctx, 2);
  const Numbers axes = constant_numbers(ctx, 3), steps = constant_numbers(ctx, 4);
  const bool fixed = starts && ends && (axes || !ctx.has_input(3)) && (steps || !ctx.has_input(4));
  if (fixed) {
    return make_copy_step(ctx, "slice.strided", [=](const BindContext& bind) {
      return plan(bind, *starts, *ends, axes, steps);
    });
  }
  return make_step(
      "slice.by_values", [cell = kernels::cell_of(ctx.in_element(0))](RunContext& run) {
        const auto copy = plan(run, *read(run, 1), *read(run, 2), read(run, 3), read(run, 4));
        kernels::copy_strided(cell, copy, run.data(0), run.out_data(0), run.pool());
      });
}

// Version 1 held the bounds in attributes; absent axes were the first ones.
void upgrade(UpgradeContext& ctx) {
  if (ctx.since() >= 10) return;
  const auto starts = ctx.old().attr_ints("starts"), ends = ctx.old().attr_ints("ends");
  if (!starts || !ends)
    ctx.fail(ErrorCode::invalid_model,
             "attributes 'starts' and 'ends' are required; add them to the node");
  auto axes = ctx.old().attr_ints("axes").value_or(std::vector<int64_t>());
  if (axes.empty()) {
    for (size_t i = 0; i < starts->size(); ++i) axes.push_back(static_cast<int64_t>(i));
  }
  ctx.set_input(1, ctx.constant_ints(*starts, "starts"));
  ctx.set_input(2, ctx.constant_ints(*ends, "ends"));
  ctx.set_input(3, ctx.constant_ints(axes, "axes"));
  for (const auto* name : {"starts", "ends", "axes"}) ctx.remove_attribute(name);
}

constexpr Operator operators[] = {
    {.name = "Slice", .infer = infer, .prepare = prepare, .upgrade = upgrade, .same_since = 10}};

}  // namespace
}  // namespace slice_unit

std::span<const Operator> slice_operators() { return slice_unit::operators; }

}  // namespace sardonyx::ops
