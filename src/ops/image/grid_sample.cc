// GridSample.
#include "kernels/sample/grid_sample.h"

#include <complex>
#include <string>
#include <type_traits>

#include "base/checked.h"
#include "ops/operator.h"
#include "ops/shared/converted_arguments.h"

namespace sardonyx::ops {
namespace grid_sample_unit {
namespace {

using kernels::GridShape;

void infer(InferContext& ctx) {
  const auto& x = ctx.shape(0);
  const auto& grid = ctx.shape(1);
  if (!x && !grid) return ctx.set(0, ValueType::tensor(ctx.element(0)));
  if (!x || !grid) {
    Dims y = ctx.unknown_shape(static_cast<int64_t>((x ? x : grid)->size()));
    if (y.size() < 3) ctx.fail("X and grid must have the same rank, at least 3; got {}", y.size());
    y[0] = (x ? x : grid)->front();
    if (x) y[1] = (*x)[1];
    if (grid) std::copy(grid->begin() + 1, grid->end() - 1, y.begin() + 2);
    return ctx.set(0, ctx.element(0), std::move(y));
  }
  if (x->size() < 3 || grid->size() != x->size()) {
    ctx.fail("X and grid must have the same rank, at least 3; got {} and {}", ir::to_string(*x),
             ir::to_string(*grid));
  }
  ctx.require_equal((*x)[0], (*grid)[0], "X and grid must have the same batch size");
  ctx.require_equal(grid->back(), Dim(static_cast<int64_t>(x->size()) - 2),
                    "grid must have one coordinate for each spatial dimension of X");
  Dims y{(*x)[0], (*x)[1]};
  y.insert(y.end(), grid->begin() + 1, grid->end() - 1);
  ctx.set(0, ctx.element(0), std::move(y));
}

GridShape read_options(const NodeView& node) {
  GridShape shape;
  const std::string mode = node.attr_string("mode", "linear"),
                    padding = node.attr_string("padding_mode", "zeros");
  if (mode == "nearest")
    shape.mode = kernels::SampleMode::nearest;
  else if (mode == "linear")
    shape.mode = kernels::SampleMode::linear;
  else if (mode == "cubic")
    shape.mode = kernels::SampleMode::cubic;
  else
    node.fail("mode must be nearest, linear or cubic; got '{}'", mode);
  if (padding == "zeros")
    shape.padding = kernels::SamplePadding::zeros;
  else if (padding == "border")
    shape.padding = kernels::SamplePadding::border;
  else if (padding == "reflection")
    shape.padding = kernels::SamplePadding::reflection;
  else
    node.fail("padding_mode must be zeros, border or reflection; got '{}'", padding);
  shape.align_corners = node.attr_int("align_corners", 0) != 0;
  return shape;
}

struct State {
  GridShape shape;
  ConvertedArguments wide;
};

// Samples of V at positions of T; where both are one type, X comes converted to it.
template <class V, class T>
std::unique_ptr<Step> make_sampler(const GridShape& options) {
  constexpr ElementType compute = element_type_of<T>::value;
  constexpr bool converted = std::is_same_v<V, T>;
  return make_step<State>(
      "grid_sample",
      [options](BindContext& bind, State& s) {
        const auto x = bind.in_shape(0), grid = bind.in_shape(1);
        s.shape = options;
        if (x.size() > GridShape::max_rank + 2)
          throw Error(ErrorCode::unsupported,
                      fmt::format("sampling over {} spatial dimensions; at most 4 are supported",
                                  x.size() - 2));
        s.shape.batch = x[0], s.shape.channels = x[1],
        s.shape.rank = static_cast<int>(x.size()) - 2;
        for (size_t i = 2; i < x.size(); ++i) s.shape.in[i - 2] = x[i];
        s.shape.points = count_of(grid.subspan(1, grid.size() - 2));
        ScratchPlanner layout;
        s.wide.plan_in(bind, 1, compute, layout);
        if (converted) {
          s.wide.plan_in(bind, 0, compute, layout);
          s.wide.plan_out(bind, 0, compute, layout);
        }
        bind.need_scratch(layout.bytes());
      },
      [](RunContext& run, const State& s) {
        const T* grid = s.wide.in<T>(run, 1);
        if constexpr (converted) {
          kernels::grid_sample(s.shape, s.wide.in<T>(run, 0), grid, s.wide.out<T>(run, 0),
                               run.pool());
          s.wide.finish<T>(run, 0);
        } else {
          kernels::grid_sample(s.shape, run.in<V>(0), grid, run.out<V>(0), run.pool());
        }
      });
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const GridShape options = read_options(ctx);
  const ElementType x = ctx.in_element(0);
  if (x == ElementType::complex64) return make_sampler<std::complex<float>, double>(options);
  if (x == ElementType::complex128) return make_sampler<std::complex<double>, double>(options);
  if (x == ElementType::string) {
    if (options.mode != kernels::SampleMode::nearest)
      ctx.fail(ErrorCode::unsupported, "strings have no sums; only the mode nearest takes them");
    return make_sampler<std::string, double>(options);
  }
  if (!kernels::supports_cast(x, ElementType::float64))
    ctx.fail(ErrorCode::unsupported, "no sampling of {}", name_of(x));
  // Picked as they are: a double hasn't room for all of them.
  if (options.mode == kernels::SampleMode::nearest && is_integer(x) && bit_width(x) == 64)
    return make_sampler<uint64_t, double>(options);
  const bool wide_integer = is_integer(x) && bit_width(x) > 16;
  if (x == ElementType::float64 || ctx.in_element(1) == ElementType::float64 || wide_integer)
    return make_sampler<double, double>(options);
  return make_sampler<float, float>(options);
}

// Version 16 says bilinear and bicubic.
void upgrade(UpgradeContext& ctx) {
  if (ctx.since() >= 20) return;
  const std::string mode = ctx.old().attr_string("mode", "bilinear");
  if (mode == "bilinear") ctx.set_attribute("mode", std::string_view("linear"));
  if (mode == "bicubic") ctx.set_attribute("mode", std::string_view("cubic"));
}

constexpr Operator operators[] = {
    {.name = "GridSample", .infer = infer, .prepare = prepare, .upgrade = upgrade}};

}  // namespace
}  // namespace grid_sample_unit

std::span<const Operator> grid_sample_operators() { return grid_sample_unit::operators; }

}  // namespace sardonyx::ops
