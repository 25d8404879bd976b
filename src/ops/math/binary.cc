// Operators of two inputs, element by element, with broadcasting.
#include "kernels/elementwise/binary.h"

#include <array>

#include <algorithm>
#include "ops/shared/broadcast_upgrade.h"

#include "ops/operator.h"
#include "ops/shared/elementwise.h"
#include "ops/shared/fixed_point.h"

namespace sardonyx::ops {
namespace binary_unit {
namespace {

using kernels::BinaryOp;
using kernels::BroadcastPlan;

struct Entry {
  std::string_view name;
  BinaryOp op;
};

constexpr auto entries = std::to_array<Entry>({
    {"Add", BinaryOp::add},
    {"And", BinaryOp::logical_and},
    {"BitShift", BinaryOp::shift_left},  // or right: the attribute says
    {"BitwiseAnd", BinaryOp::bit_and},
    {"BitwiseOr", BinaryOp::bit_or},
    {"BitwiseXor", BinaryOp::bit_xor},
    {"Div", BinaryOp::div},
    {"Equal", BinaryOp::equal},
    {"Greater", BinaryOp::greater},
    {"GreaterOrEqual", BinaryOp::greater_equal},
    {"Less", BinaryOp::less},
    {"LessOrEqual", BinaryOp::less_equal},
    {"Mod", BinaryOp::mod},  // or fmod
    {"Mul", BinaryOp::mul},
    {"Or", BinaryOp::logical_or},
    {"PRelu", BinaryOp::prelu},
    {"Pow", BinaryOp::pow},
    {"Sub", BinaryOp::sub},
    {"Xor", BinaryOp::logical_xor},
});

BinaryOp op_of(const NodeView& node) {
  for (const Entry& entry : entries) {
    if (entry.name != node.node().op_type) continue;
    if (entry.op == BinaryOp::shift_left) {
      const std::string direction = node.attr_string("direction");
      if (direction != "LEFT" && direction != "RIGHT")
        node.fail("direction must be LEFT or RIGHT; got '{}'", direction);
      return direction == "LEFT" ? BinaryOp::shift_left : BinaryOp::shift_right;
    }
    if (entry.op == BinaryOp::mod && node.attr_int("fmod") != 0) return BinaryOp::fmod;
    return entry.op;
  }
  node.fail(ErrorCode::internal, "is not in the table of binary operators");
}

// `runs`: whether only what holds if the model runs at all is asked for.
std::optional<Dim> combined(BinaryOp op, const Dim& a, const Dim& b, bool runs) {
  const auto at_least = [](const Dim& x, int64_t least) {
    const auto low = x.lower();
    return low && *low >= least;
  };
  const int64_t min_divisor = runs ? 0 : 1;
  const auto truth = [](std::optional<bool> known) -> std::optional<Dim> {
    return known ? std::optional(Dim(*known ? 1 : 0)) : std::nullopt;
  };
  // Whether a < b, where that can be told for all sizes.
  const auto less = [](const Dim& x, const Dim& y) -> std::optional<bool> {
    if (surely_at_least(y, x + Dim(1))) return true;
    if (surely_at_least(x, y)) return false;
    return std::nullopt;
  };
  const auto negated = [](std::optional<bool> known) {
    return known ? std::optional(!*known) : std::nullopt;
  };
  switch (op) {
    case BinaryOp::add: return a + b;
    case BinaryOp::sub: return a - b;
    case BinaryOp::mul: return a * b;
    case BinaryOp::div: {
      // Truncation is floor where both sides are known not to be negative.
      if (b == 0) return std::nullopt;
      if (a.is_constant() && b.is_constant()) {
        if (*b.value() == -1) return Dim(0) - a;
        return Dim(*a.value() / *b.value());
      }
      if (at_least(a, 0) && at_least(b, min_divisor)) return floor_div(a, b);
      return std::nullopt;
    }
    case BinaryOp::mod: {
      if (b == 0 || !at_least(b, b.is_constant() ? 1 : min_divisor)) return std::nullopt;
      return a - floor_div(a, b) * b;
    }
    case BinaryOp::equal:
      if (a == b) return Dim(1);
      if ((a - b).is_constant()) return Dim(0);  // also where both wrap
      if (less(a, b).value_or(false) || less(b, a).value_or(false)) return Dim(0);
      return std::nullopt;
    case BinaryOp::less: return truth(less(a, b));
    case BinaryOp::greater: return truth(less(b, a));
    case BinaryOp::less_equal: return truth(negated(less(b, a)));
    case BinaryOp::greater_equal: return truth(negated(less(a, b)));
    case BinaryOp::logical_and:
      if (a == 0 || b == 0) return Dim(0);
      if (a.is_constant() && b.is_constant()) return Dim(1);
      return std::nullopt;
    case BinaryOp::logical_or:
      if ((a.is_constant() && !(a == 0)) || (b.is_constant() && !(b == 0))) return Dim(1);
      if (a == 0 && b == 0) return Dim(0);
      return std::nullopt;
    default: return std::nullopt;
  }
}

// What a comparison of integers makes, 0 or 1, as an expression; nullopt for other operations.
std::optional<Dim> compared(BinaryOp op, const Dim& a, const Dim& b) {
  const auto less = [](const Dim& x, const Dim& y) { return min(Dim(1), max(Dim(0), y - x)); };
  switch (op) {
    case BinaryOp::equal: return Dim(1) - max(less(a, b), less(b, a));
    case BinaryOp::less: return less(a, b);
    case BinaryOp::greater: return less(b, a);
    case BinaryOp::less_equal: return Dim(1) - less(b, a);
    case BinaryOp::greater_equal: return Dim(1) - less(a, b);
    case BinaryOp::logical_and: return min(a, b);
    case BinaryOp::logical_or: return max(a, b);
    default: return std::nullopt;
  }
}

// The result of one operation on floats; comparisons of them are those of their units.
std::optional<double> computed(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::add: return a + b;
    case BinaryOp::sub: return a - b;
    case BinaryOp::mul: return a * b;
    case BinaryOp::div: return a / b;
    default: return std::nullopt;
  }
}

bool propagate_numbers(InferContext& ctx, BinaryOp op, int64_t count) {
  const auto a = known_floats(ctx, 0), b = known_floats(ctx, 1);
  if (!a || !b || count > max_known_floats || a->empty() || b->empty()) return false;
  const auto fits = [&](const std::vector<double>& side) {
    return side.size() == 1 || static_cast<int64_t>(side.size()) == count;
  };
  if (!fits(*a) || !fits(*b)) return false;
  std::vector<double> out;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const auto result = computed(op, (*a)[a->size() == 1 ? 0 : i], (*b)[b->size() == 1 ? 0 : i]);
    if (!result) return false;
    out.push_back(*result);
  }
  set_floats(ctx, out);
  return true;
}

// A size that divides is not 0, an element may be.
bool may_be_zero(InferContext& ctx, const Dim& divisor) {
  if (divisor.is_constant()) return divisor == 0;
  const int64_t least = divisor.lower().value_or(-1);
  if (least != 0) return least < 0;
  std::vector<int> ids;
  divisor.collect_symbols(ids);
  return std::any_of(ids.begin(), ids.end(), [&](int id) { return !ctx.symbols()[id].is_size; });
}

// Of two floats in units; nullopt where the result is no expression in them.
std::optional<Dim> combined_floats(InferContext& ctx, BinaryOp op, const Dim& a, const Dim& b) {
  switch (op) {
    case BinaryOp::mul: return exact_div(a * b, float_unit);
    case BinaryOp::div:
      return may_be_zero(ctx, b) ? std::nullopt : exact_div(a * Dim(float_unit), b);
    case BinaryOp::add:
    case BinaryOp::sub:
    case BinaryOp::equal:
    case BinaryOp::less:
    case BinaryOp::greater:
    case BinaryOp::less_equal:
    case BinaryOp::greater_equal: return combined(op, a, b, true);
    default: return std::nullopt;
  }
}

void propagate(InferContext& ctx, BinaryOp op, int64_t count) {
  const bool floats = has_float_elements(ctx.element(0));
  if (floats && (op == BinaryOp::pow || propagate_numbers(ctx, op, count))) return;
  const auto* a = ctx.elements(0);
  const auto* b = ctx.elements(1);
  if (a == nullptr || b == nullptr || count > max_known_elements) return;
  const auto fits = [&](const Dims& side) {
    return side.size() == 1 || static_cast<int64_t>(side.size()) == count;
  };
  if (!fits(*a) || !fits(*b)) return;
  Dims out;
  out.reserve(static_cast<size_t>(count));
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const Dim &x = (*a)[a->size() == 1 ? 0 : i], &y = (*b)[b->size() == 1 ? 0 : i];
    auto element =
        floats ? combined_floats(ctx, op, x, y) : combined(op, x, y, ctx.mode().symbolic_values);
    if (!element && !floats && ctx.mode().fold_predicates) element = compared(op, x, y);
    if (!element && !(floats && has_float_elements(ctx.output(0).type.element)))
      element = ctx.unknown_element();
    if (!element) return;
    out.push_back(std::move(*element));
  }
  ctx.set_elements(0, std::move(out));
}

