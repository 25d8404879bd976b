#include "formats/json_tensor.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <utility>

#include "base/bits.h"
#include "base/checked.h"
#include "base/fail.h"
#include "formats/complex_type.h"
#include "formats/low_precision.h"

namespace sardonyx::formats {
namespace {

using Json = nlohmann::json;
constexpr size_t max_rank = 64;

// Whether lists and objects lie in each other deeper than that. The library that parses them prints
// and copies them by recursion.
bool nests_deeper(std::string_view text, size_t limit) {
  size_t depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      i += c == '\\' ? 1 : 0;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > limit) return true;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

std::string shown(const Json& json) {
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 40) text = text.substr(0, 37) + "...";
  return text;
}

double real_number(const Json& json, ElementType type) {
  if (json.is_number()) return json.get<double>();
  if (json.is_boolean()) return json.get<bool>() ? 1 : 0;
  if (json.is_string()) {
    std::string word = json.get<std::string>();
    std::transform(word.begin(), word.end(), word.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (word == "infinity" || word == "inf" || word == "+inf") return HUGE_VAL;
    if (word == "-infinity" || word == "-inf") return -HUGE_VAL;
  }
  fail(ErrorCode::bad_input, "{} is no {}", shown(json), name_of(type));
}

// Bounds of an integer type as the widest ones: low <= 0 <= high.
struct Range {
  int64_t low;
  uint64_t high;
};
Range range_of(ElementType type) {
  const int width = bit_width(type);
  if (!is_signed_integer(type)) return {0, width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1};
  return {-(int64_t{1} << (width - 2)) * 2, (uint64_t{1} << (width - 1)) - 1};
}

// The two's complement of an integer that the type can hold.
uint64_t integer_bits(const Json& json, ElementType type) {
  const Range range = range_of(type);
  if (json.is_number_unsigned()) {
    const auto value = json.get<uint64_t>();
    if (value <= range.high) return value;
  } else if (json.is_number_integer()) {
    const auto value = json.get<int64_t>();
    if (value >= range.low && (value < 0 || static_cast<uint64_t>(value) <= range.high))
      return static_cast<uint64_t>(value);
  } else if (json.is_boolean()) {
    return json.get<bool>() ? 1 : 0;
  } else if (json.is_number_float()) {
    const auto value = json.get<double>();
    if (value == std::floor(value) && value >= static_cast<double>(range.low) && value < 0x1p64 &&
        (value < 0 || static_cast<uint64_t>(value) <= range.high)) {
      return value < 0 ? static_cast<uint64_t>(static_cast<int64_t>(value))
                       : static_cast<uint64_t>(value);
    }
  }
  fail(ErrorCode::bad_input, "{} is no {}", shown(json), name_of(type));
}

bool truth(const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number() && (json.get<double>() == 0 || json.get<double>() == 1))
    return json.get<double>() != 0;
  fail(ErrorCode::bad_input, "{} is no bool", shown(json));
}

template <class T>
void put(Tensor& tensor, size_t i, T value) {
  std::memcpy(static_cast<std::byte*>(tensor.mutable_data()) + i * sizeof value, &value,
              sizeof value);
}

void put_bits(Tensor& tensor, size_t i, uint64_t bits) {
  switch (bit_width(tensor.element_type())) {
    case 64: return put(tensor, i, bits);
    case 32: return put(tensor, i, static_cast<uint32_t>(bits));
    case 16: return put(tensor, i, static_cast<uint16_t>(bits));
    case 8: return put(tensor, i, static_cast<uint8_t>(bits));
    default: break;
  }
  put_element_bits(static_cast<uint8_t*>(tensor.mutable_data()), i,
                   bit_width(tensor.element_type()), static_cast<unsigned>(bits));
}

void put_element(Tensor& tensor, size_t i, const Json& json) {
  const ElementType type = tensor.element_type();
  switch (type) {
    case ElementType::float32: return put(tensor, i, static_cast<float>(real_number(json, type)));
    case ElementType::float64: return put(tensor, i, real_number(json, type));
    case ElementType::boolean: return put(tensor, i, truth(json));
    case ElementType::string:
      if (!json.is_string()) fail(ErrorCode::bad_input, "{} is no string", shown(json));
      tensor.mutable_elements<std::string>()[i] = json.get<std::string>();
      return;
    case ElementType::complex64:
      return put(tensor, i,
                 std::complex<float>(static_cast<float>(real_number(json[0], type)),
                                     static_cast<float>(real_number(json[1], type))));
    case ElementType::complex128:
      return put(tensor, i,
                 std::complex<double>(real_number(json[0], type), real_number(json[1], type)));
    default: break;
  }
  put_bits(
      tensor, i,
      is_floating(type) ? encode_low(type, real_number(json, type)) : integer_bits(json, type));
}

ElementType found_type(const Json& json) {
  if (json.is_boolean()) return ElementType::boolean;
  if (json.is_string()) return ElementType::string;
  if (json.is_number_integer()) return ElementType::int64;
  if (json.is_number()) return ElementType::float32;
  fail(ErrorCode::bad_input, "{} is neither a number nor a truth value nor a string", shown(json));
}

// The type of all elements together: one float makes the integers floats.
ElementType common_type(const std::vector<const Json*>& elements) {
  ElementType type = elements.empty() ? ElementType::float32 : found_type(*elements[0]);
  for (const Json* element : elements) {
    const ElementType found = found_type(*element);
    if (found == type) continue;
    const bool numbers = (found == ElementType::int64 || found == ElementType::float32) &&
                         (type == ElementType::int64 || type == ElementType::float32);
    if (!numbers)
      fail(ErrorCode::bad_input, "the list mixes {} and {}", name_of(type), name_of(found));
    type = ElementType::float32;
  }
  return type;
}

// Flattens nested lists in order; `leaf_rank` innermost levels stay together (a complex pair).
class Flattener {
 public:
  explicit Flattener(bool pairs) : pairs_(pairs) {}

