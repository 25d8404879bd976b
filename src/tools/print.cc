#include "sardonyx/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "formats/json_tensor.h"
#include "ir/value_type.h"

namespace sardonyx {
namespace {

// Values nest as deep as a file likes; nobody reads on below this.
constexpr int max_printed_depth = 32;

// Bytes of the UTF-8 character at the start of `text`; 0 where it is none that may be printed.
size_t character_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  const size_t length = first >= 0xf0 && first < 0xf5 ? 4
                        : first >= 0xe0               ? 3
                        : first >= 0xc2               ? 2
                                                      : 0;
  if (first >= 0xf5 || length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Longer than they need be, halves of pairs, beyond the last character, and no characters at all.
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) >= 0xa0) ||
      (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) >= 0x90))
    return 0;
  if (first == 0xef && byte(1) == 0xbf && byte(2) >= 0xbe) return 0;
  if (first == 0xc2 && byte(1) < 0xa0) return 0;  // control characters
  if (first == 0xe2 && byte(1) == 0x80 && byte(2) >= 0xaa && byte(2) <= 0xae)
    return 0;  // direction
  if (first == 0xe2 && byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9) return 0;
  return length;
}

// The first elements of a tensor as one of rank 1.
Tensor head(const Tensor& tensor, int64_t count) {
  count = std::min(count, tensor.size());
  if (tensor.element_type() != ElementType::string) {
    return Tensor::view(tensor.element_type(), {count}, tensor.data(), tensor.byte_size(),
                        tensor.owner());
  }
  return Tensor::of(tensor.elements<std::string>().first(static_cast<size_t>(count)), {count});
}

std::string element_text(const nlohmann::json& element) {
  if (element.is_number_float()) return fmt::format("{:.6g}", element.get<double>());
  if (element.is_string()) return printable(element.get<std::string>());
  if (element.is_array() && element.size() == 2) {  // a complex number
    return fmt::format("{}+{}i", element_text(element[0]), element_text(element[1]));
  }
  return element.dump();
}

std::string join(const std::vector<std::string>& parts, bool cut) {
  return fmt::format("{}{}", fmt::join(parts, ", "), cut ? (parts.empty() ? "…" : ", …") : "");
}

std::string tensor_preview(const Tensor& tensor, size_t count) {
  std::vector<std::string> parts;
  for (const auto& element : formats::json_from_tensor(head(tensor, static_cast<int64_t>(count)))) {
    std::string text = element_text(element);
    if (tensor.element_type() == ElementType::string) text = fmt::format("\"{}\"", text);
    parts.push_back(std::move(text));
  }
  return join(parts, tensor.size() > static_cast<int64_t>(parts.size()));
}

std::string preview_at(const Value& value, size_t count, int depth) {
  if (depth > max_printed_depth) return "…";
  std::vector<std::string> parts;
  switch (value.kind()) {
    case Value::Kind::none: return "none";
    case Value::Kind::tensor: return tensor_preview(value.tensor(), count);
    case Value::Kind::sparse_tensor: return tensor_preview(value.sparse_tensor().values, count);
    case Value::Kind::optional:
      return value.optional().held ? preview_at(*value.optional().held, count, depth + 1) : "none";
    case Value::Kind::sequence: {
      const auto& items = value.sequence().items;
      for (size_t i = 0; i < std::min(count, items.size()); ++i) {
        parts.push_back(fmt::format("[{}]", preview_at(items[i], count, depth + 1)));
      }
      return join(parts, items.size() > parts.size());
    }
    case Value::Kind::map: {
      const Map& map = value.map();
      const auto keys = formats::json_from_tensor(head(map.keys, static_cast<int64_t>(count)));
      for (size_t i = 0; i < std::min(keys.size(), map.values.size()); ++i) {
        parts.push_back(fmt::format("{}: {}", element_text(keys[i]),
                                    preview_at(map.values[i], count, depth + 1)));
      }
      return fmt::format("{{{}}}", join(parts, map.values.size() > parts.size()));
    }
  }
  return {};
}

nlohmann::json json_at(const Value& value, int depth) {
  using nlohmann::json;
  if (depth > max_printed_depth) return nullptr;
  switch (value.kind()) {
    case Value::Kind::none: return nullptr;
    case Value::Kind::tensor: return formats::json_from_tensor(value.tensor());
    case Value::Kind::sparse_tensor: {
      const SparseTensor& sparse = value.sparse_tensor();
      return {{"shape", sparse.shape},
              {"indices", formats::json_from_tensor(sparse.indices)},
              {"values", formats::json_from_tensor(sparse.values)}};
    }
    case Value::Kind::optional:
      return value.optional().held ? json_at(*value.optional().held, depth + 1) : json();
    case Value::Kind::sequence: {
      json list = json::array();
      for (const Value& item : value.sequence().items) list.push_back(json_at(item, depth + 1));
      return list;
    }
    case Value::Kind::map: {
      json object = json::object();
      const json keys = formats::json_from_tensor(value.map().keys);
      for (size_t i = 0; i < std::min(keys.size(), value.map().values.size()); ++i) {
        object[keys[i].is_string() ? keys[i].get<std::string>() : keys[i].dump()] =
            json_at(value.map().values[i], depth + 1);
      }
      return object;
    }
  }
  return nullptr;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = character_length(text);
    if (length > 0) {
      out += text.substr(0, length);
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

std::string printable_message(std::string_view text) {
  constexpr std::string_view excerpt = "\n    ";
  std::string out;
  for (size_t at = text.find(excerpt); at != text.npos; at = text.find(excerpt)) {
    out += printable(text.substr(0, at));
    out += excerpt;
    text.remove_prefix(at + excerpt.size());
  }
  return out + printable(text);
}

std::string type_text(const Value& value) {
  return value.kind() == Value::Kind::none ? "none" : ir::type_of(value).to_string();
}

std::string preview(const Value& value, size_t count) { return preview_at(value, count, 0); }

std::string to_json(const Value& value) {
  return json_at(value, 0).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

int64_t element_count(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::none: return 0;
    case Value::Kind::tensor: return value.tensor().size();
    case Value::Kind::sparse_tensor: return value.sparse_tensor().values.size();
    case Value::Kind::sequence: {
      int64_t sum = 0;
      for (const Value& item : value.sequence().items)
        sum += item.is_tensor() ? item.tensor().size() : 1;
      return sum;
    }
    case Value::Kind::map: return static_cast<int64_t>(value.map().values.size());
    case Value::Kind::optional: {
      const auto& held = value.optional().held;
      return held && held->is_tensor() ? held->tensor().size() : 1;
    }
  }
  return 0;
}

}  // namespace sardonyx