void infer(InferContext& ctx) {
  const BinaryOp op = op_of(ctx);
  const ElementType left = ctx.element(0), right = ctx.element(1);
  if (left != right && left != ElementType::undefined && right != ElementType::undefined &&
      op != BinaryOp::pow) {
    ctx.fail("both inputs must have one element type; {} has {} and {} has {}", ctx.input_name(0),
             name_of(left), ctx.input_name(1), name_of(right));
  }
  const ElementType out = kernels::gives_boolean(op) ? ElementType::boolean : left;
  const auto &a = ctx.shape(0), &b = ctx.shape(1);
  if (!a || !b) {  // a slope broadcasts to what it is for
    ctx.set(0, op == BinaryOp::prelu && a ? ValueType::tensor(out, *a) : ValueType::tensor(out));
    return;
  }
  Dims shape = ctx.broadcast(*a, *b);
  if (op == BinaryOp::prelu) {
    if (b->size() > a->size())
      ctx.fail("slope {} must broadcast to the input's shape {}", ir::to_string(*b),
               ir::to_string(*a));
    shape = *a;
  }
  ctx.set(0, out, shape);
  int64_t count = 1;
  for (const Dim& dim : shape) {
    if (!dim.is_constant() || *dim.value() > max_known_elements) return;
    count *= std::max<int64_t>(*dim.value(), 0);
    if (count > max_known_elements) return;
  }
  propagate(ctx, op, count);
}

