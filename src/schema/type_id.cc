#include "schema/type_id.h"

#include <array>
#include <cctype>

#include "ir/model.h"
#include "ir/value_type.h"

namespace sardonyx::schema {
namespace {

constexpr std::array<std::string_view, 29> element_names = {
    "undefined",      "float",      "uint8",          "int8",       "uint16",    "int16",
    "int32",          "int64",      "string",         "bool",       "float16",   "double",
    "uint32",         "uint64",     "complex64",      "complex128", "bfloat16",  "float8e4m3fn",
    "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "uint4",      "int4",      "float4e2m1",
    "float8e8m0",     "uint2",      "int2",           "float6e2m3", "float6e3m2"};

std::optional<ElementType> element_named(std::string_view name) {
  for (size_t number = 1; number < element_names.size(); ++number) {
    if (element_names[number] == name) return static_cast<ElementType>(number);
  }
  return std::nullopt;
}

// Reads one type from the front of a text. Its depth is bounded by what TypeId can hold.
class TypeReader {
 public:
  explicit TypeReader(std::string_view text) : rest_(text) {}

  std::optional<TypeId> read_all() {
    const auto type = read(0);
    if (!type || !next_word().empty() || !rest_.empty()) return std::nullopt;
    return type;
  }

 private:
  static constexpr int max_depth = 6;

  std::optional<TypeId> read(int depth) {
    if (depth == max_depth) return std::nullopt;
    const std::string_view word = next_word();
    if (word == "opaque") return TypeId::opaque();
    if (!take('(')) return std::nullopt;
    const auto type = word == "map" ? read_map(depth) : read_simple(word, depth);
    if (!type || !type->valid() || !take(')')) return std::nullopt;
    return type;
  }

  std::optional<TypeId> read_simple(std::string_view word, int depth) {
    if (word == "tensor" || word == "sparse_tensor") {
      const auto element = element_named(next_word());
      if (!element) return std::nullopt;
      return word == "tensor" ? TypeId::tensor(*element) : TypeId::sparse_tensor(*element);
    }
    if (word != "seq" && word != "optional") return std::nullopt;
    const auto inner = read(depth + 1);
    if (!inner) return std::nullopt;
    return word == "seq" ? TypeId::sequence(*inner) : TypeId::optional(*inner);
  }

  std::optional<TypeId> read_map(int depth) {
    const auto key = element_named(next_word());
    if (!key || !take(',')) return std::nullopt;
    const std::string_view before = rest_;
    if (const auto scalar = element_named(next_word())) {
      return TypeId::map(*key, TypeId::tensor(*scalar));
    }
    rest_ = before;
    const auto value = read(depth + 1);
    if (!value) return std::nullopt;
    return TypeId::map(*key, *value);
  }

  void skip_spaces() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }

  std::string_view next_word() {
    skip_spaces();
    size_t length = 0;
    const auto in_word = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
    };
    while (length < rest_.size() && in_word(rest_[length])) ++length;
    const std::string_view word = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return word;
  }

  bool take(char c) {
    skip_spaces();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  std::string_view rest_;
};

ElementType element_of(const ir::TypeProto& type) { return type.element_type(); }
ElementType element_of(const ir::ValueType& type) { return type.element; }

// Walks to the innermost layer and wraps on the way back, without recursion.
template <class Type>
TypeId from_layers(const Type& outermost) {
  using Kind = ir::TypeProto::Kind;
  constexpr int max_layers = 6;
  std::array<const Type*, max_layers> layers;
  int depth = 0;
  const Type* type = &outermost;
  while (type->kind == Kind::sequence || type->kind == Kind::optional || type->kind == Kind::map) {
    if (depth == max_layers || !type->nested) return {};
    layers[static_cast<size_t>(depth++)] = type;
    type = type->nested.get();
  }
  TypeId id;
  if (type->kind == Kind::tensor) id = TypeId::tensor(element_of(*type));
  if (type->kind == Kind::sparse_tensor) id = TypeId::sparse_tensor(element_of(*type));
  if (type->kind == Kind::opaque) id = TypeId::opaque();
  while (depth > 0) {
    const Type& layer = *layers[static_cast<size_t>(--depth)];
    id = layer.kind == Kind::sequence   ? TypeId::sequence(id)
         : layer.kind == Kind::optional ? TypeId::optional(id)
                                        : TypeId::map(element_of(layer), id);
  }
  return id;
}

std::string_view element_text(ElementType element) {
  const auto number = static_cast<size_t>(element);
  return element_names[number < element_names.size() ? number : 0];
}

}  // namespace

std::optional<TypeId> parse_type(std::string_view text) { return TypeReader(text).read_all(); }

TypeId type_id(const ir::TypeProto& type) { return from_layers(type); }
TypeId type_id(const ir::ValueType& type) { return from_layers(type); }

std::string to_string(TypeId type) {
  std::string text;
  size_t open = 0;
  for (;; type = type.inner(), ++open) {
    switch (type.kind()) {
      case TypeKind::sequence: text += "seq("; continue;
      case TypeKind::optional: text += "optional("; continue;
      case TypeKind::map:
        text.append("map(").append(element_text(type.key())).append(", ");
        continue;
      case TypeKind::tensor:
        text.append("tensor(").append(element_text(type.element())) += ')';
        break;
      case TypeKind::sparse_tensor:
        text.append("sparse_tensor(").append(element_text(type.element())) += ')';
        break;
      case TypeKind::opaque: text += "opaque"; break;
      case TypeKind::none: text += "none"; break;
    }
    break;
  }
  return text.append(open, ')');
}

}  // namespace sardonyx::schema
