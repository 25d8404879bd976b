#include "passes/canonicalize/float_exponents.h"

#include "ir/tensor.h"

namespace sardonyx::passes {
namespace {

// A constant exponent of integers becomes floats, as the rewrites and kernels of one type want
// it.
void make_float(GraphIndex& index, size_t i) {
  const ir::Node& pow = index.node(i);
  if (!is_op(&pow, "Pow") || !index.is_float32(pow.inputs[0])) return;
  const Tensor* given = index.constant(pow.inputs[1]);
  if (given == nullptr || given->size() != 1 ||
      (given->element_type() != ElementType::int64 && given->element_type() != ElementType::int32))
    return;
  const Tensor held = ir::aligned(*given);
  const int64_t whole = held.element_type() == ElementType::int64 ? held.elements<int64_t>()[0]
                                                                  : held.elements<int32_t>()[0];
  constexpr int64_t exact = 1 << 24;
  if (whole < -exact || whole > exact) return;
  ir::Node node = pow;
  node.inputs[1] = index.add_initializer(
      Tensor::of<float>({static_cast<float>(whole)}, held.shape()), "exponent");
  index.change(i, std::move(node));
}

}  // namespace

void make_exponents_floats(GraphIndex& index) {
  index.for_each([&](size_t i) { make_float(index, i); });
}

}  // namespace sardonyx::passes
