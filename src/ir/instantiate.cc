#include "ir/instantiate.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/fail.h"
#include "ir/named_values.h"
#include "ir/origin.h"

namespace sardonyx::ir {
namespace {

// Of texts and lists that nearly all nodes leave empty.
template <class T>
void put(const T& of, T& to) {
  if (!of.empty() || !to.empty()) to = of;
}

class Instance {
 public:
  Instance(const ir::Function& function, const ir::Node& call,
           const std::function<std::string(std::string_view)>& fresh_name, bool keeps_inner_names)
      : function_(function),
        call_(call),
        fresh_name_(fresh_name),
        keeps_inner_names_(keeps_inner_names),
        origin_("in function " + function.name + ", called by " + ir::place_of(call)) {}

  void make(std::vector<ir::Node>& nodes) {
    if (call_.inputs.size() > function_.inputs.size() ||
        call_.outputs.size() > function_.outputs.size()) {
      fail_at(
          ir::identify(call_), ErrorCode::invalid_model,
          "function {} takes up to {} inputs and gives up to {} outputs; the call has {} and {}",
          function_.name, function_.inputs.size(), function_.outputs.size(), call_.inputs.size(),
          call_.outputs.size());
    }
    names_.reserve(function_.inputs.size() + function_.outputs.size() + function_.nodes.size());
    for (size_t i = 0; i < function_.inputs.size(); ++i) {
      const std::string_view given = i < call_.inputs.size() ? call_.inputs[i] : std::string_view();
      const auto [name, is_new] = names_.add(function_.inputs[i], given);
      if (!is_new) *name = given;
    }
    std::vector<ir::Node> extra;
    for (size_t i = 0; i < function_.outputs.size(); ++i) {
      if (i >= call_.outputs.size() || call_.outputs[i].empty()) continue;
      const auto [name, fresh] = names_.add(function_.outputs[i], call_.outputs[i]);
      if (!fresh) extra.push_back(copy_of(*name, call_.outputs[i]));  // an input handed through
    }
    nodes.reserve(function_.nodes.size() + extra.size());
    nodes.resize(function_.nodes.size());
    for (size_t i = 0; i < nodes.size(); ++i) {
      const ir::Node& node = function_.nodes[i];
      for (const std::string& output : node.outputs) {
        if (output.empty()) continue;
        const auto [name, is_new] = names_.add(output, {});
        if (is_new) *name = fresh_name_(output);
      }
      put_renamed(node, nodes[i]);
    }
    for (ir::Node& node : extra) nodes.push_back(std::move(node));
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
    const std::string* found = names_.find(name);
    return found == nullptr ? name : *found;
  }

  // What `node` holds is lost.
  void put_renamed(const ir::Node& of, ir::Node& node) {
    node.op_type = of.op_type;
    put(of.domain, node.domain);
    put(of.overload, node.overload);
    put(of.name, node.name);
    put_renamed(of.inputs, node.inputs);
    put_renamed(of.outputs, node.outputs);
    node.attributes.clear();
    node.attributes.reserve(of.attributes.size());
    for (const ir::Attribute& attribute : of.attributes) put_attribute(attribute, node);
    for_each_named_value(node, [&](std::string& name) { name = renamed(name); });
    put(of.doc_string, node.doc_string);
    put(of.metadata_props, node.metadata_props);
    put(of.device_configurations, node.device_configurations);
    put(of.unknown.bytes, node.unknown.bytes);
    node.unknown.written_defaults = of.unknown.written_defaults;
    node.origin = origin_;
    node.custom = of.custom;
    node.opset = of.opset;
  }

  void put_renamed(const std::vector<std::string>& of, std::vector<std::string>& names) const {
    names.resize(of.size());
    for (size_t i = 0; i < of.size(); ++i) names[i] = renamed(of[i]);
  }

  void put_attribute(const ir::Attribute& attribute, ir::Node& node) {
    if (!attribute.ref_attr_name.empty()) {
      const ir::Attribute* value = value_of(attribute.ref_attr_name);
      if (value == nullptr) return;
      node.attributes.push_back(*value);
      node.attributes.back().name = attribute.name;
      return;
    }
    ir::Attribute& made = node.attributes.emplace_back(attribute);
    if (made.g) made.g = subgraph(*made.g);
    for (auto& graph : made.graphs) graph = subgraph(*graph);
  }

  const ir::Attribute* value_of(const std::string& name) const {
    if (const ir::Attribute* given = call_.find(name)) return given;
    for (const ir::Attribute& with_default : function_.attribute_protos) {
      if (with_default.name == name) return &with_default;
    }
    return nullptr;
  }

