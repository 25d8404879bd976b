// CenterCropPad: the middle of a tensor, cut or surrounded by zeros.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>

#include "ops/shared/element_counts.h"
#include "ops/shared/moving.h"

namespace sardonyx::ops {
namespace center_crop_pad_unit {
namespace {

void infer(InferContext& ctx) {
  const ElementType type = ctx.element(0);
  const auto& in = ctx.shape(0);
  if (!in) {
    ctx.set(0, ValueType::tensor(type));
    return;
  }
  const auto rank = static_cast<int64_t>(in->size());
  std::vector<int64_t> axes(in->size());
  std::iota(axes.begin(), axes.end(), 0);
  if (const auto given = ctx.attr_ints("axes")) axes = *given;
  const auto asked = values_of(ctx, 1);
  if (asked && asked->size() != axes.size())
    ctx.fail("shape must have {} elements, one per axis; it has {}", axes.size(), asked->size());
  if (!asked) require_elements(ctx, 1, axes.size());
  Dims out = *in;
  for (size_t i = 0; i < axes.size(); ++i) {
    Dim& size = out[static_cast<size_t>(ctx.normalized_axis(axes[i], rank, "axes"))];
    size = asked ? (*asked)[i] : ctx.unknown();
    ctx.require_at_least(size, 0, "a size in shape");
  }
  ctx.set(0, type, std::move(out));
}

struct State {
  kernels::StridedCopy copy;
};

// What input and output share lies in the middle of both. Where the rest is odd, a crop begins at
// the smaller half and so does the padding.
void bind_middle(BindContext& bind, State& state) {
  const auto in = bind.in_shape(0), out = bind.out_shape(0);
  const size_t rank = in.size();
  std::vector<int64_t> dims(rank), from(rank, 1), to(rank, 1);
  int64_t from_offset = 0, to_offset = 0, from_stride = 1, to_stride = 1;
  for (size_t d = rank; d-- > 0;) {
    dims[d] = std::min(in[d], out[d]);
    from[d] = from_stride, to[d] = to_stride;
    from_offset += (in[d] > out[d] ? (in[d] - out[d]) / 2 : 0) * from_stride;
    to_offset += (out[d] > in[d] ? (out[d] - in[d]) / 2 : 0) * to_stride;
    from_stride *= in[d], to_stride *= out[d];
  }
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) {
    state.copy = {};
    state.copy.count = 0;
    return;
  }
  state.copy = kernels::plan_strided(dims, from, to, from_offset, to_offset, bind.in_size(0),
                                     bind.out_size(0));
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  auto step = make_step<State>(
      "center_crop_pad.strided", bind_middle,
      [type = ctx.in_element(0), cell = kernels::cell_of(ctx.in_element(0))](RunContext& run,
                                                                             const State& state) {
        if (state.copy.count < run.out_size(0)) {
          if (type == ElementType::string) {
            std::fill_n(run.out<std::string>(0), run.out_size(0), std::string());
          } else {
            std::memset(run.out_data(0), 0, static_cast<size_t>(byte_size(type, run.out_size(0))));
          }
        }
        if (state.copy.count > 0)
          kernels::copy_strided(cell, state.copy, run.data(0), run.out_data(0), run.pool());
      });
  step->traits().unread_inputs = {1};
  return step;
}

constexpr Operator operators[] = {{.name = "CenterCropPad", .infer = infer, .prepare = prepare}};

}  // namespace
}  // namespace center_crop_pad_unit

std::span<const Operator> center_crop_pad_operators() { return center_crop_pad_unit::operators; }

}  // namespace sardonyx::ops
