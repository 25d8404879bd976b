// Attributes of the textual syntax.
#include <memory>

#include "base/fail.h"
#include "wire/text_parser.h"

namespace sardonyx::wire {
namespace {

using ir::AttributeKind;

// The kind of one element of a list kind; undefined for kinds that are no lists.
AttributeKind element_kind(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::floats: return AttributeKind::float_;
    case AttributeKind::ints: return AttributeKind::int_;
    case AttributeKind::strings: return AttributeKind::string;
    case AttributeKind::tensors: return AttributeKind::tensor;
    case AttributeKind::graphs: return AttributeKind::graph;
    case AttributeKind::sparse_tensors: return AttributeKind::sparse_tensor;
    case AttributeKind::type_protos: return AttributeKind::type_proto;
    default: return AttributeKind::undefined;
  }
}

AttributeKind list_kind(AttributeKind kind) {
  for (int32_t i = 1; i <= static_cast<int32_t>(AttributeKind::type_protos); ++i) {
    if (element_kind(static_cast<AttributeKind>(i)) == kind) return static_cast<AttributeKind>(i);
  }
  return AttributeKind::undefined;
}

// Moves the one value of `item` to the end of the list of its kind.
void append(ir::Attribute& list, ir::Attribute item) {
  switch (item.kind) {
    case AttributeKind::float_: list.floats.push_back(*item.f); break;
    case AttributeKind::int_: list.ints.push_back(*item.i); break;
    case AttributeKind::string: list.strings.push_back(std::move(*item.s)); break;
    case AttributeKind::tensor: list.tensors.push_back(std::move(item.t)); break;
    case AttributeKind::graph: list.graphs.push_back(std::move(item.g)); break;
    case AttributeKind::sparse_tensor:
      list.sparse_tensors.push_back(std::move(item.sparse_tensor));
      break;
    case AttributeKind::type_proto: list.type_protos.push_back(std::move(item.tp)); break;
    default: break;
  }
}

}  // namespace

std::vector<ir::Attribute> TextParser::attributes() {
  std::vector<ir::Attribute> attributes;
  list('<', '>', "the attributes of a node", [&] { attributes.push_back(attribute()); });
  return attributes;
}

ir::Attribute TextParser::attribute() {
  take_memory(growing * sizeof(ir::Attribute));
  return attribute_named(scan_.name("the name of an attribute"));
}

AttributeKind TextParser::attribute_kind() {
  if (scan_.matches('$')) return static_cast<AttributeKind>(int32_value(scan_, "a kind's number"));
  const std::string_view word = scan_.peek_identifier();
  for (int32_t i = 0; i <= static_cast<int32_t>(AttributeKind::type_protos); ++i) {
    if (name_of(static_cast<AttributeKind>(i)) == word) {
      scan_.identifier(word);
      return static_cast<AttributeKind>(i);
    }
  }
  scan_.expected(
      "the kind of an attribute: int, ints, float, floats, string, strings, tensor, "
      "tensors, graph, graphs, sparse_tensor, sparse_tensors, type_proto or type_protos");
}

// name (":" kind)? "=" value. Our addition: "undefined" as a kind, for files that do not say it.
ir::Attribute TextParser::attribute_named(std::string name) {
  ir::Attribute attribute;
  attribute.name = std::move(name);
  optional_record("an attribute's annotations", [&](std::string_view key) {
    return key == "doc_string" ? (attribute.doc_string = scan_.string(key), true) : false;
  });
  bool says_undefined = false;
  if (scan_.matches(':')) {
    attribute.kind = attribute_kind();
    says_undefined = attribute.kind == AttributeKind::undefined;
  }
  scan_.expect('=', fmt::format("before the value of the attribute '{}'", attribute.name));
  if (scan_.matches('@')) {
    attribute.ref_attr_name = scan_.name("the name of a function's attribute after '@'");
  } else if (scan_.peek() == '{') {
    scan_.expect("{", "");
    scan_.expect('}', "after '{', an attribute without a value");
  } else if (scan_.peek() == '[') {
    attribute_list(attribute);
  } else {
    const AttributeKind expected = attribute.kind;
    attribute_value(attribute, expected);
  }
  if (says_undefined) attribute.kind = AttributeKind::undefined;
  return attribute;
}

