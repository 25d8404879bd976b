// The internal FusedElementwise.
#include "ops/internal/checked.h"
#include "ops/internal/elementwise.h"
#include "ops/operator.h"
#include "ops/shared/elementwise.h"

namespace sardonyx::ops {

using internal::FusedElementwise;
using kernels::ElementwiseExtent;
using kernels::ElementwiseProgram;
using kernels::ElementwiseStep;

std::optional<ElementwiseStep> elementwise_step(const NodeView& node) {
  if (!ir::canonical_domain(node.node().domain).empty()) return std::nullopt;
  if (node.input_count() == 1) return unary_elementwise_step(node);
  if (node.input_count() == 2) return binary_elementwise_step(node);
  return std::nullopt;
}

namespace fused_elementwise_unit {
namespace {

// Input i against the output's shape, where that is known.
void check_input(InferContext& ctx, const ElementwiseProgram& program, int i,
                 const std::optional<Dims>& y) {
  if (!ctx.has_input(i)) ctx.fail("{} is absent; all operands are needed", ctx.input_name(i));
  const bool is_open = !ctx.type(i).is_known() || ctx.element(i) == ElementType::undefined;
  if (!is_open && kernels::takes_bytes(program, i) == (ctx.element(i) == ElementType::float32))
    ctx.fail(ErrorCode::internal, "{} must not be of {}", ctx.input_name(i),
             name_of(ctx.element(i)));
  if (!y) return;
  switch (program.extents[static_cast<size_t>(i)]) {
    case ElementwiseExtent::whole: return internal::require_shape(ctx, i, *y);
    case ElementwiseExtent::single: return internal::require_count(ctx, i, Dim(1));
    case ElementwiseExtent::row:
      return internal::require_count(ctx, i, y->empty() ? Dim(1) : y->back());
  }
}

void infer(InferContext& ctx) {
  const ElementwiseProgram program = internal::elementwise_program(ctx);
  const ElementType type =
      kernels::gives_bytes(program) ? program.steps.back().bytes.type : ElementType::float32;
  ValueType y = ValueType::tensor(type);
  for (int i = 0; i < ctx.input_count() && !y.shape; ++i) {
    if (program.extents[static_cast<size_t>(i)] == ElementwiseExtent::whole) y.shape = ctx.shape(i);
  }
  for (int i = 0; i < ctx.input_count(); ++i) check_input(ctx, program, i, y.shape);
  ctx.set(0, std::move(y));
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const ElementwiseProgram program = internal::elementwise_program(ctx);
  const auto count = static_cast<int>(program.extents.size());
  auto step = make_step(
      fmt::format("fused_elementwise.{}", program.steps.size()), [program, count](RunContext& run) {
        const void* inputs[ElementwiseProgram::max_inputs];
        for (int i = 0; i < count; ++i) inputs[i] = run.data(i);
        const auto shape = run.out_shape(0);
        kernels::run_fused_elementwise(program, inputs, run.out_data(0), run.out_size(0),
                                       shape.empty() ? 1 : shape.back(), run.pool());
      });
  for (int i = 0; i < count; ++i) {
    if (program.extents[static_cast<size_t>(i)] == ElementwiseExtent::whole &&
        kernels::takes_bytes(program, i) == kernels::gives_bytes(program))
      step->traits().in_place.push_back({0, i});
  }
  return step;
}

constexpr Operator operators[] = {
    {.name = FusedElementwise::name,
     .domain = internal::domain,
     .infer = internal::infer_checked<FusedElementwise, infer>,
     .prepare = prepare},
};

}  // namespace
}  // namespace fused_elementwise_unit

std::span<const Operator> fused_elementwise_operators() {
  return fused_elementwise_unit::operators;
}

}  // namespace sardonyx::ops