  void walk(const Json& json, size_t depth) {
    if (is_leaf(json)) {
      if (leaf_depth_ == no_depth) leaf_depth_ = depth;
      if (depth != leaf_depth_) ragged();
      elements.push_back(&json);
      return;
    }
    if (!json.is_array()) fail(ErrorCode::bad_input, "{} has no place in a tensor", shown(json));
    if (depth == max_rank)
      fail(ErrorCode::bad_input, "lists nested more than {} deep are no tensor", max_rank);
    if (depth == shape.size()) {
      if (leaf_depth_ != no_depth) ragged();
      shape.push_back(static_cast<int64_t>(json.size()));
    }
    if (shape[depth] != static_cast<int64_t>(json.size())) ragged();
    for (const Json& item : json) walk(item, depth + 1);
    if (json.empty() && leaf_depth_ == no_depth) leaf_depth_ = depth + 1;
  }

  Shape shape;
  std::vector<const Json*> elements;

 private:
  static constexpr size_t no_depth = ~size_t{0};

  bool is_leaf(const Json& json) const {
    if (!pairs_) return json.is_primitive();
    return json.is_array() && json.size() == 2 && json[0].is_primitive() && json[1].is_primitive();
  }
  [[noreturn]] static void ragged() {
    fail(ErrorCode::bad_input,
         "the lists are ragged: those of one level differ in length or depth");
  }

  bool pairs_;
  size_t leaf_depth_ = no_depth;
};

// The wanted shape with its unknown dimensions filled in for `count` elements.
std::optional<Shape> fitted(int64_t count, const Shape& wanted) {
  Shape shape = wanted;
  int64_t* open = nullptr;
  int64_t known = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] < 0 && open == nullptr) {
      open = &shape[d];
      continue;
    }
    if (shape[d] < 0) shape[d] = 1;
    const auto product = checked_mul(known, shape[d]);
    if (!product) return std::nullopt;
    known = *product;
  }
  if (open != nullptr) {
    if (known == 0 || count % known != 0) return std::nullopt;
    *open = count / known;
    return shape;
  }
  return known == count ? std::optional(shape) : std::nullopt;
}

bool matches(const Shape& shape, const Shape& wanted) {
  return std::equal(shape.begin(), shape.end(), wanted.begin(), wanted.end(),
                    [](int64_t a, int64_t b) { return b < 0 || a == b; });
}

