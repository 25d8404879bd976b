// Gradients of If, Loop and Scan: graphs that compute a branch or an iteration again, and then what
// flows back through it.
#include <algorithm>

#include "autodiff/walk.h"
#include "base/fail.h"
#include "ir/instantiate.h"
#include "ir/walk.h"
#include "ops/upgrade_context.h"

namespace sardonyx::autodiff {

using ops::graph_attribute;
using ops::int_attribute;
using ops::ints_attribute;

namespace {

std::vector<ir::ValueInfo> named(const std::vector<std::string>& names) {
  std::vector<ir::ValueInfo> values;
  for (const std::string& name : names) values.emplace_back().name = name;
  return values;
}

const ir::Graph& graph_of(const ir::Node& node, std::string_view attribute) {
  return *node.find(attribute)->g;
}

// The nodes of a graph under fresh names, its inputs being `inputs`; `outputs` gets the names.
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

}  // namespace

bool GradientWalk::is_float(const std::string& value) const {
  const infer::ValueFacts* known = services_.known(value);
  return known == nullptr || !known->type.is_tensor() ||
         known->type.element == ElementType::undefined || is_floating(known->type.element);
}

std::vector<std::string> GradientWalk::active_captures(const ir::Node& node) const {
  std::vector<std::string> names = captured_by(node);
  std::erase_if(
      names, [&](const std::string& name) { return !active_.contains(name) || !is_float(name); });
  return names;
}

namespace {

// Whether two evaluations of the node on the same inputs may differ: with a seed they do not.
bool draws_anew(const ir::Node& node) {
  const schema::Signature* signature = schema::newest(node.domain, node.op_type);
  if (signature == nullptr || !signature->nondeterministic || node.find("seed") != nullptr ||
      signature->attribute("seed") == nullptr)
    return false;
  // Dropout only drops where it is told to train.
  return node.op_type != "Dropout" || (node.inputs.size() > 2 && !node.inputs[2].empty());
}

// Branches and iterations are computed once more for their gradients, which numbers that are drawn
// anew would falsify.
void require_repeatable(const ir::Node& holder, const ir::Graph& graph) {
  for (const ir::Node& node : graph.nodes) {
    if (draws_anew(node)) {
      ops::NodeView(holder, schema::newest(holder.domain, holder.op_type))
          .fail(ErrorCode::unsupported,
                "has no gradient: its graph '{}' holds {}, which would draw other numbers when the "
                "gradient computes it again; give that node a seed",
                graph.name, ir::describe(node));
    }
    ir::for_each_subgraph(node, [&](const ir::Graph& inner, const ir::Attribute&, int) {
      require_repeatable(holder, inner);
    });
  }
}

}  // namespace

void GradientWalk::graphs_backward(const ir::Node& node,
                                   const std::vector<std::string>& of_outputs) {
  ir::for_each_subgraph(node, [&](const ir::Graph& graph, const ir::Attribute&, int) {
    require_repeatable(node, graph);
  });
  if (node.domain.empty() && node.op_type == "If") return if_backward(node, of_outputs);
  if (node.domain.empty() && (node.op_type == "Loop" || node.op_type == "Scan"))
    return iterations_backward(node, of_outputs);
  ops::NodeView(node, schema::newest(node.domain, node.op_type))
      .fail(ErrorCode::unsupported,
            "has no gradient: of the operators with graphs If, Loop and Scan have one");
}

// The gradients of what the branches capture, by the same condition.
void GradientWalk::if_backward(const ir::Node& node, const std::vector<std::string>& of_outputs) {
  const std::vector<std::string> captured = active_captures(node);
  if (captured.empty()) return;
  ir::Node chosen;
  chosen.op_type = "If";
  chosen.inputs = {node.inputs.at(0)};
  for (const char* which : {"then_branch", "else_branch"}) {
    ir::Graph branch;
    branch.name = which;
    services_.within({}, [&](const GradientServices& inside) {
      GradientWalk walk(inside, texts_, origin_);
      for (const std::string& name : captured) walk.activate(name);
      std::vector<std::string> results;
      for (const ir::Node& inner : copy_of(graph_of(node, which), {}, inside, results))
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

// A Loop or Scan, seen alike.
struct GradientWalk::Iteration {
  const ir::Node* node;
  const ir::Graph* body;
  size_t states = 0;        // carried from iteration to iteration
  size_t first_state = 0;   // among the node's inputs
  size_t body_inputs = 0;   // before the states of the body's
  size_t body_outputs = 0;  // before the states of the body's
  bool loop = false;
  std::vector<int64_t> input_axes, input_directions;    // of a Scan's inputs
  std::vector<int64_t> output_axes, output_directions;  // of what is stacked
};

GradientWalk::Iteration GradientWalk::iteration_of(const ir::Node& node) const {
  const ops::NodeView view(node, schema::newest("", node.op_type));
  Iteration it;
  it.node = &node;
  it.body = &graph_of(node, "body");
  it.loop = node.op_type == "Loop";
  const auto list = [&](std::string_view name, size_t count) {
    auto values = view.attr_ints(name).value_or(std::vector<int64_t>());
    values.resize(count, 0);
    return values;
  };
  if (it.loop) {
    it.states = node.inputs.size() > 2 ? node.inputs.size() - 2 : 0;
    it.first_state = 2, it.body_inputs = 2, it.body_outputs = 1;
  } else {
    const auto scanned =
        static_cast<size_t>(std::max<int64_t>(0, view.attr_int("num_scan_inputs")));
    if (scanned > node.inputs.size())
      view.fail("num_scan_inputs is {}; there are {} inputs", scanned, node.inputs.size());
    it.states = node.inputs.size() - scanned;
    it.input_axes = list("scan_input_axes", scanned);
    it.input_directions = list("scan_input_directions", scanned);
  }
  if (it.body->inputs.size() < it.body_inputs + it.states ||
      it.body->outputs.size() < it.body_outputs + it.states)
    view.fail("its body does not fit its {} states", it.states);
  const size_t stacked = it.body->outputs.size() - it.body_outputs - it.states;
  it.output_axes.assign(stacked, 0), it.output_directions.assign(stacked, 0);
  if (!it.loop) {
    it.output_axes = list("scan_output_axes", stacked);
    it.output_directions = list("scan_output_directions", stacked);
  }
  return it;
}

// Runs all iterations once more and gives what entered each of them, stacked: the states, and a
// Loop's number of the iteration.
std::vector<std::string> GradientWalk::run_with_states(const Iteration& it) {
  std::vector<std::string> inputs, results;
  for (const ir::ValueInfo& input : it.body->inputs)
    inputs.push_back(services_.fresh_name(input.name));
  ir::Graph body;
  body.name = it.body->name;
  body.nodes = copy_of(*it.body, inputs, services_, results);
  results.resize(it.body_outputs + it.states);
  const auto hand_on = [&](const std::string& value) {
    ir::Node& handed = body.nodes.emplace_back();
    handed.op_type = "Identity";
    handed.inputs = {value};
    handed.outputs = {services_.fresh_name("entered")};
    results.push_back(handed.outputs[0]);
  };
  for (size_t i = 0; i < it.states; ++i) hand_on(inputs[it.body_inputs + i]);
  if (it.loop) hand_on(inputs[0]);
  body.inputs = named(inputs);
  // What a Loop's body gets beside its states has types of its own.
  for (size_t i = 0; i < body.inputs.size(); ++i) body.inputs[i].type = it.body->inputs[i].type;
  body.outputs = named(results);

  ir::Node again;
  again.op_type = it.node->op_type;
  again.inputs = it.node->inputs;
  const size_t stacks = it.states + (it.loop ? 1 : 0);
  std::vector<std::string> made;
  for (size_t i = 0; i < it.states; ++i) again.outputs.push_back(services_.fresh_name("state"));
  for (size_t i = 0; i < stacks; ++i) {
    made.push_back(services_.fresh_name("entered"));
    again.outputs.push_back(made.back());
  }
  again.attributes = {graph_attribute("body", std::move(body))};
  if (!it.loop) {
    again.attributes.push_back(
        int_attribute("num_scan_inputs", static_cast<int64_t>(it.input_axes.size())));
    again.attributes.push_back(ints_attribute("scan_input_axes", it.input_axes));
    again.attributes.push_back(ints_attribute("scan_input_directions", it.input_directions));
  }
  emitter_.emit(std::move(again), newest_imports());
  return made;
}

namespace {

// What one slice along an axis of a value is known to be.
infer::ValueFacts slice_of(const infer::ValueFacts* whole, int64_t axis) {
  if (whole == nullptr) return {};
  infer::ValueFacts slice;
  slice.type = whole->type;
  if (slice.type.shape && !slice.type.shape->empty()) {
    auto& dims = *slice.type.shape;
    const auto rank = static_cast<int64_t>(dims.size());
    const int64_t at = axis < 0 ? axis + rank : axis;
    if (at >= 0 && at < rank) dims.erase(dims.begin() + at);
  }
  return slice;
}

infer::ValueFacts like(const infer::ValueFacts* value) {
  return value == nullptr ? infer::ValueFacts{} : infer::ValueFacts::of(value->type);
}

}  // namespace

// A Scan from the last iteration to the first. It carries the gradients of the states and sums
// those of what the body captures; in each iteration the body is computed again from what entered
// it.
void GradientWalk::iterations_backward(const ir::Node& node,
                                       const std::vector<std::string>& of_outputs) {
  const Iteration it = iteration_of(node);
  const std::vector<std::string> captured = active_captures(node);
  const std::vector<std::string> stacks = run_with_states(it);
  const size_t scanned = it.loop ? 0 : it.input_axes.size();

  std::vector<size_t> carried;  // states with gradients
  for (size_t i = 0; i < it.states; ++i) {
    const std::string& initial = node.inputs[it.first_state + i];
    const std::string& last = i < node.outputs.size() ? node.outputs[i] : "";
    if (is_float(initial) && (last.empty() || is_float(last))) carried.push_back(i);
  }
  std::vector<size_t> asked;  // inputs of a Scan
  for (size_t m = 0; m < scanned; ++m) {
    const std::string& input = node.inputs[it.states + m];
    if (active_.contains(input) && is_float(input)) asked.push_back(m);
  }
  std::vector<size_t> flowing;  // stacked outputs
  for (size_t k = 0; k < it.output_axes.size(); ++k) {
    const size_t output = it.states + k;
    if (output < of_outputs.size() && !of_outputs[output].empty()) flowing.push_back(k);
  }

  ir::Node reverse;
  reverse.op_type = "Scan";
  std::vector<int64_t> axes, directions;
  std::vector<std::pair<std::string, infer::ValueFacts>> entering;
  const auto enter = [&](const std::string& from, std::string_view hint, infer::ValueFacts known) {
    reverse.inputs.push_back(from);
    entering.emplace_back(services_.fresh_name(hint), std::move(known));
    return entering.back().first;
  };
  const auto enter_slices = [&](const std::string& from, int64_t axis, bool backwards) {
    axes.push_back(axis), directions.push_back(backwards ? 1 : 0);
    return enter(from, "slice", slice_of(services_.known(from), axis));
  };
  std::vector<std::string> state_flows, sums;
  for (const size_t i : carried) {
    const std::string given = i < of_outputs.size() ? of_outputs[i] : "";
    const std::string& initial = node.inputs[it.first_state + i];
    state_flows.push_back(enter(given.empty() ? emitter_.filled_like(0, initial) : given, "d_state",
                                like(services_.known(initial))));
  }
  for (const std::string& name : captured)
    sums.push_back(enter(emitter_.filled_like(0, name), "sum", like(services_.known(name))));
  std::vector<std::string> states, slices, flows;
  for (size_t i = 0; i < it.states; ++i) states.push_back(enter_slices(stacks[i], 0, true));
  const std::string number = it.loop ? enter_slices(stacks[it.states], 0, true) : "";
  for (size_t m = 0; m < scanned; ++m)
    slices.push_back(
        enter_slices(node.inputs[it.states + m], it.input_axes[m], it.input_directions[m] == 0));
  for (const size_t k : flowing)
    flows.push_back(
        enter_slices(of_outputs[it.states + k], it.output_axes[k], it.output_directions[k] == 0));

  ir::Graph body;
  body.name = "back";
  services_.within(entering, [&](const GradientServices& inside) {
    GradientWalk walk(inside, texts_, origin_);
    for (const std::string& name : captured) walk.activate(name);
    for (const size_t i : carried) walk.activate(states[i]);
    for (const size_t m : asked) walk.activate(slices[m]);
    std::vector<std::string> inputs, results;
    if (it.loop) {
      inputs = {number,
                walk.emitter().emit("Constant", {},
                                    {ops::tensor_attribute("value", Tensor::scalar<bool>(true))})};
    }
    inputs.insert(inputs.end(), states.begin(), states.end());
    inputs.insert(inputs.end(), slices.begin(), slices.end());
    for (const ir::Node& inner : copy_of(*it.body, inputs, inside, results))
      walk.forward(inner, true);
    const auto flow = [&](size_t result, const std::string& gradient) {
      const std::string value = walk.actual(results.at(result));
      if (walk.is_active(value)) walk.flow_into(value, gradient);
    };
    for (size_t i = 0; i < carried.size(); ++i) flow(it.body_outputs + carried[i], state_flows[i]);
    for (size_t k = 0; k < flowing.size(); ++k)
      flow(it.body_outputs + it.states + flowing[k], flows[k]);
    walk.backward();
    std::vector<std::string> outputs;
    GradientEmitter& e = walk.emitter();
    for (const size_t i : carried)
      outputs.push_back(e.emit("Identity", {walk.gathered_or_zeros(states[i])}));
    for (size_t c = 0; c < captured.size(); ++c) {
      const std::string more = walk.gathered(captured[c]);
      outputs.push_back(more.empty() ? e.emit("Identity", {sums[c]})
                                     : e.emit("Add", {sums[c], more}));
    }
    for (const size_t m : asked)
      outputs.push_back(e.emit("Identity", {walk.gathered_or_zeros(slices[m])}));
    body.outputs = named(outputs);
    body.nodes = e.take();
  });
  for (const auto& [name, known] : entering) body.inputs.emplace_back().name = name;

  std::vector<int64_t> output_axes, output_directions;
  for (const size_t m : asked) {
    output_axes.push_back(it.input_axes[m]);
    output_directions.push_back(it.input_directions[m] == 0 ? 1 : 0);
  }
  for (const size_t i : carried) {
    reverse.outputs.push_back(services_.fresh_name("d_state"));
    const std::string& initial = node.inputs[it.first_state + i];
    if (active_.contains(initial)) flow_into(initial, reverse.outputs.back());
  }
  for (const std::string& name : captured) {
    reverse.outputs.push_back(services_.fresh_name("d_" + name));
    flow_into(name, reverse.outputs.back());
  }
  for (const size_t m : asked) {
    reverse.outputs.push_back(services_.fresh_name("d_slices"));
    flow_into(node.inputs[it.states + m], reverse.outputs.back());
  }
  reverse.attributes = {graph_attribute("body", std::move(body)),
                        int_attribute("num_scan_inputs", static_cast<int64_t>(axes.size())),
                        ints_attribute("scan_input_axes", axes),
                        ints_attribute("scan_input_directions", directions)};
  if (!asked.empty()) {
    reverse.attributes.push_back(ints_attribute("scan_output_axes", output_axes));
    reverse.attributes.push_back(ints_attribute("scan_output_directions", output_directions));
  }
  emitter_.emit(std::move(reverse), newest_imports());
}

}  // namespace sardonyx::autodiff
