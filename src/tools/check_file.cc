#include "tools/check_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "base/checked.h"
#include "infer/declared.h"
#include "infer/infer.h"
#include "ir/origin.h"
#include "ir/walk.h"
#include "lower/lower.h"
#include "ops/objections.h"
#include "sardonyx/error.h"
#include "schema/schema.h"
#include "session/custom.h"
#include "session/operator_sets.h"
#include "session/reading.h"
#include "tools/version_types.h"
#include "wire/external.h"
#include "wire/store.h"

namespace sardonyx {
namespace {

using check::Diagnostic;
using check::Level;
using check::Severity;

constexpr check::Rule rule(std::string_view id, Level standard, Level strict,
                           std::string_view title) {
  return {id, title, Level::off, standard, strict};
}
constexpr check::Rule rule(std::string_view id, Level level, std::string_view title) {
  return rule(id, level, level, title);
}

constexpr std::array rules_of_files = {
    rule("O-04", Level::error, "an operator is in the document of its operator set"),
    rule("O-22", Level::info, "documents hold no signatures: nodes are known by name only"),
    rule("D-13", Level::error, "types and shapes of a node fit its operator"),
    rule("SH-17", Level::error, "declared and inferred types agree"),
    rule("G-20", Level::warning, Level::error, "declared and inferred shapes agree"),
    rule("XD-06", Level::error, "external data can be read inside the model's folder"),
    rule("XD-11", Level::error, "external data lies inside its file and is long enough"),
    rule("XD-13", Level::error, "external data has the checksum the model states"),
};

class Findings {
 public:
  Findings(std::vector<Diagnostic>& list, const check::Options& options)
      : list_(list), options_(options) {}

  // `runs`: what is found keeps nothing from running, and is an error for the strict profile only.
  void add(std::string_view id, std::string place, std::string message, std::string advice = {},
           bool runs = false) {
    add(id, check::Place{.graph = std::move(place)}, std::move(message), std::move(advice), runs);
  }
  void add(std::string_view id, check::Place place, std::string message, std::string advice = {},
           bool runs = false) {
    if (options_.profile == check::Profile::runnable) return;
    // A body that is inferred in several rounds reports the same each time.
    if (!told_.insert(fmt::format("{} {}: {}", id, place.to_string(), message)).second) return;
    for (const check::Rule& known : rules_of_files) {
      if (known.id != id || ++counts_[id] > options_.max_diagnostics) continue;
      Diagnostic& finding = list_.emplace_back();
      finding.rule = known.id;
      const bool strict = options_.profile == check::Profile::strict;
      Level level = strict ? known.strict : known.standard;
      if (runs && !strict) level = std::min(level, Level::warning);
      finding.severity = level == Level::error     ? Severity::error
                         : level == Level::warning ? Severity::warning
                                                   : Severity::info;
      finding.place = std::move(place);
      finding.message = std::move(message);
      finding.advice = std::move(advice);
    }
  }

 private:
  std::vector<Diagnostic>& list_;
  const check::Options& options_;
  std::map<std::string_view, size_t> counts_;
  std::set<std::string> told_;
};

check::Place place_of_node(std::string graph, size_t index, const ir::Node& node) {
  const std::string_view domain = ir::canonical_domain(node.domain);
  check::Place place;
  place.graph = std::move(graph);
  place.node_index = static_cast<int64_t>(index);
  place.node_name = node.name;
  if (node.name.empty() && !node.outputs.empty()) place.node_output = node.outputs[0];
  place.op = fmt::format("{}{}{}", domain, domain.empty() ? "" : ".", node.op_type);
  return place;
}

// ---- operators that documents define without a body

class Documented {
 public:
  Documented(const ir::Model& model, const std::vector<ir::OperatorSet>& sets, Findings& findings)
      : model_(model), sets_(sets), findings_(findings) {
    for (const ir::Function& function : model.functions)
      functions_.emplace(ir::canonical_domain(function.domain), function.name);
  }

