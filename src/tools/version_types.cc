#include "tools/version_types.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/imports.h"
#include "ir/value_type.h"
#include "schema/schema.h"

namespace sardonyx {
namespace {

class VersionTypes {
 public:
  VersionTypes(const ir::Node& node, int64_t opset, const InferredTypes& types)
      : node_(node), types_(types), signature_(schema::find(node.domain, node.op_type, opset)) {
    versions_ = schema::versions(node.domain, node.op_type);
  }

  // The first input or output of a type that the node's version lacks.
  std::optional<VersionFinding> find() const {
    if (signature_ == nullptr || versions_.empty() || signature_->since == versions_.back().since)
      return std::nullopt;
    for (const bool is_input : {true, false}) {
      const auto& names = is_input ? node_.inputs : node_.outputs;
      for (size_t i = 0; i < names.size(); ++i) {
        if (auto found = look_at(is_input, i, names[i])) return found;
      }
    }
    return std::nullopt;
  }

 private:
  static const schema::Formal* formal_of(const schema::Signature& signature, bool is_input,
                                         size_t i) {
    return is_input ? signature.input(i) : signature.output(i);
  }

  std::optional<VersionFinding> look_at(bool is_input, size_t i, const std::string& name) const {
    const infer::ValueFacts* known = name.empty() ? nullptr : types_.find(name);
    const schema::Formal* formal = formal_of(*signature_, is_input, i);
    if (known == nullptr || formal == nullptr) return std::nullopt;
    const schema::TypeId type = schema::type_id(known->type);
    if (!type.valid() || type.element() == ElementType::undefined || schema::allows(*formal, type))
      return std::nullopt;
    const auto later = std::ranges::find_if(versions_, [&](const schema::Signature& version) {
      const schema::Formal* other = formal_of(version, is_input, i);
      return version.since > signature_->since && other != nullptr && schema::allows(*other, type);
    });
    if (later == versions_.end()) return std::nullopt;  // inference says so
    return VersionFinding{
        fmt::format("{} {} '{}' ('{}') is {}, which {} takes from version {} on; the model's "
                    "version is {}",
                    is_input ? "input" : "output", i, name, formal->name, schema::to_string(type),
                    node_.op_type, later->since, signature_->since),
        fmt::format("import version {} of the operators, or cast the value", later->since)};
  }

  const ir::Node& node_;
  const InferredTypes& types_;
  const schema::Signature* signature_;
  std::span<const schema::Signature> versions_;
};

}  // namespace

void InferredTypes::add(const infer::Scope& scope) {
  scope.for_each_here([&](std::string_view name, const infer::ValueFacts& known) {
    const auto [at, is_new] = values_.emplace(name, &known);
    if (!is_new && at->second != nullptr &&
        schema::type_id(at->second->type) != schema::type_id(known.type))
      at->second = nullptr;
  });
}

const infer::ValueFacts* InferredTypes::find(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : found->second;
}

void check_version_types(const ir::Model& model, const InferredTypes& types,
                         const std::function<void(const ir::WalkPlace&, const ir::Node&, size_t,
                                                  VersionFinding)>& report) {
  if (!model.graph) return;
  ir::ImportIndex imports;
  const auto look_at = [&](const ir::WalkPlace& place, const ir::Node& node, size_t i) {
    const int64_t opset = imports.version_for(node, model.opset_imports);
    if (auto found = VersionTypes(node, opset, types).find())
      report(place, node, i, std::move(*found));
  };
  ir::walk(*model.graph, {.node = look_at});
}

}  // namespace sardonyx
