#include "ops/families/packed_conv.h"

#include "ops/families/product.h"

namespace sardonyx::ops {
namespace {

// The factors of the output channels, where the node has any.
Tensor weight_factors(const PrepareContext& ctx, int w, int factors) {
  if (!ctx.has_input(factors)) return Tensor();
  Tensor values = float_constant(ctx, factors);
  if (ctx.constant(w)->shape()[0] != values.size())
    ctx.fail("{} must have one factor for each output channel", ctx.input_name(factors));
  return values;
}

// Tells apart packs of the same weights with other factors: the factors' bytes.
std::string factor_mark(const Tensor& factors) {
  if (factors.size() == 0) return "";
  return " times " + std::string(static_cast<const char*>(factors.data()), factors.byte_size());
}

}  // namespace

std::shared_ptr<const Tensor> pack_conv(PrepareContext& ctx, const kernels::ConvShape& shape, int w,
                                        int factors) {
  const Tensor& weights = *ctx.constant(w);
  const bool has_factors = ctx.has_input(factors);
  const std::string format = fmt::format(
      "conv {} {} group {}{}{}{}", to_string(weights.shape()), name_of(weights.element_type()),
      shape.group, shape.channels_last ? " last" : "", shape.winograd ? " winograd" : "",
      has_factors ? factor_mark(weight_factors(ctx, w, factors)) : "");
  return ctx.packed<Tensor>(w, format, [&] {
    const Tensor values = packable_constant(ctx, w), multiplied = weight_factors(ctx, w, factors);
    ctx.services().packs->count(kernels::conv_packed_size(shape));
    auto made =
        std::make_shared<Tensor>(ElementType::uint8, Shape{kernels::conv_packed_size(shape)});
    kernels::pack_conv_weights(shape, values.data(),
                               has_factors ? static_cast<const float*>(multiplied.data()) : nullptr,
                               made->mutable_data(), ctx.services().pool);
    return std::shared_ptr<const Tensor>(std::move(made));
  });
}

}  // namespace sardonyx::ops
