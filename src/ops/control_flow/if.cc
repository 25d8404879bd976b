// If: one of two graphs, chosen by a condition.
#include "ops/shared/element_counts.h"
#include "ops/shared/fixed_point.h"
#include "ops/shared/held_count.h"
#include "ops/shared/iteration.h"

namespace sardonyx::ops {
namespace if_unit {
namespace {

const ir::Graph& branch(const NodeView& node, std::string_view name) {
  const ir::Graph* graph = node.attr_graph(name);
  if (graph == nullptr) node.fail("attribute '{}' is required and absent; add the graph", name);
  if (!graph->inputs.empty())
    node.fail("the graph '{}' must have no inputs; it has {}", name, graph->inputs.size());
  if (static_cast<int>(graph->outputs.size()) != node.output_count()) {
    // Fewer names than outputs: the rest is not wanted.
    if (static_cast<int>(graph->outputs.size()) < node.output_count()) {
      node.fail("the graph '{}' gives {} outputs, the node names {}", name, graph->outputs.size(),
                node.output_count());
    }
  }
  return *graph;
}

ValueType united(InferContext& ctx, const ValueType& a, const ValueType& b) {
  if (!a.is_known()) return b;
  if (!b.is_known()) return a;
  if (a.kind != b.kind || a.element != b.element) {
    ctx.fail("the branches disagree: then_branch gives {}, else_branch {}", a.to_string(),
             b.to_string());
  }
  ValueType type = a;
  if (!a.is_tensor()) {
    if (a.nested && b.nested)
      type.nested = std::make_shared<const ValueType>(united(ctx, *a.nested, *b.nested));
    return type;
  }
  if (!a.shape || !b.shape || a.shape->size() != b.shape->size()) {
    type.shape.reset();
    return type;
  }
  for (size_t d = 0; d < a.shape->size(); ++d) {
    if ((*a.shape)[d] != (*b.shape)[d])
      (*type.shape)[d] = ctx.unknown(max((*a.shape)[d], (*b.shape)[d]));
  }
  return type;
}

// Elements of the one or the other; null where they differ and such are not named.
std::shared_ptr<const Dims> either(InferContext& ctx, const Dims& a, const Dims& b) {
  Dims elements;
  for (size_t i = 0; i < a.size(); ++i) {
    const auto element = either_element(ctx, a[i], b[i]);
    if (!element) return nullptr;
    elements.push_back(*element);
  }
  return std::make_shared<const Dims>(std::move(elements));
}

// How many values the one or the other holds, and what it holds: as far as both are known. What
// holds nothing says nothing of that.
std::shared_ptr<const Dims> either_count(InferContext& ctx, const Dims& a, const Dims& b) {
  const bool only_b = a[0] == 0, only_a = b[0] == 0;
  const size_t most = only_b ? b.size() : only_a ? a.size() : std::min(a.size(), b.size());
  Dims counts;
  for (size_t i = 0; i < most; ++i) {
    if (i > 0 && (only_a || only_b)) {
      counts.push_back(only_a ? a[i] : b[i]);
    } else {
      counts.push_back(a[i] == b[i] ? a[i] : ctx.unknown(max(a[i], b[i])));
    }
  }
  return std::make_shared<const Dims>(std::move(counts));
}

// What surely holds nothing leaves the type of what it could hold to the other branch.
ValueFacts united(InferContext& ctx, const ValueFacts& a, const ValueFacts& b) {
  const bool one_kind = a.type.kind == b.type.kind;
  ValueFacts known = ValueFacts::of(one_kind && is_surely_empty(a)   ? b.type
                                    : one_kind && is_surely_empty(b) ? a.type
                                                                     : united(ctx, a.type, b.type));
  if (one_kind && held_count(a) && held_count(b)) {
    known.elements = either_count(ctx, *a.elements, *b.elements);
  } else if (known.type.is_tensor() && a.elements && b.elements &&
             a.elements->size() == b.elements->size()) {
    // What may be any float has no name.
    const bool named = !has_float_elements(known.type.element);
    if (named || *a.elements == *b.elements) known.elements = either(ctx, *a.elements, *b.elements);
  }
  return known;
}

void infer(InferContext& ctx) {
  require_one(ctx, 0);
  // A branch that these inputs make impossible is an error only if it is taken.
  std::optional<Error> problem;
  const auto outputs_of = [&](std::string_view name) {
    const ir::Graph& graph = branch(ctx, name);
    try {
      return ctx.infer_subgraph(graph, {});
    } catch (const Error& error) {
      if (error.code() == ErrorCode::unsupported || problem) throw;
      problem = error;
      return std::vector<ValueFacts>(graph.outputs.size());
    }
  };
  const std::vector<ValueFacts> then = outputs_of("then_branch");
  const std::vector<ValueFacts> otherwise = outputs_of("else_branch");
  const auto condition = ctx.integers(0);
  for (int i = 0; i < ctx.output_count(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (condition && condition->size() == 1) {
      ctx.set_known(i, (*condition)[0] != 0 ? then[at] : otherwise[at]);
    } else {
      ctx.set_known(i, united(ctx, then[at], otherwise[at]));
    }
  }
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  std::shared_ptr<PreparedGraph> then = ctx.prepare_graph(branch(ctx, "then_branch"), {});
  std::shared_ptr<PreparedGraph> otherwise = ctx.prepare_graph(branch(ctx, "else_branch"), {});
  return make_allocating_step("if", [then, otherwise](RunContext& run) {
    if (run.in_size(0) != 1) {
      throw Error(ErrorCode::run_failed,
                  fmt::format("the condition must be one boolean; it has shape {}",
                              to_string(run.in_shape(0))));
    }
    std::vector<Value> made = (*run.in<bool>(0) ? *then : *otherwise).run(run, {});
    for (int i = 0; i < run.output_count(); ++i) {
      if (run.has_output(i)) set_made_output(run, i, std::move(made[static_cast<size_t>(i)]));
    }
  });
}

constexpr Operator operators[] = {{.name = "If", .infer = infer, .prepare = prepare}};

}  // namespace
}  // namespace if_unit

std::span<const Operator> if_operators() { return if_unit::operators; }

}  // namespace sardonyx::ops