void TextParser::attribute_list(ir::Attribute& attribute) {
  const size_t start = scan_.position();
  const AttributeKind said = element_kind(attribute.kind);
  AttributeKind expected = said;
  if (attribute.kind != AttributeKind::undefined && expected == AttributeKind::undefined) {
    scan_.error_at(start, fmt::format("the attribute '{}' is one {}, not a list; found '['",
                                      attribute.name, name_of(attribute.kind)));
  }
  list('[', ']', "a list of values", [&] {
    const size_t at = (scan_.peek(), scan_.position());
    ir::Attribute item;
    attribute_value(item, said);
    if (expected == AttributeKind::undefined) expected = item.kind;
    if (item.kind != expected) {
      scan_.error_at(at,
                     fmt::format("a list of {} holds a {}; write all elements alike, or the kind "
                                 "before '='",
                                 name_of(expected), name_of(item.kind)));
    }
    append(attribute, std::move(item));
  });
  if (expected == AttributeKind::undefined) {
    scan_.error_at(start,
                   fmt::format("an empty list needs its kind: {}: ints = []", attribute.name));
  }
  attribute.kind = list_kind(expected);
}

// One value. `expected` is undefined where the text does not say.
void TextParser::attribute_value(ir::Attribute& attribute, AttributeKind expected) {
  const size_t start = (scan_.peek(), scan_.position());
  if (scan_.next_is_string()) {
    std::string text = scan_.string("a string");
    if (scan_.peek() == '(') {
      attribute.g = std::make_shared<ir::Graph>(graph_named(std::move(text)));
      attribute.kind = AttributeKind::graph;
    } else {
      attribute.s = std::move(text);
      attribute.kind = AttributeKind::string;
    }
  } else if (next_is_type()) {
    typed_value(attribute);
  } else if (scan_.next_is_number()) {
    number_value(attribute, expected);
  } else if (!scan_.peek_identifier().empty()) {
    attribute.g = std::make_shared<ir::Graph>(graph());
    attribute.kind = AttributeKind::graph;
  } else {
    scan_.expected("the value of an attribute");
  }
  if (expected != AttributeKind::undefined && attribute.kind != expected) {
    scan_.error_at(start, fmt::format("expected a value of kind {}; found one of kind {}",
                                      name_of(expected), name_of(attribute.kind)));
  }
}

void TextParser::number_value(ir::Attribute& attribute, AttributeKind expected) {
  const Scanner::Number number = scan_.number("a number");
  if (number.is_integer && expected != AttributeKind::float_) {
    attribute.kind = AttributeKind::int_;
    attribute.i = scan_.integer_value(number, "an integer");
  } else {
    attribute.kind = AttributeKind::float_;
    attribute.f = scan_.float_value<float>(number);
  }
}

// A type, or a tensor: the type with elements after it.
void TextParser::typed_value(ir::Attribute& attribute) {
  ir::TypeProto type = this->type();
  const char next = scan_.peek();
  const bool has_elements = next == '{' || next == '[' || next == '=' || scan_.next_is_name();
  if (!has_elements) {
    attribute.kind = AttributeKind::type_proto;
    attribute.tp = std::make_shared<ir::TypeProto>(std::move(type));
    return;
  }
  std::string name = scan_.next_is_name() ? scan_.name("the name of a tensor") : std::string();
  scan_.matches('=');
  if (type.kind == ir::TypeProto::Kind::sparse_tensor) {
    attribute.kind = AttributeKind::sparse_tensor;
    attribute.sparse_tensor =
        std::make_shared<ir::SparseTensorProto>(sparse_tensor_of(type, std::move(name)));
  } else {
    attribute.kind = AttributeKind::tensor;
    attribute.t = std::make_shared<ir::TensorProto>(tensor_of(type, std::move(name)));
  }
}

}  // namespace sardonyx::wire
