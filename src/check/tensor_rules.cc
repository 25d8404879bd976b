// Rules of tensors: shape, element type, which field holds the elements, how many there are.
#include <array>
#include <limits>

#include "base/checked.h"
#include "check/context.h"

namespace sardonyx::check {
namespace {

enum class Field { none, raw, floats, int32s, int64s, uint64s, doubles, strings };

struct Held {
  Field field = Field::none;
  std::string_view name;
  size_t entries = 0;  // of the field; bytes of raw_data
};

// The first two fields of a tensor that hold something; Field::none where there are fewer.
std::array<Held, 2> held_fields(const ir::TensorProto& tensor) {
  const std::array<Held, 7> all = {{
      {Field::raw, "raw_data", tensor.raw_data.size()},
      {Field::floats, "float_data", tensor.float_data.size() / 4},
      {Field::int32s, "int32_data", tensor.int32_data.size()},
      {Field::int64s, "int64_data", tensor.int64_data.size()},
      {Field::uint64s, "uint64_data", tensor.uint64_data.size()},
      {Field::doubles, "double_data", tensor.double_data.size() / 8},
      {Field::strings, "string_data", tensor.string_data.size()},
  }};
  std::array<Held, 2> held;
  size_t count = 0;
  for (const Held& field : all) {
    if (field.entries > 0 && count < held.size()) held[count++] = field;
  }
  return held;
}

Field typed_field(ElementType type) {
  switch (type) {
    case ElementType::float32:
    case ElementType::complex64: return Field::floats;
    case ElementType::float64:
    case ElementType::complex128: return Field::doubles;
    case ElementType::int64: return Field::int64s;
    case ElementType::uint32:
    case ElementType::uint64: return Field::uint64s;
    case ElementType::string: return Field::strings;
    default: return Field::int32s;
  }
}

RuleId rule_of(Field field) {
  switch (field) {
    case Field::floats: return "X-10";
    case Field::int32s: return "X-11";
    case Field::raw: return "X-14";
    default: return "X-12";
  }
}

// Types of which one entry of int32_data holds a byte of several elements.
bool shares_entries(ElementType type) { return bit_width(type) == 4 || bit_width(type) == 2; }

// Entries that `count` elements take in a field.
int64_t entries_for(Field field, ElementType type, int64_t count) {
  if (field == Field::raw) return byte_size(type, count);
  if (type == ElementType::complex64 || type == ElementType::complex128) return 2 * count;
  return shares_entries(type) ? byte_size(type, count) : count;
}

void check_count(Context& context, const Where& where, const ir::TensorProto& tensor,
                 const Held& held) {
  const ElementType type = tensor.element_type();
  const std::optional<int64_t> count = checked_count(tensor.dims);
  if (!count || *count > std::numeric_limits<int64_t>::max() / 128) return;
  const int64_t needed = entries_for(held.field, type, *count);
  const auto found = static_cast<int64_t>(held.entries);
  if (found == needed) return;
  const bool is_raw = held.field == Field::raw;
  const bool is_packed = shares_entries(type) && !is_raw;
  constexpr std::string_view format = "shape {} of {} needs {} {} in {}; found {}";
  const std::string shape = to_string(tensor.dims);
  const std::string_view unit = is_raw ? "bytes" : "entries";
  if (found < needed) {
    context.report(is_packed ? RuleId("X-21") : RuleId("X-26"), where, "", format, shape,
                   name_of(type), needed, unit, held.name, found);
  } else {
    context.report.at_most_warning("X-26", where, "the rest is ignored", format, shape,
                                   name_of(type), needed, unit, held.name, found);
  }
}

std::pair<int64_t, int64_t> range_of(ElementType type) {
  switch (type) {
    case ElementType::int8: return {-128, 127};
    case ElementType::uint8: return {0, 255};
    case ElementType::int16: return {-32768, 32767};
    case ElementType::uint16: return {0, 65535};
    case ElementType::boolean: return {0, 1};
    case ElementType::float6e2m3:
    case ElementType::float6e3m2: return {0, 63};
    default: return {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  }
}

void check_numbers(Context& context, const Where& where, const ir::TensorProto& tensor) {
  const ElementType type = tensor.element_type();
  const auto [least, most] = range_of(type);
  if (context.report.wants("X-23")) {
    for (const int32_t value : tensor.int32_data) {
      if (value >= least && value <= most) continue;
      context.report("X-23", where, "", "elements of {} are in [{}, {}]; found {}", name_of(type),
                     least, most, value);
      break;
    }
  }
  if (type == ElementType::uint32 && context.report.wants("X-24")) {
    for (const uint64_t value : tensor.uint64_data) {
      if (value <= std::numeric_limits<uint32_t>::max()) continue;
      context.report("X-24", where, "", "elements of uint32 fit 32 bits; found {}", value);
      break;
    }
  }
  if (type == ElementType::boolean && context.report.wants("X-17")) {
    for (const std::byte value : tensor.raw_data.span()) {
      if (value <= std::byte{1}) continue;
      context.report("X-17", where, "any but 0 is true", "bytes of bool are 0 or 1; found {}",
                     static_cast<int>(value));
      break;
    }
  }
}

void check_strings(Context& context, const Where& where, const ir::TensorProto& tensor) {
  if (!context.report.wants("E-15")) return;
  for (size_t i = 0; i < tensor.string_data.size(); ++i) {
    const std::string& text = tensor.string_data[i];
    if (!is_utf8(text)) {
      context.report("E-15", where, "", "strings are UTF-8; element {} is not", i);
      return;
    }
    if (text.ends_with('\0') || text.starts_with("\xef\xbb\xbf")) {
      context.report("X-25", where, "",
                     "strings have no NUL at the end and no byte-order mark; element {} has", i);
      return;
    }
  }
}

}  // namespace

void check_tensor(Context& context, const Where& where, const ir::TensorProto& tensor) {
  Report& report = context.report;
  const ElementType type = tensor.element_type();
  if (!is_known(type)) {
    report("X-06", where, "", "a tensor has an element type of the standard; found {}",
           tensor.data_type);
  }
  check_element_version(context, where, tensor.data_type);
  if (!checked_count(tensor.dims)) {
    report("X-07", where, "",
           "dimensions are not negative and their product fits 63 bits; found {}",
           to_string(tensor.dims));
  }
  if (tensor.segment) {
    report("X-27", where, "write the tensor whole", "tensors in segments are not supported");
  }
  if (!tensor.metadata_props.empty()) {
    if (context.ir_version < 10) {
      report("MP-03", where, "set ir_version to 10 or more",
             "metadata of tensors came with IR version 10; the model says {}", context.ir_version);
    }
    check_distinct_keys(context, "MP-03", where, tensor.metadata_props);
  }
  check_external_data(context, where, tensor);
  const std::array<Held, 2> held = held_fields(tensor);
  if (tensor.is_external() || !is_known(type)) return;
  if (held[1].field != Field::none) {
    report("X-09", where, "keep one", "one field holds the elements; {} and {} do", held[0].name,
           held[1].name);
    return;
  }
  if (tensor.has_raw_data && tensor.raw_data.size() == 0 && held[0].field != Field::none) {
    report.lax("X-09", where, "leave raw_data out",
               "one field holds the elements; raw_data is given, though empty, and {} holds them",
               held[0].name);
  }
  const Field own = typed_field(type);
  const Held found = held[0].field == Field::none ? Held{own, "its data field", 0} : held[0];
  const bool fits =
      found.field == own || (found.field == Field::raw && type != ElementType::string);
  if (!fits) {
    report(rule_of(found.field), where, "", "{} does not hold elements of {}", found.name,
           name_of(type));
    return;
  }
  check_count(context, where, tensor, found);
  check_numbers(context, where, tensor);
  check_strings(context, where, tensor);
}

}  // namespace sardonyx::check
