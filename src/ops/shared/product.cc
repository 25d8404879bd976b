#include "ops/shared/product.h"

#include "base/thread_pool.h"
#include "ir/tensor.h"
#include "kernels/convert/cast.h"
#include "kernels/gemm/gemm.h"

namespace sardonyx::ops {
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
