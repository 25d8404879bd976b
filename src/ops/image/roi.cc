// RoiAlign and MaxRoiPool.
#include "kernels/sample/roi.h"
#include "ops/shared/element_counts.h"

#include "ops/operator.h"
#include "ops/shared/converted_arguments.h"
#include "ops/shared/product.h"

namespace sardonyx::ops {
namespace roi_unit {
namespace {

using kernels::RoiShape;

RoiShape read_options(const NodeView& node) {
  RoiShape shape;
  shape.spatial_scale = node.attr_float("spatial_scale", 1.0f);
  if (node.node().op_type == "MaxRoiPool") {
    const auto pooled = node.attr_ints("pooled_shape");
    if (!pooled || pooled->size() != 2) node.fail("attribute 'pooled_shape' must have two entries");
    shape.out_height = (*pooled)[0], shape.out_width = (*pooled)[1];
  } else {
    shape.out_height = node.attr_int("output_height", 1),
    shape.out_width = node.attr_int("output_width", 1);
    shape.sampling_ratio = node.attr_int("sampling_ratio", 0);
    if (shape.sampling_ratio < 0 || shape.sampling_ratio > 65536)
      node.fail("sampling_ratio must be in [0, 65536]; got {}", shape.sampling_ratio);
    const std::string mode = node.attr_string("mode", "avg"),
                      how = node.attr_string("coordinate_transformation_mode", "half_pixel");
    if (mode != "avg" && mode != "max") node.fail("mode must be avg or max; got '{}'", mode);
    if (how != "half_pixel" && how != "output_half_pixel")
      node.fail("coordinate_transformation_mode must be half_pixel or output_half_pixel; got '{}'",
                how);
    shape.maximum = mode == "max", shape.half_pixel = how == "half_pixel";
  }
  if (shape.out_height < 1 || shape.out_width < 1 || shape.out_height > INT32_MAX ||
      shape.out_width > INT32_MAX) {
    node.fail("the pooled height and width must be in [1, {}]; got {} and {}", INT32_MAX,
              shape.out_height, shape.out_width);
  }
  return shape;
}

void infer(InferContext& ctx) {
  const RoiShape options = read_options(ctx);
  const int64_t columns = ctx.node().op_type == "MaxRoiPool" ? 5 : 4;
  const auto& x = ctx.shape(0);
  const auto& rois = ctx.shape(1);
  if (x && x->size() != 4)
    ctx.fail("X must have four dimensions; its shape is {}", ir::to_string(*x));
  if (rois) {
    if (rois->size() != 2)
      ctx.fail("rois must have two dimensions; its shape is {}", ir::to_string(*rois));
    ctx.require_equal((*rois)[1], Dim(columns),
                      "rois must have four coordinates (MaxRoiPool: after the batch index)");
  }
  if (columns == 4) want_rank(ctx, 2, 1);
  std::optional<Dim> regions = rois ? std::optional((*rois)[0]) : std::nullopt;
  const auto indices = columns == 4 ? ctx.type(2).element_count() : std::nullopt;
  if (indices && regions)
    ctx.require_equal(*indices, *regions, "batch_indices must have one number for each region");
  if (!regions) regions = indices;
  ctx.set(0, ctx.element(0),
          {regions ? *regions : ctx.unknown(), x ? (*x)[1] : ctx.unknown(), Dim(options.out_height),
           Dim(options.out_width)});
}

struct State {
  RoiShape shape;
  ConvertedArguments wide;
};

template <class T, bool align>
std::unique_ptr<Step> make_pool(const RoiShape& options) {
  constexpr ElementType compute = element_type_of<T>::value;
  return make_step<State>(
      align ? "roi_align" : "max_roi_pool",
      [options](BindContext& bind, State& s) {
        const auto x = bind.in_shape(0);
        s.shape = options;
        s.shape.batch = x[0], s.shape.channels = x[1], s.shape.height = x[2], s.shape.width = x[3];
        s.shape.rois = bind.in_shape(1)[0];
        ScratchPlanner layout;
        s.wide.plan_in(bind, 0, compute, layout);
        s.wide.plan_in(bind, 1, compute, layout);
        s.wide.plan_out(bind, 0, compute, layout);
        bind.need_scratch(layout.bytes());
      },
      [](RunContext& run, const State& s) {
        const T *x = s.wide.in<T>(run, 0), *rois = s.wide.in<T>(run, 1);
        if constexpr (align)
          kernels::roi_align(s.shape, x, rois, run.in<int64_t>(2), s.wide.out<T>(run, 0),
                             run.pool());
        else
          kernels::max_roi_pool(s.shape, x, rois, s.wide.out<T>(run, 0), run.pool());
        s.wide.finish<T>(run, 0);
      });
}

template <bool align>
std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const ElementType type = ctx.in_element(0);
  if (type == ElementType::float64) return make_pool<double, align>(read_options(ctx));
  if (!computes_in_float(type)) ctx.fail(ErrorCode::unsupported, "no pooling of {}", name_of(type));
  return make_pool<float, align>(read_options(ctx));
}

void upgrade_align(UpgradeContext& ctx) {
  if (ctx.since() < 16)
    ctx.set_attribute("coordinate_transformation_mode", std::string_view("output_half_pixel"));
}

constexpr Operator operators[] = {
    {.name = "MaxRoiPool", .infer = infer, .prepare = prepare<false>},
    {.name = "RoiAlign", .infer = infer, .prepare = prepare<true>, .upgrade = upgrade_align},
};

}  // namespace
}  // namespace roi_unit

std::span<const Operator> roi_operators() { return roi_unit::operators; }

}  // namespace sardonyx::ops
