#include "session/describe.h"

#include "ir/dimension.h"

namespace sardonyx {

ValueDescription describe(const ir::ValueInfo& info) {
  ValueDescription description;
  description.name = info.name;
  if (!info.type) {
    description.type = "?";
    return description;
  }
  const ir::TypeProto& type = *info.type;
  using Kind = ir::TypeProto::Kind;
  switch (type.kind) {
    case Kind::sequence: description.kind = Value::Kind::sequence; break;
    case Kind::map: description.kind = Value::Kind::map; break;
    case Kind::optional: description.kind = Value::Kind::optional; break;
    case Kind::sparse_tensor: description.kind = Value::Kind::sparse_tensor; break;
    default: description.kind = Value::Kind::tensor; break;
  }
  if (type.kind == Kind::tensor || type.kind == Kind::sparse_tensor)
    description.element_type = type.element_type();
  if (type.shape) {
    description.shape.emplace();
    for (const ir::Dimension& dim : type.shape->dims) {
      const auto number =
          ir::is_empty_list(*type.shape) ? std::optional<int64_t>(0) : ir::declared_number(dim);
      description.shape->push_back({number, std::string(ir::declared_name(dim))});
    }
  }
  description.type = ir::declared_text(type);
  return description;
}

}  // namespace sardonyx
