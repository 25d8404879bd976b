// What Loop and Scan keep of their iterations for the gradient.
#include <algorithm>

#include "autodiff/history.h"
#include "autodiff/iterations.h"
#include "base/fail.h"
#include "ops/upgrade_context.h"

namespace sardonyx::autodiff {

using ops::graph_attribute;
using ops::int_attribute;
using ops::ints_attribute;

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

// A state of a Loop whose shape is not that of its beginning, as far as is known.
bool GradientWalk::changes_shape(const Iteration& it, size_t state) const {
  const std::string last = state < it.node->outputs.size() ? it.node->outputs[state] : "";
  const infer::ValueFacts *before = services_.known(it.node->inputs[it.first_state + state]),
                          *after = last.empty() ? nullptr : services_.known(last);
  if (!it.loop || before == nullptr || after == nullptr || !before->type.shape) return false;
  return !after->type.shape || *after->type.shape != *before->type.shape;
}

ir::Node appended(const std::string& to, const std::string& from, const std::string& start,
                  const std::string& count, const std::string& result,
                  const GradientServices& services) {
  NodeWriter w(services);
  ir::Graph body;
  body.name = "append";
  const auto input = [&](std::string_view hint) {
    return body.inputs.emplace_back().name = w.fresh(hint);
  };
  const std::string number = input("i"), go = input("go"), items = input("items");
  const std::string at = start.empty() ? number : w.add("Add", {number, start});
  const std::string on = w.add("Identity", {go});
  const std::string more = w.add("SequenceInsert", {items, w.add("SequenceAt", {from, at})});
  for (const std::string& name : {on, more}) body.outputs.emplace_back().name = name;
  body.nodes = w.take();
  ir::Node loop;
  loop.op_type = "Loop";
  loop.inputs = {count, "", to};
  loop.outputs = {result};
  loop.attributes = {graph_attribute("body", std::move(body))};
  return loop;
}

ir::Node no_items(ElementType type, const std::string& result) {
  ir::Node empty;
  empty.op_type = "SequenceEmpty";
  empty.outputs = {result};
  empty.attributes = {int_attribute("dtype", static_cast<int64_t>(type))};
  return empty;
}

ElementType item_type(const infer::ValueFacts* value) {
  const ir::ValueType list = value == nullptr ? ir::ValueType{} : flow_type(value->type);
  return list.nested ? list.nested->element : ElementType::undefined;
}

namespace {

// Whether a body hands on a sequence as it is, or with one more item at its end.
bool only_grows(const ir::Graph& body, const std::string& entered, size_t output) {
  const std::string& given = body.outputs[output].name;
  const auto maker = std::ranges::find_if(body.nodes, [&](const ir::Node& node) {
    return std::ranges::find(node.outputs, given) != node.outputs.end();
  });
  if (maker == body.nodes.end()) return given == entered;
  const bool at_end = maker->inputs.size() < 3 || maker->inputs[2].empty();
  return maker->domain.empty() && !maker->inputs.empty() && maker->inputs[0] == entered &&
         (maker->op_type == "Identity" || (maker->op_type == "SequenceInsert" && at_end));
}

}  // namespace

// The node also stacks what enters each of its iterations: the states, and a Loop's number of the
// iteration; and what its body draws. States that change their shape go into sequences; the items
// of those that are sequences into one.
std::vector<ir::Node> GradientWalk::with_states(const Iteration& it, History& history) {
  ir::Node more = *it.node;
  ir::Graph body = *it.body;
  const size_t stacked = it.output_axes.size();
  const size_t draws = keep_draws(body, *it.node, services_).size();
  const ops::NodeView view(*it.node, schema::newest("", it.node->op_type));
  name_outputs(more, it.states + stacked, services_);
  history.finals.assign(more.outputs.begin(),
                        more.outputs.begin() + static_cast<std::ptrdiff_t>(it.states));
  const auto output = [&](std::string_view hint) {
    return more.outputs.emplace_back(services_.fresh_name(hint));
  };
  for (size_t i = 0; i < draws; ++i) history.draws.push_back(output("drawn"));
  const auto hand_on = [&](std::string_view op, Names inputs) {
    ir::Node& handed = body.nodes.emplace_back();
    handed.op_type = op;
    handed.inputs = std::move(inputs);
    handed.outputs = {services_.fresh_name("entered")};
    return handed.outputs[0];
  };
  std::vector<ir::Node> made;
  size_t sequences = 0;
  for (size_t i = 0; i < it.states; ++i) {
    const std::string& initial = it.node->inputs[it.first_state + i];
    const infer::ValueFacts* known = services_.known(initial);
    using Kind = ir::TypeProto::Kind;
    const Kind kind = emitter_.flow_kind(initial);
    const bool is_listed =
        it.loop && kind == Kind::sequence && item_type(known) != ElementType::undefined;
    if (kind != Kind::none && kind != Kind::tensor && !is_listed) {
      view.fail(
          ErrorCode::unsupported,
          "has no gradient: its state '{}' is no tensor, and no sequence or optional of tensors; "
          "stack what each iteration makes as a further output",
          initial);
    }
    using Form = History::Form;
    std::string entered = body.inputs[it.body_inputs + i].name;
    history.forms.push_back(!is_listed ? changes_shape(it, i) ? Form::sequence : Form::stack
                            : known->type.kind == Kind::optional                 ? Form::optional
                            : only_grows(*it.body, entered, it.body_outputs + i) ? Form::prefix
                                                                                 : Form::items);
    history.counts.emplace_back(), history.present.emplace_back();
    if (history.forms.back() == Form::stack) {
      body.outputs.emplace_back().name = hand_on("Identity", {entered});
      history.states.push_back(output("entered"));
      continue;
    }
    if (history.forms.back() == Form::optional) {
      const std::string list = services_.fresh_name("entered"),
                        present = services_.fresh_name("present");
      for (ir::Node& node : listed_optional(entered, known->type, list, present, services_))
        body.nodes.push_back(std::move(node));
      entered = list;
      body.outputs.emplace_back().name = present;
      history.present.back() = output("present");
    }
    if (is_listed) {
      body.outputs.emplace_back().name = hand_on("SequenceLength", {entered});
      history.counts.back() = output("count");
    }
    if (history.forms.back() == Form::prefix) {
      history.states.push_back(history.finals[i]);
      continue;
    }
    // One more state behind the others.
    made.push_back(
        no_items(is_listed ? item_type(known) : known->type.element, services_.fresh_name("none")));
    more.inputs.push_back(made.back().outputs[0]);
    const std::string list = services_.fresh_name("entered");
    body.inputs.emplace_back().name = list;
    ir::ValueInfo info;
    if (is_listed) {
      const std::string count = body.outputs.back().name;
      info.name = services_.fresh_name("entered");
      body.nodes.push_back(appended(list, entered, "", count, info.name, services_));
    } else {
      info.name = hand_on("SequenceInsert", {list, entered});
    }
    const auto at = static_cast<std::ptrdiff_t>(it.states + sequences);
    body.outputs.insert(body.outputs.begin() + static_cast<std::ptrdiff_t>(it.body_outputs) + at,
                        info);
    history.states.push_back(services_.fresh_name("entered"));
    more.outputs.insert(more.outputs.begin() + at, history.states.back());
    ++sequences;
  }
  if (it.loop) {
    body.outputs.emplace_back().name = hand_on("Identity", {body.inputs[0].name});
    history.number = output("entered");
  }
  std::vector<ir::Attribute> attributes;
  for (const ir::Attribute& attribute : it.node->attributes) {
    if (attribute.name != "body" && attribute.name != "scan_output_axes" &&
        attribute.name != "scan_output_directions")
      attributes.push_back(attribute);
  }
  if (!it.loop) {
    std::vector<int64_t> axes = it.output_axes, directions = it.output_directions;
    axes.resize(stacked + draws + it.states, 0), directions.resize(axes.size(), 0);
    if (!axes.empty()) {
      attributes.push_back(ints_attribute("scan_output_axes", axes));
      attributes.push_back(ints_attribute("scan_output_directions", directions));
    }
  }
  attributes.push_back(graph_attribute("body", std::move(body)));
  more.attributes = std::move(attributes);
  made.push_back(std::move(more));
  return made;
}

}  // namespace sardonyx::autodiff
