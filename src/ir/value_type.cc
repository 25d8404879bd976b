#include "ir/value_type.h"

#include <fmt/format.h>

#include "ir/dimension.h"

namespace sardonyx::ir {

using Kind = TypeProto::Kind;

ValueType ValueType::sequence_of(ValueType element) {
  return {Kind::sequence,
          ElementType::undefined,
          {},
          std::make_shared<const ValueType>(std::move(element))};
}

ValueType ValueType::optional_of(ValueType element) {
  return {Kind::optional,
          ElementType::undefined,
          {},
          std::make_shared<const ValueType>(std::move(element))};
}

std::optional<Shape> ValueType::concrete_shape() const {
  if (!shape) return std::nullopt;
  Shape numbers;
  numbers.reserve(shape->size());
  for (const Dim& dim : *shape) {
    if (!dim.is_constant()) return std::nullopt;
    numbers.push_back(*dim.value());
  }
  return numbers;
}

std::optional<Dim> ValueType::element_count() const {
  if (!shape) return std::nullopt;
  Dim count(1);
  for (const Dim& dim : *shape) count = count * dim;
  return count;
}

std::string ValueType::to_string() const {
  switch (kind) {
    case Kind::none: return "?";
    case Kind::tensor:
    case Kind::sparse_tensor: {
      const std::string text =
          fmt::format("{}{}", name_of(element), shape ? ir::to_string(*shape) : "[...]");
      return kind == Kind::tensor ? text : fmt::format("sparse_tensor({})", text);
    }
    case Kind::sequence: return fmt::format("seq({})", nested ? nested->to_string() : "?");
    case Kind::optional: return fmt::format("optional({})", nested ? nested->to_string() : "?");
    case Kind::map:
      return fmt::format("map({},{})", name_of(element), nested ? nested->to_string() : "?");
    case Kind::opaque: return "opaque";
  }
  return "?";
}

namespace {

// Items of a sequence need not agree in the sizes that the model leaves open: none has a name.
ValueType item_type(const TypeProto& proto, SymbolTable& symbols) {
  return with_open_sizes(value_type(proto, symbols), symbols);
}

}  // namespace

ValueType with_open_sizes(ValueType type, SymbolTable& symbols) {
  if (type.shape) {
    for (Dim& dim : *type.shape) {
      if (!dim.is_constant()) dim = Dim(symbols.unknown());
    }
  }
  if (type.nested)
    type.nested = std::make_shared<const ValueType>(with_open_sizes(*type.nested, symbols));
  return type;
}

ValueType value_type(const TypeProto& proto, SymbolTable& symbols) {
  // Types nest through sequence, map and optional; the reader has bounded the depth.
  ValueType type;
  type.kind = proto.kind;
  type.element = proto.element_type();
  if (proto.shape && proto.shape->dims.size() <= max_declared_rank) {
    type.shape.emplace().reserve(proto.shape->dims.size());
    for (const Dimension& dim : proto.shape->dims) {
      if (is_empty_list(*proto.shape)) {
        type.shape->push_back(Dim(0));
      } else if (const auto number = declared_number(dim)) {
        type.shape->push_back(Dim(*number));
      } else if (const auto name = declared_name(dim); !name.empty()) {
        type.shape->push_back(Dim(symbols.named(name)));
      } else {
        type.shape->push_back(Dim(symbols.unknown()));
      }
    }
  }
  if (proto.nested)
    type.nested = std::make_shared<const ValueType>(item_type(*proto.nested, symbols));
  return type;
}

TypeProto::Kind kind_of(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::tensor: return Kind::tensor;
    case Value::Kind::sparse_tensor: return Kind::sparse_tensor;
    case Value::Kind::sequence: return Kind::sequence;
    case Value::Kind::map: return Kind::map;
    case Value::Kind::optional: return Kind::optional;
    case Value::Kind::none: break;
  }
  return Kind::none;
}

ValueType type_of(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::tensor: {
      const Tensor& tensor = value.tensor();
      return ValueType::tensor(tensor.element_type(),
                               {tensor.shape().begin(), tensor.shape().end()});
    }
    case Value::Kind::sparse_tensor: {
      const SparseTensor& sparse = value.sparse_tensor();
      return {Kind::sparse_tensor,
              sparse.values.element_type(),
              Dims(sparse.shape.begin(), sparse.shape.end()),
              {}};
    }
    case Value::Kind::sequence: {
      const auto& items = value.sequence().items;
      ValueType element = items.empty() ? ValueType() : type_of(items[0]);
      for (const Value& item : items) {  // the shape all items share, if any
        const ValueType other = type_of(item);
        if (!element.shape || !other.shape || *element.shape != *other.shape) element.shape.reset();
      }
      return ValueType::sequence_of(std::move(element));
    }
    case Value::Kind::map: {
      const Map& map = value.map();
      return {Kind::map,
              map.keys.element_type(),
              {},
              std::make_shared<const ValueType>(map.values.empty() ? ValueType()
                                                                   : type_of(map.values[0]))};
    }
    case Value::Kind::optional: {
      const auto& held = value.optional().held;
      return ValueType::optional_of(held ? type_of(*held) : ValueType());
    }
    case Value::Kind::none: break;
  }
  return {};
}

TypeProto to_proto(const ValueType& type) {
  TypeProto proto;
  proto.kind = type.kind;
  proto.elem_type = static_cast<int32_t>(type.element);
  if (type.shape) {
    proto.shape.emplace();
    for (const Dim& dim : *type.shape) {
      Dimension& written = proto.shape->dims.emplace_back();
      if (dim.is_constant()) {
        written.value = dim.value();
      } else {
        written.param = dim.to_string();
      }
    }
  }
  if (type.nested) proto.nested = std::make_shared<const TypeProto>(to_proto(*type.nested));
  return proto;
}

}  // namespace sardonyx::ir
