#include "ops/families/product.h"

#include <array>
#include <string_view>
#include <utility>

#include "base/thread_pool.h"
#include "ir/tensor.h"
#include "kernels/convert/cast.h"
#include "kernels/gemm/gemm.h"

namespace sardonyx::ops {
namespace {

using kernels::Activation;

constexpr std::array<std::pair<std::string_view, Activation>, 11> activations{{
    {"none", Activation::none},
    {"relu", Activation::relu},
    {"clip", Activation::clip},
    {"leaky_relu", Activation::leaky_relu},
    {"hard_sigmoid", Activation::hard_sigmoid},
    {"hard_swish", Activation::hard_swish},
    {"sigmoid", Activation::sigmoid},
    {"silu", Activation::silu},
    {"tanh", Activation::tanh},
    {"gelu_erf", Activation::gelu_erf},
    {"gelu_tanh", Activation::gelu_tanh},
}};

}  // namespace

kernels::Epilogue read_epilogue(const NodeView& node) {
  kernels::Epilogue epilogue;
  if (ir::canonical_domain(node.node().domain) != "sardonyx") return epilogue;
  const std::string word = node.attr_string("activation", "none");
  bool found = false;
  for (const auto& [name, activation] : activations) {
    if (name != word) continue;
    epilogue.activation = activation;
    found = true;
  }
  if (!found) node.fail("activation '{}' is not one that an epilogue can compute", word);
  const bool is_gemm = node.node().op_type == "Gemm";  // alpha and beta scale the product there
  epilogue.p0 = node.attr_float("activation_alpha", is_gemm ? 0 : node.attr_float("alpha", 0));
  epilogue.p1 = node.attr_float("activation_beta", is_gemm ? 0 : node.attr_float("beta", 0));
  epilogue.residual_last = node.attr_int("residual_last", 0) != 0;
  return epilogue;
}

bool computes_in_float(ElementType type) {
  return type == ElementType::float32 || type == ElementType::float16 ||
         type == ElementType::bfloat16;
}

Tensor as_floats(const Tensor& tensor, ThreadPool& pool) {
  Tensor source = ir::aligned(tensor);
  if (source.element_type() == ElementType::float32) return source;
  Tensor wide(ElementType::float32, source.shape());
  kernels::cast(source.element_type(), ElementType::float32, source.data(), wide.mutable_data(),
                source.size(), {}, pool);
  return wide;
}

ElementType packed_type(ElementType type) {
  const bool half = type == ElementType::float16 || type == ElementType::bfloat16;
  return half ? type : ElementType::float32;
}

std::shared_ptr<const Pack<Tensor>> pack_matrix(PrepareContext& ctx, int i, int64_t K, int64_t N,
                                                bool transposed) {
  const Tensor& matrix = *ctx.constant(i);
  const ElementType type = packed_type(matrix.element_type());
  const PackFormat format{.family = PackFamily::matrix,
                          .from = matrix.element_type(),
                          .to = type,
                          .shape = {K, N},
                          .transposed = transposed};
  const int64_t bytes = kernels::packed_b_size(K, N, type);
  return ctx.packed<Tensor>(
      i, format, {{ElementType::uint8, bytes}},
      [matrix, K, N, transposed, type, bytes, packs = ctx.services().packs](ThreadPool& pool) {
        // Packers read at any address: only what must be converted is copied.
        const Tensor values = matrix.element_type() == type ? matrix : as_floats(matrix, pool);
        Tensor made(ElementType::uint8, Shape{bytes});
        kernels::pack_b(values.data(), transposed ? 1 : N, transposed ? K : 1, K, N,
                        made.mutable_data(), &pool, type,
                        [packs](std::span<const std::byte> piece) { packs->release(piece); });
        return made;
      });
}

}  // namespace sardonyx::ops
