#include "tools/convert.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <unordered_map>
#include <unordered_set>

#include "base/fail.h"
#include "base/memory_account.h"
#include "check/check.h"
#include "ir/origin.h"
#include "lower/downgrade.h"
#include "lower/lower.h"
#include "ops/internal/checks.h"
#include "ops/internal/node.h"
#include "ops/operator.h"
#include "session/model.h"
#include "session/refusal.h"
#include "tools/shared_constants.h"
#include "wire/footprint.h"

namespace sardonyx {
namespace {

void for_each_graph(ir::Graph& graph, const std::function<void(ir::Graph&)>& visit);

void for_each_subgraph(ir::Node& node, const std::function<void(ir::Graph&)>& visit) {
  const auto inside = [&](std::shared_ptr<const ir::Graph>& held) {
    auto copy = std::make_shared<ir::Graph>(*held);
    for_each_graph(*copy, visit);
    held = std::move(copy);
  };
  for (ir::Attribute& attribute : node.attributes) {
    if (attribute.g) inside(attribute.g);
    for (auto& graph : attribute.graphs) inside(graph);
  }
}

// Lowering has bounded how deep graphs nest.
void for_each_graph(ir::Graph& graph, const std::function<void(ir::Graph&)>& visit) {
  visit(graph);
  for (ir::Node& node : graph.nodes) for_each_subgraph(node, visit);
}

struct Refusal {
  const ir::Node* node = nullptr;
  std::string reason;
};

// The first of the nodes of a domain that a version of it cannot say.
Refusal refusal_of(const std::vector<const ir::Node*>& nodes, std::string_view domain,
                   int64_t version) {
  for (const ir::Node* node : nodes) {
    if (ir::canonical_domain(node->domain) != domain) continue;
    if (std::string reason = lower::obstacle(*node, version); !reason.empty())
      return {node, std::move(reason)};
  }
  return {};
}

// The least version from `first` on that can say all nodes; 0 where none can.
int64_t min_version(const std::vector<const ir::Node*>& nodes, std::string_view domain,
                    int64_t first) {
  for (int64_t version = std::max<int64_t>(first, 1); version <= schema::latest_opset(domain);
       ++version) {
    if (refusal_of(nodes, domain, version).node == nullptr) return version;
  }
  return 0;
}

// Whether a version takes fewer types than those before it and after it do: QuantizeLinear from
// opset 19 to 22. Types are known only where nodes are carried down.
bool narrows_types(const std::vector<const ir::Node*>& nodes, int64_t version) {
  return version >= 19 && version < 23 &&
         std::ranges::find(nodes, "QuantizeLinear", &ir::Node::op_type) != nodes.end();
}

bool has_nodes_of(const std::vector<const ir::Node*>& nodes, std::string_view domain) {
  return std::ranges::any_of(
      nodes, [&](const ir::Node* node) { return ir::canonical_domain(node->domain) == domain; });
}

int64_t own_opset(const ir::Model& model) {
  const int64_t version = ir::imported_version(model.opset_imports, "");
  return version == 0 && model.opset_imports.empty() ? 1 : version;
}

int64_t checked_target(const ir::Model& model, int64_t asked) {
  const int64_t newest = schema::latest_opset("");
  const int64_t target = asked == 0 ? newest : asked;
  if (own_opset(model) > newest) {
    fail_at(model.path, ErrorCode::unsupported,
            "the newest known version of ai.onnx is {}; the model imports {}", newest,
            own_opset(model));
  }
  if (target < 1 || target > newest) {
    fail_at(model.path, ErrorCode::bad_input, "the opset to convert to must be in [1, {}]; got {}",
            newest, asked);
  }
  return target;
}

// The rules rely on what makes a model able to run at all.
void refuse_broken(const ir::Model& model, const ops::CustomTable& custom) {
  for (const check::Diagnostic& finding :
       check::check(model, {.profile = check::Profile::runnable, .more = &custom})) {
    if (finding.severity != check::Severity::error) continue;
    fail_at(finding.place.to_string(), refusal_code(finding),
            "{} [{}]; `sardonyx check` lists all that is wrong", finding.message, finding.rule);
  }
}

void set_import(ir::Model& model, std::string_view domain, int64_t version) {
  std::erase_if(model.opset_imports, [&](const ir::OperatorSetId& import) {
    return ir::canonical_domain(import.domain) == domain;
  });
  model.opset_imports.push_back({std::string(domain), version, {}});
  model.ir_version = std::max<int64_t>(model.ir_version.value_or(0),
                                       schema::ir_version_for_opset(domain, version));
}

void import_versions(ir::Model& model, const std::vector<const ir::Node*>& nodes, int64_t target) {
  const std::vector<ir::OperatorSetId> imports = model.opset_imports;
  set_import(model, "", target);
  for (const ir::OperatorSetId& import : imports) {
    const std::string_view domain = ir::canonical_domain(import.domain);
    if (domain.empty() || !schema::is_standard_domain(domain)) continue;
    // A version that nobody knows and no node needs stays as it is.
    const int64_t latest = schema::latest_opset(domain);
    if (import.version > latest && !has_nodes_of(nodes, domain)) continue;
    const int64_t least = min_version(nodes, domain, std::min(import.version, latest));
    if (least == 0) {
      const Refusal refusal = refusal_of(nodes, domain, schema::latest_opset(domain));
      fail_at(ir::identify(*refusal.node), ErrorCode::unsupported,
              "no version of {} can say what the upgraded node means: {}", domain, refusal.reason);
    }
    set_import(model, domain, least);
  }
}

// The least IR version that the operator sets came with, so that readers of their time take the
// model; its own where that is less.
void fit_ir_version(ir::Model& model, int64_t own) {
  for (const ir::OperatorSetId& import : model.opset_imports) {
    model.ir_version = std::max<int64_t>(
        model.ir_version.value_or(0), schema::ir_version_for_opset(import.domain, import.version));
  }
  if (own >= 3) model.ir_version = std::min(*model.ir_version, own);
  // Up to IR version 3 initializers are inputs, too.
  if (*model.ir_version >= 4 || own < 4) return;
  bool is_nested = false;
  for_each_graph(*model.graph, [&](ir::Graph& graph) {
    is_nested = is_nested || (&graph != &*model.graph && !graph.initializers.empty());
  });
  if (is_nested) {
    model.ir_version = 4;
    return;
  }
  std::unordered_set<std::string_view> inputs;
  for (const ir::ValueInfo& input : model.graph->inputs) inputs.insert(input.name);
  std::vector<ir::ValueInfo> added;
  for (const ir::TensorProto& tensor : model.graph->initializers) {
    if (inputs.contains(tensor.name)) continue;
    ir::ValueInfo& info = added.emplace_back();
    info.name = tensor.name;
    ir::TypeProto& type = info.type.emplace();
    type.kind = ir::TypeProto::Kind::tensor;
    type.elem_type = tensor.data_type;
    type.shape.emplace();
    for (const int64_t size : tensor.dims) type.shape->dims.emplace_back().value = size;
  }
  std::ranges::move(added, std::back_inserter(model.graph->inputs));
}

// Nodes that stand for one have its name, by which other readers tell nodes apart: all but the
// first get a number.
void tell_names_apart(ir::Graph& graph) {
  std::unordered_map<std::string, int64_t> numbers;  // the next of each name
  for_each_graph(graph, [&](ir::Graph& inside) {
    for (ir::Node& node : inside.nodes) {
      if (node.name.empty()) continue;
      const auto [at, is_new] = numbers.try_emplace(node.name, 1);
      if (is_new) continue;
      int64_t& number = at->second;  // stays where it is while others come
      std::string name;
      do {
        name = fmt::format("{}__{}", node.name, number++);
      } while (!numbers.try_emplace(name, 1).second);
      node.name = std::move(name);
    }
  });
}

std::vector<const ir::Node*> nodes_of(ir::Model& model) {
  std::vector<const ir::Node*> nodes;
  for_each_graph(*model.graph, [&](ir::Graph& graph) {
    for (const ir::Node& node : graph.nodes) nodes.push_back(&node);
  });
  return nodes;
}

// Operator sets that functions alone import: what they were for are nodes of the graph now.
void take_imports(ir::Model& model) {
  if (model.functions.empty()) return;
  const std::vector<const ir::Node*> nodes = nodes_of(model);
  for (const ir::Function& function : model.functions) {
    for (const ir::OperatorSetId& import : function.opset_imports) {
      const std::string_view domain = ir::canonical_domain(import.domain);
      if (!domain.empty() && ir::imported_version(model.opset_imports, domain) == 0 &&
          has_nodes_of(nodes, domain))
        model.opset_imports.push_back(import);
    }
  }
}

// Bodies check numbers that a run brings by an operator of our own, which no other tool knows.
void leave_out_checks(ir::Graph& graph) {
  for (ir::Node& node : graph.nodes) {
    if (!ops::internal::is<ops::internal::InRange>(node)) continue;
    node.inputs = {node.inputs[ops::internal::InRange::x]};
    node.domain.clear(), node.op_type = "Identity";
    node.attributes.clear();
  }
}

ir::Model converted(const Model& given, const ConvertOptions& options) {
  charge_memory(wire::memory_of(given.implementation().runnable()));
  ir::Model model = given.implementation().runnable();
  if (!model.training_info.empty()) {
    fail_at(model.path, ErrorCode::unsupported,
            "the model holds training information, whose graphs are not converted; remove it");
  }
  const ops::CustomTable& custom = given.implementation().custom;
  refuse_broken(model, custom);
  const int64_t target = checked_target(model, options.opset);
  model.graph = lower::lower(
      model,
      {.assume_inference = options.assume_inference, .expand_bodies = false, .custom = &custom});
  for_each_graph(*model.graph, leave_out_checks);
  share_constants(*model.graph);
  take_imports(model);
  model.functions.clear();
  for_each_graph(*model.graph, [&](ir::Graph& graph) { graph.value_info.clear(); });
  const bool is_older = target < own_opset(model);
  std::vector<const ir::Node*> nodes = nodes_of(model);
  if (is_older || refusal_of(nodes, "", target).node != nullptr || narrows_types(nodes, target)) {
    lower::downgrade(model, target);
    nodes = nodes_of(model);
  }
  const int64_t own_ir_version = model.ir_version.value_or(0);
  if (is_older) model.ir_version.reset();
  import_versions(model, nodes, target);
  if (is_older) fit_ir_version(model, own_ir_version);
  tell_names_apart(*model.graph);
  charge_memory(wire::memory_of(model));
  return model;
}

}  // namespace

ir::Model convert(const Model& given, const ConvertOptions& options) {
  SharedAccount account;
  if (options.memory_limit != 0) {
    account = std::make_shared<MemoryAccount>(options.memory_limit, "ConvertOptions::memory_limit");
  }
  return within_limit(std::move(account), [&] { return converted(given, options); });
}

}  // namespace sardonyx
