// QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear.
#include "kernels/convert/quantize.h"

#include <algorithm>

#include "base/checked.h"
#include "ops/operator.h"
#include "ops/shared/axis.h"

namespace sardonyx::ops {
namespace quantize_unit {
namespace {

using kernels::QuantizeLayout;

// Scale and zero point: a scalar, a vector along `axis`, or of X's rank with blocks along `axis`.
void check_parameters(InferContext& ctx) {
  const auto& x = ctx.shape(0);
  const auto& scale = ctx.shape(1);
  const int64_t block = ctx.attr_int("block_size", 0);
  if (block < 0) ctx.fail("block_size must not be negative; got {}", block);
  if (ctx.has_input(2) && ctx.shape(2) && scale) {
    const std::string what =
        fmt::format("scale and zero point must have the same shape; got {} and {}",
                    ir::to_string(*scale), ir::to_string(*ctx.shape(2)));
    if (scale->size() != ctx.shape(2)->size()) {
      // [] and [1] say the same.
      ctx.require_equal(*ctx.type(1).element_count(), Dim(1), what);
      ctx.require_equal(*ctx.type(2).element_count(), Dim(1), what);
    } else {
      for (size_t i = 0; i < scale->size(); ++i)
        ctx.require_equal((*scale)[i], (*ctx.shape(2))[i], what);
    }
  }
  if (!x || !scale || scale->empty()) return;
  // One value is for the whole tensor; binding checks a vector whose length only a run knows.
  if (scale->size() == 1 && ((*scale)[0] == 1 || !(*scale)[0].is_constant())) {
    if (block != 0 && x->size() != 1)
      ctx.require_equal((*scale)[0], Dim(1),
                        "with block_size the scale must have the rank of X or hold one value");
    return;
  }
  const int64_t axis =
      ctx.normalized_axis(ctx.attr_int("axis", 1), static_cast<int64_t>(x->size()));
  if (block == 0) {
    if (scale->size() != 1)
      ctx.fail("without block_size the scale must be a scalar or a vector; its shape is {}",
               ir::to_string(*scale));
    ctx.require_equal((*scale)[0], (*x)[static_cast<size_t>(axis)],
                      "the scale must have one value for each slice along axis");
    return;
  }
  if (scale->size() != x->size())
    ctx.fail("with block_size the scale must have the rank of X, {}; its shape is {}", x->size(),
             ir::to_string(*scale));
  for (size_t i = 0; i < x->size(); ++i) {
    const bool blocked = static_cast<int64_t>(i) == axis;
    ctx.require_equal((*scale)[i], blocked ? ceil_div((*x)[i], Dim(block)) : (*x)[i],
                      "the scale must have X's shape, blocks counted along axis");
  }
}

QuantizeLayout layout_at_bind(const BindContext& bind, int64_t axis, int64_t block) {
  const auto x = bind.in_shape(0), scale = bind.in_shape(1);
  QuantizeLayout layout;
  if (bind.in_size(1) == 1) {
    layout.inner = bind.in_size(0);
    return layout;
  }
  const auto rank = static_cast<int64_t>(x.size());
  if (axis < -rank || axis >= rank)
    throw Error(ErrorCode::run_failed,
                fmt::format("axis must be in [{}, {}]; got {}", -rank, rank - 1, axis));
  const AxisSplit split = split_at(x, from_front(axis, x.size()));
  layout.outer = split.outer, layout.n = split.n, layout.inner = split.inner;
  int64_t needed = split.n;
  if (block == 0) {
    layout.axis_stride = 1;
  } else {
    const int64_t blocks = split.n / block + (split.n % block != 0 ? 1 : 0);
    layout.block = block, layout.axis_stride = split.inner,
    layout.outer_stride = blocks * split.inner, layout.inner_stride = 1;
    needed = split.outer * blocks * split.inner;
  }
  if (bind.in_size(1) != needed || (bind.has_input(2) && bind.in_size(2) != needed)) {
    throw Error(ErrorCode::run_failed, fmt::format("a scale of shape {} does not fit X of shape {}",
                                                   to_string(scale), to_string(x)));
  }
  return layout;
}

ElementType quantized_type(const InferContext& ctx) {
  const auto asked = static_cast<ElementType>(ctx.attr_int("output_dtype", 0));
  if (ctx.has_input(2)) {
    if (asked != ElementType::undefined && ctx.type(2).is_tensor() && asked != ctx.element(2)) {
      ctx.fail("output_dtype {} and the zero point's type {} differ", name_of(asked),
               name_of(ctx.element(2)));
    }
    return ctx.element(2);
  }
  return asked == ElementType::undefined ? ElementType::uint8 : asked;
}

void infer_quantize(InferContext& ctx) {
  check_parameters(ctx);
  ValueType y = ctx.type(0);
  y.element = quantized_type(ctx);
  ctx.set(0, std::move(y));
}

bool is_quantized(ElementType type) {
  switch (type) {
    case ElementType::uint8:
    case ElementType::int8:
    case ElementType::uint16:
    case ElementType::int16:
    case ElementType::uint4:
    case ElementType::int4:
    case ElementType::uint2:
    case ElementType::int2:
    case ElementType::float4e2m1:
    case ElementType::float6e2m3:
    case ElementType::float6e3m2:
    case ElementType::float8e4m3fn:
    case ElementType::float8e4m3fnuz:
    case ElementType::float8e5m2:
    case ElementType::float8e5m2fnuz: return true;
    default: return false;
  }
}

// The type the division is rounded to.
ElementType division_type(const PrepareContext& ctx) {
  const auto asked = static_cast<ElementType>(ctx.attr_int("precision", 0));
  if (asked != ElementType::undefined) return asked;
  const ElementType scale = ctx.in_element(1);
  if (ctx.in_element(0) == ElementType::int32 && !is_floating(scale)) return ElementType::float64;
  if (scale == ElementType::float8e8m0) return ElementType::float32;
  return scale;
}

std::unique_ptr<Step> prepare_quantize(PrepareContext& ctx) {
  kernels::QuantizeTypes types;
  types.x = ctx.in_element(0), types.y = ctx.out_element(0), types.scale = ctx.in_element(1);
  types.precision = division_type(ctx);
  types.saturate = ctx.attr_int("saturate", 1) != 0;
  if (!is_quantized(types.y))
    ctx.fail(ErrorCode::unsupported, "no quantization to {}", name_of(types.y));
  return make_step<QuantizeLayout>(
      "quantize",
      [axis = ctx.attr_int("axis", 1), block = ctx.attr_int("block_size", 0)](
          BindContext& bind, QuantizeLayout& layout) {
        layout = layout_at_bind(bind, axis, block);
      },
      [types](RunContext& run, const QuantizeLayout& layout) {
        kernels::quantize(types, layout, run.data(0), run.data(1),
                          run.has_input(2) ? run.data(2) : nullptr, run.out_data(0), run.pool());
      });
}

void infer_dequantize(InferContext& ctx) {
  check_parameters(ctx);
  ValueType y = ctx.type(0);
  const auto asked = static_cast<ElementType>(ctx.attr_int("output_dtype", 0));
  y.element = asked == ElementType::undefined ? ctx.element(1) : asked;
  ctx.set(0, std::move(y));
}

std::unique_ptr<Step> prepare_dequantize(PrepareContext& ctx) {
  const ElementType x = ctx.in_element(0), scale = ctx.in_element(1), y = ctx.out_element(0);
  if (!is_quantized(x) && x != ElementType::int32)
    ctx.fail(ErrorCode::unsupported, "no dequantization of {}", name_of(x));
  if (y != ElementType::float32 && y != ElementType::float16 && y != ElementType::bfloat16 &&
      y != ElementType::float64) {
    ctx.fail("the output must be a float of 16 bits or more; output_dtype (or the scale) says {}",
             name_of(y));
  }
  return make_step<QuantizeLayout>(
      "dequantize",
      [axis = ctx.attr_int("axis", 1), block = ctx.attr_int("block_size", 0)](
          BindContext& bind, QuantizeLayout& layout) {
        layout = layout_at_bind(bind, axis, block);
      },
      [=](RunContext& run, const QuantizeLayout& layout) {
        kernels::dequantize(x, scale, y, layout, run.data(0), run.data(1),
                            run.has_input(2) ? run.data(2) : nullptr, run.out_data(0), run.pool());
      });
}

// Version 10 is per tensor whatever the shape of the scale.
void upgrade(UpgradeContext& ctx) {
  if (ctx.since() >= 13) return;
  for (size_t i = 1; i < 3; ++i) {
    if (ctx.has_input(i))
      ctx.set_input(i,
                    ctx.before("Reshape", {ctx.node().inputs[i], ctx.constant_ints({}, "scalar")}));
  }
}

void infer_dynamic(InferContext& ctx) {
  ValueType y = ctx.type(0);
  y.element = ElementType::uint8;
  ctx.set(0, std::move(y));
  ctx.set(1, ElementType::float32, {});
  ctx.set(2, ElementType::uint8, {});
}

std::unique_ptr<Step> prepare_dynamic(PrepareContext&) {
  return make_step("quantize.dynamic", [](RunContext& run) {
    float scale;
    uint8_t zero;
    kernels::dynamic_quantize(run.in<float>(0), run.in_size(0), run.out<uint8_t>(0), &scale, &zero,
                              run.pool());
    if (run.has_output(1)) *run.out<float>(1) = scale;
    if (run.has_output(2)) *run.out<uint8_t>(2) = zero;
  });
}

constexpr Operator operators[] = {
    {.name = "DequantizeLinear",
     .infer = infer_dequantize,
     .prepare = prepare_dequantize,
     .upgrade = upgrade,
     .same_since = 13},
    {.name = "DynamicQuantizeLinear", .infer = infer_dynamic, .prepare = prepare_dynamic},
    {.name = "QuantizeLinear",
     .infer = infer_quantize,
     .prepare = prepare_quantize,
     .upgrade = upgrade,
     .same_since = 13},
};

}  // namespace
}  // namespace quantize_unit

std::span<const Operator> quantize_operators() { return quantize_unit::operators; }

}  // namespace sardonyx::ops
