#include "schema/schema.h"

#include <algorithm>
#include <tuple>

#include "base/similar.h"
#include "schema/gradients.h"
#include "schema/signature_text.h"
#include "schema/tables.h"

namespace sardonyx::schema {
namespace {

std::string_view canonical(std::string_view domain) { return domain == "ai.onnx" ? "" : domain; }

const Formal* formal_at(std::span<const Formal> formals, size_t position) {
  if (position < formals.size()) return &formals[position];
  const bool open_ended = !formals.empty() && formals.back().option == FormalOption::variadic;
  return open_ended ? &formals.back() : nullptr;
}

// The rows of `table` with this domain and name.
template <class Row>
std::span<const Row> rows_of(std::span<const Row> table, std::string_view domain,
                             std::string_view name) {
  const auto key = [](const Row& row) { return std::tie(row.domain, row.name); };
  domain = canonical(domain);
  const auto wanted = std::tie(domain, name);
  const auto begin = std::ranges::lower_bound(table, wanted, {}, key);
  return {begin, std::ranges::upper_bound(begin, table.end(), wanted, {}, key)};
}

std::span<const Signature> rows_of_domain(std::string_view domain) {
  const std::span<const Signature> all = tables::signatures;
  domain = canonical(domain);
  const auto begin = std::ranges::lower_bound(all, domain, {}, &Signature::domain);
  return {begin, std::ranges::upper_bound(begin, all.end(), domain, {}, &Signature::domain)};
}

}  // namespace

const Attribute* Signature::attribute(std::string_view wanted) const {
  const auto found = std::ranges::lower_bound(attributes, wanted, {}, &Attribute::name);
  return found != attributes.end() && found->name == wanted ? &*found : nullptr;
}

const Formal* Signature::input(size_t position) const { return formal_at(inputs, position); }
const Formal* Signature::output(size_t position) const { return formal_at(outputs, position); }

const TypeConstraint* Signature::constraint(std::string_view wanted) const {
  const auto found = std::ranges::find(constraints, wanted, &TypeConstraint::name);
  return found != constraints.end() ? &*found : nullptr;
}

bool allows(std::span<const TypeId> types, TypeId type) {
  return std::ranges::binary_search(types, type);
}

const Signature* bound_version(std::span<const Signature> versions, int64_t opset) {
  const auto after = std::ranges::upper_bound(versions, opset, {}, &Signature::since);
  if (after == versions.begin()) return nullptr;
  const Signature& bound = *(after - 1);
  return bound.until != 0 && opset > bound.until ? nullptr : &bound;
}

const Signature* find(std::string_view domain, std::string_view name, int64_t opset) {
  return bound_version(versions(domain, name), opset);
}

const Signature* find(std::string_view domain, std::string_view name, int64_t opset,
                      const MoreSignatures* more) {
  const Signature* known = find(domain, name, opset);
  if (known != nullptr || more == nullptr) return known;
  return bound_version(more->versions(domain, name), opset);
}

const Signature* newest(std::string_view domain, std::string_view name) {
  const auto rows = versions(domain, name);
  return rows.empty() ? nullptr : &rows.back();
}

std::span<const Signature> versions(std::string_view domain, std::string_view name) {
  domain = canonical(domain);
  const size_t slots = tables::operators.size();
  for (size_t slot = tables::operator_hash(domain, name);; ++slot) {
    const tables::OperatorRows rows = tables::operators[slot & (slots - 1)];
    if (rows.count == 0) return {};
    const Signature& first = tables::signatures[rows.first];
    if (first.name == name && first.domain == domain)
      return tables::signatures.subspan(rows.first, rows.count);
  }
}

std::span<const Signature> all_signatures() { return tables::signatures; }

int32_t latest_opset(std::string_view domain) {
  const auto found =
      std::ranges::find(tables::latests, canonical(domain), &tables::DomainOpset::domain);
  return found != tables::latests.end() ? found->opset : 0;
}

bool is_standard_domain(std::string_view domain) {
  domain = canonical(domain);
  return (domain.empty() || domain.starts_with("ai.onnx")) && latest_opset(domain) != 0;
}

std::span<const Release> releases() { return tables::releases; }

const Release* release_of_opset(std::string_view domain, int64_t opset) {
  domain = canonical(domain);
  const auto member = domain.empty()                 ? &Release::onnx_opset
                      : domain == "ai.onnx.ml"       ? &Release::ml_opset
                      : domain == "ai.onnx.training" ? &Release::training_opset
                                                     : nullptr;
  if (member == nullptr || opset <= 0) return nullptr;
  // Some opset versions never were the newest of a release: the next release carried them.
  for (const Release& release : tables::releases) {
    if (release.*member >= opset) return &release;
  }
  return nullptr;
}

int32_t ir_version_for_opset(std::string_view domain, int64_t opset) {
  const Release* release = release_of_opset(domain, opset);
  return release == nullptr ? 0 : release->ir_version;
}

std::span<const FunctionText> function_texts() { return tables::functions; }

const FunctionText* function_text(std::string_view domain, std::string_view name) {
  const auto rows = rows_of(tables::functions, domain, name);
  return rows.empty() ? nullptr : &rows.front();
}

std::span<const FunctionText> gradient_texts() { return tables::gradients; }

const FunctionText* gradient_text(std::string_view domain, std::string_view name) {
  const auto rows = rows_of(tables::gradients, domain, name);
  return rows.empty() ? nullptr : &rows.front();
}

std::string_view closest_name(std::string_view domain, std::string_view name) {
  std::vector<std::string_view> names;
  for (const Signature& signature : rows_of_domain(domain)) {
    if (signature.extra || (!names.empty() && names.back() == signature.name)) continue;
    names.push_back(signature.name);
  }
  return closest(name, names);
}

}  // namespace sardonyx::schema
