// Loop: a body run a number of times, or while a condition holds.
#include "ops/shared/iteration.h"

namespace sardonyx::ops {
namespace loop_unit {
namespace {

struct Arity {
  size_t carried;
  size_t scanned;
};

const ir::Graph& body_of(const NodeView& node) {
  const ir::Graph* body = node.attr_graph("body");
  if (body == nullptr) node.fail("attribute 'body' is required and absent; add the graph");
  return *body;
}

Arity arity_of(const NodeView& node, const ir::Graph& body) {
  const size_t carried = static_cast<size_t>(std::max(node.input_count() - 2, 0));
  if (body.inputs.size() != carried + 2) {
    node.fail(
        "the body must take the iteration number, the condition and {} carried values; it takes {} "
        "inputs",
        carried, body.inputs.size());
  }
  if (body.outputs.size() < carried + 1) {
    node.fail("the body must give the condition and {} carried values; it gives {} outputs",
              carried, body.outputs.size());
  }
  const size_t scanned = body.outputs.size() - carried - 1;
  if (static_cast<size_t>(node.output_count()) > carried + scanned) {
    node.fail("the body gives {} carried and {} scan outputs; the node names {}", carried, scanned,
              node.output_count());
  }
  return {carried, scanned};
}

bool surely_true(const ValueFacts& known) {
  return known.elements && known.elements->size() == 1 && (*known.elements)[0] == 1;
}

// The most iterations that the node allows, where that is known.
std::optional<Dim> limit_of(const InferContext& ctx) {
  const auto* limit = ctx.has_input(0) ? ctx.elements(0) : nullptr;
  if (limit == nullptr || limit->size() != 1) return std::nullopt;
  return max(limit->front(), Dim(0));
}

// The number of iterations, where it is known before the loop runs.
Dim trip_count(InferContext& ctx, const ValueFacts& next_condition) {
  const bool starts = !ctx.has_input(1) || surely_true(ctx.known(1));
  const auto limit = limit_of(ctx);
  if (!limit) return ctx.unknown();
  // The body's condition counts also where the node has none, as elsewhere; the standard's text
  // says that it is ignored then.
  return starts && surely_true(next_condition) ? *limit : ctx.unknown(*limit);
}

void infer(InferContext& ctx) {
  const ir::Graph& body = body_of(ctx);
  const Arity arity = arity_of(ctx, body);
  std::vector<ValueFacts> start;
  for (size_t i = 0; i < arity.carried; ++i) start.push_back(ctx.known(static_cast<int>(i) + 2));
  CarriedValues carried(ctx, std::move(start), 1);
  const auto limit = limit_of(ctx);
  const Dim iteration = limit ? ctx.unknown(max(*limit - Dim(1), Dim(0))) : ctx.unknown();
  carried.starts_as(iteration, Dim(0));
  const auto infer_body = [&](std::span<const ValueFacts> values) {
    ValueFacts condition = ValueFacts::of(ValueType::tensor(ElementType::boolean, {}));
    // A condition that is true at first and handed on unchanged stays true.
    if (!ctx.has_input(1) || surely_true(ctx.known(1))) {
      condition.elements = std::make_shared<const Dims>(Dims{Dim(1)});
    }
    ValueFacts number = ValueFacts::of(ValueType::tensor(ElementType::int64, {}));
    number.elements = std::make_shared<const Dims>(Dims{iteration});
    std::vector<ValueFacts> inputs = {std::move(number), std::move(condition)};
    inputs.insert(inputs.end(), values.begin(), values.end());
    return ctx.infer_subgraph(body, inputs);
  };
  const std::vector<ValueFacts>& made = carried.settle(infer_body);
  const Dim trips = trip_count(ctx, made[0]);
  carried.bound(trips, infer_body);
  for (size_t i = 0; i < arity.carried; ++i)
    ctx.set_known(static_cast<int>(i), carried.after(i, trips));
  for (size_t i = 0; i < arity.scanned; ++i) {
    ValueType type = carried.in_first(made[1 + arity.carried + i].type);
    if (type.shape) type.shape->insert(type.shape->begin(), trips);
    ctx.set(static_cast<int>(arity.carried + i), std::move(type));
  }
}

bool truth_of(const Value& value) {
  const Tensor& tensor = value.tensor();
  if (tensor.size() != 1) {
    throw Error(ErrorCode::run_failed,
                fmt::format("the loop's condition must be one boolean; it has shape {}",
                            to_string(tensor.shape())));
  }
  return tensor.elements<bool>()[0];
}

// Input `i`, which must be one element where it is there.
template <class T>
std::optional<T> one_of(const RunContext& run, int i, std::string_view what) {
  if (!run.has_input(i)) return std::nullopt;
  if (run.in_size(i) == 1) return *run.in<T>(i);
  throw Error(ErrorCode::run_failed,
              fmt::format("the loop's {} must be one element; it has shape {}", what,
                          to_string(run.in_shape(i))));
}

// What the body would be given by a loop that begins with these values.
std::vector<ValueFacts> first_inputs(std::vector<ValueFacts> carried) {
  const ValueFacts leading[] = {ValueFacts::of(Tensor::scalar<int64_t>(0)),
                                ValueFacts::of(Tensor::scalar<bool>(true))};
  carried.insert(carried.begin(), std::begin(leading), std::end(leading));
  return carried;
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const ir::Graph& body = body_of(ctx);
  const Arity arity = arity_of(ctx, body);
  std::vector<ValueFacts> inputs = {ValueFacts::of(ValueType::tensor(ElementType::int64, {})),
                                    ValueFacts::of(ValueType::tensor(ElementType::boolean, {}))};
  ir::SymbolTable names;
  for (ValueFacts& carried : carried_inputs(ctx, 2, arity.carried, names))
    inputs.push_back(std::move(carried));
  ScanOutputs stacks{1 + arity.carried, arity.carried, {}, {}};
  stacks.axes.assign(arity.scanned, 0);
  for (size_t i = 0; i < arity.scanned; ++i) {
    ValueType type = ctx.out_type(static_cast<int>(arity.carried + i));
    if (type.shape && !type.shape->empty()) type.shape->erase(type.shape->begin());
    stacks.items.push_back(std::move(type));
  }
  std::shared_ptr<PreparedGraph> prepared = ctx.prepare_graph(body, inputs);
  return make_allocating_step("loop", [prepared, arity, stacks](RunContext& run) {
    const int64_t limit = one_of<int64_t>(run, 0, "trip count").value_or(INT64_MAX);
    std::vector<Value> values(arity.carried + 2);
    bool go_on = one_of<bool>(run, 1, "condition").value_or(true);
    for (size_t i = 0; i < arity.carried; ++i) {
      const int input = static_cast<int>(i) + 2;
      if (run.has_input(input)) values[2 + i] = run.in_value(input);
    }
    std::vector<std::vector<Value>> scanned(arity.scanned);
    {
      HeldValues held(run.environment(), arity.carried);
      for (int64_t trip = 0; trip < limit && go_on; ++trip) {
        run.environment().check_cancelled();
        values[0] = Tensor::scalar<int64_t>(trip);
        values[1] = Tensor::scalar<bool>(go_on);
        std::vector<Value> made = prepared->run(run, values);
        go_on = truth_of(made[0]);
        for (size_t i = 0; i < arity.carried; ++i) {
          held.carry(i, made[1 + i]);
          values[2 + i] = std::move(made[1 + i]);
        }
        for (size_t i = 0; i < arity.scanned; ++i) {
          held.add(made[1 + arity.carried + i]);
          scanned[i].push_back(std::move(made[1 + arity.carried + i]));
        }
      }
    }
    const bool ran = scanned.empty() || !scanned[0].empty();
    std::vector<ValueType> inferred;
    if (!ran)
      inferred = items_of_no_iteration(run, *prepared, stacks, [&] {
        std::vector<ValueFacts> carried;
        for (size_t i = 0; i < arity.carried; ++i) carried.push_back(ValueFacts::of(values[2 + i]));
        return first_inputs(std::move(carried));
      });
    const std::vector<ValueType>& items = ran ? stacks.items : inferred;
    for (int i = 0; i < run.output_count(); ++i) {
      if (!run.has_output(i)) continue;
      const auto at = static_cast<size_t>(i);
      if (at < arity.carried) {
        set_made_output(run, i, to_owned(values[2 + at]));
      } else {
        run.set_output(i, stacked(run.environment(), scanned[at - arity.carried], 0, false,
                                  items[at - arity.carried]));
      }
    }
  });
}

constexpr Operator operators[] = {{.name = "Loop", .infer = infer, .prepare = prepare}};

}  // namespace
}  // namespace loop_unit

std::span<const Operator> loop_operators() { return loop_unit::operators; }

}  // namespace sardonyx::ops
