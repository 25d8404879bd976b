#include "sardonyx/signatures.h"

#include "ir/model.h"
#include "schema/schema.h"
#include "session/custom.h"

namespace sardonyx {
namespace {

std::vector<std::string> texts(std::span<const schema::TypeId> types) {
  std::vector<std::string> made;
  made.reserve(types.size());
  for (const schema::TypeId type : types) made.push_back(schema::to_string(type));
  return made;
}

FormalParameter parameter(const schema::Formal& formal) {
  return {.name = formal.name,
          .type = formal.type,
          .types = texts(formal.types),
          .option = static_cast<FormalParameter::Option>(formal.option),
          .homogeneous = formal.homogeneous,
          .min_arity = formal.min_arity,
          .differentiable = static_cast<FormalParameter::Differentiability>(formal.differentiable)};
}

AttributeSignature attribute(const schema::Attribute& given) {
  AttributeSignature made;
  made.name = given.name;
  made.type = static_cast<AttributeType>(given.kind);
  made.is_required = given.required;
  made.has_default = given.has_default;
  made.default_float = given.default_float;
  made.default_int = given.default_int;
  made.default_string = given.default_string;
  made.default_floats.assign(given.default_floats.begin(), given.default_floats.end());
  made.default_ints.assign(given.default_ints.begin(), given.default_ints.end());
  made.default_strings.assign(given.default_strings.begin(), given.default_strings.end());
  return made;
}

OperatorSignature signature(const schema::Signature& given) {
  OperatorSignature made;
  made.domain = given.domain;
  made.name = given.name;
  made.since = given.since;
  made.until = given.until;
  made.is_deprecated = given.deprecated;
  made.is_experimental = given.experimental;
  made.is_nondeterministic = given.nondeterministic;
  made.is_extra = given.extra;
  made.function = static_cast<OperatorSignature::FunctionKind>(given.function);
  for (const schema::Formal& input : given.inputs) made.inputs.push_back(parameter(input));
  for (const schema::Formal& output : given.outputs) made.outputs.push_back(parameter(output));
  made.min_inputs = given.min_inputs, made.max_inputs = given.max_inputs;
  made.min_outputs = given.min_outputs, made.max_outputs = given.max_outputs;
  for (const schema::Attribute& one : given.attributes) made.attributes.push_back(attribute(one));
  for (const schema::TypeConstraint& constraint : given.constraints)
    made.constraints.push_back({constraint.name, texts(constraint.types)});
  return made;
}

static_assert(OperatorSignature::unlimited == schema::unlimited);

}  // namespace

std::vector<OperatorDomain> operator_domains() {
  std::vector<OperatorDomain> domains;  // signatures are ordered by domain
  for (const schema::Signature& one : schema::all_signatures()) {
    if (domains.empty() || domains.back().domain != one.domain)
      domains.push_back({one.domain, schema::latest_opset(one.domain)});
  }
  return domains;
}

std::vector<std::string_view> operator_names(std::string_view domain) {
  std::vector<std::string_view> names;  // signatures are ordered by domain and name
  for (const schema::Signature& one : schema::all_signatures()) {
    if (one.domain != ir::canonical_domain(domain)) continue;
    if (names.empty() || names.back() != one.name) names.push_back(one.name);
  }
  return names;
}

std::vector<OperatorSignature> operator_versions(std::string_view domain, std::string_view name) {
  std::vector<OperatorSignature> versions;
  for (const schema::Signature& one : schema::versions(domain, name))
    versions.push_back(signature(one));
  return versions;
}

std::vector<OperatorSignature> operator_versions(const CustomOperators& operators,
                                                 std::string_view domain, std::string_view name) {
  std::vector<OperatorSignature> versions;
  for (const schema::Signature& one : operators.implementation().table.versions(domain, name))
    versions.push_back(signature(one));
  return versions;
}

std::optional<OperatorSignature> find_signature(std::string_view domain, std::string_view name,
                                                int64_t opset) {
  const schema::Signature* found = schema::find(domain, name, opset);
  if (found == nullptr) return std::nullopt;
  return signature(*found);
}

std::vector<StandardRelease> standard_releases() {
  std::vector<StandardRelease> releases;
  for (const schema::Release& one : schema::releases())
    releases.push_back(
        {one.name, one.ir_version, one.onnx_opset, one.ml_opset, one.training_opset});
  return releases;
}

}  // namespace sardonyx
