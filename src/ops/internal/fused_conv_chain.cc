// The internal FusedConvChain.
#include <algorithm>

#include "kernels/conv/conv_chain.h"
#include "ops/internal/checked.h"
#include "ops/internal/conv_chain.h"
#include "ops/internal/node.h"
#include "ops/operator.h"
#include "ops/shared/conv_params.h"
#include "ops/shared/converted_arguments.h"
#include "ops/shared/packed_conv.h"

namespace sardonyx::ops {
namespace fused_conv_chain_unit {
namespace {

using internal::FusedConvChain;

FusedConvChain chain_of(const NodeView& node) {
  auto chain = internal::from_node<FusedConvChain>(node.node());
  if (chain.parts.empty() || chain.parts.size() > kernels::FusedConvChain::most ||
      chain.depthwise < 0 || std::cmp_greater_equal(chain.depthwise, chain.parts.size()))
    node.fail(ErrorCode::internal, "parts and depthwise do not describe a chain");
  return chain;
}

void infer(InferContext& ctx) {
  const FusedConvChain chain = chain_of(ctx);
  const ElementType type = ctx.element(FusedConvChain::x);
  if (!ctx.shape(FusedConvChain::x)) {
    for (int i = 0; i < ctx.output_count(); ++i) ctx.set(i, ValueType::tensor(type));
    return;
  }
  Dims shape = *ctx.shape(FusedConvChain::x);
  for (size_t i = 0; i < chain.parts.size(); ++i) {
    const FusedConvChain::Part& part = chain.parts[i];
    const auto& w = ctx.shape(FusedConvChain::weights(i));
    if (!w || w->size() != shape.size() || shape.size() != 4)
      ctx.fail("part {} must have four dimensions", i);
    check_window(ctx, part.window());
    check_group(ctx, part.group);
    ctx.require_equal(shape.back(), (*w)[1] * Dim(part.group),
                      "the channels of X must be those of W times group");
    internal::require_shape(ctx, FusedConvChain::bias(i), {(*w)[0]});
    shape = part.output(shape, *w);
    if (std::cmp_equal(i, chain.depthwise) && ctx.has_output(FusedConvChain::means))
      ctx.set(FusedConvChain::means, type, {shape[0], Dim(1), Dim(1), shape.back()});
  }
  internal::require_shape(ctx, chain.residual(), shape);
  ctx.set(FusedConvChain::y, type, std::move(shape));
}

struct State {
  kernels::FusedConvChain chain;
  kernels::ChainCut cut;
};

// What of a part does not depend on sizes.
struct Part {
  Window window;
  kernels::ConvParams weights;
  kernels::Epilogue epilogue;
  std::shared_ptr<const Pack<Tensor>> packed;
};

Part prepare_part(PrepareContext& ctx, const FusedConvChain& chain, size_t index) {
  const FusedConvChain::Part& conv = chain.parts[index];
  const Tensor* w = ctx.constant(FusedConvChain::weights(index));
  if (w == nullptr || w->rank() != 4) ctx.fail(ErrorCode::internal, "W of a part is no constant");
  Part part;
  part.window = conv.window();
  part.epilogue = conv.epilogue();
  check_group(ctx, conv.group);
  if (w->shape()[0] % conv.group != 0)
    ctx.fail("the {} output channels must be divisible by group {}", w->shape()[0], conv.group);
  set_weights(part.weights, w->shape(), conv.group);
  part.weights.nhwc = true;
  part.weights.shuffle = conv.input_shuffle;
  part.weights.shuffles_output = conv.shuffles_output;
  for (size_t i = 0; i < 2; ++i) {
    part.weights.stride[i] = part.window.stride(i);
    part.weights.dilation[i] = part.window.dilation(i);
  }
  part.packed =
      pack_conv(ctx, part.weights, FusedConvChain::weights(index), FusedConvChain::factors(index));
  return part;
}

// Sets the sizes of `shape` from those of its images, which become those of its outputs.
void bind_part(const Part& part, kernels::ConvParams& shape, int64_t batch,
               std::array<int64_t, 2>& size) {
  shape = part.weights;
  shape.batch = batch;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t out =
        window_output(part.window, i, Dim(size[i]), Dim(shape.kernel[i])).value().value_or(0);
    const WindowAxis axis = window_axis(part.window, i, size[i], out, shape.kernel[i]);
    shape.in[i] = size[i], shape.out[i] = size[i] = out;
    shape.pad_begin[i] = axis.pad_begin, shape.pad_end[i] = axis.pad_end;
  }
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  if (const ElementType type = ctx.in_element(FusedConvChain::x); type != ElementType::float32)
    ctx.fail(ErrorCode::unsupported, "no chain of {}", name_of(type));
  const FusedConvChain chain = chain_of(ctx);
  std::vector<Part> parts;
  for (size_t i = 0; i < chain.parts.size(); ++i) parts.push_back(prepare_part(ctx, chain, i));
  const int residual = chain.residual(), depthwise = static_cast<int>(chain.depthwise);
  auto step = make_step<State>(
      "conv.chain",
      [parts, depthwise](BindContext& bind, State& s) {
        const auto x = bind.in_shape(FusedConvChain::x);
        std::array<int64_t, 2> size{x[1], x[2]};
        int64_t channels = x[3];
        s.chain.count = static_cast<int>(parts.size());
        s.chain.depthwise = depthwise;
        for (size_t i = 0; i < parts.size(); ++i) {
          kernels::ConvParams& shape = s.chain.parts[i];
          bind_part(parts[i], shape, x[0], size);
          if (shape.in_channels != channels)
            throw Error(ErrorCode::run_failed, fmt::format("{} channels do not fit weights for {}",
                                                           channels, shape.in_channels));
          channels = shape.out_channels;
        }
        s.chain.parts[depthwise].means = bind.has_output(FusedConvChain::means);
        if (!kernels::is_sound(s.chain))
          throw Error(ErrorCode::internal, "the convolutions make no chain");
        s.cut = kernels::cut_chain(s.chain);
        bind.need_scratch(kernels::chain_scratch_bytes(s.chain, s.cut, bind.threads()));
      },
      [parts, residual](RunContext& run, const State& s) {
        std::array<kernels::ChainPart, kernels::FusedConvChain::most> at;
        for (size_t i = 0; i < parts.size(); ++i) {
          const int bias = FusedConvChain::bias(i);
          at[i] = {parts[i].packed->get(run.pool()).data(), parts[i].epilogue};
          if (run.has_input(bias)) at[i].epilogue.bias = run.in<float>(bias);
        }
        if (run.has_input(residual))
          at[parts.size() - 1].epilogue.residual = run.in<float>(residual);
        float* means =
            run.has_output(FusedConvChain::means) ? run.out<float>(FusedConvChain::means) : nullptr;
        kernels::chain_run(s.chain, s.cut, run.in<float>(FusedConvChain::x),
                           std::span(at).first(parts.size()), run.out<float>(FusedConvChain::y),
                           means, run.scratch(), run.pool());
      });
  for (size_t i = 0; i < chain.parts.size(); ++i) {
    step->traits().unread_inputs.push_back(FusedConvChain::weights(i));
    step->traits().unread_inputs.push_back(FusedConvChain::factors(i));
  }
  return step;
}

constexpr Operator operators[] = {
    {.name = FusedConvChain::name,
     .domain = internal::domain,
     .infer = internal::infer_checked<FusedConvChain, infer>,
     .prepare = prepare},
};

}  // namespace
}  // namespace fused_conv_chain_unit

std::span<const Operator> fused_conv_chain_operators() { return fused_conv_chain_unit::operators; }

}  // namespace sardonyx::ops
