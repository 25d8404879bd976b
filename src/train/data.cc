// Examples in arrays, and batches of them.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string_view>
#include <unordered_set>

#include "base/bytes.h"
#include "base/fail.h"
#include "base/listed.h"
#include "base/os.h"
#include "base/value_kind.h"
#include "formats/npy.h"
#include "ir/tensor.h"
#include "sardonyx/fit.h"

namespace sardonyx {
namespace {

namespace fs = std::filesystem;

const ValueDescription* wanted(const std::vector<ValueDescription>& inputs, std::string_view name) {
  const auto found = std::ranges::find(inputs, name, &ValueDescription::name);
  return found == inputs.end() ? nullptr : &*found;
}

void require_fits(const ValueDescription& input, const Tensor& array) {
  const std::string place = fmt::format("array '{}'", input.name);
  if (input.kind != Value::Kind::tensor)
    fail_at(place, ErrorCode::unsupported, "the step takes {}; data are tensors", input.type);
  if (input.element_type != ElementType::undefined && input.element_type != array.element_type())
    fail_at(place, ErrorCode::bad_input, "holds {}; the step takes {} (numpy's astype converts)",
            name_of(array.element_type()), input.type);
  if (!input.shape) return;
  bool fits = input.shape->size() == array.shape().size();
  for (size_t d = 1; fits && d < input.shape->size(); ++d) {
    const auto& size = (*input.shape)[d].size;
    fits = !size || *size == array.shape()[d];
  }
  if (!fits)
    fail_at(place, ErrorCode::bad_input,
            "has shape {}; the step takes {}, examples along the first", to_string(array.shape()),
            input.type);
}

struct Arrays {
  std::vector<formats::NamedTensor> named;
  std::vector<Bytes> files;  // that are mapped, where some of them lie
};

Arrays arrays_of_folder(const std::string& path, const std::vector<ValueDescription>& inputs) {
  Arrays arrays;
  for (const ValueDescription& input : inputs) {
    const std::string file = os::text(os::path(path) / os::path(input.name + ".npy"));
    std::error_code ignored;
    if (!fs::exists(os::path(file), ignored)) continue;
    try {
      const Bytes& bytes = arrays.files.emplace_back(map_file(file));
      arrays.named.push_back({input.name, formats::read_npy(bytes, input.element_type)});
    } catch (const Error& error) {
      throw error.location().starts_with(file) ? error : error.within(file);
    }
  }
  return arrays;
}

Arrays arrays_of_file(const std::string& path, const std::vector<ValueDescription>& inputs) {
  try {
    const auto type_of = [&](std::string_view name) {
      const ValueDescription* input = wanted(inputs, name);
      return input != nullptr ? input->element_type : ElementType::undefined;
    };
    const Bytes file = map_file(path);
    return {formats::read_npz(file, type_of, formats::NpyAlignment::as_it_lies), {file}};
  } catch (const Error& error) {
    throw error.location().starts_with(path) ? error : error.within(path);
  }
}

std::vector<NamedValue> ordered(const std::string& path,
                                const std::vector<ValueDescription>& inputs,
                                const std::vector<formats::NamedTensor>& arrays) {
  std::vector<NamedValue> values;
  for (const ValueDescription& input : inputs) {
    const auto found = std::ranges::find(arrays, input.name, &formats::NamedTensor::name);
    if (found == arrays.end()) {
      std::vector<std::string> names;
      for (const auto& array : arrays) names.push_back("'" + array.name + "'");
      fail_at(path, ErrorCode::bad_input, "has no array '{}', which a step takes as {}; it has {}",
              input.name, input.type, names.empty() ? "none" : listed(names, 8));
    }
    require_fits(input, found->tensor);
    // Rows are copied out of arrays wherever these lie; what has none is given to a step as it is.
    const bool has_rows = found->tensor.rank() > 0;
    values.emplace_back(input.name, has_rows ? found->tensor : ir::aligned(found->tensor));
  }
  return values;
}

// Rows of a tensor along its first axis.
Tensor rows(const Tensor& from, std::span<const int64_t> places) {
  Shape shape = from.shape();
  shape[0] = static_cast<int64_t>(places.size());
  Tensor made(from.element_type(), std::move(shape));
  const int64_t each = from.size() / from.shape()[0];
  if (from.element_type() == ElementType::string) {
    const auto texts = from.elements<std::string>();
    auto to = made.mutable_elements<std::string>().begin();
    for (const int64_t place : places) {
      const auto row = texts.subspan(static_cast<size_t>(place * each), static_cast<size_t>(each));
      to = std::copy(row.begin(), row.end(), to);
    }
    return made;
  }
  const size_t bytes = from.byte_size() / static_cast<size_t>(from.shape()[0]);
  auto* to = static_cast<std::byte*>(made.mutable_data());
  const auto* all = static_cast<const std::byte*>(from.data());
  for (const int64_t place : places) {
    if (bytes > 0) std::memcpy(to, all + static_cast<size_t>(place) * bytes, bytes);
    to += bytes;
  }
  return made;
}

// Releases the whole pages of rows that were read, where they are contiguous and long enough to be
// worth it.
void release_rows(const Tensor& mapped, std::span<const int64_t> places) {
  constexpr size_t worth_it = 64 << 10;
  const size_t bytes = mapped.byte_size() / static_cast<size_t>(mapped.shape()[0]);
  const auto* all = static_cast<const std::byte*>(mapped.data());
  for (size_t i = 0; i < places.size();) {
    size_t end = i + 1;
    while (end < places.size() && places[end] == places[end - 1] + 1) ++end;
    const size_t run = (end - i) * bytes;
    if (run >= worth_it) os::release_pages({all + static_cast<size_t>(places[i]) * bytes, run});
    i = end;
  }
}

bool lies_in(const Tensor& tensor, const Bytes& file) {
  const auto* data = static_cast<const std::byte*>(tensor.data());
  return std::less_equal<>()(file.data(), data) &&
         std::less_equal<>()(data + tensor.byte_size(), file.data() + file.size());
}

}  // namespace

TrainingData::TrainingData(std::vector<NamedValue> arrays) : arrays_(std::move(arrays)) {
  if (arrays_.empty()) fail(ErrorCode::bad_input, "there are no arrays to train with");
  std::string first;
  bool has_elements = false;
  std::unordered_set<std::string_view> names;
  for (const auto& [name, value] : arrays_) {
    const std::string place = fmt::format("array '{}'", name);
    if (!names.insert(name).second) fail_at(place, ErrorCode::bad_input, "is given twice");
    if (!value.is_tensor())
      fail_at(place, ErrorCode::bad_input, "must be a tensor; it is {}",
              with_article(value.kind()));
    const Tensor& tensor = value.tensor();
    if (tensor.rank() == 0) continue;  // the same for all examples
    if (bit_width(tensor.element_type()) % 8 != 0)
      fail_at(place, ErrorCode::unsupported, "examples of {} can't be taken apart",
              name_of(tensor.element_type()));
    const int64_t count = tensor.shape()[0];
    has_elements |= tensor.size() > 0;
    if (first.empty()) size_ = count, first = name;
    if (count != size_)
      fail_at(place, ErrorCode::bad_input, "has {} examples; '{}' has {}", count, first, size_);
  }
  // Of examples without elements there could be any number, whatever the memory.
  if (!has_elements) fail(ErrorCode::bad_input, "the arrays hold no example");
}

TrainingData TrainingData::read(const std::string& path, const TrainingSession& session,
                                size_t which) {
  const auto& inputs = session.step_inputs(which);
  std::error_code ignored;
  const bool is_folder = fs::is_directory(os::path(path), ignored);
  const Arrays arrays = is_folder ? arrays_of_folder(path, inputs) : arrays_of_file(path, inputs);
  try {
    TrainingData data(ordered(path, inputs, arrays.named));
    for (const NamedValue& array : data.arrays_) {
      const Tensor& tensor = array.second.tensor();
      data.is_mapped_.push_back(std::ranges::any_of(
          arrays.files, [&](const Bytes& file) { return lies_in(tensor, file); }));
    }
    for (const Bytes& file : arrays.files)
      os::release_pages(file.span());  // their checksums were read
    return data;
  } catch (const Error& error) {
    throw error.location().starts_with(path) ? error : error.within(path);
  }
}

std::vector<NamedValue> TrainingData::batch(std::span<const int64_t> places) const {
  for (const int64_t place : places) {
    if (place < 0 || place >= size_)
      fail(ErrorCode::bad_input, "there are {} examples; none at {}", size_, place);
  }
  std::vector<NamedValue> values;
  for (size_t i = 0; i < arrays_.size(); ++i) {
    const auto& [name, value] = arrays_[i];
    const bool has_rows = value.tensor().rank() > 0;
    values.emplace_back(name, has_rows ? Value(rows(value.tensor(), places)) : value);
    if (has_rows && i < is_mapped_.size() && is_mapped_[i]) release_rows(value.tensor(), places);
  }
  return values;
}

}  // namespace sardonyx
