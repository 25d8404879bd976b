// Versions of operator domains that a model uses and does not import.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "lenient/repairs.h"
#include "lenient/scopes.h"
#include "schema/schema.h"
#include "schema/signature_text.h"

namespace sardonyx::lenient {
namespace {

using Imports = std::vector<ir::OperatorSetId>;
using NodesByDomain = std::map<std::string, std::vector<const ir::Node*>, std::less<>>;

std::string_view shown(std::string_view domain) { return domain.empty() ? "ai.onnx" : domain; }

check::Place import_place(std::string_view domain) {
  check::Place where;
  where.graph = "model";
  where.detail = fmt::format("opset_import '{}'", shown(domain));
  return where;
}

bool fits_version(const ir::Node& node, int64_t version, const schema::MoreSignatures* more) {
  const schema::Signature* signature =
      schema::find(ir::canonical_domain(node.domain), node.op_type, version, more);
  return signature != nullptr && !signature->deprecated && fits(node, *signature);
}

// The newest version that fits all of the nodes; 0 where there is none.
int64_t fitting_version(std::string_view domain, const std::vector<const ir::Node*>& nodes,
                        const schema::MoreSignatures* more) {
  // Domains that are not the standard's have one version, if they are known at all.
  int64_t version = std::max(schema::latest_opset(domain), 1);
  for (; version > 0; --version) {
    const auto fitting = [&](const ir::Node* node) { return fits_version(*node, version, more); };
    if (std::ranges::all_of(nodes, fitting)) break;
  }
  return version;
}

class Importing {
 public:
  Importing(ir::Model& model, const check::Options& options, Repairs& repairs)
      : model_(model), options_(options), repairs_(repairs) {
    for (const ir::Function& function : model.functions) {
      functions_.emplace(ir::canonical_domain(function.domain), function.name);
    }
  }

  void run() {
    std::map<ir::Function*, NodesByDomain> used;  // null: by the model's graphs
    for_each_scope(model_, [&](Scope& scope) {
      for (const ir::Node& node : *scope.nodes) {
        const std::string_view domain = ir::canonical_domain(node.domain);
        if (functions_.contains({domain, node.op_type})) continue;
        used[scope.function][std::string(domain)].push_back(&node);
      }
    });
    for (auto& [function, domains] : used) {
      if (function == nullptr) import_for_model(domains);
    }
    for (auto& [function, domains] : used) {
      if (function != nullptr) import_for_function(*function, domains);
    }
  }

 private:
  void import_for_model(const NodesByDomain& domains) {
    for (const auto& [domain, nodes] : domains) {
      if (ir::imported_version(model_.opset_imports, domain) != 0) continue;
      // Before IR version 3 there were no imports: ai.onnx has version 1.
      if (domain.empty() && model_.ir_version.value_or(3) < 3) continue;
      add(model_.opset_imports, domain, fitting_version(domain, nodes, options_.more),
          domain.empty() ? "M-06" : "O-04", import_place(domain));
    }
  }

  void import_for_function(ir::Function& function, const NodesByDomain& domains) {
    for (const auto& [domain, nodes] : domains) {
      if (ir::imported_version(function.opset_imports, domain) != 0) continue;
      int64_t version = ir::imported_version(model_.opset_imports, domain);
      const auto fitting = [&](const ir::Node* node) {
        return fits_version(*node, version, options_.more);
      };
      if (version == 0 || !std::ranges::all_of(nodes, fitting))
        version = fitting_version(domain, nodes, options_.more);
      check::Place place;
      const std::string_view own = ir::canonical_domain(function.domain);
      place.graph = fmt::format("function '{}{}{}'", own, own.empty() ? "" : ".", function.name);
      place.detail = fmt::format("opset_import '{}'", shown(domain));
      add(function.opset_imports, domain, version, "F-16", std::move(place));
    }
  }

  void add(Imports& imports, const std::string& domain, int64_t version, std::string_view rule,
           check::Place where) {
    if (version == 0) return;
    imports.push_back({domain, version, {}});
    repairs_.push_back(
        repaired(rule, std::move(where), "nodes use this domain, and nobody imports it",
                 fmt::format("version {} is taken, the newest that fits them", version)));
  }

  ir::Model& model_;
  const check::Options& options_;
  Repairs& repairs_;
  std::set<std::pair<std::string_view, std::string_view>> functions_;
};

}  // namespace

void warn_of_doubled_imports(const ir::Model& model, Repairs& repairs) {
  std::set<std::string_view> told;
  std::unordered_map<std::string_view, int64_t> versions;
  for (const ir::OperatorSetId& import : model.opset_imports) {
    int64_t& highest = versions[ir::canonical_domain(import.domain)];
    highest = std::max(highest, import.version);
  }
  for (const ir::OperatorSetId& import : model.opset_imports) {
    const std::string_view domain = ir::canonical_domain(import.domain);
    const int64_t highest = versions.at(domain);
    if (import.version == highest || import.version < 1 || !told.insert(domain).second) continue;
    repairs.push_back(repaired(
        "M-08", import_place(domain),
        fmt::format("the domain is imported with the versions {} and {}", import.version, highest),
        fmt::format("version {} is taken", highest)));
  }
}

namespace {

void drop_impossible(Imports& imports, Repairs& repairs, const check::Place* function) {
  std::erase_if(imports, [&](const ir::OperatorSetId& import) {
    if (import.version >= 1) return false;
    check::Place place = import_place(ir::canonical_domain(import.domain));
    if (function != nullptr) place.graph = function->graph;
    repairs.push_back(repaired("M-10", std::move(place),
                               fmt::format("versions start at 1; found {}", import.version),
                               "the import is ignored"));
    return true;
  });
}

}  // namespace

void import_operator_sets(ir::Model& model, const check::Options& options, Repairs& repairs) {
  drop_impossible(model.opset_imports, repairs, nullptr);
  for (ir::Function& function : model.functions) {
    check::Place place;
    const std::string_view domain = ir::canonical_domain(function.domain);
    place.graph =
        fmt::format("function '{}{}{}'", domain, domain.empty() ? "" : ".", function.name);
    drop_impossible(function.opset_imports, repairs, &place);
  }
  Importing(model, options, repairs).run();
}

}  // namespace sardonyx::lenient
