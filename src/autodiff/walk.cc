#include "autodiff/walk.h"

#include <algorithm>

#include "autodiff/bodies.h"
#include "autodiff/history.h"
#include "autodiff/kept_values.h"
#include "base/fail.h"
#include "infer/infer.h"
#include "ir/instantiate.h"
#include "ir/internal_domain.h"
#include "ops/internal/checks.h"
#include "ops/internal/node.h"
#include "ops/traits.h"
#include "wire/text_parse.h"

namespace sardonyx::autodiff {

using ops::internal::SumLike;

namespace {

const schema::Signature* signature_of(const ir::Node& node) {
  return schema::newest(node.domain, node.op_type);
}

// Attributes that choose among several texts: Op.value holds the one for a value that is not the
// default.
std::string rule_name(const ir::Node& node) {
  struct Choice {
    std::string_view op, attribute, usual;
  };
  static constexpr Choice choices[] = {{"BatchNormalization", "training_mode", "0"},
                                       {"Gelu", "approximate", "none"},
                                       {"ScatterElements", "reduction", "none"},
                                       {"ScatterND", "reduction", "none"}};
  for (const Choice& choice : choices) {
    const ir::Attribute* given = node.op_type == choice.op ? node.find(choice.attribute) : nullptr;
    if (given == nullptr) continue;
    const std::string value = given->i ? std::to_string(*given->i) : given->s.value_or("");
    if (value != choice.usual) return fmt::format("{}.{}", node.op_type, value);
  }
  return node.op_type;
}

// Positions of the formal names a text speaks of; SumLike has no signature.
int input_position(const schema::Signature* signature, std::string_view name) {
  if (signature == nullptr) return name == "input" ? 0 : name == "like" ? 1 : -1;
  for (size_t i = 0; i < signature->inputs.size(); ++i) {
    if (signature->inputs[i].name == name) return static_cast<int>(i);
  }
  return -1;
}
int output_position(const schema::Signature* signature, std::string_view name) {
  if (signature == nullptr) return name == "output" ? 0 : -1;
  for (size_t i = 0; i < signature->outputs.size(); ++i) {
    if (signature->outputs[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

std::string at(const std::vector<std::string>& names, int i) {
  return i >= 0 && static_cast<size_t>(i) < names.size() ? names[static_cast<size_t>(i)] : "";
}

bool stops(const schema::Formal* formal) {
  return formal != nullptr &&
         formal->differentiable == schema::Differentiability::not_differentiable;
}

}  // namespace

const ir::Function& GradientTexts::parsed(const schema::FunctionText& text) {
  auto& parsed = parsed_[&text];
  if (!parsed) parsed = std::make_unique<ir::Function>(wire::parse_function(text.text));
  return *parsed;
}

const ir::Function* GradientTexts::rule(const ir::Node& node) {
  const schema::FunctionText* text = schema::gradient_text(node.domain, rule_name(node));
  return text == nullptr ? nullptr : &parsed(*text);
}

const ir::Function* GradientTexts::body(const ir::Node& node) {
  const schema::FunctionText* text = schema::function_text(node.domain, node.op_type);
  return text == nullptr ? nullptr : &parsed(*text);
}

const std::vector<ir::OperatorSetId>& newest_imports() {
  static const std::vector<ir::OperatorSetId> imports = [] {
    std::vector<ir::OperatorSetId> all{{std::string(ir::internal_domain), 1, {}}};
    for (const char* domain : {"", "ai.onnx.ml", "ai.onnx.preview.training", "com.microsoft"})
      all.push_back({domain, std::max(1, schema::latest_opset(domain)), {}});
    return all;
  }();
  return imports;
}

std::vector<std::string> captured_by(const ir::Node& node) {
  std::vector<std::string> names;
  std::unordered_set<std::string> seen;
  const auto add = [&](const ir::Graph& graph) {
    for (std::string& name : infer::captured_names(graph)) {
      if (seen.insert(name).second) names.push_back(std::move(name));
    }
  };
  for (const ir::Attribute& attribute : node.attributes) {
    if (attribute.g) add(*attribute.g);
    for (const auto& graph : attribute.graphs) add(*graph);
  }
  return names;
}

std::vector<std::string> reads_of(const ir::Node& node) {
  std::vector<std::string> names;
  for_each_read(node, [&](const std::string& name) { names.push_back(name); });
  return names;
}

std::string GradientWalk::actual(const std::string& name) const {
  const auto found = names_.find(name);
  return found == names_.end() ? name : found->second;
}

void GradientWalk::note_place(const ir::Node& made, const std::vector<ir::Node>& list, size_t from,
                              size_t replaced) {
  for (size_t i = from; i < list.size(); ++i) {
    if (!has_graphs(list[i]) || list[i].outputs != made.outputs) continue;
    for (const std::string& output : made.outputs) places_[output] = {replaced, i};
  }
}

ir::Node* GradientWalk::placed(const std::string& output) {
  const auto found = places_.find(output);
  if (found == places_.end()) return nullptr;
  auto& list =
      found->second.replaced == none ? emitter_.nodes() : replaced_[found->second.replaced].by;
  return &list[found->second.at];
}

// --- Forward ------------------------------------------------------------------------------------

namespace {

// The node with other names for what it reads, its graphs too.
ir::Node renamed(const ir::Node& node, const std::vector<std::string>& reads,
                 const std::vector<std::string>& used,
                 const std::function<std::string(std::string_view)>& fresh_name) {
  ir::Function one;
  one.name = "copy";
  one.inputs = reads, one.outputs = node.outputs, one.nodes = {node};
  std::erase(one.outputs, "");
  ir::Node call;
  call.op_type = "copy";
  call.inputs = used, call.outputs = one.outputs;
  ir::Node copy = instantiate(one, call, fresh_name).at(0);
  copy.origin = node.origin;
  return copy;
}

}  // namespace

namespace {

// The gradient needs outputs that nobody else reads.
bool lacks_names(const ir::Node& node) {
  if (!node.domain.empty()) return false;
  if (node.op_type == "Split") return std::ranges::find(node.outputs, "") != node.outputs.end();
  return node.op_type == "Dropout" && node.inputs.size() > 2 && !node.inputs[2].empty() &&
         (node.outputs.size() < 2 || node.outputs[1].empty());
}

}  // namespace

void GradientWalk::forward(const ir::Node& node, bool again) {
  const std::vector<std::string> reads = reads_of(node);
  std::vector<std::string> used;
  for (const std::string& name : reads) {
    used.push_back(actual(name));
    again = again || used.back() != name;
  }
  ir::Node copy = node;
  if (has_graphs(node)) {
    if (again) copy = renamed(node, reads, used, services_.fresh_name);
  } else {
    for (std::string& input : copy.inputs) input = actual(input);
  }
  const bool active = is_active_node(copy), by_body = active && !has_rule(copy),
             keeps = active && !by_body && has_graphs(copy);
  if (!again && keeps) {
    Replaced& replaced = replaced_.emplace_back(Replaced{&node, {}});
    for (ir::Node& made : with_history(copy)) {
      const size_t from = replaced.by.size();
      services_.lower(made, newest_imports(), replaced.by);
      note_place(made, replaced.by, from, replaced_.size() - 1);
    }
    note(copy);
    return;
  }
  if (active && !by_body && lacks_names(copy)) {
    name_outputs(copy, copy.op_type == "Dropout" ? 2 : copy.outputs.size(), services_);
    if (!again) {
      Replaced& replaced = replaced_.emplace_back(Replaced{&node, {}});
      services_.lower(copy, newest_imports(), replaced.by);
    }
  }
  if (!again && !by_body) {
    note(copy);
    return;
  }
  if (!again && put_body_in_place(node)) return;
  for (std::string& output : copy.outputs) {
    if (output.empty()) continue;
    const std::string fresh = services_.fresh_name(output);
    names_[output] = fresh;
    output = fresh;
  }
  if (by_body)
    run_body(copy);
  else
    add_node(copy, keeps);
}

void GradientWalk::add_node(const ir::Node& node, bool keeps) {
  if (keeps) {
    for (ir::Node& made : with_history(node)) {
      const size_t from = emitter_.nodes().size();
      emitter_.emit(made, newest_imports());
      note_place(made, emitter_.nodes(), from, none);
    }
  } else {
    emitter_.emit(node, newest_imports());
  }
  note(node);
}

// A recurrent layer whose body has no graphs stands there as its body, and runs once.
bool GradientWalk::put_body_in_place(const ir::Node& node) {
  if (gradient_body(node.domain, node.op_type) != recurrent_body) return false;
  const std::vector<ir::Node> nodes = recurrent_body(node, emitter_);
  if (std::ranges::any_of(nodes, [](const ir::Node& inner) { return has_graphs(inner); }))
    return false;
  Replaced& replaced = replaced_.emplace_back(Replaced{&node, {}});
  for (const ir::Node& inner : nodes) {
    services_.lower(inner, newest_imports(), replaced.by);
    note(inner);
  }
  return true;
}

// An operator without a rule: the nodes that it can be said with have them.
void GradientWalk::run_body(const ir::Node& node) {
  std::vector<ir::Node> nodes;
  if (const GradientBody builder = gradient_body(node.domain, node.op_type)) {
    nodes = builder(node, emitter_);
  } else if (const ir::Function* body = texts_.body(node)) {
    nodes = instantiate(*body, node, services_.fresh_name);
  } else {
    ops::NodeView(node, signature_of(node))
        .fail(ErrorCode::unsupported, "has no gradient; keep it off the way from xs to y");
  }
  for (const ir::Node& inner : nodes) {
    if (is_active_node(inner) && !has_rule(inner))
      run_body(inner);  // bodies do not nest in themselves
    else
      add_node(inner, is_active_node(inner) && has_graphs(inner));
  }
}

bool GradientWalk::has_rule(const ir::Node& node) const {
  return (has_graphs(node) && gradient_body(node.domain, node.op_type) == nullptr) ||
         gradient_rule(node.domain, node.op_type) != nullptr || texts_.rule(node) != nullptr;
}

bool GradientWalk::has_body(const ir::Node& node) const {
  return gradient_body(node.domain, node.op_type) != nullptr || texts_.body(node) != nullptr;
}

// The standard's marks say where a gradient ends, but where a body computes the operator, what it
// does with the input decides.
bool GradientWalk::passes(const ir::Node& node, size_t input) const {
  if (!active_.contains(node.inputs[input]) || ops::has_trait(node, ops::no_gradient)) return false;
  if (!has_rule(node) && has_body(node)) return true;
  const schema::Signature* signature = signature_of(node);
  if (ops::internal::is<SumLike>(node) && input != SumLike::x) return false;
  return !stops(signature ? signature->input(input) : nullptr);
}

// Whether a gradient flows through the node at all.
bool GradientWalk::is_active_node(const ir::Node& node) const {
  const schema::Signature* signature = signature_of(node);
  bool in = false, out = signature == nullptr;
  for (size_t i = 0; i < node.inputs.size(); ++i) in = in || passes(node, i);
  if (has_graphs(node)) {
    for (const std::string& name : captured_by(node)) in = in || active_.contains(name);
  }
  for (size_t i = 0; signature != nullptr && i < node.outputs.size(); ++i) {
    const schema::Formal* formal = signature->output(i);
    out = out || (formal != nullptr && !stops(formal));
  }
  return in && out;
}

namespace {

// Operators that give elements of their first input as they are, beside those that hand them on.
bool only_chooses(const ir::Node& node) {
  static const std::unordered_set<std::string_view> ops{
      "Cast",     "CastLike", "CenterCropPad", "Compress",        "GatherElements",
      "GatherND", "MaxPool",  "Tile",          "ReverseSequence", "Trilu"};
  return node.domain.empty() && ops.contains(node.op_type);
}

bool quantizes_within(const ir::Node& node) {
  bool found = false;
  ir::for_each_subgraph(node, [&](const ir::Graph& graph, const ir::Attribute&, int) {
    ir::walk(graph, {.node = [&](const ir::WalkPlace&, const ir::Node& inner, size_t) {
               found = found || inner.op_type == "QuantizeLinear";
             }});
  });
  return found;
}

}  // namespace

// Whole numbers do not follow what they are made of, but quantised values do, and what only moves
// them.
bool GradientWalk::follows(const ir::Node& node, size_t output) const {
  if (is_float(node.outputs[output]) || node.op_type == "QuantizeLinear") return true;
  const infer::ValueFacts* made = services_.known(node.outputs[output]);
  const ElementType element = made == nullptr ? ElementType::undefined : made->type.element;
  if (element == ElementType::boolean) return false;
  // Counters and sizes have more bits.
  if (has_graphs(node)) return bit_width(element) <= 16 && quantizes_within(node);
  if (!ops::has_trait(node, ops::hands_on) && !only_chooses(node)) return false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (passes(node, i) && !is_float(node.inputs[i])) return true;
  }
  return false;
}

void GradientWalk::note(const ir::Node& node) {
  if (!is_active_node(node)) return;
  const schema::Signature* signature = signature_of(node);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!stops(signature ? signature->output(i) : nullptr) && !node.outputs[i].empty() &&
        follows(node, i))
      active_.insert(node.outputs[i]);
  }
  tape_.push_back(node);
}

// --- Backward -----------------------------------------------------------------------------------

void GradientWalk::flow_into(const std::string& value, const std::string& gradient) {
  flows_[value].push_back(gradient);
}

std::string GradientWalk::gathered(const std::string& value) {
  const auto found = flows_.find(value);
  if (found == flows_.end()) return "";
  std::vector<std::string>& parts = found->second;
  if (parts.size() > 1) parts = {emitter_.sum(parts)};
  return parts[0];
}

std::string GradientWalk::gathered_or_zeros(const std::string& value) {
  const std::string flow = gathered(value);
  return flow.empty() ? emitter_.filled_like(0, value) : flow;
}

void GradientWalk::backward() {
  for (size_t i = tape_.size(); i-- > 0;) backward_of(tape_[i]);
}

void GradientWalk::backward_of(const ir::Node& node) {
  std::vector<std::string> of_outputs;
  bool any = false;
  for (const std::string& output : node.outputs) {
    of_outputs.push_back(output.empty() ? "" : gathered(output));
    any = any || !of_outputs.back().empty();
  }
  if (!any) return;
  if (has_graphs(node)) return graphs_backward(node, of_outputs);
  std::vector<char> wanted;
  for (size_t i = 0; i < node.inputs.size(); ++i) wanted.push_back(passes(node, i));
  std::vector<std::string> of_inputs(node.inputs.size());
  if (const GradientRule rule = gradient_rule(node.domain, node.op_type))
    rule({node, of_outputs, of_inputs, wanted}, emitter_);
  else
    apply_text(node, of_outputs, wanted, of_inputs);
  require_complete(node, wanted, of_inputs);
  for (size_t i = 0; i < of_inputs.size(); ++i) {
    if (wanted[i] && !of_inputs[i].empty()) flow_into(node.inputs[i], of_inputs[i]);
  }
}

// A rule that leaves out an input would give a gradient that is wrong.
void GradientWalk::require_complete(const ir::Node& node, const std::vector<char>& wanted,
                                    const std::vector<std::string>& of_inputs) const {
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i] || !of_inputs[i].empty()) continue;
    const ops::NodeView view(node, signature_of(node));
    view.fail(ErrorCode::unsupported,
              "has no gradient of its input {} ('{}'); keep it off the way from xs to y",
              view.input_name(static_cast<int>(i)), node.inputs[i]);
  }
}

