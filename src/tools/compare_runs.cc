#include "sardonyx/compare_runs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <string_view>
#include <unordered_map>

#include "base/bytes.h"
#include "base/fail.h"
#include "base/os.h"
#include "sardonyx/inputs.h"
#include "sardonyx/text.h"
#include "session/model.h"
#include "session/reading.h"
#include "tools/npz_names.h"
#include "tools/numbers.h"
#include "wire/read.h"

namespace sardonyx {
namespace {

namespace fs = std::filesystem;

constexpr int64_t elements_at_once = 4096;

// "output_10" after "output_9": runs of digits by their size.
bool natural_less(std::string_view a, std::string_view b) {
  const auto digits = [](std::string_view text) {
    size_t end = 0;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    return end;
  };
  while (!a.empty() && !b.empty()) {
    size_t in_a = digits(a), in_b = digits(b);
    if (in_a == 0 || in_b == 0) {
      if (a[0] != b[0]) return a[0] < b[0];
      in_a = in_b = 1;
    } else if (in_a != in_b) {
      return in_a < in_b;
    } else if (const int order = a.substr(0, in_a).compare(b.substr(0, in_b)); order != 0) {
      return order < 0;
    }
    a.remove_prefix(in_a);
    b.remove_prefix(in_b);
  }
  return a.size() < b.size();
}

// A file of one value. Of a .pb that no model tells the type of, the first kind that fits.
Value read_any(const std::string& path, const Model& model, const ValueDescription& description) {
  using Kind = ir::TypeProto::Kind;
  try {
    return read_value_file(path, model, description);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::unreadable || lowered_ending(path) != ".pb") throw;
    const Bytes bytes = read_file(path);
    for (const Kind kind : {Kind::sequence, Kind::map, Kind::optional, Kind::sparse_tensor}) {
      ir::TypeProto type;
      type.kind = kind;
      try {
        return wire::read_value(bytes, type);
      } catch (const Error&) {  // another kind, or none
      }
    }
    throw;
  }
}

std::vector<NamedValue> read_folder(const std::string& path, const Model* model,
                                    const std::vector<ValueDescription>& wanted) {
  std::vector<fs::path> files;
  std::error_code problem;
  for (fs::directory_iterator at(os::path(path), problem), end; !problem && at != end;
       at.increment(problem)) {
    const std::string ending = lowered_ending(os::text(at->path()));
    if (ending == ".npy" || ending == ".pb") files.push_back(at->path());
  }
  if (problem) fail_at(path, ErrorCode::unreadable, "cannot read: {}", problem.message());
  std::ranges::sort(files, natural_less,
                    [](const fs::path& file) { return os::text(file.stem()); });
  const Model none = model == nullptr ? Model::from_text("none () => () {}") : *model;
  std::vector<NamedValue> values;
  for (const fs::path& file : files) {
    ValueDescription description;
    description.name = os::text(file.stem());
    for (const ValueDescription& one : wanted) {
      if (one.name == description.name) description = one;
    }
    values.emplace_back(description.name, read_any(os::text(file), none, description));
  }
  return values;
}

// The arrays of an .npz file, under the names of the values that they were written for.
std::vector<NamedValue> read_archive(const std::string& path,
                                     const std::vector<ValueDescription>& wanted) {
  const std::vector<std::string> names = npz_names(wanted);
  std::vector<ValueDescription> known = wanted;
  std::unordered_map<std::string_view, std::string_view> meant;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (names[i] == wanted[i].name) continue;
    known.push_back(wanted[i]);
    known.back().name = names[i];
    meant.emplace(names[i], wanted[i].name);
  }
  std::vector<NamedValue> values = read_npz_values(path, known);
  for (NamedValue& value : values) {
    if (const auto found = meant.find(value.first); found != meant.end())
      value.first = found->second;
  }
  return values;
}

ComparedValue missing(const std::string& name, std::string reason) {
  ComparedValue compared;
  compared.name = name;
  compared.is_missing = true;
  compared.difference.agree = false;
  compared.difference.reason = std::move(reason);
  return compared;
}

}  // namespace

