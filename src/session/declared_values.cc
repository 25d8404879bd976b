#include "session/declared_values.h"

#include <fmt/format.h>

#include "infer/declared.h"
#include "ir/dimension.h"
#include "ir/origin.h"

namespace sardonyx {

DeclaredValues::DeclaredValues(const ir::Graph& graph, Warn warn)
    : graph_(graph), warn_(std::move(warn)) {
  if (!warn_) return;
  for (const ir::ValueInfo& info : graph.value_info) {
    if (info.type && info.type->kind != ir::TypeProto::Kind::none)
      open_.emplace(info.name, &*info.type);
  }
  // Runs speak of these.
  for (const ir::ValueInfo& output : graph.outputs) open_.erase(output.name);
}

void DeclaredValues::hold(std::string_view name, const ir::ValueType& type, std::string_view source,
                          const std::function<std::string()>& place) {
  const auto found = open_.find(name);
  if (found == open_.end()) return;
  const auto contradicted = infer::contradiction(type, *found->second);
  if (contradicted == infer::Contradiction::none) return;
  const ir::TypeProto& declared = *found->second;
  open_.erase(found);
  warn_({contradicted == infer::Contradiction::shapes ? "G-20" : "SH-17", place(),
         fmt::format("value_info declares '{}' as {}; {} {}", name, ir::declared_text(declared),
                     source, type.to_string()),
         "what is computed stands; correct or remove the declaration"});
}

void DeclaredValues::hold_initializers() {
  if (open_.empty()) return;
  for (const ir::TensorProto& tensor : graph_.initializers) {
    ir::Dims dims;
    for (const int64_t dim : tensor.dims) dims.emplace_back(dim);
    const auto type =
        ir::ValueType::tensor(static_cast<ElementType>(tensor.data_type), std::move(dims));
    hold(tensor.name, type, "the initializer is",
         [&] { return fmt::format("initializer '{}'", tensor.name); });
  }
}

std::function<void(const ir::Node&, std::string_view, const ir::ValueType&)>
DeclaredValues::observer() {
  if (open_.empty()) return {};
  return [this](const ir::Node& node, std::string_view name, const ir::ValueType& type) {
    hold(name, type, "the node makes", [&] { return ir::place_of(node); });
  };
}

}  // namespace sardonyx
