// Rules of external data: where the elements are, without opening a file.
#include <algorithm>
#include <charconv>

#include "base/checked.h"
#include "check/context.h"

namespace sardonyx::check {
namespace {

constexpr int64_t page = 4096;

// A decimal number without sign or blanks; nullopt otherwise.
std::optional<int64_t> decimal(std::string_view text) {
  int64_t value = 0;
  if (text.empty() || text.front() == '-') return std::nullopt;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc{} || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

bool has_parent_component(std::string_view path) {
  size_t start = 0;
  while (start <= path.size()) {
    const size_t end = std::min(path.find('/', start), path.size());
    if (path.substr(start, end - start) == "..") return true;
    start = end + 1;
  }
  return false;
}

bool has_inline_data(const ir::TensorProto& tensor) {
  return !tensor.raw_data.empty() || !tensor.float_data.empty() || !tensor.double_data.empty() ||
         !tensor.int32_data.empty() || !tensor.int64_data.empty() || !tensor.uint64_data.empty() ||
         !tensor.string_data.empty();
}

void check_location(Context& context, const Where& where, std::string_view location) {
  const bool absolute = location.starts_with('/') || location.starts_with('\\') ||
                        (location.size() > 1 && location[1] == ':');
  if (absolute || has_parent_component(location)) {
    context.report("XD-05", where, "keep the data beside the model",
                   "a location is a path below the model's folder; found '{}'", location);
  }
}

struct Entries {
  std::string_view location;
  std::optional<int64_t> offset, length;
};

Entries check_entries(Context& context, const Where& where, const ir::TensorProto& tensor) {
  Report& report = context.report;
  Entries found;
  std::unordered_set<std::string_view> seen;
  for (const ir::StringEntry& entry : tensor.external_data) {
    const Where place = where.in(fmt::format("external data '{}'", entry.key));
    if (!seen.insert(entry.key).second) {
      report("XD-18", place, "keep one", "the key occurs more than once");
    } else if (entry.key == "location") {
      found.location = entry.value;
    } else if (entry.key == "offset" || entry.key == "length") {
      const std::optional<int64_t> value = decimal(entry.value);
      if (!value) {
        report("XD-09", place, "", "it is a decimal number of bytes; found '{}'", entry.value);
      }
      (entry.key == "offset" ? found.offset : found.length) = value;
    } else if (entry.key != "checksum" && entry.key != "basepath") {
      report("XD-18", place, "it is ignored", "the key is not the standard's");
    }
  }
  return found;
}

}  // namespace

void check_external_data(Context& context, const Where& where, const ir::TensorProto& tensor) {
  Report& report = context.report;
  if (tensor.data_location != 0 && tensor.data_location != 1) {
    report("XD-02", where, "", "data_location is 0 (default) or 1 (external); found {}",
           tensor.data_location);
  }
  if (!tensor.is_external()) {
    if (!tensor.external_data.empty()) {
      report("XD-19", where, "set data_location to external",
             "external_data has no effect without data_location");
    }
    return;
  }
  if (context.ir_version < 4) {
    report("M-25", where, "set ir_version to 4 or more",
           "external data came with IR version 4; the model says {}", context.ir_version);
  }
  const Entries entries = check_entries(context, where, tensor);
  if (entries.location.empty()) {
    report("XD-03", where, "name the file in 'location'",
           "external data has a location; it is missing");
  } else {
    check_location(context, where, entries.location);
  }
  if (tensor.element_type() == ElementType::string) {
    report("XD-16", where, "keep them in the model", "strings cannot be external");
  }
  if (has_inline_data(tensor)) {
    report("XD-04", where, "remove one of them",
           "an external tensor has elements in the model, too");
  }
  const int64_t offset = entries.offset.value_or(0);
  if (offset % page != 0) {
    report("XD-10", where, "", "offsets should be multiples of {}; found {}", page, offset);
  }
  const std::optional<int64_t> count = checked_count(tensor.dims);
  if (!count || *count > (int64_t{1} << 55) || !is_known(tensor.element_type())) return;
  const int64_t length = entries.length.value_or(byte_size(tensor.element_type(), *count));
  if (!entries.location.empty() && length > 0) {
    context.external_ranges.push_back(
        {entries.location, offset, length, where.to_place().to_string()});
  }
}

// Two tensors may share a range; ranges that overlap in part are a mistake.
void check_external_overlaps(Context& context) {
  std::vector<ExternalRange>& ranges = context.external_ranges;
  if (!context.report.wants("XD-14")) return;
  std::ranges::sort(ranges, [](const ExternalRange& a, const ExternalRange& b) {
    return std::tie(a.location, a.offset, a.length) < std::tie(b.location, b.offset, b.length);
  });
  for (size_t i = 1; i < ranges.size(); ++i) {
    const ExternalRange& before = ranges[i - 1];
    const ExternalRange& range = ranges[i];
    if (before.location != range.location) continue;
    if (before.offset == range.offset && before.length == range.length) continue;
    const std::optional<int64_t> end = checked_add(before.offset, before.length);
    if (end && *end <= range.offset) continue;
    context.report("XD-14", {.root = "model"}, "", "{} and {} overlap in part in '{}'",
                   before.tensor, range.tensor, range.location);
  }
}

}  // namespace sardonyx::check