std::optional<NumberSummary> summarize(const Value& value) {
  if (!value.is_tensor() || value.tensor().element_type() == ElementType::string)
    return std::nullopt;
  const Tensor& tensor = value.tensor();
  NumberSummary summary;
  summary.elements = tensor.size();
  std::array<double, elements_at_once> numbers;
  bool any = false;
  const int64_t count = number_count(tensor);
  for (int64_t begin = 0; begin < count; begin += elements_at_once) {
    const std::span<double> part(numbers.data(),
                                 static_cast<size_t>(std::min(elements_at_once, count - begin)));
    read_numbers(tensor, begin, part);
    for (const double number : part) {
      summary.nans += std::isnan(number) ? 1 : 0;
      summary.infinite += std::isinf(number) ? 1 : 0;
      if (!std::isfinite(number)) continue;
      summary.least = any ? std::min(summary.least, number) : number;
      summary.most = any ? std::max(summary.most, number) : number;
      any = true;
    }
  }
  return summary;
}

int64_t RunComparison::differing() const {
  return std::ranges::count_if(values, [](const ComparedValue& v) { return !v.difference.agree; });
}

const ComparedValue* RunComparison::first_difference() const {
  const auto found =
      std::ranges::find_if(values, [](const ComparedValue& v) { return !v.difference.agree; });
  return found == values.end() ? nullptr : &*found;
}

RunComparison compare_runs(const std::vector<NamedValue>& actual,
                           const std::vector<NamedValue>& expected,
                           const CompareRunsOptions& options) {
  for (const auto& tolerance : {options.tolerance.relative, options.tolerance.absolute}) {
    if (tolerance && !(*tolerance >= 0))
      fail(ErrorCode::bad_input, "tolerances must not be negative; got {}", *tolerance);
  }
  std::unordered_map<std::string_view, const Value*> wanted;
  for (const auto& [name, value] : expected) {
    if (!wanted.try_emplace(name, &value).second)
      fail(ErrorCode::bad_input, "'{}' is there twice among the expected values", name);
  }
  RunComparison comparison;
  std::unordered_map<std::string_view, bool> seen;
  for (const auto& [name, value] : actual) {
    if (!seen.try_emplace(name, true).second) continue;
    const auto found = wanted.find(name);
    if (found == wanted.end()) {
      if (!options.common_only && !options.all_expected)
        comparison.values.push_back(missing(name, "is not among the expected values"));
      continue;
    }
    ComparedValue& compared = comparison.values.emplace_back();
    compared.name = name;
    compared.difference = compare(value, *found->second, options.tolerance);
    compared.actual = summarize(value);
    compared.expected = summarize(*found->second);
  }
  for (const auto& [name, value] : expected) {
    if (!seen.contains(name) && !options.common_only)
      comparison.values.push_back(missing(name, "is expected, but there is no such value"));
  }
  return comparison;
}

std::vector<NamedValue> read_run(const std::string& path, const Model* model,
                                 const std::vector<ValueDescription>& wanted) {
  std::error_code ignored;
  std::vector<NamedValue> values = fs::is_directory(os::path(path), ignored)
                                       ? read_folder(path, model, wanted)
                                       : read_archive(path, wanted);
  if (values.empty()) fail_at(path, ErrorCode::bad_input, "holds no values (.npy, .pb)");
  return values;
}

std::vector<size_t> making_order(const Model& model, const std::vector<ValueDescription>& outputs) {
  std::unordered_map<std::string_view, size_t> made_at;
  if (const auto& graph = model.implementation().model.graph) {
    for (size_t i = 0; i < graph->nodes.size(); ++i) {
      for (const std::string& name : graph->nodes[i].outputs) made_at.try_emplace(name, i + 1);
    }
  }
  // What is no value of the file comes with the one before it.
  std::vector<std::pair<size_t, size_t>> keyed;
  size_t last = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto found = made_at.find(outputs[i].name);
    if (found != made_at.end()) last = found->second;
    keyed.emplace_back(last, i);
  }
  std::ranges::stable_sort(keyed, {}, &std::pair<size_t, size_t>::first);
  std::vector<size_t> order;
  for (const auto& [key, i] : keyed) order.push_back(i);
  return order;
}

}  // namespace sardonyx