  void run() {
    if (sets_.empty()) return;
    if (model_.graph) ir::walk(*model_.graph, nodes(model_.opset_imports));
    for (const ir::Function& function : model_.functions)
      ir::walk(function, nodes(function.opset_imports));
  }

  // Whether documents said what there is to say of a node's operator.
  bool speaks_of(const std::string& graph, int64_t node) const {
    return told_of_.contains({graph, node});
  }

 private:
  // Whether what operators the domain has is for documents to say.
  bool covers(std::string_view domain) const {
    if (schema::latest_opset(domain) != 0) return false;
    for (const ir::OperatorSet& set : sets_) {
      if (ir::canonical_domain(set.domain) == ir::canonical_domain(domain)) return true;
    }
    return false;
  }

  ir::WalkCallbacks nodes(const std::vector<ir::OperatorSetId>& imports) {
    return {.node = [this, &imports](const ir::WalkPlace& place, const ir::Node& node, size_t i) {
      look_at(place, node, i, imports);
    }};
  }

  void look_at(const ir::WalkPlace& place, const ir::Node& node, size_t index,
               const std::vector<ir::OperatorSetId>& imports) {
    if (!covers(node.domain) ||
        functions_.contains({std::string(ir::canonical_domain(node.domain)), node.op_type}))
      return;
    const int64_t version = ir::imported_version(imports, node.domain);
    if (version <= 0) return;
    told_of_.emplace(place.path(), static_cast<int64_t>(index));
    const check::Place where = place_of_node(place.path(), index, node);
    for (const ir::OperatorSet& set : sets_) {
      if (ir::canonical_domain(set.domain) != ir::canonical_domain(node.domain) ||
          set.opset_version != version)
        continue;
      const auto found = std::find_if(
          set.operators.begin(), set.operators.end(),
          [&](const ir::OperatorDefinition& op) { return op.op_type == node.op_type; });
      if (found == set.operators.end()) {
        findings_.add(
            "O-04", where,
            fmt::format("version {} of {} has no operator {}", version, set.domain, node.op_type));
      } else if (told_.emplace(set.domain, node.op_type).second) {
        findings_.add("O-22", where,
                      fmt::format("{} is known by name and version {}; the document holds no "
                                  "signature, so that inputs, outputs, attributes and types of its "
                                  "nodes are not checked",
                                  node.op_type, found->since_version));
      }
      return;
    }
    if (told_.emplace(node.domain, "").second)
      findings_.add("O-04", where,
                    fmt::format("the model imports version {} of '{}', of which there is no "
                                "document",
                                version, node.domain),
                    "give the document of that version with --operator-set");
  }

  const ir::Model& model_;
  const std::vector<ir::OperatorSet>& sets_;
  Findings& findings_;
  std::set<std::pair<std::string, std::string>> functions_, told_;
  std::set<std::pair<std::string, int64_t>> told_of_;
};

// ---- types and shapes

// Where the main graph's nodes stand in the file, by what they make.
class MainNodes {
 public:
  explicit MainNodes(const ir::Graph& graph) : graph_(graph) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      for (const std::string& output : graph.nodes[i].outputs) index_.emplace(output, i);
    }
  }
  // A node of the lowered graph; `named` is how errors name it, and may be where it was made.
  check::Place place(const ir::Node& node, const std::string& named) const {
    const auto found = node.outputs.empty() ? index_.end() : index_.find(node.outputs[0]);
    if (node.outputs.empty() || node.outputs[0].empty() || found == index_.end())
      return {.graph = named};
    const ir::Node& own = graph_.nodes[found->second];
    std::string graph = fmt::format("graph '{}'", graph_.name);
    if (named == ir::identify(own)) return place_of_node(std::move(graph), found->second, own);
    return {.graph = fmt::format("{}, node {} {}", graph, found->second, named)};
  }

 private:
  const ir::Graph& graph_;
  std::map<std::string_view, size_t> index_;
};

