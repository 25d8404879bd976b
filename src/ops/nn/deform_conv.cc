// DeformConv.
#include "base/checked.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/matmul_any.h"
#include "kernels/sample/deform.h"
#include "ops/operator.h"
#include "ops/shared/conv_params.h"
#include "ops/shared/converted_arguments.h"
#include "ops/shared/product.h"

namespace sardonyx::ops {
namespace deform_conv_unit {
namespace {

using kernels::ConvParams;

int64_t read_offset_group(const NodeView& node) {
  const int64_t group = node.attr_int("offset_group", 1);
  if (group < 1) node.fail("offset_group must be at least 1; got {}", group);
  return group;
}

void infer(InferContext& ctx) {
  const int64_t groups = read_offset_group(ctx);
  auto shape = conv_output(ctx, read_window(ctx, WindowKind::convolution), read_group(ctx),
                           {.x = 0, .w = 1, .bias = 3});
  const auto& offset = ctx.shape(2);
  if (!shape) return ctx.set(0, ValueType::tensor(ctx.element(0)));
  const auto& w = ctx.shape(1);
  if (offset && w && ctx.shape(0)) {
    if (offset->size() != shape->size())
      ctx.fail("offset must have the rank of X; its shape is {}", ir::to_string(*offset));
    Dim taps = groups;
    for (size_t i = 2; i < w->size(); ++i) taps = taps * (*w)[i];
    const std::string_view what =
        "offset must be [N, offset_group * kernel size * spatial rank, output...]";
    ctx.require_equal((*offset)[0], (*shape)[0], what);
    ctx.require_equal((*offset)[1], taps * Dim(static_cast<int64_t>(w->size()) - 2), what);
    for (size_t i = 2; i < shape->size(); ++i) ctx.require_equal((*offset)[i], (*shape)[i], what);
    const auto& mask = ctx.shape(4);
    if (mask && mask->size() == shape->size()) {
      ctx.require_equal((*mask)[0], (*shape)[0],
                        "mask must be [N, offset_group * kernel size, output...]");
      ctx.require_equal((*mask)[1], taps,
                        "mask must be [N, offset_group * kernel size, output...]");
      for (size_t i = 2; i < shape->size(); ++i)
        ctx.require_equal((*mask)[i], (*shape)[i],
                          "mask must have the output's spatial dimensions");
    } else if (mask) {
      ctx.fail("mask must have the rank of X; its shape is {}", ir::to_string(*mask));
    }
    if (const auto c = (*ctx.shape(0))[1].value(); c && *c % groups != 0)
      ctx.fail("the {} channels must be divisible by offset_group {}", *c, groups);
  }
  ctx.set(0, ctx.element(0), std::move(*shape));
}

struct State {
  ConvParams shape;
  ConvertedArguments wide;
  int64_t terms = 0, positions = 0, pixels = 0;  // terms: of the columns of one group
  int64_t columns = 0, scratch = 0;
};

void product(int64_t m, int64_t n, int64_t k, const float* w, const float* columns,
             const float* bias, float* y, void* scratch, ThreadPool& pool) {
  kernels::Epilogue epilogue;
  epilogue.bias = bias;
  epilogue.bias_axis = bias ? kernels::BiasAxis::row : kernels::BiasAxis::none;
  kernels::gemm(m, n, k, {w, k, 1}, {columns, n, 1}, y, n, epilogue, scratch, pool);
}
void product(int64_t m, int64_t n, int64_t k, const double* w, const double* columns,
             const double* bias, double* y, void*, ThreadPool& pool) {
  kernels::matmul_any(ElementType::float64, {}, m, n, k, {w, k, 1}, {columns, n, 1}, y, n, pool);
  if (bias) kernels::scale_and_add(ElementType::float64, m, n, 1, 1, bias, 1, 0, y, pool);
}

template <class T>
void run_images(RunContext& run, const State& s, int64_t offset_groups) {
  const ConvParams& shape = s.shape;
  const T *x = s.wide.in<T>(run, 0), *w = s.wide.in<T>(run, 1), *offset = s.wide.in<T>(run, 2),
          *bias = s.wide.in<T>(run, 3), *mask = s.wide.in<T>(run, 4);
  T *y = s.wide.out<T>(run, 0), *columns = reinterpret_cast<T*>(scratch_at(run, s.columns));
  const int64_t rows = shape.out_channels / shape.group, channels = shape.in_channels / shape.group;
  const int64_t shifts = offset_groups * (s.terms / std::max<int64_t>(1, channels)) * s.positions;
  for (int64_t n = 0; n < shape.batch; ++n) {
    kernels::deform_columns(shape, offset_groups, x + n * shape.in_channels * s.pixels,
                            offset + n * shifts * shape.rank, mask ? mask + n * shifts : nullptr,
                            columns, run.pool());
    for (int64_t g = 0; g < shape.group; ++g) {
      product(rows, s.positions, s.terms, w + g * rows * s.terms,
              columns + g * s.terms * s.positions, bias ? bias + g * rows : nullptr,
              y + (n * shape.out_channels + g * rows) * s.positions, scratch_at(run, s.scratch),
              run.pool());
    }
  }
  s.wide.finish<T>(run, 0);
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const ElementType type = ctx.in_element(0), compute = compute_type(type);
  if (!computes_in_float(type) && type != ElementType::float64)
    ctx.fail(ErrorCode::unsupported, "no convolution of {}", name_of(type));
  const int64_t groups = read_offset_group(ctx);
  return make_step<State>(
      "deform_conv.columns",
      [window = read_window(ctx, WindowKind::convolution), group = read_group(ctx), groups,
       compute](BindContext& bind, State& s) {
        ScratchPlanner layout;
        s.shape = conv_shape_at_bind(bind, window, group, 0, 1);
        if (s.shape.in_channels % groups != 0)
          throw Error(ErrorCode::run_failed,
                      fmt::format("the {} channels must be divisible by offset_group {}",
                                  s.shape.in_channels, groups));
        s.wide.plan(bind, compute, layout);
        s.terms = count_of(bind.in_shape(1).subspan(1));
        s.positions = count_of(bind.out_shape(0).subspan(2)),
        s.pixels = count_of(bind.in_shape(0).subspan(2));
        const auto columns = checked_mul(s.terms * s.shape.group, s.positions);
        if (!columns)
          throw Error(ErrorCode::run_failed, "the columns of this convolution exceed 64-bit sizes");
        s.columns = layout.take(byte_size(compute, *columns));
        const int64_t m = s.shape.out_channels / s.shape.group, n = s.positions, k = s.terms;
        s.scratch = layout.take(compute == ElementType::float64
                                    ? 0
                                    : kernels::gemm_scratch_bytes(m, n, k, {nullptr, k, 1},
                                                                  {nullptr, n, 1}, bind.threads()));
        bind.need_scratch(layout.bytes());
      },
      [compute, groups](RunContext& run, const State& s) {
        if (compute == ElementType::float64) return run_images<double>(run, s, groups);
        run_images<float>(run, s, groups);
      });
}

constexpr Operator operators[] = {{.name = "DeformConv", .infer = infer, .prepare = prepare}};

}  // namespace
}  // namespace deform_conv_unit

std::span<const Operator> deform_conv_operators() { return deform_conv_unit::operators; }

}  // namespace sardonyx::ops
