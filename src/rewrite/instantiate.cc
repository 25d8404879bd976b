#include "rewrite/instantiate.h"

#include <algorithm>
#include <unordered_map>

#include "base/fail.h"
#include "ir/walk.h"
#include "rewrite/lower.h"

namespace sardonyx::rewrite {
namespace {

class Instance {
 public:
  Instance(const ir::Function& function, const ir::Node& call,
           const std::function<std::string(std::string_view)>& fresh_name)
      : function_(function),
        call_(call),
        fresh_name_(fresh_name),
        origin_(fmt::format("in function {}, called by {}", function.name, ir::place_of(call))) {}

  std::vector<ir::Node> make() {
    if (call_.inputs.size() > function_.inputs.size() ||
        call_.outputs.size() > function_.outputs.size()) {
      fail_at(
          ir::describe(call_), ErrorCode::invalid_model,
          "function {} takes up to {} inputs and gives up to {} outputs; the call has {} and {}",
          function_.name, function_.inputs.size(), function_.outputs.size(), call_.inputs.size(),
          call_.outputs.size());
    }
    names_.reserve(function_.inputs.size() + function_.outputs.size() + function_.nodes.size());
    for (size_t i = 0; i < function_.inputs.size(); ++i) {
      names_[function_.inputs[i]] = i < call_.inputs.size() ? call_.inputs[i] : "";
    }
    std::vector<ir::Node> extra;
    for (size_t i = 0; i < function_.outputs.size(); ++i) {
      if (i >= call_.outputs.size() || call_.outputs[i].empty()) continue;
      const auto [entry, fresh] = names_.emplace(function_.outputs[i], call_.outputs[i]);
      if (!fresh)
        extra.push_back(copy_of(entry->second, call_.outputs[i]));  // an input handed through
    }
    std::vector<ir::Node> nodes;
    nodes.reserve(function_.nodes.size() + extra.size());
    for (const ir::Node& node : function_.nodes) {
      for (const std::string& output : node.outputs) {
        if (output.empty()) continue;
        const auto [entry, is_new] = names_.try_emplace(output);
        if (is_new) entry->second = fresh_name_(output);
      }
      nodes.push_back(renamed(node));
    }
    for (ir::Node& node : extra) nodes.push_back(std::move(node));
    return nodes;
  }

  Renamed take_names() { return std::move(names_); }

 private:
  ir::Node copy_of(const std::string& from, const std::string& to) const {
    ir::Node node;
    node.op_type = "Identity";
    node.inputs = {from};
    node.outputs = {to};
    return node;
  }

  const std::string& renamed(const std::string& name) const {
    const auto found = names_.find(name);
    return found == names_.end() ? name : found->second;
  }

  ir::Node renamed(const ir::Node& of) {
    ir::Node node;
    node.op_type = of.op_type;
    node.domain = of.domain;
    node.overload = of.overload;
    node.name = of.name;
    node.inputs.reserve(of.inputs.size());
    for (const std::string& input : of.inputs) node.inputs.push_back(renamed(input));
    node.outputs.reserve(of.outputs.size());
    for (const std::string& output : of.outputs) node.outputs.push_back(renamed(output));
    node.attributes = of.attributes;
    node.doc_string = of.doc_string;
    node.metadata_props = of.metadata_props;
    node.device_configurations = of.device_configurations;
    node.unknown = of.unknown;
    node.origin = origin_;
    node.custom = of.custom;
    substitute_attributes(node);
    return node;
  }

  void substitute_attributes(ir::Node& node) {
    const auto stays = [](const ir::Attribute& attribute) {
      return attribute.ref_attr_name.empty() && !attribute.g && attribute.graphs.empty();
    };
    if (std::ranges::all_of(node.attributes, stays)) return;
    std::vector<ir::Attribute> kept;
    for (ir::Attribute& attribute : node.attributes) {
      if (!attribute.ref_attr_name.empty()) {
        const ir::Attribute* value = value_of(attribute.ref_attr_name);
        if (value == nullptr) continue;
        ir::Attribute copy = *value;
        copy.name = attribute.name;
        kept.push_back(std::move(copy));
        continue;
      }
      if (attribute.g) attribute.g = subgraph(*attribute.g);
      for (auto& graph : attribute.graphs) graph = subgraph(*graph);
      kept.push_back(std::move(attribute));
    }
    node.attributes = std::move(kept);
  }

  const ir::Attribute* value_of(const std::string& name) const {
    if (const ir::Attribute* given = call_.find(name)) return given;
    for (const ir::Attribute& with_default : function_.attribute_protos) {
      if (with_default.name == name) return &with_default;
    }
    return nullptr;
  }

  // A subgraph keeps the names it defines; what it reads from the function's body is renamed.
  // Depth is bounded by the reader.
  std::shared_ptr<const ir::Graph> subgraph(const ir::Graph& graph) {
    auto copy = std::make_shared<ir::Graph>(interface_of(graph));
    std::vector<Renamed::node_type> hidden;
    const auto define = [&](const std::string& name) {
      if (auto entry = names_.extract(name)) hidden.push_back(std::move(entry));
    };
    for (const auto& input : copy->inputs) define(input.name);
    for (const auto& initializer : copy->initializers) define(initializer.name);
    copy->nodes.reserve(graph.nodes.size());
    for (const ir::Node& node : graph.nodes) {
      for (const std::string& output : node.outputs) define(output);
      copy->nodes.push_back(renamed(node));
    }
    for (auto& output : copy->outputs) {
      const std::string& name = renamed(output.name);
      if (name == output.name) continue;
      // An outer value handed out: the graph's output needs a name of its own.
      copy->nodes.push_back(copy_of(name, fresh_name_(output.name)));
      output.name = copy->nodes.back().outputs[0];
    }
    for (auto& entry : hidden) names_.insert(std::move(entry));
    return copy;
  }

  const ir::Function& function_;
  const ir::Node& call_;
  const std::function<std::string(std::string_view)>& fresh_name_;
  const std::string origin_;
  Renamed names_;
};

}  // namespace

std::vector<ir::Node> instantiate(
    const ir::Function& function, const ir::Node& call,
    const std::function<std::string(std::string_view hint)>& fresh_name, Renamed* renamed) {
  Instance instance(function, call, fresh_name);
  std::vector<ir::Node> nodes = instance.make();
  if (renamed != nullptr) *renamed = instance.take_names();
  return nodes;
}

}  // namespace sardonyx::rewrite
