// Region (internal, domain "sardonyx"): float32 inputs of one shape, of one element, or one row of
// that shape, through a program of element-wise operators. Attribute extents says which input is
// what. Attribute program holds eight numbers a step: whether it is
// binary, the operator's number, and kind and index of the operands a and b and of the result;
// attribute params its two parameters.
#include "ops/families/elementwise.h"
#include "ops/operator.h"

namespace sardonyx::ops {

using kernels::RegionOperand;
using kernels::RegionProgram;
using kernels::RegionStep;

std::optional<RegionStep> region_step(const NodeView& node) {
  if (!ir::canonical_domain(node.node().domain).empty()) return std::nullopt;
  if (node.input_count() == 1) return unary_region_step(node);
  if (node.input_count() == 2) return binary_region_step(node);
  return std::nullopt;
}

namespace {

constexpr size_t numbers = 8;

RegionProgram read_program(const NodeView& node) {
  const auto code = node.attr_ints("program").value_or(std::vector<int64_t>());
  const auto params = node.attr_floats("params").value_or(std::vector<float>());
  const auto extents = node.attr_ints("extents").value_or(std::vector<int64_t>());
  RegionProgram program;
  for (const int64_t one : extents) {
    program.extents.push_back(static_cast<kernels::RegionExtent>(one));
  }
  for (size_t i = 0; i + numbers <= code.size() && i / numbers * 2 + 1 < params.size();
       i += numbers) {
    const auto operand = [&](size_t at) {
      return RegionOperand{static_cast<RegionOperand::Kind>(code[i + at]),
                           static_cast<int>(code[i + at + 1])};
    };
    RegionStep step;
    step.is_binary = code[i] != 0;
    step.unary = static_cast<kernels::UnaryOp>(step.is_binary ? 0 : code[i + 1]);
    step.binary = static_cast<kernels::BinaryOp>(step.is_binary ? code[i + 1] : 0);
    step.a = operand(2), step.b = operand(4), step.to = operand(6);
    step.params = {params[i / numbers * 2], params[i / numbers * 2 + 1]};
    program.steps.push_back(step);
  }
  if (program.steps.empty() || !kernels::bind_region(program) ||
      static_cast<int>(program.extents.size()) != node.input_count())
    node.fail(ErrorCode::internal, "is no program that can run");
  return program;
}

void infer(InferContext& ctx) {
  const auto extents = ctx.attr_ints("extents").value_or(std::vector<int64_t>());
  for (int i = 0; i < ctx.input_count(); ++i) {
    if (static_cast<size_t>(i) < extents.size() && extents[static_cast<size_t>(i)] == 0) {
      return ctx.set(0, ctx.type(i));
    }
  }
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const RegionProgram program = read_program(ctx);
  const auto count = static_cast<int>(program.extents.size());
  auto step =
      make_step(fmt::format("region.{}", program.steps.size()), [program, count](RunContext& run) {
        const float* inputs[RegionProgram::max_inputs];
        for (int i = 0; i < count; ++i) inputs[i] = run.in<float>(i);
        const auto shape = run.out_shape(0);
        kernels::run_region(program, inputs, run.out<float>(0), run.out_size(0),
                            shape.empty() ? 1 : shape.back(), run.pool());
      });
  for (int i = 0; i < count; ++i) {
    if (program.extents[static_cast<size_t>(i)] == kernels::RegionExtent::whole)
      step->traits().in_place.push_back({0, i});
  }
  return step;
}

constexpr Operator operators[] = {
    {.name = "Region", .domain = "sardonyx", .infer = infer, .prepare = prepare},
};

}  // namespace

std::span<const Operator> region_operators() { return operators; }

}  // namespace sardonyx::ops
