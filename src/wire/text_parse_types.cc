// Types and tensors of the textual syntax.
#include <limits>
#include <optional>
#include <utility>

#include "base/fail.h"
#include "wire/text_parser.h"

namespace sardonyx::wire {
namespace {

using Kind = ir::TypeProto::Kind;

std::optional<Kind> composite_kind(std::string_view word) {
  if (word == "seq") return Kind::sequence;
  if (word == "map") return Kind::map;
  if (word == "optional") return Kind::optional;
  if (word == "sparse_tensor") return Kind::sparse_tensor;
  if (word == "opaque") return Kind::opaque;
  return std::nullopt;
}

// element_type_named also takes other spellings, which the syntax does not have.
std::optional<ElementType> primitive_named(std::string_view word) {
  const std::optional<ElementType> type = element_type_named(word);
  if (!type || !is_known(*type) || name_of(*type) != word) return std::nullopt;
  return type;
}

bool is_stored_as_bits(ElementType type) { return is_floating(type) && bit_width(type) <= 16; }

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  return Bytes::copy_of(std::as_bytes(std::span(values)));
}

}  // namespace

int32_t int32_value(Scanner& scan, std::string_view what) {
  const size_t start = (scan.peek(), scan.position());
  const int64_t value = scan.integer(what);
  if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max()) {
    scan.error_at(start, fmt::format("{} does not fit 32 bits: {}", what, value));
  }
  return static_cast<int32_t>(value);
}

bool TextParser::next_is_type() {
  const char next = scan_.peek();
  if (next == '?' || next == '$') return true;
  if (scan_.next_is_string()) return false;
  const std::string_view word = scan_.peek_identifier();
  return primitive_named(word) || composite_kind(word);
}

// A primitive type by name, or any number as "$99".
int32_t TextParser::element_type(std::string_view what) {
  const size_t start = (scan_.peek(), scan_.position());
  if (scan_.matches('$')) {
    const int64_t number = scan_.integer("the number of an element type");
    if (number >= std::numeric_limits<int32_t>::min() &&
        number <= std::numeric_limits<int32_t>::max()) {
      return static_cast<int32_t>(number);
    }
    scan_.error_at(start, fmt::format("the element type ${} does not fit 32 bits", number));
  }
  const std::optional<ElementType> type = primitive_named(scan_.peek_identifier());
  if (!type) scan_.expected(what);
  scan_.identifier(what);
  return static_cast<int32_t>(*type);
}

ir::TypeProto TextParser::type() {
  const Deeper deeper(*this);
  ir::TypeProto type;
  const std::optional<Kind> kind = composite_kind(scan_.peek_identifier());
  if (scan_.matches('?')) {
    type.kind = Kind::none;
  } else if (!kind) {
    type.kind = Kind::tensor;
    type.elem_type = element_type("a type such as float[N, 3], int64 or seq(float[])");
    tensor_shape(type);
  } else {
    type.kind = *kind;
    const std::string word(scan_.identifier("a type"));
    scan_.expect('(', fmt::format("after '{}'", word));
    if (*kind == Kind::opaque) {
      opaque_names(type);
    } else if (*kind == Kind::sparse_tensor) {
      type.elem_type = element_type("the element type of a sparse tensor");
      tensor_shape(type);
    } else {
      if (*kind == Kind::map) {
        type.elem_type = element_type("the key type of a map, a primitive type");
        scan_.expect(',', "between the types of a map");
      }
      if (scan_.peek() != ')') type.nested = std::make_shared<ir::TypeProto>(this->type());
    }
    scan_.expect(')', fmt::format("after the type in '{}('", word));
  }
  optional_record("a type's annotations", [&](std::string_view key) {
    return key == "denotation" ? (type.denotation = scan_.string(key), true) : false;
  });
  return type;
}

// Nothing: a scalar. "[]": any rank. "[…]": those dimensions.
void TextParser::tensor_shape(ir::TypeProto& type) {
  if (!scan_.matches('[')) {
    type.shape.emplace();
    return;
  }
  if (scan_.matches(']')) return;
  ir::TensorShape& shape = type.shape.emplace();
  do {
    take_memory(growing * sizeof(ir::Dimension));
    shape.dims.push_back(dimension());
  } while (scan_.matches(','));
  scan_.expect(']', "or ',' after a dimension");
}

