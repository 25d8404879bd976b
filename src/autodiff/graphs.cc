// Gradients of operators with graphs: what they keep, branches and SequenceMap. Those of Loop and
// Scan are in iterations.cc.
#include <algorithm>

#include "autodiff/history.h"
#include "autodiff/iterations.h"
#include "autodiff/walk.h"
#include "base/fail.h"
#include "ir/instantiate.h"
#include "ir/walk.h"
#include "ops/upgrade_context.h"

namespace sardonyx::autodiff {

using ops::graph_attribute;
using ops::int_attribute;
using ops::ints_attribute;

std::vector<ir::Node> copy_of(const ir::Graph& graph, const std::vector<std::string>& inputs,
                              const GradientServices& services, std::vector<std::string>& outputs) {
  ir::Function function;
  ir::Node call;
  function.name = call.op_type = graph.name;
  for (const ir::ValueInfo& input : graph.inputs) function.inputs.push_back(input.name);
  call.inputs = inputs;
  for (const ir::TensorProto& initializer : graph.initializers) {
    ir::Node& constant = function.nodes.emplace_back();
    constant.op_type = "Constant";
    constant.outputs = {initializer.name};
    ir::Attribute& value = constant.attributes.emplace_back();
    value.name = "value", value.kind = ir::AttributeKind::tensor;
    value.t = std::make_shared<const ir::TensorProto>(initializer);
  }
  for (const ir::SparseTensorProto& initializer : graph.sparse_initializers) {
    ir::Node& constant = function.nodes.emplace_back();
    constant.op_type = "Constant";
    constant.outputs = {initializer.values.name};
    ir::Attribute& value = constant.attributes.emplace_back();
    value.name = "sparse_value", value.kind = ir::AttributeKind::sparse_tensor;
    value.sparse_tensor = std::make_shared<const ir::SparseTensorProto>(initializer);
  }
  function.nodes.insert(function.nodes.end(), graph.nodes.begin(), graph.nodes.end());
  // Each output through a node of its own: it may be an input, one of the graph around, or twice
  // there.
  for (const ir::ValueInfo& output : graph.outputs) {
    ir::Node& handed = function.nodes.emplace_back();
    handed.op_type = "Identity";
    handed.inputs = {output.name};
    handed.outputs = {services.fresh_name(output.name)};
    function.outputs.push_back(handed.outputs[0]);
    outputs.push_back(services.fresh_name(output.name));
  }
  call.outputs = outputs;
  std::vector<ir::Node> nodes = instantiate(function, call, services.fresh_name);
  for (ir::Node& node : nodes) node.origin.clear();
  return nodes;
}

bool GradientWalk::is_float(const std::string& value) const {
  const infer::ValueFacts* known = services_.known(value);
  const ir::ValueType* type = known == nullptr ? nullptr : &known->type;
  while (type != nullptr && !type->is_tensor()) type = type->nested.get();
  return type == nullptr || type->element == ElementType::undefined || is_floating(type->element);
}

std::vector<std::string> GradientWalk::active_captures(const ir::Node& node) const {
  std::vector<std::string> names = captured_by(node);
  std::erase_if(
      names, [&](const std::string& name) { return !active_.contains(name) || !is_float(name); });
  return names;
}

// Graphs read quantised values as whole numbers, which have no gradient.
void GradientWalk::refuse_quantized(const ir::Node& node) const {
  for (const std::string& name : reads_of(node)) {
    if (!active_.contains(name) || is_float(name) ||
        std::ranges::none_of(tape_, [&](const ir::Node& made) {
          return std::ranges::find(made.outputs, name) != made.outputs.end();
        }))
      continue;
    ops::NodeView(node, schema::newest(node.domain, node.op_type))
        .fail(ErrorCode::unsupported,
              "has no gradient: it reads the quantised value '{}'; dequantise that before it",
              name);
  }
}

void GradientWalk::graphs_backward(const ir::Node& node,
                                   const std::vector<std::string>& of_outputs) {
  refuse_quantized(node);
  if (node.domain.empty() && node.op_type == "If") return if_backward(node, of_outputs);
  if (node.domain.empty() && (node.op_type == "Loop" || node.op_type == "Scan"))
    return iterations_backward(node, of_outputs);
  if (node.domain.empty() && node.op_type == "SequenceMap")
    return sequence_map_backward(node, of_outputs);
  ops::NodeView(node, schema::newest(node.domain, node.op_type))
      .fail(ErrorCode::unsupported,
            "has no gradient: of the operators with graphs If, Loop, Scan, SequenceMap and "
            "FlexAttention have one");
}

namespace {

size_t count_draws(const ir::Graph& graph, const ir::Node& holder,
                   const GradientServices& services) {
  ir::Graph copy = graph;
  return keep_draws(copy, holder, services).size();
}

}  // namespace

GradientWalk::History GradientWalk::history_of(const ir::Node& node) const {
  const auto found = histories_.find(first_output(node));
  return found == histories_.end() ? History() : found->second;
}

bool GradientWalk::History::by_sequences() const {
  return std::ranges::any_of(forms, [](Form form) { return form != Form::stack; });
}

std::vector<ir::Node> GradientWalk::with_history(const ir::Node& node) {
  if (!node.domain.empty()) return {node};
  History history;
  std::vector<ir::Node> made{node};
  if (node.op_type == "If") {
    // A branch of its own, so that both hand on what either draws.
    ir::Graph around;
    around.nodes = {node};
    history.draws = keep_draws(around, node, services_);
    made = {around.nodes.at(0)};
  } else if (node.op_type == "Loop" || node.op_type == "Scan") {
    made = with_states(iteration_of(node), history);
  }
  histories_[first_output(node)] = std::move(history);
  return made;
}

// The gradients of what the branches capture, by the same condition.
void GradientWalk::if_backward(const ir::Node& node, const std::vector<std::string>& of_outputs) {
  const std::vector<std::string> captured = active_captures(node);
  if (captured.empty()) return;
  ir::Node chosen;
  chosen.op_type = "If";
  chosen.inputs = {node.inputs.at(0)};
  const Names draws = history_of(node).draws;
  size_t drawn = 0;
  for (const char* which : {"then_branch", "else_branch"}) {
    ir::Graph branch;
    branch.name = which;
    services_.within({}, [&](const GradientServices& inside) {
      GradientWalk walk(inside, texts_, origin_);
      for (const std::string& name : captured) walk.activate(name);
      std::vector<std::string> results;
      ir::Graph repeated = graph_of(node, which);
      const size_t count = count_draws(repeated, node, inside);
      const auto first = draws.begin() + static_cast<std::ptrdiff_t>(drawn);
      replay_draws(repeated, {first, first + static_cast<std::ptrdiff_t>(count)}, inside);
      drawn += count;
      for (const ir::Node& inner : copy_of(repeated, {}, inside, results))
        walk.forward(inner, true);
      for (size_t i = 0; i < results.size() && i < of_outputs.size(); ++i) {
        const std::string result = walk.actual(results[i]);
        if (!of_outputs[i].empty() && walk.is_active(result)) walk.flow_into(result, of_outputs[i]);
      }
      walk.backward();
      std::vector<std::string> gradients;
      for (const std::string& name : captured)
        gradients.push_back(walk.emitter().emit("Identity", {walk.gathered_or_zeros(name)}));
      branch.outputs = named(gradients);
      branch.nodes = walk.emitter().take();
    });
    chosen.attributes.push_back(graph_attribute(which, std::move(branch)));
  }
  for (const std::string& name : captured) {
    chosen.outputs.push_back(services_.fresh_name("d_" + name));
    flow_into(name, chosen.outputs.back());
  }
  emitter_.emit(std::move(chosen), newest_imports());
}

// Another SequenceMap, over the items and what flows into what was made of them. What every item
// shares gets a sequence of its parts, which are summed.
void GradientWalk::sequence_map_backward(const ir::Node& node,
                                         const std::vector<std::string>& of_outputs) {
  const ir::Graph& graph = graph_of(node, "body");
  if (count_draws(graph, node, services_) > 0) {
    ops::NodeView(node, schema::newest("", node.op_type))
        .fail(ErrorCode::unsupported,
              "has no gradient: its graph draws numbers without a seed; give the node that draws "
              "one");
  }
  const std::vector<std::string> captured = active_captures(node);
  const auto is_sequence = [&](const std::string& value) {
    return emitter_.flow_kind(value) == ir::TypeProto::Kind::sequence;
  };
  ir::Node back;
  back.op_type = "SequenceMap";
  back.inputs = node.inputs;
  std::vector<std::pair<std::string, infer::ValueFacts>> entering;
  const auto enter = [&](const std::string& value) {
    const infer::ValueFacts* known = services_.known(value);
    infer::ValueFacts item = like(known);
    if (known != nullptr && is_sequence(value) && known->type.nested)
      item = infer::ValueFacts::of(*known->type.nested);
    return entering.emplace_back(services_.fresh_name("item"), std::move(item)).first;
  };
  Names items, flows;
  for (const std::string& input : node.inputs) items.push_back(enter(input));
  std::vector<size_t> flowing, asked;
  for (size_t k = 0; k < of_outputs.size(); ++k) {
    if (of_outputs[k].empty()) continue;
    flowing.push_back(k);
    back.inputs.push_back(of_outputs[k]);
    flows.push_back(enter(of_outputs[k]));
  }
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (active_.contains(node.inputs[i]) && is_float(node.inputs[i])) asked.push_back(i);
  ir::Graph body;
  body.name = "back";
  services_.within(entering, [&](const GradientServices& inside) {
    GradientWalk walk(inside, texts_, origin_);
    for (const std::string& name : captured) walk.activate(name);
    for (const size_t i : asked) walk.activate(items[i]);
    Names results, gradients;
    for (const ir::Node& inner : copy_of(graph, items, inside, results)) walk.forward(inner, true);
    for (size_t k = 0; k < flowing.size(); ++k) {
      const std::string value = walk.actual(results.at(flowing[k]));
      if (walk.is_active(value)) walk.flow_into(value, flows[k]);
    }
    walk.backward();
    for (const size_t i : asked)
      gradients.push_back(walk.emitter().emit("Identity", {walk.gathered_or_zeros(items[i])}));
    for (const std::string& name : captured)
      gradients.push_back(walk.emitter().emit("Identity", {walk.gathered_or_zeros(name)}));
    body.outputs = named(gradients);
    body.nodes = walk.emitter().take();
  });
  for (const auto& [name, known] : entering) body.inputs.emplace_back().name = name;
  Names shared;
  for (const size_t i : asked) {
    back.outputs.push_back(services_.fresh_name("d_item"));
    if (is_sequence(node.inputs[i]))
      flow_into(node.inputs[i], back.outputs.back());
    else
      shared.push_back(node.inputs[i]);
  }
  for (const std::string& name : captured) {
    back.outputs.push_back(services_.fresh_name("d_" + name));
    shared.push_back(name);
  }
  if (back.outputs.empty()) return;
  const Names made = back.outputs;
  back.attributes = {graph_attribute("body", std::move(body))};
  emitter_.emit(std::move(back), newest_imports());
  // Parts of what is shared, behind zeros in case that there are no items.
  size_t at = made.size() - captured.size();
  size_t next = 0;
  const auto sum_into = [&](const std::string& value, const std::string& parts) {
    const std::string all =
        emitter_.emit("SequenceInsert", {parts, emitter_.filled_like(0, value)});
    const std::string stacked = emitter_.emit(
        "ConcatFromSequence", {all}, {int_attribute("axis", 0), int_attribute("new_axis", 1)});
    flow_into(value, emitter_.emit("ReduceSum", {stacked, emitter_.ints({0})},
                                   {int_attribute("keepdims", 0)}));
  };
  for (size_t i = 0; i < asked.size(); ++i)
    if (!is_sequence(node.inputs[asked[i]])) sum_into(shared[next++], made[i]);
  for (; at < made.size(); ++at) sum_into(shared[next++], made[at]);
}

}  // namespace sardonyx::autodiff
