// SequenceMap: a body run for each item of a sequence.
#include "ops/operator.h"
#include "ops/shared/held_count.h"
#include "ops/shared/iteration.h"

namespace sardonyx::ops {
namespace sequence_map_unit {
namespace {

using Kind = ir::TypeProto::Kind;

const ir::Graph& body_of(const NodeView& node) {
  const ir::Graph* body = node.attr_graph("body");
  if (body == nullptr) node.fail("attribute 'body' is required and absent; add the graph");
  if (body->inputs.size() != static_cast<size_t>(node.input_count()) ||
      body->outputs.size() < static_cast<size_t>(node.output_count())) {
    node.fail("the body must have the {} inputs and {} outputs of the node; it has {} and {}",
              node.input_count(), node.output_count(), body->inputs.size(), body->outputs.size());
  }
  return *body;
}

// What one call of the body gets for input i: an item of a sequence, anything else as it is. Sizes
// that items need not share get names of their own in `symbols`, of the node that makes `of`.
ValueFacts argument(const ValueType& type, int i, std::string_view of, ir::SymbolTable& symbols) {
  if (type.kind != Kind::sequence) return ValueFacts::of(type);
  if (!type.nested) return {};
  ValueType item = *type.nested;
  if (item.shape) {
    for (size_t d = 0; d < item.shape->size(); ++d) {
      Dim& size = (*item.shape)[d];
      if (!size.is_constant()) size = Dim(symbols.named(fmt::format("item {}.{} of {}", i, d, of)));
    }
  }
  return ValueFacts::of(std::move(item));
}

void infer(InferContext& ctx) {
  const ir::Graph& body = body_of(ctx);
  if (ctx.type(0).is_known() && ctx.type(0).kind != Kind::sequence)
    ctx.fail("the first input must be a sequence; it is {}", ctx.type(0).to_string());
  ir::SymbolTable names;
  std::vector<ValueFacts> inputs;
  for (int i = 0; i < ctx.input_count(); ++i) {
    if (ctx.type(i).kind != Kind::sequence) {
      inputs.push_back(ctx.known(i));
      continue;
    }
    inputs.push_back(argument(ctx.type(i), i, {}, names));
    if (inputs.back().type.shape) {
      for (Dim& size : *inputs.back().type.shape) {
        if (!size.is_constant()) size = ctx.unknown();
      }
    }
  }
  const std::vector<ValueFacts> made = ctx.infer_subgraph(body, inputs);
  for (int i = 0; i < ctx.output_count(); ++i) {
    ValueType item = made[static_cast<size_t>(i)].type;
    if (item.shape) {  // what a call decides need not be the same in the next one
      for (Dim& size : *item.shape) {
        if (size.depends_on_run()) size = ctx.unknown();
      }
    }
    ValueFacts sequence = ValueFacts::of(ValueType::sequence_of(std::move(item)));
    if (const Dim* count = held_count(ctx.known(0)))
      sequence = holding(std::move(sequence.type), *count);
    ctx.set_known(i, std::move(sequence));
  }
}

void run_map(RunContext& run, const PreparedGraph& body) {
  std::vector<Value> given;
  for (int i = 0; i < run.input_count(); ++i)
    given.push_back(i < body.input_count() && run.has_input(i) ? run.in_value(i) : Value());
  given.resize(static_cast<size_t>(body.input_count()));
  const size_t count = given.at(0).sequence().items.size();
  for (size_t i = 1; i < given.size(); ++i) {
    if (given[i].kind() != Value::Kind::sequence) continue;
    if (const size_t other = given[i].sequence().items.size(); other != count) {
      throw Error(ErrorCode::run_failed,
                  fmt::format("all sequences must have the {} items of the first; input {} has {}",
                              count, i, other));
    }
  }
  std::vector<Sequence> results(static_cast<size_t>(body.output_count()));
  std::vector<Value> arguments(given.size());
  for (size_t at = 0; at < count; ++at) {
    run.environment().check_cancelled();
    for (size_t i = 0; i < given.size(); ++i) {
      arguments[i] =
          given[i].kind() == Value::Kind::sequence ? given[i].sequence().items[at] : given[i];
    }
    std::vector<Value> made = body.run(run, arguments);
    for (size_t i = 0; i < results.size(); ++i) results[i].items.push_back(std::move(made[i]));
  }
  for (int i = 0; i < run.output_count(); ++i) {
    if (run.has_output(i)) run.set_output(i, std::move(results[static_cast<size_t>(i)]));
  }
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  ir::SymbolTable names;
  std::vector<ValueFacts> inputs;
  const std::string of = made_by(ctx);
  for (int i = 0; i < ctx.input_count(); ++i)
    inputs.push_back(argument(ctx.in_type(i), i, of, names));
  std::shared_ptr<PreparedGraph> body = ctx.prepare_graph(body_of(ctx), inputs);
  auto step = make_step("sequence_map", [body](RunContext& run) { run_map(run, *body); });
  step->traits().allocates_outputs = true;
  return step;
}

constexpr Operator operators[] = {{.name = "SequenceMap", .infer = infer, .prepare = prepare}};

}  // namespace
}  // namespace sequence_map_unit

std::span<const Operator> sequence_map_operators() { return sequence_map_unit::operators; }

}  // namespace sardonyx::ops