ir::Dimension TextParser::dimension() {
  ir::Dimension dim;
  constexpr std::string_view what = "a dimension: a number, a name or '?'";
  if (!scan_.matches('?')) {
    if (scan_.next_is_name()) {
      dim.param = scan_.name(what);
    } else {
      dim.value = scan_.integer(what);
    }
  }
  optional_record("a dimension's annotations", [&](std::string_view key) {
    return key == "denotation" ? (dim.denotation = scan_.string(key), true) : false;
  });
  return dim;
}

// One argument, dots and all, is the name; the domain comes before a comma.
void TextParser::opaque_names(ir::TypeProto& type) {
  if (scan_.peek() == ')') return;
  const auto dotted = [&] {
    std::string name = scan_.name("the name of an opaque type");
    while (scan_.matches('.')) name += '.' + scan_.name("a part of a name after '.'");
    return name;
  };
  type.opaque_name = dotted();
  if (scan_.matches(',')) {
    type.opaque_domain = std::exchange(type.opaque_name, {});
    if (scan_.peek() != ')') type.opaque_name = dotted();
  }
}

ir::TensorProto TextParser::tensor() {
  const ir::TypeProto type = this->type();
  std::string name = scan_.next_is_name() ? scan_.name("the name of a tensor") : std::string();
  scan_.matches('=');
  return tensor_of(type, std::move(name));
}

std::vector<int64_t> TextParser::tensor_dims(const ir::TypeProto& type) {
  if (!type.shape) scan_.expected("a tensor of known shape before its elements");
  std::vector<int64_t> dims;
  for (const ir::Dimension& dim : type.shape->dims) {
    if (!dim.value) scan_.expected("dimensions that are numbers before the elements of a tensor");
    dims.push_back(*dim.value);
  }
  return dims;
}

ir::TensorProto TextParser::tensor_of(const ir::TypeProto& type, std::string name) {
  if (type.kind != Kind::tensor) scan_.expected("a tensor type before the elements of a tensor");
  ir::TensorProto tensor;
  tensor.name = std::move(name);
  tensor.data_type = type.elem_type;
  tensor.dims = tensor_dims(type);
  if (scan_.peek() == '[') {
    tensor.data_location = 1;
    tensor.external_data = string_entries("external data");
  } else if (scan_.peek() == '{' && !scan_.next_is_record()) {
    elements(tensor);
  }
  optional_record("a tensor's annotations", [&](std::string_view key) {
    if (key == "doc_string") return tensor.doc_string = scan_.string(key), true;
    if (key == "metadata_props") return tensor.metadata_props = string_entries(key), true;
    if (key == "external_data") return tensor.external_data = string_entries(key), true;
    if (key == "data_location") {
      return tensor.data_location = int32_value(scan_, key), true;
    }
    if (key == "segment") {
      scan_.expect('[', "before a segment");
      tensor.segment.emplace().begin = scan_.integer("the begin of a segment");
      scan_.expect(',', "within a segment");
      tensor.segment->end = scan_.integer("the end of a segment");
      scan_.expect(']', "after a segment");
      return true;
    }
    return data_field(tensor, key);
  });
  return tensor;
}

// A field of the message by name, for what is no element of the tensor's type.
bool TextParser::data_field(ir::TensorProto& tensor, std::string_view key) {
  const auto numbers = [&](auto read) {
    std::vector<decltype(read())> values;
    list('[', ']', key, [&] { values.push_back(read()); });
    return values;
  };
  if (key == "raw_data") {
    const std::string bytes = scan_.string(key);
    tensor.has_raw_data = true;
    tensor.raw_data = Bytes::copy_of(std::as_bytes(std::span(bytes)));
  } else if (key == "float_data") {
    tensor.float_data = bytes_of(numbers([&] { return scan_.floating<float>(key); }));
  } else if (key == "double_data") {
    tensor.double_data = bytes_of(numbers([&] { return scan_.floating<double>(key); }));
  } else if (key == "int32_data") {
    tensor.int32_data = numbers([&] { return int32_value(scan_, key); });
  } else if (key == "int64_data") {
    tensor.int64_data = integers(key);
  } else if (key == "uint64_data") {
    tensor.uint64_data = numbers([&] { return scan_.unsigned_integer(key); });
  } else if (key == "string_data") {
    tensor.string_data = strings(key);
  } else {
    return false;
  }
  return true;
}

