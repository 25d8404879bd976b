// Operators of one input, element by element.
#include "kernels/elementwise/unary.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/operator.h"
#include "ops/shared/elementwise.h"
#include "ops/shared/fixed_point.h"

namespace sardonyx::ops {
namespace unary_unit {
namespace {

using kernels::UnaryOp;

struct Entry {
  std::string_view name;
  UnaryOp op;
  std::string_view alpha = {};  // the attribute that is the kernel's alpha; none: 0
  std::string_view beta = {};
};

constexpr auto entries = std::to_array<Entry>({
    {"Abs", UnaryOp::abs},
    {"Acos", UnaryOp::acos},
    {"Acosh", UnaryOp::acosh},
    {"Asin", UnaryOp::asin},
    {"Asinh", UnaryOp::asinh},
    {"Atan", UnaryOp::atan},
    {"Atanh", UnaryOp::atanh},
    {"BitwiseNot", UnaryOp::bitwise_not},
    {"Ceil", UnaryOp::ceil},
    {"Celu", UnaryOp::celu, "alpha"},
    {"Cos", UnaryOp::cos},
    {"Cosh", UnaryOp::cosh},
    {"Elu", UnaryOp::elu, "alpha"},
    {"Erf", UnaryOp::erf},
    {"Exp", UnaryOp::exp},
    {"Floor", UnaryOp::floor},
    {"Gelu", UnaryOp::gelu},
    {"HardSigmoid", UnaryOp::hard_sigmoid, "alpha", "beta"},
    {"HardSwish", UnaryOp::hard_swish},
    {"IsInf", UnaryOp::is_inf, "detect_negative", "detect_positive"},
    {"IsNaN", UnaryOp::is_nan},
    {"LeakyRelu", UnaryOp::leaky_relu, "alpha"},
    {"Log", UnaryOp::log},
    {"Mish", UnaryOp::mish},
    {"Neg", UnaryOp::neg},
    {"Not", UnaryOp::logical_not},
    {"Reciprocal", UnaryOp::reciprocal},
    {"Relu", UnaryOp::relu},
    {"Round", UnaryOp::round},
    {"Selu", UnaryOp::selu, "alpha", "gamma"},
    {"Shrink", UnaryOp::shrink, "lambd", "bias"},
    {"Sigmoid", UnaryOp::sigmoid},
    {"Sign", UnaryOp::sign},
    {"Sin", UnaryOp::sin},
    {"Sinh", UnaryOp::sinh},
    {"Softplus", UnaryOp::softplus},
    {"Softsign", UnaryOp::softsign},
    {"Sqrt", UnaryOp::sqrt},
    {"Swish", UnaryOp::swish, "alpha"},
    {"Tan", UnaryOp::tan},
    {"Tanh", UnaryOp::tanh},
    {"ThresholdedRelu", UnaryOp::thresholded_relu, "alpha"},
});

const Entry& entry_of(const NodeView& node) {
  for (const Entry& entry : entries) {
    if (entry.name == node.node().op_type) return entry;
  }
  node.fail(ErrorCode::internal, "is not in the table of unary operators");
}

double param(const NodeView& node, std::string_view attribute) {
  if (attribute.empty()) return 0;
  const auto* declared = node.signature() ? node.signature()->attribute(attribute) : nullptr;
  if (declared && declared->kind == ir::AttributeKind::int_)
    return static_cast<double>(node.attr_int(attribute));
  return node.attr_float(attribute);
}

bool gives_boolean(UnaryOp op) { return op == UnaryOp::is_nan || op == UnaryOp::is_inf; }

std::optional<double> computed(UnaryOp op, double x) {
  switch (op) {
    case UnaryOp::neg: return -x;
    case UnaryOp::abs: return std::fabs(x);
    case UnaryOp::relu: return std::max(x, 0.0);
    case UnaryOp::floor: return std::floor(x);
    case UnaryOp::ceil: return std::ceil(x);
    case UnaryOp::round: return std::nearbyint(x);
    case UnaryOp::sqrt: return std::sqrt(x);
    default: return std::nullopt;
  }
}

// The same of a float in units.
std::optional<Dim> computed(UnaryOp op, const Dim& x) {
  const Dim unit(float_unit);
  switch (op) {
    case UnaryOp::neg: return Dim(0) - x;
    case UnaryOp::abs: return x.lower().value_or(-1) >= 0 ? x : max(x, Dim(0) - x);
    case UnaryOp::relu: return max(x, 0);
    case UnaryOp::floor: return floor_div(x, unit) * unit;
    case UnaryOp::ceil: return ceil_div(x, unit) * unit;
    case UnaryOp::round: return exact_div(x, unit) ? std::optional(x) : std::nullopt;
    default: return std::nullopt;
  }
}

void pass_known_floats(InferContext& ctx, UnaryOp op) {
  if (auto values = known_floats(ctx, 0)) {
    for (double& value : *values) {
      const auto result = computed(op, value);
      if (!result) return;
      value = *result;
    }
    return set_floats(ctx, *values);
  }
  const auto* in = ctx.elements(0);
  if (in == nullptr) return;
  Dims out;
  out.reserve(in->size());
  for (const Dim& x : *in) {
    auto result = computed(op, x);
    if (!result) return;
    out.push_back(std::move(*result));
  }
  ctx.set_elements(0, std::move(out));
}

void infer(InferContext& ctx) {
  ValueType type = ctx.type(0);
  if (ctx.elements(0) == nullptr && ctx.constant(0) == nullptr &&
      !ctx.node().op_type.starts_with("Is"))
    return ctx.set(0, std::move(type));
  const UnaryOp op = entry_of(ctx).op;
  if (gives_boolean(op)) type.element = ElementType::boolean;
  ctx.set(0, std::move(type));
  if (has_float_elements(ctx.element(0))) return pass_known_floats(ctx, op);
  const auto* in = ctx.elements(0);
  if (in == nullptr) return;
  Dims out;
  out.reserve(in->size());
  for (const Dim& x : *in) {
    if (op == UnaryOp::neg) {
      out.push_back(Dim(0) - x);
    } else if (op == UnaryOp::abs) {
      out.push_back(x.lower().value_or(-1) >= 0 ? x : max(x, Dim(0) - x));
    } else if (op == UnaryOp::logical_not && x.is_constant()) {
      out.push_back(Dim(x == 0 ? 1 : 0));
    } else if (op == UnaryOp::logical_not && ctx.mode().fold_predicates) {
      out.push_back(Dim(1) - x);
    } else if (op == UnaryOp::relu) {
      out.push_back(max(x, 0));
    } else if (auto unknown = ctx.unknown_element()) {
      out.push_back(std::move(*unknown));
    } else {
      return;
    }
  }
  ctx.set_elements(0, std::move(out));
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const Entry& entry = entry_of(ctx);
  UnaryOp op = entry.op;
  if (op == UnaryOp::gelu) {
    const std::string approximate = ctx.attr_string("approximate");
    if (approximate == "tanh") {
      op = UnaryOp::gelu_tanh;
    } else if (approximate != "none") {
      ctx.fail("approximate must be 'none' or 'tanh'; got '{}'", approximate);
    }
  }
  const ElementType type = ctx.in_element(0);
  if (!kernels::supports(op, type))
    ctx.fail(ErrorCode::unsupported, "has no kernel for {}", name_of(type));
  const kernels::UnaryParams params{param(ctx, entry.alpha), param(ctx, entry.beta)};
  auto step = make_step(fmt::format("unary.{}", entry.name), [op, type, params](RunContext& run) {
    kernels::unary(op, type, run.data(0), run.out_data(0), run.in_size(0), params, run.pool());
  });
  if (!gives_boolean(op)) step->traits().in_place = {{0, 0}};
  return step;
}

// Up to version 6: the in-place hint goes, and what was said there stays said.
void upgrade(UpgradeContext& ctx) {
  ctx.remove_attribute("consumed_inputs");
  if (ctx.node().op_type == "Selu" && ctx.since() < 6) {
    if (!ctx.old().has_attribute("alpha")) ctx.set_attribute("alpha", 1.6732f);
    if (!ctx.old().has_attribute("gamma")) ctx.set_attribute("gamma", 1.0507f);
  }
}

// Version 9 took integers, too.
void upgrade_erf(UpgradeContext& ctx) {
  const ElementType element = ctx.element(0);
  if (ctx.since() >= 13 || !is_integer(element)) return;
  const auto to = [](ElementType type) { return int_attribute("to", static_cast<int64_t>(type)); };
  const bool wide = bit_width(element) > 16;
  ctx.set_input(0, ctx.before("Cast", {ctx.node().inputs[0]},
                              {to(wide ? ElementType::float64 : ElementType::float32)}));
  std::string old_name;
  const std::string fresh = ctx.detach_output(0, &old_name);
  ctx.after("Cast", {fresh}, old_name, {to(element)});
}

constexpr auto operators = [] {
  std::array<Operator, entries.size()> made;
  for (size_t i = 0; i < entries.size(); ++i) {
    made[i] = {.name = entries[i].name,
               .infer = infer,
               .prepare = prepare,
               .upgrade = entries[i].name == "Erf" ? upgrade_erf : upgrade,
               .same_since = entries[i].name == "Erf" ? 13 : 6};
  }
  return made;
}();

}  // namespace
}  // namespace unary_unit

std::optional<kernels::ElementwiseStep> unary_elementwise_step(const NodeView& node) {
  const auto found =
      std::ranges::find(unary_unit::entries, node.node().op_type, &unary_unit::Entry::name);
  if (found == unary_unit::entries.end()) return std::nullopt;
  kernels::ElementwiseStep step;
  step.unary = found->op;
  if (unary_unit::gives_boolean(step.unary)) return std::nullopt;
  if (step.unary == kernels::UnaryOp::gelu && node.attr_string("approximate") == "tanh") {
    step.unary = kernels::UnaryOp::gelu_tanh;
  }
  step.params = {unary_unit::param(node, found->alpha), unary_unit::param(node, found->beta)};
  return step;
}

std::span<const Operator> unary_operators() { return unary_unit::operators; }

}  // namespace sardonyx::ops
