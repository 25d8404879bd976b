// The reductions: ReduceSum, ReduceMean, ReduceMax and seven more.
#include "kernels/rows/reduce.h"

#include <algorithm>
#include <string_view>

#include "ir/tensor.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace reduce_unit {
namespace {

using kernels::ReduceOp;
using kernels::ReducePlan;

// Which axes are reduced, as far as `axes` is known; nullopt where it is not.
std::optional<std::vector<int64_t>> reduced_axes(const InferContext& ctx, int64_t rank) {
  std::vector<int64_t> axes;
  if (ctx.has_input(1)) {
    const auto given = ctx.integers(1);
    if (!given) {
      const auto& shape = ctx.shape(1);
      const bool empty = shape && shape->size() == 1 && (*shape)[0] == 0;
      if (!empty) return std::nullopt;
    } else {
      for (const int64_t axis : *given) axes.push_back(ctx.normalized_axis(axis, rank));
    }
  }
  if (axes.empty() && ctx.attr_int("noop_with_empty_axes", 0) == 0) {
    for (int64_t i = 0; i < rank; ++i) axes.push_back(i);
  }
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) ctx.fail("axes must not repeat");
  return axes;
}

void set_unknown_axes(InferContext& ctx, const Dims& x, bool keep) {
  Dims y;
  if (keep) {
    for (const Dim& dim : x) y.push_back(dim == 1 ? Dim(1) : ctx.unknown(max(dim, 1)));
  } else {
    const auto& shape = ctx.shape(1);
    if (!shape || shape->size() != 1 || !(*shape)[0].is_constant() ||
        *(*shape)[0].value() > static_cast<int64_t>(x.size())) {
      return ctx.set(0, ValueType::tensor(ctx.element(0)));
    }
    y = ctx.unknown_shape(static_cast<int64_t>(x.size()) - *(*shape)[0].value());
  }
  ctx.set(0, ctx.element(0), std::move(y));
}

// Elements of a small integer vector reduced to one are known where the vector's are.
void reduce_elements(InferContext& ctx, std::string_view op) {
  const Dims* x = ctx.elements(0);
  if (x == nullptr || x->empty() || *ctx.rank(0) != 1) return;
  Dim result = (*x)[0];
  for (size_t i = 1; i < x->size(); ++i) {
    if (op == "ReduceSum") result = result + (*x)[i];
    if (op == "ReduceProd") result = result * (*x)[i];
    if (op == "ReduceMax") result = max(result, (*x)[i]);
    if (op == "ReduceMin") result = min(result, (*x)[i]);
  }
  ctx.set_elements(0, {result});
}

void infer(InferContext& ctx) {
  const auto& x = ctx.shape(0);
  if (!x) return ctx.set(0, ValueType::tensor(ctx.element(0)));
  const bool keep = ctx.attr_int("keepdims", 1) != 0;
  const auto axes = reduced_axes(ctx, *ctx.rank(0));
  if (!axes) return set_unknown_axes(ctx, *x, keep);
  Dims y;
  y.reserve(x->size());
  for (size_t i = 0; i < x->size(); ++i) {
    const bool reduced = std::binary_search(axes->begin(), axes->end(), static_cast<int64_t>(i));
    if (!reduced) y.push_back((*x)[i]);
    if (reduced && keep) y.push_back(Dim(1));
  }
  ctx.set(0, ctx.element(0), std::move(y));
  const std::string_view op = ctx.node().op_type;
  const bool follows =
      op == "ReduceSum" || op == "ReduceProd" || op == "ReduceMax" || op == "ReduceMin";
  if (follows && !axes->empty() && is_integer(ctx.element(0))) reduce_elements(ctx, op);
}

struct State {
  ReducePlan plan;
};

// The axes at run time: the tensor's, or what the output's shape says where binding can tell.
struct Axes {
  bool keep = true;
  bool noop = false;
  bool given = false;  // input 1 is there
  std::optional<std::vector<int64_t>> constant;
};

ReducePlan make_plan(std::span<const int64_t> shape, std::span<const int64_t> given,
                     const Axes& axes) {
  std::vector<int64_t> list;
  const auto rank = static_cast<int64_t>(shape.size());
  for (const int64_t axis : given) {
    if (axis < -rank || axis >= rank) {
      throw Error(ErrorCode::run_failed,
                  fmt::format("axes must be in [{}, {}]; got {}", -rank, rank - 1, axis));
    }
    list.push_back(axis < 0 ? axis + rank : axis);
  }
  if (list.empty() && !axes.noop) {
    for (int64_t i = 0; i < rank; ++i) list.push_back(i);
  }
  return kernels::plan_reduce(shape, list);
}

