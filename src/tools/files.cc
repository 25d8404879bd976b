#include "sardonyx/files.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "base/bytes.h"
#include "base/fail.h"
#include "base/value_kind.h"
#include "formats/image.h"
#include "formats/npy.h"
#include "ir/tensor.h"
#include "sardonyx/inputs.h"
#include "sardonyx/text.h"
#include "session/reading.h"
#include "tools/image_input.h"
#include "wire/read.h"
#include "wire/sink.h"
#include "wire/utf.h"
#include "wire/write.h"

namespace sardonyx {
namespace {

// The file could be read; what is in it is no value.
template <class Read>
auto reading(const std::string& path, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    const bool content =
        error.code() == ErrorCode::unreadable || error.code() == ErrorCode::invalid_model;
    throw Error(content ? ErrorCode::bad_input : error.code(), error.message(), error.location())
        .within(path);
  }
}

// Of what to_json says something near to it only, since JSON can't say it.
void require_json(const Value& value, int depth) {
  constexpr int max_depth = 32;
  if (depth > max_depth)
    fail(ErrorCode::bad_input,
         "values nested more than {} deep are not written as JSON; a .pb file holds them",
         max_depth);
  const auto strings = [](const Tensor& tensor) {
    if (tensor.element_type() != ElementType::string) return;
    for (const std::string& text : tensor.elements<std::string>()) {
      if (!wire::code_points(text))
        fail(ErrorCode::bad_input,
             "the string '{}' is not UTF-8, which JSON can't say; a .pb file holds it",
             printable(text.substr(0, 40)));
    }
  };
  switch (value.kind()) {
    case Value::Kind::none: return;
    case Value::Kind::tensor: return strings(value.tensor());
    case Value::Kind::sparse_tensor: return strings(value.sparse_tensor().values);
    case Value::Kind::optional:
      if (value.optional().held) require_json(*value.optional().held, depth + 1);
      return;
    case Value::Kind::sequence:
      for (const Value& item : value.sequence().items) require_json(item, depth + 1);
      return;
    case Value::Kind::map:
      strings(value.map().keys);
      for (const Value& item : value.map().values) require_json(item, depth + 1);
      return;
  }
}

// A name that stays in its folder when an archive with it is unpacked.
bool is_harmless(std::string_view name) {
  if (name.empty() || name.size() > 200 || name.front() == '/' ||
      name.find("..") != std::string_view::npos)
    return false;
  return name.find_first_of(std::string_view("\\\x7f\0", 3)) == std::string_view::npos &&
         std::ranges::all_of(name, [](unsigned char c) { return c >= 0x20; });
}

}  // namespace

Value read_value(const std::string& path, ElementType element_type) {
  const Bytes bytes = read_file(path);
  if (element_type != ElementType::string && is_image(bytes))
    return reading(path, [&] { return formats::decode_image(bytes, 3); });
  const std::string ending = lowered_ending(path);
  if (!is_value_file_name(path) || ending == ".png" || ending == ".jpg" || ending == ".jpeg")
    fail_at(path, ErrorCode::bad_input,
            "is no file that values are read from; known are .npy, .npz, .pb, .json, .txt, .csv, "
            "and images");
  ValueDescription wanted;
  wanted.name = "value";
  wanted.element_type = element_type;
  static const Model none = Model::from_text("none () => () {}");
  if (ending != ".npz") {
    // Its own error speaks of an input.
    return reading(path, [&] { return value_of_file(bytes, path, none, wanted); });
  }
  const auto arrays = reading(path, [&] {
    return formats::read_npz(bytes, [&](std::string_view) { return element_type; });
  });
  if (arrays.size() != 1)
    fail_at(path, ErrorCode::bad_input, "holds {} arrays; read_npz gives all of them",
            arrays.size());
  return ir::aligned(arrays[0].tensor);
}

std::string read_text(const std::string& path) { return std::string(read_file(path).text()); }

void write_value(const std::string& path, const Value& value) {
  const std::string ending = lowered_ending(path);
  if (value.kind() == Value::Kind::none)
    fail_at(path, ErrorCode::bad_input, "there is no value to write");
  std::string bytes;
  if (ending == ".npy") {
    if (!value.is_tensor())
      fail_at(path, ErrorCode::bad_input, "{} is no array; .pb files hold any value",
              with_article(value.kind()));
    bytes = reading(path, [&] { return formats::write_npy(value.tensor()); });
  } else if (ending == ".pb") {
    bytes = wire::write_value(value);
  } else if (ending == ".json") {
    reading(path, [&] { require_json(value, 0); });
    bytes = to_json(value) + "\n";
  } else {
    fail_at(path, ErrorCode::bad_input,
            "'{}' says no form that a value can be written in; known are .npy, .pb and .json",
            ending);
  }
  wire::write_file(path, [&](wire::Sink& sink) { sink.put(bytes); });
}

std::vector<NamedValue> read_npz(const std::string& path) { return read_npz_values(path, {}); }

void write_npz(const std::string& path, const std::vector<NamedValue>& values) {
  std::vector<formats::NamedTensor> arrays;
  std::set<std::string_view> names;
  for (const auto& [name, value] : values) {
    if (!value.is_tensor())
      fail_at(path, ErrorCode::bad_input, "'{}' is {}, which no .npz file holds", name,
              with_article(value.kind()));
    if (!is_harmless(name))
      fail_at(path, ErrorCode::bad_input, "'{}' is no name for an array of an .npz file",
              printable(name));
    if (!names.insert(name).second)
      fail_at(path, ErrorCode::bad_input, "'{}' is there twice", name);
    arrays.push_back({name, value.tensor()});
  }
  formats::write_npz(arrays, path);
}

}  // namespace sardonyx
