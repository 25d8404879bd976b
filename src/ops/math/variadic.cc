// Max, Min, Sum, Mean: any number of inputs, element by element, with broadcasting.
#include <algorithm>

#include "base/checked.h"
#include "kernels/convert/cast.h"
#include "kernels/elementwise/binary.h"
#include "ops/operator.h"
#include "ops/shared/elementwise.h"

namespace sardonyx::ops {
namespace variadic_unit {
namespace {

using kernels::BinaryOp;
using kernels::BroadcastPlan;

BinaryOp op_of(const NodeView& node) {
  const std::string& name = node.node().op_type;
  if (name == "Max") return BinaryOp::max;
  if (name == "Min") return BinaryOp::min;
  return BinaryOp::add;
}

void propagate(InferContext& ctx) {
  const BinaryOp op = op_of(ctx);
  if (ctx.node().op_type == "Mean") return;
  Dims out;
  for (int i = 0; i < ctx.input_count(); ++i) {
    const auto* elements = ctx.elements(i);
    if (elements == nullptr) return;
    if (i == 0) {
      out = *elements;
      continue;
    }
    if (out.size() == 1 && elements->size() > 1) out.resize(elements->size(), out[0]);
    if (elements->size() != out.size() && elements->size() != 1) return;
    for (size_t k = 0; k < out.size(); ++k) {
      const Dim& x = (*elements)[elements->size() == 1 ? 0 : k];
      out[k] = op == BinaryOp::max   ? max(out[k], x)
               : op == BinaryOp::min ? min(out[k], x)
                                     : out[k] + x;
    }
  }
  const auto count = ctx.output(0).type.element_count();
  if (count && *count == static_cast<int64_t>(out.size())) ctx.set_elements(0, std::move(out));
}

void infer(InferContext& ctx) {
  const ElementType element = ctx.element(0);
  Dims shape;
  bool ranked = true;
  for (int i = 0; i < ctx.input_count(); ++i) {
    if (ctx.element(i) != element && ctx.type(i).is_known() && ctx.type(0).is_known()) {
      ctx.fail("all inputs must have one element type; {} has {} and {} has {}", ctx.input_name(0),
               name_of(element), ctx.input_name(i), name_of(ctx.element(i)));
    }
    if (!ctx.shape(i)) {
      ranked = false;
    } else if (ranked) {
      shape = i == 0 ? *ctx.shape(0) : ctx.broadcast(shape, *ctx.shape(i));
    }
  }
  ctx.set(0, ranked ? ValueType::tensor(element, std::move(shape)) : ValueType::tensor(element));
  if (ranked) propagate(ctx);
}

// The first two inputs into the output, then each further one onto it.
class VariadicStep final : public Step {
 public:
  VariadicStep(BinaryOp op, ElementType type, bool mean, int inputs)
      : op_(op), type_(type), mean_(mean), inputs_(inputs) {
    traits().state_bytes = static_cast<int32_t>(sizeof(BroadcastPlan)) * std::max(inputs, 1);
    if (inputs == 2) traits().in_place = {{0, 0}, {0, 1}};
  }
  std::string_view kernel() const override { return "variadic"; }

  void bind(BindContext& ctx) const override {
    auto* plans = &ctx.state<BroadcastPlan>();
    if (inputs_ == 1) plans[0] = kernels::plan_broadcast(ctx.out_shape(0), {ctx.in_shape(0)});
    if (inputs_ > 1)
      plans[0] = kernels::plan_broadcast(ctx.out_shape(0), {ctx.in_shape(0), ctx.in_shape(1)});
    for (int i = 2; i < inputs_; ++i) {
      plans[i - 1] = kernels::plan_broadcast(ctx.out_shape(0), {ctx.out_shape(0), ctx.in_shape(i)});
    }
  }

  void run(RunContext& ctx) const override {
    const auto* plans = &ctx.state<BroadcastPlan>();
    void* out = ctx.out_data(0);
    const int64_t count = ctx.out_size(0);
    if (inputs_ == 1) {
      std::copy_n(static_cast<const char*>(ctx.data(0)), byte_size(type_, count),
                  static_cast<char*>(out));
    } else {
      kernels::binary(op_, type_, plans[0], ctx.data(0), ctx.data(1), out, ctx.pool());
      for (int i = 2; i < inputs_; ++i)
        kernels::binary(op_, type_, plans[i - 1], out, ctx.data(i), out, ctx.pool());
    }
    if (mean_) divide(out, count, ctx.pool());
  }

 private:
  void divide(void* out, int64_t count, ThreadPool& pool) const {
    alignas(16) unsigned char divisor[16] = {};
    const auto n = static_cast<float>(inputs_);
    if (type_ == ElementType::float64) {
      *reinterpret_cast<double*>(divisor) = n;
    } else {
      kernels::to_float16(type_, &n, divisor, 1);
    }
    const int64_t shape[] = {count};
    const auto plan = kernels::plan_broadcast(
        shape, {std::span<const int64_t>(shape), std::span<const int64_t>()});
    kernels::binary(BinaryOp::div, type_, plan, out, divisor, out, pool);
  }

  BinaryOp op_;
  ElementType type_;
  bool mean_;
  int inputs_;
};

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const BinaryOp op = op_of(ctx);
  const ElementType type = ctx.in_element(0);
  if (!kernels::supports(op, type))
    ctx.fail(ErrorCode::unsupported, "has no kernel for {}", name_of(type));
  return std::make_unique<VariadicStep>(op, type, ctx.node().op_type == "Mean", ctx.input_count());
}

// Up to version 6 all inputs have one shape.
void upgrade(UpgradeContext& ctx) {
  ctx.remove_attribute("consumed_inputs");
  const size_t inputs = ctx.since() < 8 ? ctx.node().inputs.size() : 0;
  size_t ranked = inputs;
  for (size_t i = 0; i < inputs; ++i)
    if (ctx.rank(i)) ranked = i;
  for (size_t i = 0; i < inputs && ranked < inputs; ++i)
    if (!ctx.rank(i)) return ctx.shape_like(0, ranked);
}

constexpr Operator operators[] = {
    {.name = "Max", .infer = infer, .prepare = prepare, .upgrade = upgrade, .same_since = 8},
    {.name = "Mean", .infer = infer, .prepare = prepare, .upgrade = upgrade, .same_since = 8},
    {.name = "Min", .infer = infer, .prepare = prepare, .upgrade = upgrade, .same_since = 8},
    {.name = "Sum", .infer = infer, .prepare = prepare, .upgrade = upgrade, .same_since = 8},
};

}  // namespace
}  // namespace variadic_unit

std::optional<kernels::BinaryOp> variadic_op(std::string_view name) {
  if (name == "Max") return kernels::BinaryOp::max;
  if (name == "Min") return kernels::BinaryOp::min;
  if (name == "Sum") return kernels::BinaryOp::add;
  return std::nullopt;
}

std::span<const Operator> variadic_operators() { return variadic_unit::operators; }

}  // namespace sardonyx::ops