template <ReduceOp op>
std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const ElementType type = ctx.in_element(0);
  if (!kernels::supports(op, type))
    ctx.fail(ErrorCode::unsupported, "no reduction of {}", name_of(type));
  Axes axes;
  axes.noop = ctx.attr_int("noop_with_empty_axes", 0) != 0;
  axes.given = ctx.has_input(1);
  if (const Tensor* t = ctx.constant(1)) {
    if (t->size() > ReducePlan::max_rank * 8)
      ctx.fail("axes has {} entries; at most one for each dimension is possible", t->size());
    axes.constant.emplace();
    const Tensor held = ir::aligned(*t);
    for (const int64_t axis : held.elements<int64_t>()) axes.constant->push_back(axis);
  }
  if (axes.given && !axes.constant) {  // axes that another node computes
    return make_step("reduce.variable_axes", [type, axes](RunContext& run) {
      const std::span<const int64_t> given(run.in<int64_t>(1), static_cast<size_t>(run.in_size(1)));
      const ReducePlan plan = make_plan(run.in_shape(0), given, axes);
      if (plan.kept != run.out_size(0))
        throw Error(ErrorCode::internal, "the output's shape does not fit the axes");
      kernels::reduce(op, type, plan, run.data(0), run.out_data(0), run.pool());
    });
  }
  auto step = make_step<State>(
      "reduce",
      [axes](BindContext& bind, State& s) {
        const std::vector<int64_t> none;
        s.plan = make_plan(bind.in_shape(0), axes.constant ? *axes.constant : none, axes);
      },
      [type](RunContext& run, const State& s) {
        kernels::reduce(op, type, s.plan, run.data(0), run.out_data(0), run.pool());
      });
  if (axes.given) step->traits().unread_inputs = {1};
  return step;
}

// Logarithms of integers left with version 28: computed in double, truncated.
void compute_in_double(UpgradeContext& ctx) {
  const ElementType element = ctx.element(0);
  if (!is_integer(element)) return;
  const auto to = [](ElementType type) { return int_attribute("to", static_cast<int64_t>(type)); };
  ctx.set_input(0, ctx.before("Cast", {ctx.node().inputs[0]}, {to(ElementType::float64)}));
  std::string result;
  const std::string wide = ctx.detach_output(0, &result);
  ctx.after("Cast", {wide}, result, {to(element)});
}

constexpr bool computes_in_double(std::string_view op) {
  return op == "ReduceLogSum" || op == "ReduceLogSumExp";
}

// The axes were an attribute before.
constexpr int32_t axes_since(std::string_view op) { return op == "ReduceSum" ? 13 : 18; }

void upgrade(UpgradeContext& ctx) {
  const std::string& op = ctx.node().op_type;
  if (ctx.since() < 28 && computes_in_double(op)) compute_in_double(ctx);
  if (ctx.since() >= axes_since(op)) return;
  const auto axes = ctx.old().attr_ints("axes");
  ctx.remove_attribute("axes");
  if (axes && !axes->empty()) ctx.set_input(1, ctx.constant_ints(*axes, "axes"));
}

template <ReduceOp op>
constexpr Operator reduction(std::string_view name) {
  return {.name = name,
          .infer = infer,
          .prepare = prepare<op>,
          .upgrade = upgrade,
          .same_since = computes_in_double(name) ? 28 : axes_since(name)};
}

constexpr Operator operators[] = {
    reduction<ReduceOp::l1>("ReduceL1"),
    reduction<ReduceOp::l2>("ReduceL2"),
    reduction<ReduceOp::log_sum>("ReduceLogSum"),
    reduction<ReduceOp::log_sum_exp>("ReduceLogSumExp"),
    reduction<ReduceOp::max>("ReduceMax"),
    reduction<ReduceOp::mean>("ReduceMean"),
    reduction<ReduceOp::min>("ReduceMin"),
    reduction<ReduceOp::prod>("ReduceProd"),
    reduction<ReduceOp::sum>("ReduceSum"),
    reduction<ReduceOp::sum_square>("ReduceSumSquare"),
};

}  // namespace
}  // namespace reduce_unit

std::span<const Operator> reduce_operators() { return reduce_unit::operators; }

}  // namespace sardonyx::ops