void GradientWalk::apply_text(const ir::Node& node, const std::vector<std::string>& of_outputs,
                              const std::vector<char>& wanted,
                              std::vector<std::string>& of_inputs) {
  const ir::Function& rule = *texts_.rule(node);
  const schema::Signature* signature = signature_of(node);
  ir::Node call;
  call.op_type = rule.name;
  call.attributes = node.attributes;
  call.name = node.name;
  for (const std::string& name : rule.inputs) {
    const int input = input_position(signature, name), output = output_position(signature, name);
    const int flow = name.starts_with("d") ? output_position(signature, name.substr(1)) : -1;
    if (input >= 0)
      call.inputs.push_back(at(node.inputs, input));
    else if (output >= 0)
      call.inputs.push_back(at(node.outputs, output));
    else
      call.inputs.push_back(flow_or_zeros(node, of_outputs, flow));
  }
  for (size_t i = 0; i < of_outputs.size(); ++i) {
    const schema::Formal* formal = signature == nullptr ? nullptr : signature->output(i);
    if (of_outputs[i].empty() || formal == nullptr) continue;
    if (std::ranges::find(rule.inputs, fmt::format("d{}", formal->name)) == rule.inputs.end() &&
        !adds_flow_of(node, i)) {
      ops::NodeView(node, signature)
          .fail(ErrorCode::unsupported,
                "has no gradient from its output {} ('{}'); keep it off the way from xs to y",
                formal->name, node.outputs[i]);
    }
  }
  std::unordered_set<std::string> needed;
  for (const std::string& name : rule.outputs) {
    const int input = input_position(signature, name.substr(1));
    const bool asked = input >= 0 && static_cast<size_t>(input) < wanted.size() &&
                       wanted[static_cast<size_t>(input)];
    call.outputs.push_back(asked ? services_.fresh_name(name) : "");
    if (!asked) continue;
    of_inputs[static_cast<size_t>(input)] = call.outputs.back();
    needed.insert(call.outputs.back());
  }
  for (ir::Node& made : pruned(instantiate(rule, call, services_.fresh_name), needed))
    emitter_.emit(std::move(made), rule.opset_imports);
  add_flows({node, of_outputs, of_inputs, wanted}, emitter_);
}

std::string GradientWalk::flow_or_zeros(const ir::Node& node,
                                        const std::vector<std::string>& of_outputs, int output) {
  const std::string given = at(of_outputs, output), value = at(node.outputs, output);
  return given.empty() && !value.empty() ? emitter_.filled_like(0, value) : given;
}

std::vector<std::string> gradient_names() {
  std::vector<std::string> names{"If", "Loop", "Scan", "SequenceMap"};
  for (const schema::FunctionText& text : schema::gradient_texts()) names.emplace_back(text.name);
  for (const auto& more : {gradient_rule_names(), gradient_body_names()})
    names.insert(names.end(), more.begin(), more.end());
  return names;
}

}  // namespace sardonyx::autodiff
