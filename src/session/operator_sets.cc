#include "session/operator_sets.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/fail.h"
#include "check/operator_set.h"
#include "ir/walk.h"
#include "schema/schema.h"
#include "session/reading.h"
#include "wire/named_forms.h"
#include "wire/text_parse.h"
#include "wire/write.h"

namespace sardonyx {
namespace {

using SetKey = std::pair<std::string, int64_t>;  // canonical domain, version
using FunctionKey = std::tuple<std::string, std::string, std::string>;

FunctionKey key_of(std::string_view domain, const std::string& name, const std::string& overload) {
  return {std::string(ir::canonical_domain(domain)), name, overload};
}

// Adds what is called, and what that calls.
class Adding {
 public:
  Adding(ir::Model& model, const std::vector<ir::OperatorSet>& sets) : model_(model) {
    for (const ir::OperatorSet& set : sets)
      sets_[{std::string(ir::canonical_domain(set.domain)), set.opset_version}] = &set;
    for (const ir::Function& function : model.functions)
      known_[key_of(function.domain, function.name, function.overload)] = nullptr;
  }

  void run() {
    std::vector<ir::Function> added;
    const auto collect = [&](const std::vector<ir::OperatorSetId>& imports) {
      return ir::WalkCallbacks{.node = [&](const ir::WalkPlace&, const ir::Node& node, size_t) {
        if (const ir::Function* body = body_of(node, imports)) waiting_.push_back(body);
      }};
    };
    if (model_.graph) ir::walk(*model_.graph, collect(model_.opset_imports));
    for (const ir::TrainingInfo& info : model_.training_info) {
      if (info.initialization) ir::walk(*info.initialization, collect(model_.opset_imports));
      if (info.algorithm) ir::walk(*info.algorithm, collect(model_.opset_imports));
    }
    for (const ir::Function& function : model_.functions)
      ir::walk(function, collect(function.opset_imports));
    while (!waiting_.empty()) {
      const ir::Function* body = waiting_.back();
      waiting_.pop_back();
      added.push_back(*body);
      ir::Function& function = added.back();
      function.since_version.reset();
      function.status.reset();
      ir::walk(*body, collect(body->opset_imports));
    }
    for (ir::Function& function : added) model_.functions.push_back(std::move(function));
  }

 private:
  // The body that a node newly calls for; null where there is none or it is there already.
  const ir::Function* body_of(const ir::Node& node, const std::vector<ir::OperatorSetId>& imports) {
    const int64_t version = ir::imported_version(imports, node.domain);
    const auto set = sets_.find({std::string(ir::canonical_domain(node.domain)), version});
    if (set == sets_.end()) return nullptr;
    // What the standard defines is known; a document of its own sets adds nothing to that.
    if (schema::find(node.domain, node.op_type, version) != nullptr) return nullptr;
    const FunctionKey key = key_of(node.domain, node.op_type, node.overload);
    const auto found = std::ranges::find_if(set->second->functions, [&](const ir::Function& f) {
      return f.name == node.op_type && f.overload == node.overload;
    });
    if (found == set->second->functions.end()) return nullptr;
    const auto [known, is_new] = known_.try_emplace(key, &*found);
    if (!is_new && known->second != nullptr && known->second != &*found) {
      fail(ErrorCode::invalid_model,
           "'{}' of domain '{}' is needed in two versions, which a model cannot hold; import one "
           "version of the domain everywhere",
           node.op_type, node.domain);
    }
    return is_new ? &*found : nullptr;
  }

