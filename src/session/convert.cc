#include "session/convert.h"

#include <algorithm>
#include <functional>

#include "base/fail.h"
#include "base/memory_account.h"
#include "check/check.h"
#include "ir/origin.h"
#include "lower/fresh_names.h"
#include "lower/lower.h"
#include "ops/internal/checks.h"
#include "ops/internal/node.h"
#include "ops/operator.h"
#include "session/model.h"
#include "session/refusal.h"
#include "session/shared_constants.h"
#include "wire/footprint.h"

namespace sardonyx {
namespace {

bool same(const ir::Attribute& a, const ir::Attribute& b) {
  return a.kind == b.kind && a.f == b.f && a.i == b.i && a.s == b.s && a.floats == b.floats &&
         a.ints == b.ints && a.strings == b.strings && a.t == b.t && a.g == b.g;
}

bool same(const ir::Node& a, const ir::Node& b) {
  if (a.op_type != b.op_type || a.inputs != b.inputs || a.outputs != b.outputs ||
      a.attributes.size() != b.attributes.size())
    return false;
  return std::all_of(a.attributes.begin(), a.attributes.end(), [&](const ir::Attribute& x) {
    const ir::Attribute* y = b.find(x.name);
    return y != nullptr && same(x, *y);
  });
}

// Whether upgrading would leave a node of the newest form as it is: then it means the same in the
// older version.
bool means_the_same(const ir::Node& node, const schema::Signature& older) {
  const ops::Operator* op = ops::find_operator(node.domain, node.op_type);
  if (op == nullptr || op->upgrade == nullptr) return true;
  ir::Node copy = node;
  ops::UpgradeContext::Services services;
  services.fresh_name = [](std::string_view hint) { return std::string(hint); };
  ops::UpgradeContext context(copy, older.since, &older, services);
  try {
    op->upgrade(context);
  } catch (const Error&) {
    return false;
  }
  return !context.dropped() && context.take_before().empty() && context.take_after().empty() &&
         same(node, copy);
}

// Why a node of the newest form cannot stand in a model that imports `version` of its domain;
// empty where it can.
std::string obstacle(const ir::Node& node, int64_t version) {
  if (!schema::is_standard_domain(node.domain)) return {};
  const schema::Signature* bound = schema::find(node.domain, node.op_type, version);
  if (bound == nullptr) return "that has no such operator";
  if (bound->deprecated) return "there the operator is deprecated";
  if (bound == schema::newest(node.domain, node.op_type)) return {};
  if (static_cast<int64_t>(node.inputs.size()) > bound->max_inputs)
    return fmt::format("it takes at most {} inputs there", bound->max_inputs);
  for (size_t i = 0; i < bound->inputs.size(); ++i) {
    const schema::Formal& formal = bound->inputs[i];
    if (formal.option == schema::FormalOption::single && !has_input(node, i))
      return fmt::format("it needs the input '{}' there", formal.name);
  }
  if (static_cast<int64_t>(node.outputs.size()) > bound->max_outputs)
    return fmt::format("it gives at most {} outputs there", bound->max_outputs);
  for (const ir::Attribute& attribute : node.attributes) {
    if (bound->attribute(attribute.name) == nullptr)
      return fmt::format("it has no attribute '{}' there", attribute.name);
  }
  if (!means_the_same(node, *bound)) return "the same node means something else there";
  return {};
}

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

// Resize of opsets 11 and 12 needs a region, which it reads in one of its modes only.
void give_regions(ir::Graph& graph, lower::FreshNames& names) {
  constexpr size_t roi = 1;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    ir::Node& node = graph.nodes[i];
    if (node.op_type != "Resize" || !ir::canonical_domain(node.domain).empty() ||
        has_input(node, roi))
      continue;
    node.inputs.resize(std::max(node.inputs.size(), roi + 1));
    node.inputs[roi] = names.make("roi");
    auto nothing = std::make_shared<ir::TensorProto>();
    nothing->dims = {0};
    nothing->data_type = static_cast<int32_t>(ElementType::float32);
    nothing->has_raw_data = true;
    ir::Node region;
    region.op_type = "Constant";
    region.outputs = {node.inputs[roi]};
    ir::Attribute& value = region.attributes.emplace_back();
    value.name = "value";
    value.kind = ir::AttributeKind::tensor;
    value.t = std::move(nothing);
    graph.nodes.insert(graph.nodes.begin() + static_cast<std::ptrdiff_t>(i++), std::move(region));
  }
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
    if (std::string reason = obstacle(*node, version); !reason.empty())
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
            "the newest known version of ai.onnx is {}; the model imports {}, and models are "
            "converted to newer versions only",
            newest, own_opset(model));
  }
  if (asked > 0 && target < own_opset(model)) {
    fail_at(model.path, ErrorCode::bad_input,
            "the model's opset is {}, and nodes are only upgraded to newer opsets, not down to "
            "{}: the opset to convert to must be in [{}, {}]",
            own_opset(model), asked, own_opset(model), newest);
  }
  if (target < own_opset(model) || target > newest) {
    fail_at(model.path, ErrorCode::bad_input,
            "the opset to convert to must be in [{}, {}], from the model's own to the newest; got "
            "{}",
            own_opset(model), newest, asked);
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
  if (const Refusal refusal = refusal_of(nodes, "", target); refusal.node != nullptr) {
    const int64_t least = min_version(nodes, "", target);
    fail_at(ir::identify(*refusal.node), ErrorCode::bad_input, "cannot be said in opset {}: {}; {}",
            target, refusal.reason,
            least > 0 ? fmt::format("opset {} is the least that can say the whole model", least)
                      : "no opset can");
  }
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

// Bodies check numbers that a run brings by an operator of our own, which no other tool knows.
void leave_out_checks(ir::Graph& graph) {
  for (ir::Node& node : graph.nodes) {
    if (!ops::internal::is<ops::internal::InRange>(node)) continue;
    node.inputs = {node.inputs[ops::internal::InRange::x]};
    node.domain.clear(), node.op_type = "Identity";
    node.attributes.clear();
  }
}

}  // namespace

namespace {

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
  model.functions.clear();
  if (target == 11 || target == 12) {
    lower::FreshNames names(model, false);
    for_each_graph(*model.graph, [&](ir::Graph& graph) { give_regions(graph, names); });
  }
  std::vector<const ir::Node*> nodes;
  for_each_graph(*model.graph, [&](ir::Graph& graph) { graph.value_info.clear(); });
  for_each_graph(*model.graph, [&](ir::Graph& graph) {
    for (const ir::Node& node : graph.nodes) nodes.push_back(&node);
  });
  import_versions(model, nodes, target);
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