// Outputs that no node makes are inputs or initializers, declared a second time.
void check_unmade_outputs(const ir::Graph& graph, const infer::Scope& scope,
                          const infer::InferenceContext& inference) {
  std::set<std::string_view> given;
  for (const ir::ValueInfo& input : graph.inputs) given.insert(input.name);
  for (const ir::TensorProto& tensor : graph.initializers) given.insert(tensor.name);
  for (const auto* infos : {&graph.value_info, &graph.outputs}) {
    for (const ir::ValueInfo& info : *infos) {
      const infer::ValueFacts* known = given.contains(info.name) ? scope.find(info.name) : nullptr;
      if (known != nullptr)
        infer::hold_against(info, known->type,
                            infos == &graph.outputs ? "the list of outputs" : "value_info",
                            "it is given as", fmt::format("value '{}'", info.name), inference);
    }
  }
}

bool may_be_equal(const ir::Dims& a, const ir::Dims& b) {
  return a.size() == b.size() && std::ranges::equal(a, b, [](const ir::Dim& x, const ir::Dim& y) {
           return !x.is_constant() || !y.is_constant() || x == y;
         });
}

// SwiGLU's inputs have one shape. Inference sees its body, which would broadcast them.
void check_gates(const ir::Graph& graph, const infer::Scope& scope, const MainNodes& nodes,
                 Findings& findings) {
  for (const ir::Node& node : graph.nodes) {
    if (node.op_type != "SwiGLU" || !ir::canonical_domain(node.domain).empty() ||
        node.inputs.size() != 2)
      continue;
    const infer::ValueFacts *a = scope.find(node.inputs[0]), *b = scope.find(node.inputs[1]);
    if (a == nullptr || b == nullptr || !a->type.shape || !b->type.shape ||
        may_be_equal(*a->type.shape, *b->type.shape))
      continue;
    findings.add(
        "D-13", nodes.place(node, ir::identify(node)),
        fmt::format("both inputs must have one shape; '{}' has {} and '{}' has {}", node.inputs[0],
                    ir::to_string(*a->type.shape), node.inputs[1], ir::to_string(*b->type.shape)),
        {}, true);
  }
}

void check_types(const ir::Model& model, const ops::CustomTable& custom, Findings& findings) {
  if (!model.graph) return;
  const MainNodes nodes(*model.graph);
  // Upgrades of old versions object, too.
  const ops::ObjectionListener listener([&](const ir::Node& node, const std::string& message) {
    findings.add("D-13", nodes.place(node, ir::place_of(node)), message, {}, true);
  });
  ir::Graph graph;
  try {
    graph = lower::lower(model, {.custom = &custom});
  } catch (const Error& error) {
    findings.add("D-13", error.location(), error.message());
    return;
  }
  ir::SymbolTable symbols;
  infer::InferenceContext inference;
  inference.symbols = &symbols;
  inference.problem = [&](const ir::Node& node, const Error& error) {
    if (error.code() == ErrorCode::unsupported) return;
    findings.add(
        "D-13", nodes.place(node, error.location().empty() ? ir::identify(node) : error.location()),
        error.message());
  };
  inference.disagreement = [&](const infer::Disagreement& found) {
    if (!found.contradiction) return;
    findings.add(found.of_shapes ? "G-20" : "SH-17", found.node,
                 fmt::format("{} declares '{}' as {}; {} {}", found.where, found.value,
                             found.declared, found.source, found.inferred),
                 "correct the declaration or remove it");
  };
  std::vector<ops::Constraint> constraints;
  inference.constraints = &constraints;
  inference.symbolic_values = true;
  std::map<const ir::Graph*, std::unique_ptr<infer::Scope>> subgraphs;
  inference.inferred = [&](const ir::Graph& of, std::unique_ptr<infer::Scope> inferred) {
    subgraphs[&of] = std::move(inferred);
  };
  infer::Scope scope;
  infer::enter(graph, scope, inference);
  infer::infer_graph(graph, scope, inference);
  InferredTypes types;
  types.add(scope);
  for (const auto& [of, inferred] : subgraphs) types.add(*inferred);
  check_version_types(
      model, types,
      [&](const ir::WalkPlace& place, const ir::Node& node, size_t i, VersionFinding found) {
        findings.add("D-13", place_of_node(place.path(), i, node), std::move(found.message),
                     std::move(found.advice), true);
      });
  check_unmade_outputs(*model.graph, scope, inference);
  check_gates(*model.graph, scope, nodes, findings);
}