  ir::Model& model_;
  std::map<SetKey, const ir::OperatorSet*> sets_;
  std::map<FunctionKey, const ir::Function*> known_;  // null: the model's own
  std::vector<const ir::Function*> waiting_;
};

ir::OperatorDefinition definition_of(const schema::Signature& signature) {
  ir::OperatorDefinition definition;
  definition.op_type = signature.name;
  definition.since_version = signature.since;
  definition.status = static_cast<int32_t>(signature.experimental ? ir::OperatorStatus::experimental
                                                                  : ir::OperatorStatus::stable);
  return definition;
}

}  // namespace

std::vector<ir::OperatorSet> read_operator_sets(const std::vector<std::string>& paths) {
  std::vector<ir::OperatorSet> sets;
  std::map<SetKey, std::pair<std::string, std::string>> known;  // bytes and path
  for (const std::string& path : paths) {
    ir::OperatorSet set = read_operator_set_file(path);
    for (const check::Diagnostic& finding : check::check(set)) {
      if (finding.severity == check::Severity::error)
        throw Error(ErrorCode::invalid_model, finding.to_string(), path);
    }
    const SetKey key{std::string(ir::canonical_domain(set.domain)), set.opset_version};
    const auto [before, is_new] = known.try_emplace(key, wire::write_operator_set(set), path);
    if (is_new) {
      sets.push_back(std::move(set));
    } else if (before->second.first != wire::write_operator_set(set)) {
      fail_at(path, ErrorCode::invalid_model,
              "describes version {} of domain '{}' otherwise than '{}' does [O-02]", key.second,
              key.first.empty() ? "ai.onnx" : key.first, before->second.second);
    }
  }
  return sets;
}

void add_operator_sets(ir::Model& model, const std::vector<ir::OperatorSet>& sets) {
  if (!sets.empty()) Adding(model, sets).run();
}

ir::OperatorSet export_operator_set(std::string_view domain, int64_t version) {
  const int32_t latest = schema::latest_opset(domain);
  if (latest == 0) fail(ErrorCode::bad_input, "'{}' is no domain of the standard", domain);
  if (version == 0) version = latest;
  if (version < 1 || version > latest)
    fail(ErrorCode::bad_input, "versions of '{}' are 1 to {}; found {}",
         domain.empty() ? "ai.onnx" : domain, latest, version);
  ir::OperatorSet set;
  set.magic = ir::operator_set_magic;
  set.domain = ir::canonical_domain(domain);
  set.opset_version = version;
  set.ir_version = std::max<int32_t>(schema::ir_version_for_opset(domain, version), 3);
  std::set<std::string_view> names;
  for (const schema::Signature& signature : schema::all_signatures()) {
    if (ir::canonical_domain(signature.domain) != ir::canonical_domain(domain)) continue;
    if (signature.extra || !names.insert(signature.name).second) continue;
    const schema::Signature* bound = schema::find(domain, signature.name, version);
    if (bound == nullptr || bound->deprecated || bound->extra) continue;
    // A body of ours is the newest version's; older versions go without.
    const schema::FunctionText* text = schema::function_text(domain, signature.name);
    if (text == nullptr || bound != schema::newest(domain, signature.name)) {
      set.operators.push_back(definition_of(*bound));
      continue;
    }
    ir::Function function = wire::parse_function(text->text);
    function.domain = set.domain;
    function.since_version = bound->since;
    function.status = static_cast<int32_t>(ir::OperatorStatus::stable);
    // They came with that version of the format.
    if (!function.attribute_protos.empty()) set.ir_version = std::max<int64_t>(*set.ir_version, 9);
    set.functions.push_back(std::move(function));
  }
  return set;
}

void save_operator_set(const ir::OperatorSet& set, const std::string& path) {
  const ModelForm form = form_of(path);
  if (form == ModelForm::text)
    fail_at(path, ErrorCode::bad_input,
            "the textual syntax has no operator set documents; write .onnx, .json or .textproto");
  const bool is_known = lowered_ending(path) == ".opset" || ending_problem(path).empty();
  if (!is_known || drawing_form_of(path))
    fail_at(path, ErrorCode::bad_input,
            "the name's ending says no form of operator set documents; known are .onnx, .opset, "
            ".json, .textproto");
  wire::write_file(path, [&](wire::Sink& sink) {
    if (form == ModelForm::binary) return wire::write_operator_set(set, sink);
    wire::write_named(
        set, form == ModelForm::json ? wire::NamedForm::json : wire::NamedForm::textproto, sink);
  });
}

}  // namespace sardonyx
