#include "rewrite/gradient.h"

#include <algorithm>
#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "base/fail.h"
#include "ops/node_view.h"
#include "rewrite/gradient_rules.h"
#include "rewrite/instantiate.h"
#include "schema/gradients.h"
#include "wire/text_parse.h"

namespace sardonyx::rewrite {
namespace {

constexpr std::string_view training_domain = "ai.onnx.preview.training";
constexpr size_t max_gradients = 256;

bool is_gradient(const ir::Node& node) {
  return node.domain == training_domain && node.op_type == "Gradient";
}

const schema::Signature* signature_of(const ir::Node& node) {
  return schema::newest(node.domain, node.op_type);
}

// --- Rules as text ------------------------------------------------------------------------------

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

// The parsed texts of one expansion.
class Texts {
 public:
  const ir::Function* find(const ir::Node& node) {
    const schema::FunctionText* text = schema::gradient_text(node.domain, rule_name(node));
    if (text == nullptr) return nullptr;
    auto& parsed = parsed_[text];
    if (!parsed) parsed = std::make_unique<ir::Function>(wire::parse_function(text->text));
    return parsed.get();
  }
  const ir::Function& body(const schema::FunctionText& text) {
    auto& parsed = parsed_[&text];
    if (!parsed) parsed = std::make_unique<ir::Function>(wire::parse_function(text.text));
    return *parsed;
  }

