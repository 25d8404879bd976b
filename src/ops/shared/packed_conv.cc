#include "ops/shared/packed_conv.h"

#include "ops/shared/product.h"

namespace sardonyx::ops {

Tensor weight_factors(const PrepareContext& ctx, int factors, int64_t channels) {
  if (!ctx.has_input(factors)) return Tensor();
  const Tensor* given = ctx.constant(factors);
  if (given == nullptr)
    ctx.fail(ErrorCode::internal, "{} must be constant", ctx.input_name(factors));
  Tensor values = as_floats(*given, ThreadPool::single());  // they are few
  if (channels != values.size())
    ctx.fail("{} must have one factor for each output channel", ctx.input_name(factors));
  return values;
}

std::vector<uint8_t> content_of(const Tensor& tensor) {
  const auto* bytes = static_cast<const uint8_t*>(tensor.data());
  return {bytes, bytes + tensor.byte_size()};
}

std::shared_ptr<const Pack<Tensor>> pack_conv(PrepareContext& ctx, const kernels::ConvParams& shape,
                                              int w, int factors) {
  const Tensor& weights = *ctx.constant(w);
  const Tensor multiplied = weight_factors(ctx, factors, weights.shape()[0]);
  // Strides and dilations decide between ways that pack differently.
  const PackFormat format{.family = PackFamily::conv,
                          .from = weights.element_type(),
                          .to = ElementType::float32,
                          .shape = weights.shape(),
                          .nhwc = shape.nhwc,
                          .shuffled = shape.shuffle != 1,
                          .shuffles_output = shape.shuffles_output,
                          .winograd = shape.winograd,
                          .group = shape.group,
                          .strides = {shape.stride.begin(), shape.stride.end()},
                          .dilations = {shape.dilation.begin(), shape.dilation.end()},
                          .parameters = content_of(multiplied)};
  const int64_t bytes = kernels::conv_packed_size(shape);
  return ctx.packed<Tensor>(
      w, format, {{ElementType::uint8, bytes}},
      [weights, multiplied, shape, bytes](ThreadPool& pool) {
        // Packers read at any address: only what must be converted is copied.
        const Tensor values =
            weights.element_type() == ElementType::float32 ? weights : as_floats(weights, pool);
        Tensor made(ElementType::uint8, Shape{bytes});
        kernels::pack_conv_weights(
            shape, values.data(),
            multiplied.size() == 0 ? nullptr : static_cast<const float*>(multiplied.data()),
            made.mutable_data(), &pool);
        return made;
      });
}

}  // namespace sardonyx::ops