  // What a value that a subgraph defines is called. Its own name may be that of a value of the
  // caller's, which the body reads as an input, and may occur once only where the call stands.
  std::string inner_name(const std::string& own) {
    if (!keeps_inner_names_) return fresh_name_(own);
    if (given_.size() == 0) {
      for (const auto* names : {&call_.inputs, &call_.outputs}) {
        for (const std::string& name : *names) given_.emplace(name, true);
      }
    }
    return given_.contains(own) ? fresh_name_(own) : own;
  }

  // A subgraph, in which what it defines and what it reads from the function's body is renamed.
  // Depth is bounded by the reader.
  std::shared_ptr<const ir::Graph> subgraph(const ir::Graph& graph) {
    auto copy = std::make_shared<ir::Graph>(interface_of(graph));
    std::vector<Renamed::Before> before;
    NameMap<bool> defined;
    const auto define = [&](const std::string& own) {
      if (!own.empty() && defined.emplace(own, true).second)
        before.push_back(names_.shadow(own, inner_name(own)));
    };
    const auto rename = [&](std::string& name) { name = renamed(name); };
    for (const auto& input : graph.inputs) define(input.name);
    for (const auto& initializer : graph.initializers) define(initializer.name);
    for (const auto& sparse : graph.sparse_initializers) define(sparse.values.name);
    copy->nodes.reserve(graph.nodes.size());
    for (const ir::Node& node : graph.nodes) {
      for (const std::string& output : node.outputs) define(output);
      put_renamed(node, copy->nodes.emplace_back());
    }
    for (auto& input : copy->inputs) rename(input.name);
    for (auto& initializer : copy->initializers) rename(initializer.name);
    for (auto& sparse : copy->sparse_initializers) rename(sparse.values.name);
    for (auto& info : copy->value_info) rename(info.name);
    for (auto& annotation : copy->quantization_annotation) {
      rename(annotation.tensor_name);
      for (auto& entry : annotation.quant_parameter_tensor_names) rename(entry.value);
    }
    for (auto& output : copy->outputs) {
      const std::string& name = renamed(output.name);
      if (!defined.contains(output.name) && name != output.name) {
        // An outer value handed out: the graph's output needs a name of its own.
        copy->nodes.push_back(copy_of(name, fresh_name_(output.name)));
        output.name = copy->nodes.back().outputs[0];
      } else {
        output.name = name;
      }
    }
    while (!before.empty()) {
      names_.restore(std::move(before.back()));
      before.pop_back();
    }
    return copy;
  }

  const ir::Function& function_;
  const ir::Node& call_;
  const std::function<std::string(std::string_view)>& fresh_name_;
  const bool keeps_inner_names_;
  const std::string origin_;
  Renamed names_;
  NameMap<bool> given_;  // names of the call, once one is looked for
};

}  // namespace

void Renamed::reserve(size_t count) {
  at_.reserve(count);
  values_.reserve(count);
}

const std::string* Renamed::find(std::string_view own) const {
  const uint32_t* at = at_.find(own);
  return at == nullptr || values_[*at].hidden ? nullptr : &values_[*at].name;
}

std::pair<std::string*, bool> Renamed::add(std::string_view own, std::string_view name) {
  const auto [at, is_new] = at_.emplace(own, static_cast<uint32_t>(values_.size()));
  if (is_new) {
    values_.push_back({std::string(name)});
    return {&values_[*at].name, true};
  }
  Value& value = values_[*at];
  if (!value.hidden) return {&value.name, false};
  value = {std::string(name)};  // only a subgraph before had a value of this name
  return {&value.name, true};
}

Renamed::Before Renamed::shadow(std::string_view own, std::string name) {
  const auto [at, is_new] = at_.emplace(own, static_cast<uint32_t>(values_.size()));
  if (is_new) values_.push_back({{}, true});
  return {*at, std::exchange(values_[*at], {std::move(name)})};
}

void instantiate(const ir::Function& function, const ir::Node& call,
                 const std::function<std::string(std::string_view hint)>& fresh_name,
                 Renamed* renamed, std::vector<ir::Node>& nodes) {
  Instance instance(function, call, fresh_name, renamed != nullptr);
  instance.make(nodes);
  if (renamed != nullptr) *renamed = instance.take_names();
}

Graph interface_of(const Graph& graph) {
  Graph made;
  made.name = graph.name;
  made.inputs = graph.inputs;
  made.outputs = graph.outputs;
  made.value_info = graph.value_info;
  made.initializers = graph.initializers;
  made.sparse_initializers = graph.sparse_initializers;
  made.doc_string = graph.doc_string;
  made.quantization_annotation = graph.quantization_annotation;
  made.metadata_props = graph.metadata_props;
  made.unknown = graph.unknown;
  return made;
}

}  // namespace sardonyx::ir
