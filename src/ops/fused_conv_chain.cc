// FusedConvChain (domain "sardonyx"): see families/conv_parts.h.
#include <algorithm>

#include "kernels/conv/conv_chain.h"
#include "ops/families/conv_params.h"
#include "ops/families/conv_parts.h"
#include "ops/families/converted_arguments.h"
#include "ops/families/packed_conv.h"
#include "ops/families/product.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace {

using kernels::FusedConvChain;

int part_count(const NodeView& node) {
  const int64_t parts = node.attr_int("parts", 0), depthwise = node.attr_int("depthwise", -1);
  if (parts < 1 || parts > FusedConvChain::most || depthwise < 0 || depthwise >= parts)
    node.fail("parts and depthwise do not describe a chain");
  return static_cast<int>(parts);
}

void infer(InferContext& ctx) {
  const int parts = part_count(ctx);
  if (!ctx.shape(0)) {
    for (int i = 0; i < ctx.output_count(); ++i) ctx.set(i, ValueType::tensor(ctx.element(0)));
    return;
  }
  Dims shape = *ctx.shape(0);
  for (int i = 0; i < parts; ++i) {
    const auto& w = ctx.shape(chain_weights(i));
    if (!w || w->size() != shape.size() || shape.size() != 4)
      ctx.fail("part {} must have four dimensions", i);
    const ir::Node part = conv_part(ctx.node(), i);
    const NodeView view(part, nullptr);
    ctx.require_equal(shape.back(), (*w)[1] * Dim(read_group(view)),
                      "the channels of X must be those of W times group");
    shape = conv_part_output(read_window(view, WindowKind::convolution), shape, *w);
    if (i == ctx.attr_int("depthwise", 0) && ctx.has_output(1))
      ctx.set(1, ctx.element(0), {shape[0], Dim(1), Dim(1), shape.back()});
  }
  ctx.set(0, ctx.element(0), std::move(shape));
}

struct State {
  FusedConvChain chain;
  kernels::ChainCut cut;
};

// What of a part does not depend on sizes.
struct Part {
  Window window;
  kernels::ConvParams weights;
  kernels::Epilogue epilogue;
  std::shared_ptr<const Pack<Tensor>> packed;
};

Part prepare_part(PrepareContext& ctx, int index) {
  const ir::Node node = conv_part(ctx.node(), index);
  const NodeView view(node, nullptr);
  const Tensor* w = ctx.constant(chain_weights(index));
  if (w == nullptr || w->rank() != 4) ctx.fail(ErrorCode::internal, "W of a part is no constant");
  Part part;
  part.window = read_window(view, WindowKind::convolution);
  part.epilogue = read_epilogue(view);
  set_weights(part.weights, w->shape(), read_group(view));
  part.weights.nhwc = true;
  part.weights.shuffle = view.attr_int("input_shuffle", 1);
  part.weights.shuffles_output = view.attr_int("shuffles_output", 0) != 0;
  for (size_t i = 0; i < 2; ++i) {
    part.weights.stride[i] = part.window.stride(i);
    part.weights.dilation[i] = part.window.dilation(i);
  }
  part.packed = pack_conv(ctx, part.weights, chain_weights(index), chain_factors(index));
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
  if (ctx.in_element(0) != ElementType::float32)
    ctx.fail(ErrorCode::unsupported, "no chain of {}", name_of(ctx.in_element(0)));
  const int count = part_count(ctx), depthwise = static_cast<int>(ctx.attr_int("depthwise", 0));
  std::vector<Part> parts;
  for (int i = 0; i < count; ++i) parts.push_back(prepare_part(ctx, i));
  const int residual = chain_weights(count);
  auto step = make_step<State>(
      "conv.chain",
      [parts, count, depthwise](BindContext& bind, State& s) {
        const auto x = bind.in_shape(0);
        std::array<int64_t, 2> size{x[1], x[2]};
        int64_t channels = x[3];
        s.chain.count = count;
        s.chain.depthwise = depthwise;
        for (int i = 0; i < count; ++i) {
          kernels::ConvParams& shape = s.chain.parts[i];
          bind_part(parts[static_cast<size_t>(i)], shape, x[0], size);
          if (shape.in_channels != channels)
            throw Error(ErrorCode::run_failed, fmt::format("{} channels do not fit weights for {}",
                                                           channels, shape.in_channels));
          channels = shape.out_channels;
        }
        s.chain.parts[depthwise].means = bind.has_output(1);
        s.cut = kernels::cut_chain(s.chain);
        bind.need_scratch(kernels::chain_scratch_bytes(s.chain, s.cut, bind.threads()));
      },
      [parts, count, residual](RunContext& run, const State& s) {
        std::array<kernels::ChainPart, FusedConvChain::most> at;
        for (int i = 0; i < count; ++i) {
          const Part& part = parts[static_cast<size_t>(i)];
          kernels::ChainPart& to = at[static_cast<size_t>(i)];
          to = {part.packed->get(run.pool()).data(), part.epilogue};
          if (run.has_input(chain_bias(i))) to.epilogue.bias = run.in<float>(chain_bias(i));
        }
        if (run.has_input(residual))
          at[static_cast<size_t>(count - 1)].epilogue.residual = run.in<float>(residual);
        kernels::chain_run(s.chain, s.cut, run.in<float>(0),
                           std::span(at).first(static_cast<size_t>(count)), run.out<float>(0),
                           run.has_output(1) ? run.out<float>(1) : nullptr, run.scratch(),
                           run.pool());
      });
  for (int i = 0; i < count; ++i) {
    step->traits().unread_inputs.push_back(chain_weights(i));
    step->traits().unread_inputs.push_back(chain_factors(i));
  }
  return step;
}

constexpr Operator operators[] = {
    {.name = "FusedConvChain", .domain = "sardonyx", .infer = infer, .prepare = prepare},
};

}  // namespace

std::span<const Operator> fused_conv_chain_operators() { return operators; }

}  // namespace sardonyx::ops
