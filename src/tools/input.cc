#include "sardonyx/inputs.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "base/bytes.h"
#include "base/fail.h"
#include "formats/json_tensor.h"
#include "formats/npy.h"
#include "ir/tensor.h"
#include "kernels/convert/cast.h"
#include "session/model.h"
#include "tools/image_input.h"
#include "tools/numbers.h"
#include "wire/read.h"
#include "wire/utf.h"

namespace sardonyx {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return out;
}

std::string ending(std::string_view name) {
  const size_t dot = name.find_last_of("./");
  return dot == std::string_view::npos || name[dot] == '/' ? "" : lower(name.substr(dot));
}

formats::Wanted wanted_tensor(const ValueDescription& wanted) {
  formats::Wanted result;
  result.type = wanted.element_type;
  if (wanted.shape) {
    result.shape.emplace();
    for (const auto& dim : *wanted.shape) result.shape->push_back(dim.size.value_or(-1));
  }
  return result;
}

bool is_listed(const std::vector<ir::ValueInfo>& list, const std::string& name) {
  return std::ranges::find(list, name, &ir::ValueInfo::name) != list.end();
}

// "input 'x'", and "output 'y'" of what is expected.
std::string place_of(const Model& model, const std::string& name) {
  const auto& graph = model.implementation().model.graph;
  const bool is_output = graph && is_listed(graph->outputs, name);
  const bool is_input = graph && is_listed(graph->inputs, name);
  return fmt::format("{} '{}'", is_input ? "input" : is_output ? "output" : "value", name);
}

// The type a model declares for a value; a tensor where it declares none.
ir::TypeProto declared_type(const Model& model, const ValueDescription& wanted) {
  const auto& graph = model.implementation().model.graph;
  if (graph) {
    for (const auto* list : {&graph->inputs, &graph->outputs}) {
      for (const ir::ValueInfo& info : *list) {
        if (info.name == wanted.name && info.type) return *info.type;
      }
    }
  }
  ir::TypeProto tensor;
  tensor.kind = ir::TypeProto::Kind::tensor;
  return tensor;
}

Tensor from_npz(const Bytes& bytes, const ValueDescription& wanted) {
  const auto arrays =
      formats::read_npz(bytes, [&](std::string_view) { return wanted.element_type; });
  for (const auto& array : arrays) {
    if (array.name == wanted.name) return array.tensor;
  }
  if (arrays.size() == 1) return arrays[0].tensor;
  std::string names;
  for (const auto& array : arrays) names += (names.empty() ? "'" : ", '") + array.name + "'";
  fail(ErrorCode::bad_input, "has no array '{}'; it has {}", wanted.name,
       names.empty() ? "none" : names);
}

Tensor from_json(const Bytes& bytes, const ValueDescription& wanted) {
  return formats::tensor_from_json(formats::parse_json(wire::without_mark(bytes.text())),
                                   wanted_tensor(wanted));
}

// A file whose content is of a kind that its name does not say.
void refuse_other_content(const Bytes& bytes, std::string_view kind) {
  struct Content {
    std::string_view start, kind, what;
  };
  constexpr Content contents[] = {
      {"\x93NUMPY", ".npy", "a NumPy array, whose file is named .npy"},
      {"PK\3\4", ".npz", "a zip archive; arrays of NumPy in one are named .npz"},
      {"\x1f\x8b", "", "compressed with gzip; unpack it first"},
  };
  for (const Content& content : contents) {
    if (kind != content.kind && bytes.text().starts_with(content.start))
      fail(ErrorCode::bad_input, "is {}", content.what);
  }
}

Value value_from(const Bytes& bytes, const std::string& kind, const Model& model,
                 const ValueDescription& wanted, const ImageOptions& image) {
  refuse_other_content(bytes, kind);
  if (kind == ".npy") return ir::aligned(formats::read_npy(bytes, wanted.element_type));
  if (kind == ".npz") return ir::aligned(from_npz(bytes, wanted));
  if (kind == ".pb") {
    Value value = wire::read_value(bytes, declared_type(model, wanted));
    return value.is_tensor() ? Value(ir::aligned(value.tensor())) : value;
  }
  if (kind == ".json") return from_json(bytes, wanted);
  if (wanted.element_type != ElementType::string && is_image(bytes))
    return image_tensor(bytes, wanted, image);
  return value_from_text(wire::without_mark(bytes.text()), wanted);
}

// A generator whose numbers are the same on every machine (splitmix64).
class Generator {
 public:
  Generator(uint64_t seed, std::string_view name) : state_(seed) {
    for (const char c : name) state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  double unit() {  // [0, 1)
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  }

 private:
  uint64_t state_;
};

template <class Next>
Tensor filled(const ValueDescription& wanted, const Shape& shape, Next next) {
  if (wanted.kind != Value::Kind::tensor) {
    fail_at(fmt::format("input '{}'", wanted.name), ErrorCode::bad_input,
            "is {}; only tensors can be made up: give a .pb file", wanted.type);
  }
  if (wanted.element_type == ElementType::string) {
    Tensor tensor(ElementType::string, shape);
    for (std::string& text : tensor.mutable_elements<std::string>())
      text = fmt::format("{:g}", next());
    return tensor;
  }
  if (wanted.element_type == ElementType::complex64 ||
      wanted.element_type == ElementType::complex128) {
    fail_at(fmt::format("input '{}'", wanted.name), ErrorCode::bad_input,
            "is {}; complex numbers can't be made up: give a file", wanted.type);
  }
  Tensor doubles(ElementType::float64, shape);
  for (double& element : doubles.mutable_elements<double>()) element = next();
  return converted(doubles, wanted.element_type);
}

// A range whose ends the type can't hold would come out as other numbers.
void require_fitting(const ValueDescription& wanted, const RandomRange& range) {
  const ElementType type = wanted.element_type;
  if (!kernels::supports_cast(ElementType::float64, type) || type == ElementType::string) return;
  const bool whole = !is_floating(type);
  const double low = whole ? std::floor(range.low) : range.low,
               high = whole ? std::max(low, std::ceil(range.high) - 1) : range.high;
  const Tensor ends = Tensor::of<double>({low, high}, {2});
  const Tensor held = converted(converted(ends, type), ElementType::float64);
  for (size_t i = 0; i < 2; ++i) {
    const double end = ends.elements<double>()[i], kept = held.elements<double>()[i];
    // What rounding leaves of a number in the coarsest of types is more than half of it.
    if (whole ? kept != end : !(std::abs(kept - end) <= std::abs(end) / 2 + 1))
      fail_at(fmt::format("input '{}'", wanted.name), ErrorCode::bad_input,
              "is {}, which can't hold random numbers from {} to {}", wanted.type, range.low,
              range.high);
  }
}

}  // namespace

