// EyeLike and Trilu: diagonals and triangles of matrices.
#include "base/checked.h"
#include "kernels/move/arrange.h"
#include "ops/shared/moving.h"

namespace sardonyx::ops {
namespace matrix_shape_unit {
namespace {

void infer_eye_like(InferContext& ctx) {
  const auto type =
      ctx.has_attribute("dtype") ? static_cast<ElementType>(ctx.attr_int("dtype")) : ctx.element(0);
  if (ctx.has_attribute("dtype") && !is_known(type))
    ctx.fail("dtype must be the number of an element type; got {}", ctx.attr_int("dtype"));
  const auto& in = ctx.shape(0);
  if (in && in->size() != 2) ctx.fail("the input must be a matrix; it has rank {}", in->size());
  ctx.set(0, type, in ? *in : ctx.unknown_shape(2));
}

std::unique_ptr<Step> prepare_eye_like(PrepareContext& ctx) {
  const int64_t k = ctx.attr_int("k", 0);
  auto step = make_step("eye_like", [k, type = ctx.out_element(0)](RunContext& run) {
    const auto shape = run.out_shape(0);
    kernels::eye(type, shape[0], shape[1], k, run.out_data(0), run.pool());
  });
  step->traits().unread_inputs = {0};
  return step;
}

void infer_trilu(InferContext& ctx) {
  if (const auto rank = ctx.rank(0); rank && *rank < 2)
    ctx.fail("the input must have rank 2 or more; it has {}", *rank);
  ctx.set(0, ctx.type(0));
  const auto shape = known_shape(ctx, 0);
  const auto diagonal = ctx.has_input(1) ? numbers_of(ctx, 1) : std::vector<int64_t>{0};
  if (!shape || !diagonal || diagonal->size() != 1) return;
  const int64_t rows = (*shape)[shape->size() - 2], columns = shape->back(), k = diagonal->front();
  const bool upper = ctx.attr_int("upper") != 0;
  Dims elements = *ctx.elements(0);
  for (size_t i = 0; i < elements.size(); ++i) {
    const int64_t row = static_cast<int64_t>(i) / columns % rows,
                  column = static_cast<int64_t>(i) % columns;
    const int64_t offset = column - row;
    if (upper ? offset < k : offset > k) elements[i] = Dim(0);
  }
  ctx.set_elements(0, std::move(elements));
}

std::unique_ptr<Step> prepare_trilu(PrepareContext& ctx) {
  const bool upper = ctx.attr_int("upper") != 0;
  auto step =
      make_step("trilu", [upper, cell = kernels::cell_of(ctx.in_element(0))](RunContext& run) {
        const auto shape = run.in_shape(0);
        const int64_t rows = shape[shape.size() - 2], columns = shape.back();
        const int64_t matrices = count_of(shape.first(shape.size() - 2));
        const int64_t k = run.has_input(1) && run.in_size(1) > 0 ? *run.in<int64_t>(1) : 0;
        kernels::trilu(cell, matrices, rows, columns, k, upper, run.data(0), run.out_data(0),
                       run.pool());
      });
  step->traits().in_place = {{0, 0}};
  return step;
}

constexpr Operator operators[] = {
    {.name = "EyeLike", .infer = infer_eye_like, .prepare = prepare_eye_like},
    {.name = "Trilu", .infer = infer_trilu, .prepare = prepare_trilu},
};

}  // namespace
}  // namespace matrix_shape_unit

std::span<const Operator> matrix_shape_operators() { return matrix_shape_unit::operators; }

}  // namespace sardonyx::ops