 private:
  std::map<const schema::FunctionText*, std::unique_ptr<ir::Function>> parsed_;
};

// Positions of the formal names a rule speaks of; SumLike has no signature.
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

// Drops the nodes that nothing in `wanted` depends on.
std::vector<ir::Node> pruned(std::vector<ir::Node> nodes, std::unordered_set<std::string> wanted) {
  std::vector<ir::Node> kept;
  for (size_t i = nodes.size(); i-- > 0;) {
    const auto& outputs = nodes[i].outputs;
    if (std::none_of(outputs.begin(), outputs.end(),
                     [&](const std::string& name) { return wanted.contains(name); }))
      continue;
    wanted.insert(nodes[i].inputs.begin(), nodes[i].inputs.end());
    kept.push_back(std::move(nodes[i]));
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

// --- One Gradient node --------------------------------------------------------------------------

class Expansion {
 public:
  Expansion(const std::vector<ir::Node>& nodes, size_t index, const GradientServices& services,
            Texts& texts)
      : nodes_(nodes),
        index_(index),
        gradient_(nodes[index]),
        view_(gradient_, signature_of(gradient_)),
        services_(services),
        texts_(texts),
        emitter_(services, origin()) {
    xs_ = view_.attr_strings("xs").value_or(std::vector<std::string>());
    zs_ = view_.attr_strings("zs").value_or(std::vector<std::string>());
    y_ = view_.attr_string("y");
    if (gradient_.inputs.size() != xs_.size() + zs_.size() || xs_.empty()) {
      view_.fail("there must be one input for each of the {} names in xs and zs; there are {}",
                 xs_.size() + zs_.size(), gradient_.inputs.size());
    }
  }

  // Finds what computes y. False where another Gradient is among it.
  bool find_path() {
    std::unordered_map<std::string_view, size_t> makers;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      for (const std::string& output : nodes_[i].outputs) {
        if (!output.empty()) makers[output] = i;
      }
    }
    std::unordered_set<std::string_view> seen;
    for (const auto* list : {&xs_, &zs_}) seen.insert(list->begin(), list->end());
    if (!seen.contains(y_) && !makers.contains(y_))
      view_.fail("no node makes the value '{}' that y names", y_);
    std::vector<std::string_view> waiting{y_};
    std::vector<char> taken(nodes_.size(), 0);
    while (!waiting.empty()) {
      const std::string_view name = waiting.back();
      waiting.pop_back();
      const auto maker = makers.find(name);
      if (name.empty() || !seen.insert(name).second || maker == makers.end()) continue;
      const ir::Node& node = nodes_[maker->second];
      if (maker->second == index_) view_.fail("y depends on the gradient itself");
      if (is_gradient(node)) return false;
      taken[maker->second] = 1;
      waiting.insert(waiting.end(), node.inputs.begin(), node.inputs.end());
      if (has_graphs(node))
        node_view(node).fail(ErrorCode::unsupported, "has no gradient: it runs graphs of its own");
    }
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (taken[i]) path_.push_back(i);
    }
    return true;
  }

  std::vector<ir::Node> make() {
    for (size_t i = 0; i < gradient_.inputs.size(); ++i) substitute(i);
    for (const size_t i : path_) forward(nodes_[i], i);
    const std::string y = actual(y_);
    if (active_.contains(y)) flows_[y] = {emitter_.filled_like(1, y)};
    for (size_t i = tape_.size(); i-- > 0;) backward(tape_[i]);
    for (size_t i = 0; i < xs_.size(); ++i) {
      if (const std::string output = at(gradient_.outputs, static_cast<int>(i)); !output.empty())
        finish(actual(xs_[i]), output);
    }
    return emitter_.take();
  }

 private:
  static bool has_graphs(const ir::Node& node) {
    return std::any_of(node.attributes.begin(), node.attributes.end(),
                       [](const ir::Attribute& a) { return a.g || !a.graphs.empty(); });
  }
  static ops::NodeView node_view(const ir::Node& node) { return {node, signature_of(node)}; }
  std::string origin() const {
    return fmt::format("for {}{}{}", ir::describe(gradient_), gradient_.origin.empty() ? "" : " ",
                       gradient_.origin);
  }
  std::string actual(const std::string& name) const {
    const auto found = names_.find(name);
    return found == names_.end() ? name : found->second;
  }

  // A value other than the one named gets a name of its own: its other uses do not count.
  void substitute(size_t i) {
    const std::string& name = i < xs_.size() ? xs_[i] : zs_[i - xs_.size()];
    const std::string& value = gradient_.inputs[i];
    if (value.empty()) view_.fail("input {} is absent; all inputs are needed", i);
    const std::string used = value == name ? name : emitter_.emit("Identity", {value});
    if (used != name) names_[name] = used;
    if (i < xs_.size()) active_.insert(used);
  }

  // Takes a node of the path as it is, or again with other inputs, and notes what of it depends on
  // xs.
  void forward(const ir::Node& node, size_t index) {
    ir::Node copy = node;
    bool again = index > index_;
    for (std::string& input : copy.inputs) {
      const std::string used = actual(input);
      again = again || used != input;
      input = used;
    }
    const bool by_body = is_active(copy) && !has_rule(copy);
    if (!again && !by_body) {
      note(copy);
      return;
    }
    for (std::string& output : copy.outputs) {
      if (output.empty()) continue;
      const std::string fresh = services_.fresh_name(output);
      names_[output] = fresh;
      output = fresh;
    }
    if (by_body)
      run_body(copy);
    else
      add_node(copy);
  }

  void add_node(const ir::Node& node) {
    emitter_.emit(node, newest_imports(node));
    note(node);
  }

  // An operator without a rule: the nodes of its function have them.
  void run_body(const ir::Node& node) {
    const schema::FunctionText* text = schema::function_text(node.domain, node.op_type);
    if (text == nullptr) {
      node_view(node).fail(ErrorCode::unsupported,
                           "has no gradient; keep it off the way from xs to y");
    }
    const ir::Function& body = texts_.body(*text);
    for (const ir::Node& inner : instantiate(body, node, services_.fresh_name)) {
      if (is_active(inner) && !has_rule(inner))
        run_body(inner);  // bodies are fixed texts and do not nest in themselves
      else
        add_node(inner);
    }
  }

  static std::vector<ir::OperatorSetId> newest_imports(const ir::Node& node) {
    std::vector<ir::OperatorSetId> imports{{"", schema::latest_opset(""), {}}};
    if (!node.domain.empty())
      imports.push_back({node.domain, std::max(1, schema::latest_opset(node.domain)), {}});
    return imports;
  }

  bool has_rule(const ir::Node& node) {
    return gradient_rule(node.domain, node.op_type) != nullptr || texts_.find(node) != nullptr;
  }

  bool passes(const ir::Node& node, size_t input) const {
    if (!active_.contains(node.inputs[input])) return false;
    const schema::Signature* signature = signature_of(node);
    const schema::Formal* formal = signature ? signature->input(input) : nullptr;
    return formal == nullptr ||
           formal->differentiable != schema::Differentiability::not_differentiable;
  }

  // Whether a gradient flows through the node at all.
  bool is_active(const ir::Node& node) const {
    const schema::Signature* signature = signature_of(node);
    bool in = false, out = signature == nullptr;
    for (size_t i = 0; i < node.inputs.size(); ++i) in = in || passes(node, i);
    for (size_t i = 0; signature != nullptr && i < node.outputs.size(); ++i) {
      const schema::Formal* formal = signature->output(i);
      out = out || (formal != nullptr &&
                    formal->differentiable != schema::Differentiability::not_differentiable);
    }
    return in && out;
  }

  void note(const ir::Node& node) {
    if (!is_active(node)) return;
    const schema::Signature* signature = signature_of(node);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const schema::Formal* formal = signature ? signature->output(i) : nullptr;
      const bool stops = formal != nullptr &&
                         formal->differentiable == schema::Differentiability::not_differentiable;
      if (!stops && !node.outputs[i].empty()) active_.insert(node.outputs[i]);
    }
    tape_.push_back(node);
  }