void bind(BindContext& ctx, BroadcastPlan& plan) {
  plan = kernels::plan_broadcast(ctx.out_shape(0), {ctx.in_shape(0), ctx.in_shape(1)});
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const BinaryOp op = op_of(ctx);
  const ElementType type = ctx.in_element(0), right = ctx.in_element(1);
  std::unique_ptr<Step> step;
  if (op == BinaryOp::pow && type != right) {
    step = make_step<BroadcastPlan>(
        "binary.Pow.mixed", bind, [type, right](RunContext& run, const BroadcastPlan& plan) {
          kernels::pow(type, right, plan, run.data(0), run.data(1), run.out_data(0), run.pool());
        });
  } else {
    if (!kernels::supports(op, type))
      ctx.fail(ErrorCode::unsupported, "has no kernel for {}", name_of(type));
    step = make_step<BroadcastPlan>(fmt::format("binary.{}", ctx.node().op_type), bind,
                                    [op, type](RunContext& run, const BroadcastPlan& plan) {
                                      kernels::binary(op, type, plan, run.data(0), run.data(1),
                                                      run.out_data(0), run.pool());
                                    });
  }
  if (!kernels::gives_boolean(op)) {
    step->traits().in_place = {{0, 0}};
    if (type == right) step->traits().in_place.push_back({0, 1});
  }
  return step;
}