Shape settled(const Shape& found, int64_t count, const Wanted& wanted) {
  if (!wanted.shape || matches(found, *wanted.shape)) return found;
  const auto shape = found.size() <= 1 ? fitted(count, *wanted.shape) : std::nullopt;
  if (!shape) {
    const bool open = std::ranges::any_of(*wanted.shape, [](int64_t size) { return size < 0; });
    fail(ErrorCode::bad_input, "the value has shape {}; {} is wanted{}", to_string(found),
         to_string(*wanted.shape), open ? " (-1: any size)" : "");
  }
  return *shape;
}

Tensor tensor_of(const std::vector<const Json*>& elements, const Shape& found,
                 const Wanted& wanted) {
  const ElementType type =
      wanted.type == ElementType::undefined ? common_type(elements) : wanted.type;
  if (!elements.empty()) {  // what is no value at all is told before its shape
    Tensor first(type, {1});
    std::memset(first.mutable_data(), 0, bit_width(type) != 0 ? first.byte_size() : 0);
    put_element(first, 0, *elements[0]);
  }
  Tensor tensor(type, settled(found, static_cast<int64_t>(elements.size()), wanted));
  if (bit_width(type) != 0 && bit_width(type) < 8 && tensor.byte_size() != 0)
    std::memset(tensor.mutable_data(), 0, tensor.byte_size());
  for (size_t i = 0; i < elements.size(); ++i) put_element(tensor, i, *elements[i]);
  return tensor;
}

Json word_of(std::string_view word, ElementType wanted) {
  if (wanted == ElementType::string) return std::string(word);
  if (word == "true" || word == "True") return true;
  if (word == "false" || word == "False") return false;
  const char* const end = word.data() + word.size();
  const char* const start = word.data() + (word.starts_with('+') ? 1 : 0);
  const auto as = [&]<class T>(T value) -> std::optional<Json> {
    const auto [stop, error] = std::from_chars(start, end, value);
    return error == std::errc() && stop == end ? std::optional<Json>(value) : std::nullopt;
  };
  if (const auto value = as(int64_t{0})) return *value;
  if (const auto value = as(uint64_t{0})) return *value;
  if (const auto value = as(double{0})) {
    if (std::isfinite(value->get<double>())) return *value;
  }
  return std::string(word);
}

// Values separated by commas, semicolons or blanks; for strings, by commas alone.
void add_words(std::string_view text, ElementType wanted, std::vector<Json>& words) {
  const std::string_view blanks = " \t\r\n";
  const std::string_view separators = wanted == ElementType::string ? "," : ",; \t\r\n";
  bool is_given = false;  // the value before the next comma
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(separators), text.size());
    const bool is_comma = end < text.size() && text[end] == ',';
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    word.remove_prefix(std::min(word.find_first_not_of(blanks), word.size()));
    word = word.substr(0, word.find_last_not_of(blanks) + 1);
    if (!word.empty() || (is_comma && wanted == ElementType::string)) {
      words.push_back(word_of(word, wanted));
      is_given = true;
    }
    if (is_comma && !std::exchange(is_given, false))
      fail(ErrorCode::bad_input, "there is no value before a comma; before that there are {}",
           words.size());
  }
}

// Line breaks belong to strings.
std::vector<std::string_view> lines_of(std::string_view text, ElementType wanted) {
  if (wanted == ElementType::string) return {text};
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

Json json_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

// The shortest decimal that gives the same float back, to readers that take it as a double first.
Json json_number(float value) {
  if (!std::isfinite(value)) return json_number(static_cast<double>(value));
  const std::string digits = fmt::format("{}", value);
  double shortest = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), shortest);
  return static_cast<float>(shortest) == value ? shortest : static_cast<double>(value);
}

template <class T>
T get(const Tensor& tensor, size_t i) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(tensor.data()) + i * sizeof value,
              sizeof value);
  return value;
}

uint64_t bits_at(const Tensor& tensor, size_t i) {
  switch (const int width = bit_width(tensor.element_type()); width) {
    case 64: return get<uint64_t>(tensor, i);
    case 32: return get<uint32_t>(tensor, i);
    case 16: return get<uint16_t>(tensor, i);
    case 8: return get<uint8_t>(tensor, i);
    default: return element_bits(static_cast<const uint8_t*>(tensor.data()), i, width);
  }
}

