#include "session/check_file.h"

#include <fmt/format.h>

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "base/checked.h"
#include "infer/infer.h"
#include "ir/dimension.h"
#include "ir/walk.h"
#include "rewrite/lower.h"
#include "sardonyx/error.h"
#include "schema/schema.h"
#include "session/custom.h"
#include "session/operator_sets.h"
#include "session/reading.h"
#include "wire/external.h"
#include "wire/store.h"
#include "wire/text_print.h"

namespace sardonyx {
namespace {

using check::Diagnostic;
using check::Level;
using check::Severity;

constexpr check::Rule rule(std::string_view id, Level standard, std::string_view title) {
  return {id, title, Level::off, standard, standard};
}

constexpr std::array rules_of_files = {
    rule("O-04", Level::error, "an operator is in the document of its operator set"),
    rule("O-22", Level::info, "documents hold no signatures: nodes are known by name only"),
    rule("D-13", Level::error, "types and shapes of a node fit its operator"),
    rule("SH-17", Level::error, "declared and inferred types agree"),
    rule("G-20", Level::warning, "declared and inferred shapes agree"),
    rule("XD-06", Level::error, "external data can be read inside the model's folder"),
    rule("XD-11", Level::error, "external data lies inside its file and is long enough"),
    rule("XD-13", Level::error, "external data has the checksum the model states"),
};

class Findings {
 public:
  Findings(std::vector<Diagnostic>& list, const check::Options& options)
      : list_(list), options_(options) {}

  void add(std::string_view id, std::string place, std::string message, std::string advice = {}) {
    if (options_.profile == check::Profile::runnable) return;
    for (const check::Rule& known : rules_of_files) {
      if (known.id != id || ++counts_[id] > options_.max_diagnostics) continue;
      Diagnostic& finding = list_.emplace_back();
      finding.rule = known.id;
      finding.severity = known.standard == Level::error     ? Severity::error
                         : known.standard == Level::warning ? Severity::warning
                                                            : Severity::info;
      finding.place.graph = std::move(place);
      finding.message = std::move(message);
      finding.advice = std::move(advice);
    }
  }

 private:
  std::vector<Diagnostic>& list_;
  const check::Options& options_;
  std::map<std::string_view, size_t> counts_;
};

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
    const std::string where =
        fmt::format("{}, node {} {}", place.path(), index, ir::describe(node));
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
                    "give the document of that version with --opset");
  }

  const ir::Model& model_;
  const std::vector<ir::OperatorSet>& sets_;
  Findings& findings_;
  std::set<std::pair<std::string, std::string>> functions_, told_;
  std::set<std::pair<std::string, int64_t>> told_of_;
};

// ---- types and shapes

std::string shown(const ir::TypeProto& type) { return wire::print(type); }

// 0: they agree, 1: their shapes differ, 2: they are of different types.
int contradiction(const ir::TypeProto& declared, const ir::TypeProto& inferred) {
  using Kind = ir::TypeProto::Kind;
  if (declared.kind == Kind::none || inferred.kind == Kind::none) return 0;
  if (declared.kind != inferred.kind) return 2;
  if (declared.elem_type != 0 && inferred.elem_type != 0 &&
      declared.elem_type != inferred.elem_type)
    return 2;
  if (declared.nested && inferred.nested) return contradiction(*declared.nested, *inferred.nested);
  if (!declared.shape || !inferred.shape) return 0;
  if (declared.shape->dims.size() != inferred.shape->dims.size()) return 1;
  for (size_t i = 0; i < declared.shape->dims.size(); ++i) {
    // What is inferred may be 0.
    const auto a = ir::declared_number(declared.shape->dims[i]);
    const auto& b = inferred.shape->dims[i].value;
    if (a && b && *a != *b) return 1;
  }
  return 0;
}

void check_types(const ir::Model& model, const ops::CustomTable& custom, Findings& findings) {
  if (!model.graph) return;
  ir::Graph graph;
  try {
    graph = rewrite::lower(model, {.custom = &custom});
  } catch (const Error& error) {
    findings.add("D-13", error.location(), error.message());
    return;
  }
  ir::SymbolTable symbols;
  infer::Findings inference;
  inference.symbols = &symbols;
  inference.problem = [&](const ir::Node& node, const Error& error) {
    if (error.code() == ErrorCode::unsupported) return;
    findings.add("D-13", error.location().empty() ? ir::describe(node) : error.location(),
                 error.message());
  };
  infer::Scope scope;
  infer::enter(graph, scope, inference);
  infer::infer_graph(graph, scope, inference);
  std::set<std::string_view> inputs;
  for (const ir::ValueInfo& input : model.graph->inputs) inputs.insert(input.name);
  for (const auto* infos : {&model.graph->value_info, &model.graph->outputs}) {
    for (const ir::ValueInfo& info : *infos) {
      const infer::Known* known = info.name.empty() ? nullptr : scope.find(info.name);
      if (!info.type || known == nullptr || !known->type.is_known() || inputs.contains(info.name))
        continue;
      const ir::TypeProto inferred = ir::to_proto(known->type);
      const int found = contradiction(*info.type, inferred);
      if (found == 0) continue;
      findings.add(found == 2 ? "SH-17" : "G-20",
                   fmt::format("graph '{}', value '{}'", model.graph->name, info.name),
                   fmt::format("it is declared as {}; what makes it gives {}", shown(*info.type),
                               shown(inferred)),
                   "correct the declaration or remove it");
    }
  }
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
  ir::Model model = read_model_file(path);
  const std::vector<ir::OperatorSet> sets = read_operator_sets(options.operator_sets);
  add_operator_sets(model, sets);
  const ops::CustomTable custom = custom_table(nullptr, options.libraries);
  check::Options rules = options.rules;
  rules.more = &custom;
  std::vector<Diagnostic> found = check::check(model, rules);
  Findings findings(found, options.rules);
  Documented documented(model, sets, findings);
  // What documents say of an operator replaces that nothing is known of it.
  documented.run();
  std::erase_if(found, [&](const Diagnostic& finding) {
    return (finding.rule == "D-25" || finding.rule == "O-04") && finding.place.node_index >= 0 &&
           documented.speaks_of(finding.place.graph, finding.place.node_index);
  });
  const bool sound = !check::has_errors(found);
  if (options.full && sound) check_types(model, custom, findings);
  if (options.data) check_data(std::move(model), options, findings);
  return found;
}

std::span<const check::Rule> file_rules() { return rules_of_files; }

}  // namespace sardonyx