// A slope with one entry per channel belongs to dimension 1.
void upgrade_prelu(UpgradeContext& ctx) {
  ctx.remove_attribute("consumed_inputs");
  if (ctx.since() >= 7) return;
  const ValueType* slope = ctx.type(1);
  const auto rank = ctx.rank(0);
  if (slope && slope->shape && slope->shape->size() == 1 && (*slope->shape)[0] == 1) {
    // One for all, of a scalar too.
    if (rank.value_or(0) == 0) ctx.set_input(1, ctx.before("Squeeze", {ctx.node().inputs[1]}));
    return;
  }
  if (slope && slope->shape && slope->shape->size() != 1) return;
  const std::string& name = ctx.node().inputs[1];
  if (slope && slope->shape && rank) {
    if (*rank <= 2) return;  // the last dimension is dimension 1
    std::vector<int64_t> axes;
    for (int64_t axis = 1; axis < *rank - 1; ++axis) axes.push_back(axis);
    const std::string shaped = ctx.before("Unsqueeze", {name, ctx.constant_ints(axes)});
    ctx.set_input(1, shaped);
    return;
  }
  // [-1, 1, 1 …] with rank(X) - 2 ones.
  const std::string x_rank = ctx.before("Size", {ctx.before("Shape", {ctx.node().inputs[0]})});
  const std::string ones = ctx.before("Sub", {x_rank, ctx.constant(Tensor::scalar<int64_t>(2))});
  const std::string length = ctx.before("Unsqueeze", {ones, ctx.constant_ints({0})});
  const std::string tail = ctx.before("ConstantOfShape", {length},
                                      {tensor_attribute("value", Tensor::of<int64_t>({1}, {1}))});
  const std::string shape =
      ctx.before("Concat", {ctx.constant_ints({-1}), tail}, {int_attribute("axis", 0)});
  ctx.set_input(1, ctx.before("Reshape", {name, shape}));
}

void (*upgrade_of(std::string_view name))(UpgradeContext&) {
  if (name == "PRelu") return upgrade_prelu;
  if (name == "Mod" || name.starts_with("Bit") || name.ends_with("OrEqual")) return nullptr;
  return upgrade_broadcast;
}

const std::span<const Operator> all() {
  static const std::vector<Operator> operators = [] {
    std::vector<Operator> made;
    for (const Entry& entry : entries) {
      made.push_back({.name = entry.name,
                      .infer = infer,
                      .prepare = prepare,
                      .upgrade = upgrade_of(entry.name),
                      .same_since = 7});
    }
    return made;
  }();
  return operators;
}

}  // namespace
}  // namespace binary_unit

std::optional<kernels::ElementwiseStep> binary_elementwise_step(const NodeView& node) {
  kernels::ElementwiseStep step;
  step.kind = kernels::ElementwiseStep::Kind::binary;
  if (const auto variadic = variadic_op(node.node().op_type)) {
    step.binary = *variadic;
    return step;
  }
  const auto found =
      std::ranges::find(binary_unit::entries, node.node().op_type, &binary_unit::Entry::name);
  if (found == binary_unit::entries.end()) return std::nullopt;
  switch (found->op) {
    case kernels::BinaryOp::add:
    case kernels::BinaryOp::sub:
    case kernels::BinaryOp::mul:
    case kernels::BinaryOp::div:
    case kernels::BinaryOp::pow: step.binary = found->op; return step;
    default: break;
  }
  return std::nullopt;
}

std::span<const Operator> binary_operators() { return binary_unit::all(); }

}  // namespace sardonyx::ops