// Whether there is an error of a rule that models must keep to run: lowering relies on those.
bool keeps_from_running(const std::vector<Diagnostic>& found) {
  return std::ranges::any_of(found, [](const Diagnostic& finding) {
    if (finding.severity != Severity::error) return false;
    const auto rules = check::rules();
    const auto rule = std::ranges::find(rules, finding.rule, &check::Rule::id);
    return rule == rules.end() || rule->runnable == Level::error;
  });
}

// ---- external data

void check_data(ir::Model model, const CheckFileOptions& options, Findings& findings) {
  wire::ExternalData plain(model.folder, {.trusted_folder = options.trusted_folder});
  wire::ExternalData verified(model.folder,
                              {.trusted_folder = options.trusted_folder, .verify_checksums = true});
  std::set<std::string> told;
  const auto look_at = [&](const ir::TensorProto& tensor) {
    if (!tensor.is_external() || tensor.element_type() == ElementType::string) return false;
    const auto count = checked_count(tensor.dims);
    if (!count || !is_known(tensor.element_type())) return false;  // the rules say so
    const std::string place = fmt::format("tensor '{}'", tensor.name);
    try {
      const auto needed = static_cast<uint64_t>(byte_size(tensor.element_type(), *count));
      plain.bytes_of(tensor, needed);
      try {
        verified.bytes_of(tensor, needed);
      } catch (const Error& error) {
        if (told.insert(error.message()).second) findings.add("XD-13", place, error.message());
      }
    } catch (const Error& error) {
      findings.add(error.code() == ErrorCode::unreadable ? "XD-06" : "XD-11", place,
                   error.message());
    }
    return false;
  };
  wire::change_tensors(model, look_at, [](ir::TensorProto&) {});
}

}  // namespace

std::vector<Diagnostic> check_model_file(const std::string& path, const CheckFileOptions& options) {
  return check_model(read_model_file(path), options);
}

std::vector<Diagnostic> check_model(ir::Model model, const CheckFileOptions& options,
                                    const ops::CustomTable* given) {
  const std::vector<ir::OperatorSet> sets = read_operator_sets(options.operator_sets);
  add_operator_sets(model, sets);
  ops::CustomTable custom = custom_table(nullptr, options.libraries);
  if (given != nullptr) custom.add_all(*given);
  check::Options rules = options.rules;
  rules.more = &custom;
  std::vector<Diagnostic> found = check::check(model, rules);
  Findings findings(found, options.rules);
  Documented documented(model, sets, findings);
  // What documents say of an operator replaces that nothing is known of it.
  const auto own = static_cast<std::ptrdiff_t>(found.size());
  documented.run();
  found.erase(std::remove_if(found.begin(), found.begin() + own,
                             [&](const Diagnostic& finding) {
                               return (finding.rule == "D-25" || finding.rule == "O-04") &&
                                      finding.place.node_index >= 0 &&
                                      documented.speaks_of(finding.place.graph,
                                                           finding.place.node_index);
                             }),
              found.begin() + own);
  const bool strict = options.rules.profile == check::Profile::strict;
  const bool sound = !keeps_from_running(found);
  if ((options.full || strict) && sound) check_types(model, custom, findings);
  if (options.data || strict) check_data(std::move(model), options, findings);
  return found;
}

std::span<const check::Rule> file_rules() { return rules_of_files; }

}  // namespace sardonyx
