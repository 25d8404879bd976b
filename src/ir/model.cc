#include "ir/model.h"

#include <algorithm>
#include <array>
#include <utility>

namespace sardonyx::ir {

AttributeKind Attribute::effective_kind() const {
  if (kind != AttributeKind::undefined) return kind;
  if (f) return AttributeKind::float_;
  if (i) return AttributeKind::int_;
  if (s) return AttributeKind::string;
  if (t) return AttributeKind::tensor;
  if (g) return AttributeKind::graph;
  if (!floats.empty()) return AttributeKind::floats;
  if (!ints.empty()) return AttributeKind::ints;
  if (!strings.empty()) return AttributeKind::strings;
  if (!tensors.empty()) return AttributeKind::tensors;
  if (!graphs.empty()) return AttributeKind::graphs;
  if (sparse_tensor) return AttributeKind::sparse_tensor;
  if (!sparse_tensors.empty()) return AttributeKind::sparse_tensors;
  if (tp) return AttributeKind::type_proto;
  if (!type_protos.empty()) return AttributeKind::type_protos;
  return AttributeKind::undefined;
}

const Attribute* Node::find(std::string_view attribute) const {
  for (const Attribute& a : attributes) {
    if (a.name == attribute) return &a;
  }
  return nullptr;
}

Attribute* Node::find(std::string_view attribute) {
  return const_cast<Attribute*>(std::as_const(*this).find(attribute));
}

TensorProto::TensorProto() = default;
Attribute::Attribute() = default;

int64_t imported_version(const std::vector<OperatorSetId>& imports, std::string_view domain) {
  int64_t version = 0;
  for (const OperatorSetId& import : imports) {
    if (canonical_domain(import.domain) == canonical_domain(domain)) {
      version = std::max(version, import.version);
    }
  }
  return version;
}

// Said of every call of a function and every node with a subgraph, whether or not anybody reads it:
// quick, as formatting is not.
std::string describe(const Node& node) {
  std::string text;
  const std::string_view domain = canonical_domain(node.domain);
  text.reserve(domain.size() + node.op_type.size() + node.name.size() + 4);
  if (!domain.empty()) text.append(domain).append(1, '.');
  text += node.op_type;
  if (!node.name.empty()) text.append(" '").append(node.name).append(1, '\'');
  return text;
}

std::string_view name_of(AttributeKind kind) {
  static constexpr std::array<std::string_view, 15> names = {
      "undefined",      "float",      "int",        "string",  "tensor", "graph",
      "floats",         "ints",       "strings",    "tensors", "graphs", "sparse_tensor",
      "sparse_tensors", "type_proto", "type_protos"};
  const auto index = static_cast<size_t>(kind);
  return index < names.size() ? names[index] : "undefined";
}

}  // namespace sardonyx::ir
