// FusedElementwise (internal, domain "sardonyx"): float32 inputs of one shape, of one element, or
// one row of that shape, or bytes of that shape, through a program of element-wise operators to
// float32 or bytes. Attribute extents says which input is what. Attribute program holds eight
// numbers a step: its kind, the operator's number or the type of the bytes, and kind and index of
// the operands a and b and of the result; attribute params its two parameters or scale and zero
// point.
#include "ops/families/elementwise.h"
#include "ops/operator.h"

namespace sardonyx::ops {

using kernels::ElementwiseOperand;
using kernels::ElementwiseProgram;
using kernels::ElementwiseStep;

std::optional<ElementwiseStep> elementwise_step(const NodeView& node) {
  if (!ir::canonical_domain(node.node().domain).empty()) return std::nullopt;
  if (node.input_count() == 1) return unary_elementwise_step(node);
  if (node.input_count() == 2) return binary_elementwise_step(node);
  return std::nullopt;
}

ElementwiseProgram elementwise_program(const NodeView& node) {
  constexpr size_t numbers = 8;  // of a step
  const auto code = node.attr_ints("program").value_or(std::vector<int64_t>());
  const auto params = node.attr_floats("params").value_or(std::vector<float>());
  const auto extents = node.attr_ints("extents").value_or(std::vector<int64_t>());
  ElementwiseProgram program;
  for (const int64_t one : extents) {
    program.extents.push_back(static_cast<kernels::ElementwiseExtent>(one));
  }
  for (size_t i = 0; i + numbers <= code.size() && i / numbers * 2 + 1 < params.size();
       i += numbers) {
    const auto operand = [&](size_t at) {
      return ElementwiseOperand{static_cast<ElementwiseOperand::Kind>(code[i + at]),
                                static_cast<int>(code[i + at + 1])};
    };
    ElementwiseStep step;
    step.kind = static_cast<ElementwiseStep::Kind>(code[i]);
    step.a = operand(2), step.b = operand(4), step.to = operand(6);
    const float first = params[i / numbers * 2], second = params[i / numbers * 2 + 1];
    if (step.kind == ElementwiseStep::Kind::unary) {
      step.unary = static_cast<kernels::UnaryOp>(code[i + 1]);
      step.params = {first, second};
    } else if (step.kind == ElementwiseStep::Kind::binary) {
      step.binary = static_cast<kernels::BinaryOp>(code[i + 1]);
    } else {
      step.bytes = {static_cast<ElementType>(code[i + 1]), first, static_cast<int32_t>(second)};
    }
    program.steps.push_back(step);
  }
  if (program.steps.empty() || !kernels::bind_fused_elementwise(program) ||
      static_cast<int>(program.extents.size()) != node.input_count())
    node.fail(ErrorCode::internal, "is no program that can run");
  return program;
}

namespace {

void infer(InferContext& ctx) {
  const ElementwiseProgram program = elementwise_program(ctx);
  const ElementType type =
      kernels::gives_bytes(program) ? program.steps.back().bytes.type : ElementType::float32;
  for (int i = 0; i < ctx.input_count(); ++i) {
    if (program.extents[static_cast<size_t>(i)] != kernels::ElementwiseExtent::whole) continue;
    ValueType same = ctx.type(i);
    same.element = type;
    return ctx.set(0, std::move(same));
  }
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const ElementwiseProgram program = elementwise_program(ctx);
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
    if (program.extents[static_cast<size_t>(i)] == kernels::ElementwiseExtent::whole &&
        kernels::takes_bytes(program, i) == kernels::gives_bytes(program))
      step->traits().in_place.push_back({0, i});
  }
  return step;
}

constexpr Operator operators[] = {
    {.name = "FusedElementwise", .domain = "sardonyx", .infer = infer, .prepare = prepare},
};

}  // namespace

std::span<const Operator> fused_elementwise_operators() { return operators; }

}  // namespace sardonyx::ops