  // The sum of what flows into a value; "" where nothing does.
  std::string gathered(const std::string& value) {
    const auto found = flows_.find(value);
    if (found == flows_.end()) return "";
    std::vector<std::string>& parts = found->second;
    if (parts.size() > 1) parts = {emitter_.emit("Sum", parts)};
    return parts[0];
  }

  void backward(const ir::Node& node) {
    std::vector<std::string> of_outputs;
    bool any = false;
    for (const std::string& output : node.outputs) {
      of_outputs.push_back(output.empty() ? "" : gathered(output));
      any = any || !of_outputs.back().empty();
    }
    if (!any) return;
    std::vector<char> wanted;
    for (size_t i = 0; i < node.inputs.size(); ++i) wanted.push_back(passes(node, i));
    std::vector<std::string> of_inputs(node.inputs.size());
    if (const GradientRule rule = gradient_rule(node.domain, node.op_type))
      rule({node, of_outputs, of_inputs, wanted}, emitter_);
    else
      apply_text(node, of_outputs, wanted, of_inputs);
    for (size_t i = 0; i < of_inputs.size(); ++i) {
      if (wanted[i] && !of_inputs[i].empty()) flows_[node.inputs[i]].push_back(of_inputs[i]);
    }
  }

  void apply_text(const ir::Node& node, const std::vector<std::string>& of_outputs,
                  const std::vector<char>& wanted, std::vector<std::string>& of_inputs) {
    const ir::Function& rule = *texts_.find(node);
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
  }

  std::string flow_or_zeros(const ir::Node& node, const std::vector<std::string>& of_outputs,
                            int output) {
    const std::string given = at(of_outputs, output), value = at(node.outputs, output);
    return given.empty() && !value.empty() ? emitter_.filled_like(0, value) : given;
  }

  void finish(const std::string& value, const std::string& output) {
    const std::string flow = gathered(value);
    emitter_.emit_to({output}, "Identity", {flow.empty() ? emitter_.filled_like(0, value) : flow});
  }

  const std::vector<ir::Node>& nodes_;
  size_t index_;
  const ir::Node& gradient_;
  ops::NodeView view_;
  const GradientServices& services_;
  Texts& texts_;
  GradientEmitter emitter_;
  std::vector<std::string> xs_, zs_;
  std::string y_;
  std::vector<size_t> path_;
  std::unordered_map<std::string, std::string> names_;  // of values that are computed again
  std::unordered_set<std::string> active_;              // depend on xs
  std::vector<ir::Node> tape_;                          // active nodes in order
  std::unordered_map<std::string, std::vector<std::string>> flows_;
};

}  // namespace

void expand_gradients(std::vector<ir::Node>& nodes, const GradientServices& services) {
  const auto count = static_cast<size_t>(std::count_if(nodes.begin(), nodes.end(), is_gradient));
  if (count == 0) return;
  if (count > max_gradients)
    fail(ErrorCode::unsupported, "a graph may hold up to {} Gradient nodes; it has {}",
         max_gradients, count);
  Texts texts;
  for (size_t left = count; left > 0; --left) {
    bool expanded = false;
    for (size_t i = 0; i < nodes.size() && !expanded; ++i) {
      if (!is_gradient(nodes[i])) continue;
      Expansion expansion(nodes, i, services, texts);
      if (!expansion.find_path()) continue;
      std::vector<ir::Node> made = expansion.make();
      nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(i));
      nodes.insert(nodes.begin() + static_cast<std::ptrdiff_t>(i),
                   std::make_move_iterator(made.begin()), std::make_move_iterator(made.end()));
      expanded = true;
    }
    if (!expanded)
      fail(ErrorCode::invalid_model, "Gradient nodes depend on each other in a circle");
  }
}

}  // namespace sardonyx::rewrite
