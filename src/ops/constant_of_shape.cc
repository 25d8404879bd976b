// ConstantOfShape: one value under a shape that an input gives.
#include <algorithm>
#include <array>
#include <cstring>

#include "ir/tensor.h"
#include "ops/families/moving.h"

namespace sardonyx::ops {
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
  const Known one = Known::of(value);
  if (small && one.elements) {
    const int64_t count = *product(*dims).value();
    ctx.set_elements(0, std::vector<Dim>(static_cast<size_t>(count), one.elements->front()));
  }
}

// A packed value repeated over a byte.
uint8_t repeated(ElementType type, uint8_t bits) {
  const int width = bit_width(type);
  unsigned pattern = 0;
  for (int at = 0; at < 8; at += width) pattern |= (bits & ((1u << width) - 1)) << at;
  return static_cast<uint8_t>(pattern);
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const Tensor value = value_of(ctx);
  const ElementType type = value.element_type();
  std::unique_ptr<Step> step;
  if (type == ElementType::string) ctx.fail("attribute 'value' must not be a string");
  if (kernels::is_packed(type)) {
    const uint8_t pattern = repeated(type, *static_cast<const uint8_t*>(value.data()));
    step = make_step("constant_of_shape.packed", [type, pattern](RunContext& run) {
      const int64_t n = run.out_size(0), bytes = byte_size(type, n);
      std::memset(run.out_data(0), pattern, static_cast<size_t>(bytes));
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

std::span<const Operator> constant_of_shape_operators() { return operators; }

}  // namespace sardonyx::ops
