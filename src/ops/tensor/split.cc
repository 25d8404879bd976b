// Split: a tensor cut into parts along an axis.
#include <algorithm>
#include <array>

#include "ops/objections.h"
#include "ops/shared/moving.h"

namespace sardonyx::ops {
namespace split_unit {
namespace {

// Equal parts, the last one smaller where the size does not divide.
Dims equal_parts(InferContext& ctx, const Dim& size) {
  const int64_t parts = ctx.attr_int("num_outputs", ctx.output_count());
  if (parts != ctx.output_count()) {
    ctx.fail("num_outputs must be the number of outputs, {}; got {}", ctx.output_count(), parts);
  }
  if (!ctx.has_attribute("num_outputs"))
    object(ctx,
           "needs input 'split' or attribute num_outputs; {} outputs are taken for as many parts",
           parts);
  if (const auto each = exact_div(size, parts)) return Dims(static_cast<size_t>(parts), *each);
  const Dim each = ceil_div(size, parts);
  const Dim last = size - Dim(parts - 1) * each;
  ctx.require_at_least(last, 0,
                       fmt::format("{} cannot be cut into {} parts of {}", size.to_string(), parts,
                                   each.to_string()));
  Dims sizes(static_cast<size_t>(parts), each);
  sizes.back() = last;
  return sizes;
}

std::optional<Dims> part_sizes(InferContext& ctx, const Dim& size) {
  if (!ctx.has_input(1)) return equal_parts(ctx, size);
  if (ctx.has_attribute("num_outputs"))
    ctx.fail("input 'split' and attribute num_outputs exclude each other; keep one");
  auto sizes = values_of(ctx, 1);
  if (!sizes) return std::nullopt;
  if (static_cast<int>(sizes->size()) != ctx.output_count()) {
    ctx.fail("split must name {} sizes, one per output; it names {}", ctx.output_count(),
             sizes->size());
  }
  Dim sum(0);
  for (const Dim& part : *sizes) {
    ctx.require_at_least(part, 0, "a size in split");
    sum = sum + part;
  }
  if (sum.is_indefinite() && std::ranges::all_of(*sizes, &Dim::is_constant))
    object(ctx, "the sizes in split add up to more than 63 bits hold");
  ctx.require_equal(sum, size, "the sizes in split must add up to the dimension");
  return sizes;
}

void pass_known(InferContext& ctx, const Dims& sizes, int64_t axis) {
  const auto shape = known_shape(ctx, 0);
  if (!shape ||
      !std::all_of(sizes.begin(), sizes.end(), [](const Dim& d) { return d.is_constant(); }))
    return;
  int64_t position = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto copy = kernels::plan_split(*shape, axis, position, *sizes[i].value());
    move_known(ctx, 0, copy, static_cast<int>(i), copy.count);
    position += *sizes[i].value();
  }
}

void infer(InferContext& ctx) {
  const ElementType type = ctx.element(0);
  const auto& in = ctx.shape(0);
  if (!in) {
    for (int i = 0; i < ctx.output_count(); ++i) ctx.set(i, ValueType::tensor(type));
    return;
  }
  const int64_t axis = ctx.normalized_axis(ctx.attr_int("axis"), static_cast<int64_t>(in->size()));
  const Dim& size = (*in)[static_cast<size_t>(axis)];
  const auto sizes = part_sizes(ctx, size);
  for (int i = 0; i < ctx.output_count(); ++i) {
    Dims out = *in;
    out[static_cast<size_t>(axis)] = sizes ? (*sizes)[static_cast<size_t>(i)] : ctx.unknown(size);
    ctx.set(i, type, std::move(out));
  }
  if (sizes) pass_known(ctx, *sizes, axis);
}

int64_t axis_of(const StepShapes& shapes, int64_t axis) {
  return axis < 0 ? axis + static_cast<int64_t>(shapes.in_shape(0).size()) : axis;
}

constexpr int max_planned = 8;
struct State {
  std::array<kernels::StridedCopy, max_planned> copies;
};

// Some output is absent: positions come from the sizes asked for.
std::unique_ptr<Step> prepare_sparse_outputs(PrepareContext& ctx, int64_t given_axis,
                                             kernels::Cell cell) {
  const bool equal = !ctx.has_input(1);
  return make_step("split.some", [given_axis, cell, equal](RunContext& run) {
    const int64_t axis = axis_of(run, given_axis), parts = run.output_count();
    const int64_t dim = run.in_shape(0)[static_cast<size_t>(axis)];
    const int64_t each = (dim + parts - 1) / parts;
    int64_t position = 0;
    for (int i = 0; i < parts; ++i) {
      const int64_t size = equal ? std::min(each, dim - position) : integer_at(run, 1, i);
      if (run.has_output(i)) {
        kernels::copy_strided(cell, kernels::plan_split(run.in_shape(0), axis, position, size),
                              run.data(0), run.out_data(i), run.pool());
      }
      position += size;
    }
  });
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const int64_t given_axis = ctx.attr_int("axis");
  const kernels::Cell cell = kernels::cell_of(ctx.in_element(0));
  for (int i = 0; i < ctx.output_count(); ++i) {
    if (!ctx.has_output(i)) return prepare_sparse_outputs(ctx, given_axis, cell);
  }
  const auto plan = [](const StepShapes& shapes, int part, int64_t axis, int64_t& position) {
    const int64_t size = shapes.out_shape(part)[static_cast<size_t>(axis)];
    const auto copy = kernels::plan_split(shapes.in_shape(0), axis, position, size);
    position += size;
    return copy;
  };
  auto step = make_step<State>(
      "split.strided",
      [given_axis, plan](BindContext& bind, State& state) {
        const int64_t axis = axis_of(bind, given_axis);
        int64_t position = 0;
        for (int i = 0; i < std::min(max_planned, bind.output_count()); ++i) {
          state.copies[static_cast<size_t>(i)] = plan(bind, i, axis, position);
        }
      },
      [given_axis, cell, plan](RunContext& run, const State& state) {
        const int parts = run.output_count();
        for (int i = 0; i < std::min(max_planned, parts); ++i) {
          kernels::copy_strided(cell, state.copies[static_cast<size_t>(i)], run.data(0),
                                run.out_data(i), run.pool());
        }
        if (parts <= max_planned) return;
        const int64_t axis = axis_of(run, given_axis);
        int64_t position = 0;
        for (int i = 0; i < parts; ++i) {
          const auto copy = plan(run, i, axis, position);
          if (i >= max_planned)
            kernels::copy_strided(cell, copy, run.data(0), run.out_data(i), run.pool());
        }
      });
  if (ctx.has_input(1)) step->traits().unread_inputs = {1};
  return step;
}

// Version 1 took the sizes as a float input, versions 2 to 11 as an attribute; up to 13 their
// absence meant equal parts, one per output.
void upgrade(UpgradeContext& ctx) {
  const auto sizes = ctx.old().attr_ints("split");
  if (ctx.since() < 2 && ctx.has_input(1)) {
    ctx.set_input(1, ctx.before("Cast", {ctx.node().inputs[1]},
                                {int_attribute("to", static_cast<int64_t>(ElementType::int64))}));
  } else if (ctx.since() < 13 && sizes && !sizes->empty()) {
    ctx.set_input(1, ctx.constant_ints(*sizes, "split"));
  }
  if (ctx.since() < 13) ctx.remove_attribute("split");
  if (ctx.since() < 18 && !ctx.has_input(1)) {
    ctx.set_attribute("num_outputs", static_cast<int64_t>(ctx.node().outputs.size()));
  }
}

constexpr Operator operators[] = {
    {.name = "Split", .infer = infer, .prepare = prepare, .upgrade = upgrade, .same_since = 18}};

}  // namespace
}  // namespace split_unit

std::span<const Operator> split_operators() { return split_unit::operators; }

}  // namespace sardonyx::ops
