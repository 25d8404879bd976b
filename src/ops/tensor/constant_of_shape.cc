// ConstantOfShape: one value under a shape that an input gives.
#include <algorithm>
#include <array>
#include <cstring>

#include "ir/tensor.h"
#include "ops/shared/element_counts.h"
#include "ops/shared/moving.h"

namespace sardonyx::ops {
namespace constant_of_shape_unit {
namespace {

Tensor value_of(const NodeView& node) {
  const ir::TensorProto* proto = node.attr_tensor("value");
  if (proto == nullptr) return Tensor::scalar<float>(0);
  Tensor value = ir::to_tensor(*proto);
  if (value.size() != 1)
    node.fail("attribute 'value' must hold one element; it holds {}", value.size());
  return value;
}

void infer(InferContext& ctx) {
  want_rank(ctx, 0, 1);
  const Tensor value = value_of(ctx);
  const ElementType type = value.element_type();
  const auto dims = values_of(ctx, 0);
  if (!dims) {
    set_rank(ctx, type, length_of(ctx, 0));
    return;
  }
  for (const Dim& dim : *dims) ctx.require_at_least(dim, 0, "a size of the output");
  ctx.set(0, type, *dims);
  const auto small = small_shape(*dims);
  const ValueFacts one = ValueFacts::of(value);
  if (small && one.elements) {
    const int64_t count = *product(*dims).value();
    ctx.set_elements(0, Dims(static_cast<size_t>(count), one.elements->front()));
  }
}

// Eight packed elements of one value fill whole bytes, whatever their width.
std::array<uint8_t, 8> repeated(ElementType type, const void* value) {
  std::array<uint8_t, 8> codes{}, bytes{};
  kernels::unpack(type, value, 0, codes.data(), 1);
  codes.fill(codes[0]);
  kernels::pack(type, codes.data(), bytes.data(), 0, 8);
  return bytes;
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const Tensor value = value_of(ctx);
  const ElementType type = value.element_type();
  std::unique_ptr<Step> step;
  if (type == ElementType::string) ctx.fail("attribute 'value' must not be a string");
  if (kernels::is_packed(type)) {
    const auto pattern = repeated(type, value.data());
    step = make_step("constant_of_shape.packed", [type, pattern](RunContext& run) {
      const int64_t n = run.out_size(0), bytes = byte_size(type, n);
      const int period = bit_width(type);  // bytes of eight elements
      for (int64_t i = 0; i < bytes; ++i)
        run.out<uint8_t>(0)[i] = pattern[static_cast<size_t>(i % period)];
      const int64_t used = n * bit_width(type) % 8;
      if (used != 0) run.out<uint8_t>(0)[bytes - 1] &= static_cast<uint8_t>((1u << used) - 1);
    });
  } else {
    std::array<std::byte, 16> element{};
    std::memcpy(element.data(), value.data(), value.byte_size());
    step = make_step("constant_of_shape.fill",
                     [element, cell = kernels::cell_of(type)](RunContext& run) {
                       alignas(16) std::byte one[16];
                       std::memcpy(one, element.data(), sizeof one);
                       kernels::fill(cell, one, run.out_data(0), run.out_size(0), run.pool());
                     });
  }
  step->traits().unread_inputs = {0};
  return step;
}

constexpr Operator operators[] = {{.name = "ConstantOfShape", .infer = infer, .prepare = prepare}};

}  // namespace
}  // namespace constant_of_shape_unit

std::span<const Operator> constant_of_shape_operators() {
  return constant_of_shape_unit::operators;
}

}  // namespace sardonyx::ops