// "sparse_tensor(float[9]) name = {float[2] {1, 2}, int64[2] {0, 5}}": values, then indices.
ir::SparseTensorProto TextParser::sparse_tensor_of(const ir::TypeProto& type, std::string name) {
  ir::SparseTensorProto sparse;
  sparse.dims = tensor_dims(type);
  scan_.expect('{', "before the values and indices of a sparse tensor");
  sparse.values = tensor();
  scan_.expect(',', "between the values and the indices of a sparse tensor");
  sparse.indices = tensor();
  scan_.expect('}', "after the values and indices of a sparse tensor");
  if (!name.empty()) sparse.values.name = std::move(name);
  return sparse;
}

// Two numbers, since lists grow and are copied; of strings, their texts follow.
constexpr size_t largest_element = 2 * sizeof(double);

void TextParser::each_element(const std::function<void()>& item) {
  scan_.expect('{', "before the elements of a tensor");
  if (scan_.matches('}')) return;
  do {
    if (scan_.peek() == '.') {
      scan_.expected(
          "an element; '...' stands for elements that were cut when this was printed; print "
          "the model whole to read it again");
    }
    take_memory(largest_element);
    item();
  } while (scan_.matches(','));
  scan_.expect('}', "or ',' after an element of a tensor");
}

void TextParser::elements(ir::TensorProto& tensor) {
  const ElementType type = tensor.element_type();
  switch (type) {
    case ElementType::float32:
    case ElementType::complex64: {
      std::vector<float> values;
      each_element([&] { values.push_back(scan_.floating<float>("a float element")); });
      tensor.float_data = bytes_of(values);
      return;
    }
    case ElementType::float64:
    case ElementType::complex128: {
      std::vector<double> values;
      each_element([&] { values.push_back(scan_.floating<double>("a double element")); });
      tensor.double_data = bytes_of(values);
      return;
    }
    case ElementType::int64:
      each_element([&] { tensor.int64_data.push_back(scan_.integer("an int64 element")); });
      return;
    case ElementType::uint32:
    case ElementType::uint64:
      each_element(
          [&] { tensor.uint64_data.push_back(scan_.unsigned_integer("an unsigned element")); });
      return;
    case ElementType::string:
      each_element([&] {
        take_memory(growing * sizeof(std::string));
        take_memory(tensor.string_data.emplace_back(scan_.string("a string element")).capacity());
      });
      return;
    default: break;
  }
  if (!is_known(type)) {
    const size_t start = (scan_.peek(), scan_.position());
    return each_element([&] {
      scan_.rewind(start);
      scan_.expected(fmt::format("a tensor of a known element type; {} has no elements to write",
                                 tensor.data_type));
    });
  }
  if (bit_width(type) == 4 || bit_width(type) == 2) return packed_elements(tensor, bit_width(type));
  int32_elements(tensor);
}

void TextParser::int32_elements(ir::TensorProto& tensor) {
  const ElementType type = tensor.element_type();
  each_element([&] {
    const size_t start = (scan_.peek(), scan_.position());
    const Scanner::Number number = scan_.number(fmt::format("an element of {}", name_of(type)));
    if (!number.is_integer && is_stored_as_bits(type)) {
      scan_.error_at(start,
                     fmt::format("elements of {} are written as their bit patterns, integers; "
                                 "found '{}'",
                                 name_of(type), number.text));
    }
    const int64_t value =
        scan_.integer_value(number, fmt::format("an element of {}", name_of(type)));
    if (value < std::numeric_limits<int32_t>::min() ||
        value > std::numeric_limits<int32_t>::max()) {
      scan_.error_at(
          start, fmt::format("an element of {} does not fit 32 bits: {}", name_of(type), value));
    }
    tensor.int32_data.push_back(static_cast<int32_t>(value));
  });
}

// The text has one number an element; int32_data has one a byte, several elements in each.
void TextParser::packed_elements(ir::TensorProto& tensor, int bits) {
  const ElementType type = tensor.element_type();
  const bool is_signed = is_signed_integer(type);
  const int64_t least = is_signed ? -(int64_t{1} << (bits - 1)) : 0;
  const int64_t most = (int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
  int used = 8;
  each_element([&] {
    const size_t start = (scan_.peek(), scan_.position());
    const int64_t value = scan_.integer(fmt::format("an element of {}", name_of(type)));
    if (value < least || value > most) {
      scan_.error_at(start, fmt::format("an element of {} must be in [{}, {}]; found {}",
                                        name_of(type), least, most, value));
    }
    if (used == 8) {
      tensor.int32_data.push_back(0);
      used = 0;
    }
    const int32_t pattern = static_cast<int32_t>(value) & ((1 << bits) - 1);
    tensor.int32_data.back() |= pattern << used;
    used += bits;
  });
}

}  // namespace sardonyx::wire
