// Concat: tensors joined along an axis.
#include <algorithm>
#include <array>
#include <cstring>

#include "base/checked.h"
#include "kernels/move/small_copy.h"
#include "ops/shared/moving.h"

namespace sardonyx::ops {
namespace concat_unit {
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
constexpr int max_planned = 8;
struct State {
  std::array<kernels::StridedCopy, max_planned> copies;
  int64_t planned_end = 0;  // where along the axis the first unplanned input begins
  // Of short pieces instead: rows around the axis, the output's bytes in each, and those of an
  // element of the axis.
  int64_t rows = 0, row_bytes = 0, inner_bytes = 0;
};

// Whether the pieces that inputs give to a row are so short, or of so many inputs all so little,
// that a pass for each input would cost more than the copying.
bool has_short_pieces(const State& state, int inputs) {
  constexpr int64_t short_piece = 64, little = 4096;
  if (state.rows * state.row_bytes <= little) return inputs > max_planned;
  return state.rows > 1 && state.row_bytes <= short_piece * inputs;
}

template <int64_t bytes>
void copy_column_of(const char* from, char* to, int64_t to_stride, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r) std::memcpy(to + r * to_stride, from + r * bytes, bytes);
}

void copy_column(const char* from, int64_t bytes, char* to, int64_t to_stride, int64_t rows) {
  switch (bytes) {
    case 1: return copy_column_of<1>(from, to, to_stride, rows);
    case 4: return copy_column_of<4>(from, to, to_stride, rows);
    case 8: return copy_column_of<8>(from, to, to_stride, rows);
    case 12: return copy_column_of<12>(from, to, to_stride, rows);
    case 16: return copy_column_of<16>(from, to, to_stride, rows);
    default:
      for (int64_t r = 0; r < rows; ++r)
        kernels::copy_few(from + r * bytes, to + r * to_stride, static_cast<size_t>(bytes));
  }
}

// Some rows of all inputs at a time, while the rows of the output are near.
void run_by_rows(RunContext& run, const State& state, int64_t axis) {
  constexpr int64_t near_bytes = 16384, grain_bytes = 65536;
  const int64_t step = std::max<int64_t>(1, near_bytes / state.row_bytes);
  const auto copy = [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row += step) {
      auto* to = static_cast<char*>(run.out_data(0)) + row * state.row_bytes;
      for (int i = 0; i < run.input_count(); ++i) {
        const int64_t bytes = run.in_shape(i)[static_cast<size_t>(axis)] * state.inner_bytes;
        if (bytes == 0) continue;
        copy_column(static_cast<const char*>(run.data(i)) + row * bytes, bytes, to, state.row_bytes,
                    std::min(step, end - row));
        to += bytes;
      }
    }
  };
  if (state.rows * state.row_bytes <= grain_bytes) return copy(0, state.rows);
  run.pool().parallel_for(state.rows, std::max<int64_t>(1, grain_bytes / state.row_bytes),
                          [&](int64_t begin, int64_t end, int) { copy(begin, end); });
}

void bind_rows(const StepShapes& shapes, kernels::Cell cell, int64_t axis, State& state) {
  const auto out = shapes.out_shape(0);
  const auto at = static_cast<size_t>(axis);
  if (cell == kernels::Cell::text || count_of(out) == 0) return;
  state.inner_bytes = kernels::cell_bytes(cell) * count_of(out.subspan(at + 1));
  state.row_bytes = out[at] * state.inner_bytes;
  state.rows = count_of(out.first(at));
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  if (ctx.input_count() == 1) return make_view_step("concat.view");
  const int64_t given_axis = ctx.attr_int("axis");
  const kernels::Cell cell = kernels::cell_of(ctx.in_element(0));
  return make_step<State>(
      "concat.strided",
      [given_axis, cell](BindContext& bind, State& state) {
        const int64_t axis = axis_of(bind, given_axis);
        bind_rows(bind, cell, axis, state);
        if (state.rows > 0 && has_short_pieces(state, bind.input_count())) return;
        state.rows = 0;
        int64_t position = 0;
        for (int i = 0; i < std::min(max_planned, bind.input_count()); ++i) {
          state.copies[static_cast<size_t>(i)] = plan_part(bind, i, axis, position);
          position += bind.in_shape(i)[static_cast<size_t>(axis)];
        }
        state.planned_end = position;
      },
      [given_axis, cell](RunContext& run, const State& state) {
        const int64_t axis = axis_of(run, given_axis);
        if (state.rows > 0) return run_by_rows(run, state, axis);
        for (int i = 0; i < std::min(max_planned, run.input_count()); ++i) {
          kernels::copy_strided(cell, state.copies[static_cast<size_t>(i)], run.data(i),
                                run.out_data(0), run.pool());
        }
        int64_t position = state.planned_end;
        for (int i = max_planned; i < run.input_count(); ++i) {
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
}  // namespace concat_unit

std::span<const Operator> concat_operators() { return concat_unit::operators; }

}  // namespace sardonyx::ops