bool is_value_file_name(std::string_view name) {
  constexpr std::array<std::string_view, 9> endings = {".npy", ".npz", ".pb",   ".json", ".txt",
                                                       ".png", ".jpg", ".jpeg", ".csv"};
  return std::find(endings.begin(), endings.end(), ending(name)) != endings.end();
}

Value value_of_file(const Bytes& bytes, const std::string& path, const Model& model,
                    const ValueDescription& wanted) {
  return value_from(bytes, ending(path), model, wanted, {});
}

Value read_value_file(const std::string& path, const Model& model, const ValueDescription& wanted,
                      const ImageOptions& image) {
  const Bytes bytes = read_file(path);
  try {
    return value_from(bytes, ending(path), model, wanted, image);
  } catch (const Error& error) {
    // The file could be read; what is in it is no value for this input.
    const bool content =
        error.code() == ErrorCode::unreadable || error.code() == ErrorCode::invalid_model;
    const Error found(content ? ErrorCode::bad_input : error.code(), error.message(),
                      error.location());
    throw found.within(path).within(place_of(model, wanted.name));
  }
}

std::vector<NamedValue> read_npz_values(const std::string& path,
                                        const std::vector<ValueDescription>& wanted) {
  const Bytes bytes = read_file(path);
  try {
    const auto arrays = formats::read_npz(bytes, [&](std::string_view name) {
      for (const ValueDescription& one : wanted) {
        if (one.name == name) return one.element_type;
      }
      return ElementType::undefined;
    });
    std::vector<NamedValue> values;
    for (const auto& array : arrays) values.emplace_back(array.name, ir::aligned(array.tensor));
    return values;
  } catch (const Error& error) {
    const ErrorCode code =
        error.code() == ErrorCode::unreadable ? ErrorCode::bad_input : error.code();
    throw Error(code, error.message(), error.location()).within(path);
  }
}

Value value_from_text(std::string_view text, const ValueDescription& wanted) {
  if (wanted.kind != Value::Kind::tensor) {
    fail(ErrorCode::bad_input, "the model takes {}, which only a .pb file can give", wanted.type);
  }
  return formats::tensor_from_text(text, wanted_tensor(wanted));
}

Shape shape_for(const ValueDescription& wanted, const DimSizes& sizes,
                std::vector<std::string>* unset) {
  if (!wanted.shape) {
    fail_at(fmt::format("input '{}'", wanted.name), ErrorCode::bad_input,
            "is {}, so its shape can't be told: give a file or a value", wanted.type);
  }
  Shape shape;
  for (const auto& dim : *wanted.shape) {
    const auto known = sizes.find(dim.name);
    const bool is_unset = !dim.size && known == sizes.end();
    if (is_unset && unset != nullptr && (unset->empty() || unset->back() != dim.name))
      unset->push_back(dim.name);
    if (known != sizes.end() && known->second < 0)
      fail_at(fmt::format("size '{}'", dim.name), ErrorCode::bad_input,
              "{} is negative; a size is 0 or more", known->second);
    shape.push_back(dim.size ? *dim.size : known != sizes.end() ? known->second : 1);
  }
  return shape;
}

void learn_sizes(const ValueDescription& wanted, const Value& value, DimSizes& sizes) {
  if (!wanted.shape || !value.is_tensor()) return;
  const Shape& shape = value.tensor().shape();
  for (size_t i = 0; i < std::min(shape.size(), wanted.shape->size()); ++i) {
    const auto& dim = (*wanted.shape)[i];
    if (!dim.size && !dim.name.empty()) sizes.emplace(dim.name, shape[i]);
  }
}

Value random_value(const ValueDescription& wanted, const Shape& shape, uint64_t seed,
                   std::optional<RandomRange> range) {
  Generator generator(seed, wanted.name);
  const bool whole = !is_floating(wanted.element_type);
  const RandomRange used = range.value_or(whole ? RandomRange{0, 2} : RandomRange{-1, 1});
  if (!(used.low <= used.high) || !std::isfinite(used.high - used.low))
    fail(ErrorCode::bad_input, "random numbers lie between two finite ones; got {} to {}", used.low,
         used.high);
  if (range) require_fitting(wanted, *range);
  return filled(wanted, shape, [&] {
    const double number = used.low + generator.unit() * (used.high - used.low);
    return whole ? std::floor(number) : number;
  });
}

Value ones_value(const ValueDescription& wanted, const Shape& shape) {
  return filled(wanted, shape, [] { return 1.0; });
}

}  // namespace sardonyx
