// Tensors that hold something else than elements of their type: the fields of the message by name.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/checked.h"
#include "wire/text_printer.h"

namespace sardonyx::wire {
namespace {

template <class T>
std::vector<T> numbers_in(const Bytes& bytes) {
  std::vector<T> numbers(bytes.size() / sizeof(T));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(T));
  return numbers;
}

size_t size_of(const ir::TensorProto& tensor, DataField field) {
  switch (field) {
    case DataField::raw: return tensor.raw_data.size();
    case DataField::floats: return tensor.float_data.size() / sizeof(float);
    case DataField::doubles: return tensor.double_data.size() / sizeof(double);
    case DataField::int32s: return tensor.int32_data.size();
    case DataField::int64s: return tensor.int64_data.size();
    case DataField::uint64s: return tensor.uint64_data.size();
    case DataField::strings: return tensor.string_data.size();
    default: return 0;
  }
}

// The field that the standard gives to the type; none for types it does not know.
DataField field_of(ElementType type) {
  if (!is_known(type)) return DataField::none;
  switch (type) {
    case ElementType::float32:
    case ElementType::complex64: return DataField::floats;
    case ElementType::float64:
    case ElementType::complex128: return DataField::doubles;
    case ElementType::int64: return DataField::int64s;
    case ElementType::uint32:
    case ElementType::uint64: return DataField::uint64s;
    case ElementType::string: return DataField::strings;
    default: return DataField::int32s;
  }
}

// True where so many bytes are what the shape asks for, several elements in each.
bool is_packed_whole(const ir::TensorProto& tensor, size_t bytes, size_t bits) {
  const std::optional<int64_t> count = checked_count(tensor.dims);
  if (!count || *count < 0) return false;
  const size_t held = bytes * 8 / bits, wanted = static_cast<size_t>(*count);
  return wanted <= held && (wanted * bits + 7) / 8 == bytes;
}

bool are_bytes(const std::vector<int32_t>& values) {
  return std::all_of(values.begin(), values.end(),
                     [](int32_t value) { return value >= -128 && value <= 255; });
}

constexpr std::array every_field = {DataField::raw,    DataField::floats, DataField::doubles,
                                    DataField::int32s, DataField::int64s, DataField::uint64s,
                                    DataField::strings};

}  // namespace

DataField field_said_as_elements(const ir::TensorProto& tensor) {
  const ElementType type = tensor.element_type();
  const DataField typed = field_of(type);
  if (typed == DataField::none) return DataField::none;
  const auto bits = static_cast<size_t>(bit_width(type));
  const size_t raw = tensor.raw_data.size();
  if (raw > 0) {
    // Elements are read into the type's field, which must not be taken.
    if (bits == 0 || size_of(tensor, typed) > 0) return DataField::none;
    const bool whole = bits < 8 ? is_packed_whole(tensor, raw, bits) : raw % (bits / 8) == 0;
    return whole ? DataField::raw : DataField::none;
  }
  if (size_of(tensor, typed) == 0) return DataField::none;
  const bool packed = bits == 4 || bits == 2;
  if (packed &&
      !(is_packed_whole(tensor, tensor.int32_data.size(), bits) && are_bytes(tensor.int32_data)))
    return DataField::none;
  return typed;
}

size_t max_in_other_fields(const ir::TensorProto& tensor, DataField said) {
  size_t most = 0;
  for (const DataField field : every_field) {
    if (field != said) most = std::max(most, size_of(tensor, field));
  }
  return most;
}

void TextPrinter::other_fields(Record& record, const ir::TensorProto& tensor, DataField said) {
  const auto with = [&](DataField field, std::string_view key, const auto& values, auto write) {
    if (field == said || size_of(tensor, field) == 0) return;
    record.key(key);
    list("[", "]", values, write);
  };
  const auto as_number = [&](auto value) { number(value); };
  const auto as_integer = [&](auto value) { out_ += std::to_string(value); };
  if (said != DataField::raw && !tensor.raw_data.empty()) {
    record.key("raw_data");
    out_ += "e\"";
    for (const std::byte byte : tensor.raw_data.span())
      out_ += fmt::format("\\x{:02x}", static_cast<unsigned>(byte));
    out_ += '"';
  }
  with(DataField::floats, "float_data", numbers_in<float>(tensor.float_data), as_number);
  with(DataField::doubles, "double_data", numbers_in<double>(tensor.double_data), as_number);
  with(DataField::int32s, "int32_data", tensor.int32_data, as_integer);
  with(DataField::int64s, "int64_data", tensor.int64_data, as_integer);
  with(DataField::uint64s, "uint64_data", tensor.uint64_data, as_integer);
  with(DataField::strings, "string_data", tensor.string_data,
       [&](const std::string& text) { quoted(text); });
}

}  // namespace sardonyx::wire
