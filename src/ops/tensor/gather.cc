// Gather, GatherElements, GatherND: elements picked by indices.
#include <algorithm>
#include <array>

#include "base/checked.h"
#include "kernels/move/gather.h"
#include "ops/shared/moving.h"

namespace sardonyx::ops {
namespace gather_unit {
namespace {

using kernels::Indices;

Indices indices_of(const RunContext& run, int input) {
  return Indices(run.in_type(input), run.data(input), run.in_size(input));
}

// --- Gather -------------------------------------------------------------------------------------

struct Split3 {  // a shape as [outer, dim, inner]
  int64_t outer, dim, inner;
};

Split3 split_at(std::span<const int64_t> shape, int64_t axis) {
  const auto at = static_cast<size_t>(axis);
  return {count_of(shape.first(at)), shape[at], count_of(shape.subspan(at + 1))};
}

// Gathers expressions where the indices are numbers.
void pass_gathered(InferContext& ctx, int64_t axis, const Dims& out) {
  const auto shape = known_shape(ctx, 0);
  const auto indices = numbers_of(ctx, 1);
  if (!shape || !indices || !small_shape(out)) return;
  const auto [outer, dim, inner] = split_at(*shape, axis);
  const auto& x = *ctx.elements(0);
  Dims picked;
  picked.reserve(static_cast<size_t>(outer * inner) * indices->size());
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t index : *indices) {
      if (index < -dim || index >= dim)
        ctx.fail("index must be in [{}, {}]; got {}", -dim, dim - 1, index);
      index += index < 0 ? dim : 0;
      for (int64_t i = 0; i < inner; ++i)
        picked.push_back(x[static_cast<size_t>((o * dim + index) * inner + i)]);
    }
  }
  ctx.set_elements(0, std::move(picked));
}

void infer_gather(InferContext& ctx) {
  const auto& data = ctx.shape(0);
  const auto& indices = ctx.shape(1);
  if (!data || !indices) {
    ctx.set(0, ValueType::tensor(ctx.element(0)));
    return;
  }
  const int64_t axis =
      ctx.normalized_axis(ctx.attr_int("axis"), static_cast<int64_t>(data->size()));
  Dims out(data->begin(), data->begin() + axis);
  out.insert(out.end(), indices->begin(), indices->end());
  out.insert(out.end(), data->begin() + axis + 1, data->end());
  ctx.set(0, ctx.element(0), out);
  pass_gathered(ctx, axis, out);
}

std::unique_ptr<Step> prepare_gather(PrepareContext& ctx) {
  const int64_t given_axis = ctx.attr_int("axis");
  const kernels::Cell cell = kernels::cell_of(ctx.in_element(0));
  auto step = make_step<Split3>(
      "gather.rows",
      [given_axis](BindContext& bind, Split3& state) {
        const auto shape = bind.in_shape(0);
        state = split_at(
            shape, given_axis < 0 ? given_axis + static_cast<int64_t>(shape.size()) : given_axis);
      },
      [cell](RunContext& run, const Split3& at) {
        kernels::gather(cell, at.outer, at.dim, at.inner, run.data(0), indices_of(run, 1),
                        run.out_data(0), run.pool());
      });
  step->traits().unaligned_inputs = {0};
  return step;
}

// --- GatherElements -----------------------------------------------------------------------------

void infer_gather_elements(InferContext& ctx) {
  const auto& data = ctx.shape(0);
  const auto& indices = ctx.shape(1);
  if (!indices) {
    ctx.set(0, ValueType::tensor(ctx.element(0)));
    return;
  }
  if (data) {
    const auto rank = static_cast<int64_t>(data->size());
    if (indices->size() != data->size())
      ctx.fail("indices must have the data's rank, {}; they have {}", rank, indices->size());
    const int64_t axis = ctx.normalized_axis(ctx.attr_int("axis"), rank);
    for (int64_t d = 0; d < rank; ++d) {
      const auto at = static_cast<size_t>(d);
      if (d != axis)
        ctx.require_at_least((*data)[at], (*indices)[at],
                             fmt::format("indices must not exceed the data in dimension {}", d));
    }
  }
  ctx.set(0, ctx.element(0), *indices);
}

std::unique_ptr<Step> prepare_gather_elements(PrepareContext& ctx) {
  const int64_t given_axis = ctx.attr_int("axis");
  const kernels::Cell cell = kernels::cell_of(ctx.in_element(0));
  return make_step("gather_elements", [given_axis, cell](RunContext& run) {
    const int64_t axis =
        given_axis < 0 ? given_axis + static_cast<int64_t>(run.in_shape(0).size()) : given_axis;
    kernels::gather_elements(cell, run.in_shape(0), axis, run.data(0), run.in_shape(1),
                             indices_of(run, 1), run.out_data(0), run.pool());
  });
}

// --- GatherND -----------------------------------------------------------------------------------

// Batch dimensions stand first in both, an index fills the last dimension of the indices.
void infer_gather_nd(InferContext& ctx) {
  const ElementType type = ctx.element(0);
  const auto& data = ctx.shape(0);
  const auto& indices = ctx.shape(1);
  ctx.set(0, ValueType::tensor(type));
  if (!data || !indices) return;
  const auto data_rank = static_cast<int64_t>(data->size()),
             index_rank = static_cast<int64_t>(indices->size());
  if (data_rank < 1 || index_rank < 1)
    ctx.fail("data and indices must have rank 1 or more; they have {} and {}", data_rank,
             index_rank);
  const int64_t batch = ctx.attr_int("batch_dims", 0);
  if (batch < 0 || batch >= std::min(data_rank, index_rank)) {
    ctx.fail("batch_dims must be in [0, {}]; got {}", std::min(data_rank, index_rank) - 1, batch);
  }
  Dims out;
  for (int64_t d = 0; d < batch; ++d) {
    const auto at = static_cast<size_t>(d);
    out.push_back(agreed(ctx, (*data)[at], (*indices)[at],
                         fmt::format("batch dimension {} of data and indices", d)));
  }
  out.insert(out.end(), indices->begin() + batch, indices->end() - 1);
  const auto depth = indices->back().value();
  if (!depth) return;
  if (*depth < 1 || *depth > data_rank - batch) {
    ctx.fail("the last dimension of indices must be in [1, {}]; got {}", data_rank - batch, *depth);
  }
  out.insert(out.end(), data->begin() + batch + *depth, data->end());
  ctx.set(0, type, std::move(out));
}

std::unique_ptr<Step> prepare_gather_nd(PrepareContext& ctx) {
  const int64_t batch = ctx.attr_int("batch_dims", 0);
  const kernels::Cell cell = kernels::cell_of(ctx.in_element(0));
  return make_step("gather_nd", [batch, cell](RunContext& run) {
    kernels::gather_nd(cell, run.in_shape(0), batch, run.data(0), run.in_shape(1),
                       indices_of(run, 1), run.out_data(0), run.pool());
  });
}

constexpr Operator operators[] = {
    {.name = "Gather", .infer = infer_gather, .prepare = prepare_gather},
    {.name = "GatherElements", .infer = infer_gather_elements, .prepare = prepare_gather_elements},
    {.name = "GatherND", .infer = infer_gather_nd, .prepare = prepare_gather_nd},
};

}  // namespace
}  // namespace gather_unit

std::span<const Operator> gather_operators() { return gather_unit::operators; }

}  // namespace sardonyx::ops