Json element_json(const Tensor& tensor, size_t i) {
  const ElementType type = tensor.element_type();
  switch (type) {
    case ElementType::float32: return json_number(get<float>(tensor, i));
    case ElementType::float64: return json_number(get<double>(tensor, i));
    case ElementType::boolean: return get<uint8_t>(tensor, i) != 0;
    case ElementType::string: return tensor.elements<std::string>()[i];
    case ElementType::complex64:
      return {json_number(get<float>(tensor, 2 * i)), json_number(get<float>(tensor, 2 * i + 1))};
    case ElementType::complex128:
      return {json_number(get<double>(tensor, 2 * i)), json_number(get<double>(tensor, 2 * i + 1))};
    default: break;
  }
  const uint64_t bits = bits_at(tensor, i);
  if (is_floating(type))
    return json_number(static_cast<float>(decode_low(type, static_cast<uint32_t>(bits))));
  if (!is_signed_integer(type)) return bits;
  const int unused = 64 - bit_width(type);
  return static_cast<int64_t>(bits << unused) >> unused;
}

Json nested(const Tensor& tensor, size_t dim, size_t& next) {
  if (dim == tensor.shape().size()) return element_json(tensor, next++);
  Json list = Json::array();
  for (int64_t i = 0; i < tensor.shape()[dim]; ++i) list.push_back(nested(tensor, dim + 1, next));
  return list;
}

}  // namespace

Tensor tensor_from_json(const Json& json, const Wanted& wanted) {
  Flattener flat(is_complex(wanted.type));
  flat.walk(json, 0);
  return tensor_of(flat.elements, flat.shape, wanted);
}

Json parse_json(std::string_view text) {
  if (nests_deeper(text, max_rank + 1))
    fail(ErrorCode::bad_input, "lists nested more than {} deep are no tensor", max_rank);
  Json json = Json::parse(text.begin(), text.end(), nullptr, false);
  if (json.is_discarded())
    fail(ErrorCode::bad_input, "the value is not sound JSON: {}", text.substr(0, 60));
  return json;
}

Tensor tensor_from_text(std::string_view text, const Wanted& wanted) {
  const size_t start = text.find_first_not_of(" \t\r\n");
  if (start != std::string_view::npos &&
      std::string_view("[\"{").find(text[start]) != std::string_view::npos) {
    return tensor_from_json(parse_json(text), wanted);
  }
  if (is_complex(wanted.type))
    fail(ErrorCode::bad_input, "complex numbers are written as JSON: [[real, imaginary], ...]");
  std::vector<Json> words;
  std::optional<Shape> rows = Shape{0, 0};
  for (const std::string_view line : lines_of(text, wanted.type)) {
    const size_t before = words.size();
    add_words(line, wanted.type, words);
    const auto width = static_cast<int64_t>(words.size() - before);
    if (width == 0) continue;
    if (rows && (*rows)[0] > 0 && (*rows)[1] != width) rows.reset();
    if (rows) rows = Shape{(*rows)[0] + 1, width};
  }
  std::vector<const Json*> elements;
  elements.reserve(words.size());
  for (const Json& word : words) elements.push_back(&word);
  Shape found{static_cast<int64_t>(words.size())};
  const bool is_table = rows && (*rows)[0] > 1 && (*rows)[1] > 1;
  if (is_table && wanted.shape && matches(*rows, *wanted.shape)) found = *rows;
  if (words.size() == 1 && !wanted.shape) found.clear();
  return tensor_of(elements, found, wanted);
}

namespace {

// A tensor without elements can still be any number of lists around nothing.
void require_few_lists(const Tensor& tensor) {
  constexpr int64_t max_lists = 1 << 20;
  if (tensor.size() > 0) return;
  int64_t lists = 1;
  for (const int64_t size : tensor.shape()) {
    if (size == 0) return;
    if (size > max_lists / lists)
      fail(
          ErrorCode::unsupported,
          "a tensor of shape {} is not written as JSON: it has no elements, and more than {} lists",
          to_string(tensor.shape()), max_lists);
    lists *= size;
  }
}

}  // namespace

Json json_from_tensor(const Tensor& tensor) {
  if (tensor.empty()) return nullptr;
  if (tensor.rank() > static_cast<int64_t>(max_rank))
    fail(ErrorCode::unsupported, "a tensor of rank {} is not written as JSON", tensor.rank());
  require_few_lists(tensor);
  size_t next = 0;
  return nested(tensor, 0, next);
}

}  // namespace sardonyx::formats
