// DepthToSpace and SpaceToDepth: channels to blocks of pixels and back; and their internal forms.
#include "ops/internal/checked.h"
#include "ops/internal/images.h"
#include "ops/shared/moving.h"
#include "ops/shared/window.h"

namespace sardonyx::ops {
namespace depth_to_space_unit {
namespace {

using internal::DepthMode;
using internal::DepthToSpace;
using internal::SpaceToDepth;

// N x C x H x W, whatever the layout.
std::optional<Dims> image(InferContext& ctx) {
  const auto& in = ctx.shape(0);
  if (in && in->size() != 4)
    ctx.fail("the input must have rank 4, N x C x H x W; it has {}", in->size());
  if (!in) ctx.set(0, ctx.element(0), ctx.unknown_shape(4));
  return channels_first(in, ir::is_internal(ctx.node()));
}

Dim divided(InferContext& ctx, const Dim& size, const Dim& by, std::string_view what) {
  if (const auto exact = exact_div(size, by)) return *exact;
  const Dim quotient = floor_div(size, by);
  ctx.require_equal(quotient * by, size, what);
  return quotient;
}

void infer_depth_to_space(InferContext& ctx) {
  const Dim block = internal::depth_to_space_of(ctx).blocksize;
  const auto in = image(ctx);
  if (!in) return;
  const Dim depth =
      divided(ctx, (*in)[1], block * block, "the channels must be a multiple of blocksize squared");
  ctx.set(0, ctx.element(0),
          in_layout({(*in)[0], depth, (*in)[2] * block, (*in)[3] * block},
                    ir::is_internal(ctx.node())));
}

void infer_space_to_depth(InferContext& ctx) {
  const Dim block = internal::space_to_depth_of(ctx).blocksize;
  const auto in = image(ctx);
  if (!in) return;
  const Dim height = divided(ctx, (*in)[2], block, "the height must be a multiple of blocksize");
  const Dim width = divided(ctx, (*in)[3], block, "the width must be a multiple of blocksize");
  ctx.set(
      0, ctx.element(0),
      in_layout({(*in)[0], (*in)[1] * block * block, height, width}, ir::is_internal(ctx.node())));
}

std::unique_ptr<Step> prepare_depth_to_space(PrepareContext& ctx) {
  return make_copy_step(ctx, "depth_to_space.strided",
                        [op = internal::depth_to_space_of(ctx)](const BindContext& bind) {
                          return kernels::plan_depth_to_space(bind.in_shape(0), op.blocksize,
                                                              op.mode == DepthMode::DCR);
                        });
}

// The output as [n, c, block row, block column, h, w]: channels before blocks.
kernels::StridedCopy plan_channels_first(const BindContext& bind, int64_t block) {
  const auto in = bind.in_shape(0), out = bind.out_shape(0);
  const int64_t height = in[2], width = in[3], h = out[2], w = out[3], plane = height * width;
  const int64_t dims[] = {in[0], in[1], block, block, h, w};
  const int64_t from[] = {in[1] * plane, plane, width, 1, block * width, block};
  const int64_t to[] = {out[1] * h * w, block * block * h * w, block * h * w, h * w, w, 1};
  return kernels::plan_strided(dims, from, to, 0, 0, bind.in_size(0), bind.out_size(0));
}

std::unique_ptr<Step> prepare_space_to_depth(PrepareContext& ctx) {
  return make_copy_step(ctx, "space_to_depth.strided",
                        [op = internal::space_to_depth_of(ctx)](const BindContext& bind) {
                          return op.mode == DepthMode::DCR
                                     ? kernels::plan_space_to_depth(bind.in_shape(0), op.blocksize)
                                     : plan_channels_first(bind, op.blocksize);
                        });
}

// --- Channels last -------------------------------------------------------------------------------

// Between pixels [n, h, w, block, block, c] of one image, `deep`, and lines [n, h, block, w, block,
// c] of the other. Where blocks come first, all of a pixel's line of a block is one run.
kernels::StridedCopy plan_nhwc(const BindContext& bind, int64_t block, bool blocks_first,
                               bool to_space) {
  const auto deep = to_space ? bind.in_shape(0) : bind.out_shape(0);
  const int64_t n = deep[0], h = deep[1], w = deep[2], all = deep[3], c = all / (block * block);
  const int64_t dims[] = {n, h, w, block, block, c};
  const int64_t pixels[] = {h * w * all,
                            w * all,
                            all,
                            blocks_first ? block * c : block,
                            blocks_first ? c : 1,
                            blocks_first ? 1 : block * block};
  const int64_t lines[] = {h * w * all, w * all, block * c, w * block * c, c, 1};
  return kernels::plan_strided(dims, to_space ? pixels : lines, to_space ? lines : pixels, 0, 0,
                               bind.in_size(0), bind.out_size(0));
}

std::unique_ptr<Step> prepare_depth_to_space_nhwc(PrepareContext& ctx) {
  return make_copy_step(ctx, "depth_to_space.nhwc",
                        [op = internal::depth_to_space_of(ctx)](const BindContext& bind) {
                          return plan_nhwc(bind, op.blocksize, op.mode == DepthMode::DCR, true);
                        });
}

std::unique_ptr<Step> prepare_space_to_depth_nhwc(PrepareContext& ctx) {
  return make_copy_step(ctx, "space_to_depth.nhwc",
                        [op = internal::space_to_depth_of(ctx)](const BindContext& bind) {
                          return plan_nhwc(bind, op.blocksize, op.mode == DepthMode::DCR, false);
                        });
}

constexpr Operator operators[] = {
    {.name = DepthToSpace::name, .infer = infer_depth_to_space, .prepare = prepare_depth_to_space},
    {.name = DepthToSpace::name,
     .domain = internal::domain,
     .infer = internal::infer_checked<DepthToSpace, infer_depth_to_space>,
     .prepare = prepare_depth_to_space_nhwc},
    {.name = SpaceToDepth::name,
     .domain = internal::domain,
     .infer = internal::infer_checked<SpaceToDepth, infer_space_to_depth>,
     .prepare = prepare_space_to_depth_nhwc},
    {.name = SpaceToDepth::name, .infer = infer_space_to_depth, .prepare = prepare_space_to_depth},
};

}  // namespace
}  // namespace depth_to_space_unit

std::span<const Operator> depth_to_space_operators() { return depth_to_space_unit::operators; }

}  // namespace sardonyx::ops
