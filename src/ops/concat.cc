// Concat: tensors joined along an axis.
#include <algorithm>
#include <array>

#include "ops/families/moving.h"

namespace sardonyx::ops {
namespace {

void pass_known(InferContext& ctx, const Dims& out, int64_t axis) {
  for (int i = 0; i < ctx.input_count(); ++i) {
    if (ctx.elements(i) == nullptr) return;
  }
  const auto shape = small_shape(out);
  if (!shape) return;
  Dims elements(static_cast<size_t>(*product(out).value()));
  int64_t position = 0;
  for (int i = 0; i < ctx.input_count(); ++i) {
    const auto part = known_shape(ctx, i);
    if (!part) return;
    copy_known(kernels::plan_concat(*part, *shape, axis, position), *ctx.elements(i), elements);
    position += (*part)[static_cast<size_t>(axis)];
  }
  ctx.set_elements(0, std::move(elements));
}

void infer(InferContext& ctx) {
  ElementType type = ElementType::undefined;
  std::optional<int64_t> rank;
  for (int i = 0; i < ctx.input_count(); ++i) {
    if (type == ElementType::undefined) type = ctx.element(i);
    const auto own = ctx.rank(i);
    if (own && rank && *own != *rank)
      ctx.fail("inputs must have one rank; input 0 has {} and input {} has {}", *rank, i, *own);
    if (own) rank = own;
  }
  if (!rank) {
    ctx.set(0, ValueType::tensor(type));
    return;
  }
  const int64_t axis = ctx.normalized_axis(ctx.attr_int("axis"), *rank);
  Dims out;
  out.reserve(static_cast<size_t>(*rank));
  for (int64_t d = 0; d < *rank; ++d) {
    const auto at = static_cast<size_t>(d);
    std::optional<Dim> size;
    bool open = false;
    for (int i = 0; i < ctx.input_count(); ++i) {
      const auto& in = ctx.shape(i);
      if (!in) {
        open = true;
      } else if (!size) {
        size = (*in)[at];
      } else if (d == axis) {
        size = *size + (*in)[at];
      } else if (*size != (*in)[at]) {
        size = agreed(
            ctx, *size, (*in)[at],
            fmt::format("inputs must agree in all dimensions but axis {}; dimension {}", axis, d));
      }
    }
    out.push_back(d == axis && open ? ctx.unknown() : *size);
  }
  ctx.set(0, type, out);
  pass_known(ctx, out, axis);
}

kernels::StridedCopy plan_part(const StepShapes& shapes, int input, int64_t axis,
                               int64_t position) {
  return kernels::plan_concat(shapes.in_shape(input), shapes.out_shape(0), axis, position);
}

int64_t axis_of(const StepShapes& shapes, int64_t axis) {
  return axis < 0 ? axis + static_cast<int64_t>(shapes.out_shape(0).size()) : axis;
}

// Copies planned ahead; with more inputs than this the rest is planned while it runs.
constexpr int most_planned = 8;
struct State {
  std::array<kernels::StridedCopy, most_planned> copies;
  int64_t planned_end = 0;  // where along the axis the first unplanned input begins
};

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  if (ctx.input_count() == 1) return make_view_step("concat.view");
  const int64_t given_axis = ctx.attr_int("axis");
  const kernels::Cell cell = kernels::cell_of(ctx.in_element(0));
  return make_step<State>(
      "concat.strided",
      [given_axis](BindContext& bind, State& state) {
        const int64_t axis = axis_of(bind, given_axis);
        int64_t position = 0;
        for (int i = 0; i < std::min(most_planned, bind.input_count()); ++i) {
          state.copies[static_cast<size_t>(i)] = plan_part(bind, i, axis, position);
          position += bind.in_shape(i)[static_cast<size_t>(axis)];
        }
        state.planned_end = position;
      },
      [given_axis, cell](RunContext& run, const State& state) {
        for (int i = 0; i < std::min(most_planned, run.input_count()); ++i) {
          kernels::copy_strided(cell, state.copies[static_cast<size_t>(i)], run.data(i),
                                run.out_data(0), run.pool());
        }
        int64_t position = state.planned_end;
        for (int i = most_planned; i < run.input_count(); ++i) {
          const int64_t axis = axis_of(run, given_axis);
          kernels::copy_strided(cell, plan_part(run, i, axis, position), run.data(i),
                                run.out_data(0), run.pool());
          position += run.in_shape(i)[static_cast<size_t>(axis)];
        }
      });
}

// Version 1 had the default axis 1.
void upgrade(UpgradeContext& ctx) {
  if (ctx.since() < 4 && !ctx.old().has_attribute("axis")) ctx.set_attribute("axis", int64_t{1});
}

constexpr Operator operators[] = {
    {.name = "Concat", .infer = infer, .prepare = prepare, .upgrade = upgrade, .same_since = 4}};

}  // namespace

std::span<const Operator> concat_operators() { return operators; }

}  // namespace sardonyx::ops
