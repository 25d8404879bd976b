// Types, tensors, attributes and sharding in the textual syntax.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "base/decimal.h"
#include "wire/text_printer.h"

namespace sardonyx::wire {
namespace {

using ir::AttributeKind;
using Kind = ir::TypeProto::Kind;

constexpr size_t shown_of_cut = 8;

template <class T>
T load(std::span<const std::byte> bytes, size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

}  // namespace

void TextPrinter::element_type(int32_t type) {
  if (is_known(static_cast<ElementType>(type))) {
    out_ += name_of(static_cast<ElementType>(type));
  } else {
    out_ += fmt::format("${}", type);
  }
}

void TextPrinter::shape(const std::optional<ir::TensorShape>& shape) {
  if (!shape) {
    out_ += "[]";
    return;
  }
  if (shape->dims.empty()) return;
  list("[", "]", shape->dims, [&](const ir::Dimension& dim) {
    if (dim.value) {
      integer(*dim.value);
    } else if (dim.param) {
      bare_or_quoted(*dim.param);
    } else {
      out_ += '?';
    }
    annotate([&](Record& record) { record.text("denotation", dim.denotation); });
  });
}

void TextPrinter::print(const ir::TypeProto& type) {
  // Types that a reader accepts are a few layers deep; this bounds those built in memory.
  if (depth_ > 1000) {
    out_ += '?';
    return;
  }
  ++depth_;
  const auto nested = [&](std::string_view word) {
    out_ += word;
    if (type.nested) print(*type.nested);
    out_ += ')';
  };
  switch (type.kind) {
    case Kind::none: out_ += '?'; break;
    case Kind::tensor:
      element_type(type.elem_type);
      shape(type.shape);
      break;
    case Kind::sparse_tensor:
      out_ += "sparse_tensor(";
      element_type(type.elem_type);
      shape(type.shape);
      out_ += ')';
      break;
    case Kind::sequence: nested("seq("); break;
    case Kind::optional: nested("optional("); break;
    case Kind::map:
      out_ += "map(";
      element_type(type.elem_type);
      nested(", ");
      break;
    case Kind::opaque:
      out_ += "opaque(";
      if (!type.opaque_domain.empty()) {
        bare_or_quoted(type.opaque_domain);
        out_ += ", ";
      }
      if (!type.opaque_name.empty()) bare_or_quoted(type.opaque_name);
      out_ += ')';
      break;
  }
  annotate([&](Record& record) { record.text("denotation", type.denotation); });
  --depth_;
}

void TextPrinter::dims(const std::vector<int64_t>& dims) {
  if (dims.empty()) return;
  out_ += '[';
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) out_ += ',';
    integer(dims[i]);
  }
  out_ += ']';
}

void TextPrinter::print(const ir::TensorProto& tensor) { this->tensor(tensor, tensor.name, false); }

void TextPrinter::tensor(const ir::TensorProto& tensor, std::string_view name, bool equals) {
  element_type(tensor.data_type);
  dims(tensor.dims);
  if (!name.empty() || equals) {
    out_ += ' ';
    bare_or_quoted(name);
  }
  const DataField said = field_said_as_elements(tensor);
  const size_t unsaid = max_in_other_fields(tensor, said);
  const bool plainly_external = tensor.is_external() && said == DataField::none && unsaid == 0;
  out_ += equals || plainly_external ? " = " : " ";
  const bool cut = unsaid > 0 && (!options_.annotations || unsaid > options_.max_elements);
  if (plainly_external) {
    entries(tensor.external_data);
  } else if (cut) {
    out_ += "{...}";
  } else if (said == DataField::none) {
    out_ += "{}";
  } else {
    elements(tensor);
  }
  annotate([&](Record& record) {
    record.text("doc_string", tensor.doc_string);
    record.entries("metadata_props", tensor.metadata_props);
    if (tensor.segment) {
      record.key("segment");
      out_ += fmt::format("[{}, {}]", tensor.segment->begin, tensor.segment->end);
    }
    if (plainly_external) return;
    record.entries("external_data", tensor.external_data);
    if (tensor.data_location != 0) record.key("data_location").integer(tensor.data_location);
    if (!cut) other_fields(record, tensor, said);
  });
}

void TextPrinter::sparse_tensor(const ir::SparseTensorProto& sparse, bool named) {
  out_ += "sparse_tensor(";
  element_type(sparse.values.data_type);
  dims(sparse.dims);
  out_ += ')';
  if (named || !sparse.values.name.empty()) {
    out_ += ' ';
    bare_or_quoted(sparse.values.name);
  }
  out_ += " = {";
  tensor(sparse.values, "", false);
  out_ += ", ";
  tensor(sparse.indices, sparse.indices.name, false);
  out_ += '}';
}

template <class Write>
void TextPrinter::each(size_t count, Write write) {
  const bool cut = count > options_.max_elements;
  const size_t shown = cut ? std::min(options_.max_elements, shown_of_cut) : count;
  out_ += '{';
  for (size_t i = 0; i < shown; ++i) {
    if (i > 0) out_ += ", ";
    write(i);
    if (i % 4096 == 0) spill();
  }
  if (cut) out_ += shown > 0 ? ", ..." : "...";
  out_ += '}';
}

namespace {

constexpr size_t number_room = float_room;  // of any number, and a separator

// Writes numbers, each but the very first with a comma before it.
template <class T>
char* write_numbers(char* to, std::span<const std::byte> bytes, size_t begin, size_t end) {
  if constexpr (std::is_same_v<T, float>) {
    return write_floats(to, bytes.data() + begin * sizeof(T), end - begin, begin == 0);
  } else {
    for (size_t i = begin; i < end; ++i) {
      if (i > 0) {
        *to++ = ',';
        *to++ = ' ';
      }
      const T value = load<T>(bytes, i);
      if constexpr (std::is_floating_point_v<T>) {
        if (std::isnan(value)) {
          const std::string_view text = std::signbit(value) ? "-nan" : "nan";
          to = std::copy(text.begin(), text.end(), to);
          continue;
        }
      }
      to = std::to_chars(to, to + number_room, value).ptr;
    }
    return to;
  }
}

template <class T>
void append_numbers(std::string& text, std::span<const std::byte> bytes, size_t begin, size_t end) {
  constexpr size_t at_once = 256;
  std::array<char, (at_once + 1) * number_room> buffer;
  for (; begin < end; begin += std::min(at_once, end - begin)) {
    const size_t stop = begin + std::min(at_once, end - begin);
    text.append(buffer.data(), write_numbers<T>(buffer.data(), bytes, begin, stop));
  }
}

constexpr size_t chunk_of_numbers = 1 << 12;
constexpr int max_threads = 8;

}  // namespace

// Chunks are made into text on several threads, a round of them while the round before is written.
template <class T>
void TextPrinter::each_of_many(std::span<const std::byte> bytes) {
  if (!pool_) pool_ = std::make_unique<ThreadPool>(std::min(usable_cpus(), max_threads));
  const size_t count = bytes.size() / sizeof(T);
  const size_t in_round = static_cast<size_t>(pool_->threads()) * 8;
  if (made_.empty()) {
    for (auto* round : {&made_, &waiting_}) {
      round->resize(in_round);
      for (Piece& piece : *round)
        piece.room = std::make_unique_for_overwrite<char[]>((chunk_of_numbers + 1) * number_room);
    }
  }
  out_ += '{';
  for (size_t begin = 0; begin < count; begin += in_round * chunk_of_numbers) {
    const size_t chunks =
        std::min(in_round, (count - begin + chunk_of_numbers - 1) / chunk_of_numbers);
    pool_->parallel_for(static_cast<int64_t>(chunks) + 1, 1, [&](int64_t index, int64_t, int) {
      if (index == 0) return put_all();
      const auto chunk = static_cast<size_t>(index) - 1;
      const size_t first = begin + chunk * chunk_of_numbers;
      Piece& piece = made_[chunk];
      const char* end = write_numbers<T>(piece.room.get(), bytes, first,
                                         std::min(first + chunk_of_numbers, count));
      piece.size = static_cast<size_t>(end - piece.room.get());
    });
    made_.swap(waiting_);
  }
  out_ += '}';
}

template <class T>
void TextPrinter::each_of(std::span<const std::byte> bytes) {
  const size_t count = bytes.size() / sizeof(T);
  if (count > options_.max_elements)
    return each(count,
                [&](size_t i) { append_numbers<T>(out_, bytes.subspan(i * sizeof(T)), 0, 1); });
  if (sink_ != nullptr && !in_annotation_ && count >= 2 * chunk_of_numbers)
    return each_of_many<T>(bytes);
  out_ += '{';
  for (size_t i = 0; i < count; i += chunk_of_numbers) {
    append_numbers<T>(out_, bytes, i, std::min(i + chunk_of_numbers, count));
    spill();
  }
  out_ += '}';
}

// Several elements in each byte; the last byte may be partly used.
void TextPrinter::packed_elements(ElementType type, size_t count,
                                  const std::function<uint8_t(size_t)>& byte) {
  const auto bits = static_cast<size_t>(bit_width(type));
  const int mask = (1 << bits) - 1;
  const int sign = is_signed_integer(type) ? 1 << (bits - 1) : 0;
  each(count, [&](size_t i) {
    const size_t at = i * bits / 8, shift = i * bits % 8;
    int pattern = byte(at) >> shift;
    if (shift + bits > 8) pattern |= byte(at + 1) << (8 - shift);
    pattern &= mask;
    integer((pattern ^ sign) - sign);
  });
}

void TextPrinter::elements(const ir::TensorProto& tensor) {
  if (!tensor.raw_data.empty()) return raw_elements(tensor);
  const auto integers = [&](const auto& values) {
    each(values.size(), [&](size_t i) { out_ += std::to_string(values[i]); });
  };
  const ElementType type = tensor.element_type();
  switch (type) {
    case ElementType::float32:
    case ElementType::complex64: return each_of<float>(tensor.float_data.span());
    case ElementType::float64:
    case ElementType::complex128: return each_of<double>(tensor.double_data.span());
    case ElementType::int64: return integers(tensor.int64_data);
    case ElementType::uint32:
    case ElementType::uint64: return integers(tensor.uint64_data);
    case ElementType::string:
      return each(tensor.string_data.size(), [&](size_t i) { quoted(tensor.string_data[i]); });
    default: break;
  }
  const int bits = bit_width(type);
  if (bits != 4 && bits != 2) return integers(tensor.int32_data);
  const size_t held = tensor.int32_data.size() * (8 / static_cast<size_t>(bits));
  const int64_t count = checked_count(tensor.dims).value_or(0);
  packed_elements(type, std::min(held, static_cast<size_t>(count)),
                  [&](size_t i) { return static_cast<uint8_t>(tensor.int32_data[i]); });
}

void TextPrinter::raw_elements(const ir::TensorProto& tensor) {
  const std::span<const std::byte> bytes = tensor.raw_data.span();
  const ElementType type = tensor.element_type();
  switch (type) {
    case ElementType::float32:
    case ElementType::complex64: return each_of<float>(bytes);
    case ElementType::float64:
    case ElementType::complex128: return each_of<double>(bytes);
    case ElementType::int8: return each_of<int8_t>(bytes);
    case ElementType::int16: return each_of<int16_t>(bytes);
    case ElementType::int32: return each_of<int32_t>(bytes);
    case ElementType::int64: return each_of<int64_t>(bytes);
    case ElementType::uint32: return each_of<uint32_t>(bytes);
    case ElementType::uint64: return each_of<uint64_t>(bytes);
    default: break;
  }
  switch (bit_width(type)) {
    case 8: return each_of<uint8_t>(bytes);
    case 16: return each_of<uint16_t>(bytes);
    default: break;
  }
  const size_t held = bytes.size() * 8 / static_cast<size_t>(bit_width(type));
  const int64_t count = checked_count(tensor.dims).value_or(0);
  packed_elements(type, std::min(held, static_cast<size_t>(count)),
                  [&](size_t i) { return static_cast<uint8_t>(bytes[i]); });
}

// ---- attributes

void TextPrinter::print(const ir::Attribute& attribute) {
  bare_or_quoted(attribute.name);
  annotate([&](Record& record) { record.text("doc_string", attribute.doc_string); });
  const AttributeKind kind = attribute.effective_kind();
  // Said before the value, which may be too long to stay here until it is known.
  const bool unsaid = attribute.kind == AttributeKind::undefined && attribute.ref_attr_name.empty();
  if (unsaid) out_ += ": undefined";
  const size_t start = out_.size();
  const auto say_kind = [&] {
    const auto number = static_cast<int32_t>(attribute.kind);
    const bool known = number >= 0 && number <= static_cast<int32_t>(AttributeKind::type_protos);
    if (!unsaid)
      out_.insert(start, known ? fmt::format(": {}", name_of(attribute.kind))
                               : fmt::format(": ${}", number));
  };
  out_ += " = ";
  if (!attribute.ref_attr_name.empty()) {
    out_ += '@';
    bare_or_quoted(attribute.ref_attr_name);
    if (attribute.kind != AttributeKind::undefined) say_kind();
    return;
  }
  bool empty_list = false;
  switch (kind) {
    case AttributeKind::floats: empty_list = attribute.floats.empty(); break;
    case AttributeKind::ints: empty_list = attribute.ints.empty(); break;
    case AttributeKind::strings: empty_list = attribute.strings.empty(); break;
    case AttributeKind::tensors: empty_list = attribute.tensors.empty(); break;
    case AttributeKind::graphs: empty_list = attribute.graphs.empty(); break;
    case AttributeKind::sparse_tensors: empty_list = attribute.sparse_tensors.empty(); break;
    case AttributeKind::type_protos: empty_list = attribute.type_protos.empty(); break;
    default:
      if (!single_value(attribute)) {
        out_ += "{}";
        say_kind();
      }
      return;
  }
  list_value(attribute);
  if (empty_list) say_kind();
}

// Writes the one value of a kind that is no list; false where the attribute lacks the message.
bool TextPrinter::single_value(const ir::Attribute& attribute) {
  switch (attribute.effective_kind()) {
    case AttributeKind::float_: decimal(attribute.f.value_or(0)); return true;
    case AttributeKind::int_: integer(attribute.i.value_or(0)); return true;
    case AttributeKind::string: quoted(attribute.s.value_or("")); return true;
    case AttributeKind::tensor:
      if (attribute.t) print(*attribute.t);
      return attribute.t != nullptr;
    case AttributeKind::graph:
      if (attribute.g) print(*attribute.g);
      return attribute.g != nullptr;
    case AttributeKind::sparse_tensor:
      if (attribute.sparse_tensor) sparse_tensor(*attribute.sparse_tensor);
      return attribute.sparse_tensor != nullptr;
    case AttributeKind::type_proto:
      if (attribute.tp) print(*attribute.tp);
      return attribute.tp != nullptr;
    default: return false;
  }
}

void TextPrinter::list_value(const ir::Attribute& attribute) {
  switch (attribute.effective_kind()) {
    case AttributeKind::floats:
      return list("[", "]", attribute.floats, [&](float value) { decimal(value); });
    case AttributeKind::ints:
      return list("[", "]", attribute.ints, [&](int64_t value) { integer(value); });
    case AttributeKind::strings: return strings(attribute.strings);
    case AttributeKind::tensors:
      return list("[", "]", attribute.tensors, [&](const auto& value) { print(*value); });
    case AttributeKind::graphs:
      return list("[", "]", attribute.graphs, [&](const auto& value) { print(*value); });
    case AttributeKind::sparse_tensors:
      return list("[", "]", attribute.sparse_tensors,
                  [&](const auto& value) { sparse_tensor(*value); });
    case AttributeKind::type_protos:
      return list("[", "]", attribute.type_protos, [&](const auto& value) { print(*value); });
    default: return;
  }
}

// ---- sharding

void TextPrinter::device_configuration(const ir::DeviceConfiguration& configuration) {
  Record record(*this);
  record.key("name").quoted(configuration.name);
  record.key("num_devices").integer(configuration.num_devices);
  if (!configuration.device.empty()) record.key("device").strings(configuration.device);
  record.close();
}

void TextPrinter::node_device_configuration(const ir::NodeDeviceConfiguration& configuration) {
  Record record(*this);
  record.key("configuration_id").quoted(configuration.configuration_id);
  if (configuration.has_pipeline_stage) {
    record.key("pipeline_stage").integer(configuration.pipeline_stage);
  }
  if (!configuration.sharding_spec.empty()) {
    record.key("sharding_spec");
    list("[", "]", configuration.sharding_spec,
         [&](const ir::ShardingSpec& spec) { sharding_spec(spec); });
  }
  record.close();
}

void TextPrinter::sharding_spec(const ir::ShardingSpec& spec) {
  const auto integers = [&](const std::vector<int64_t>& values) {
    list("[", "]", values, [&](int64_t value) { integer(value); });
  };
  Record record(*this);
  record.key("tensor_name").quoted(spec.tensor_name);
  if (!spec.device.empty()) {
    record.key("device");
    integers(spec.device);
  }
  if (!spec.index_to_device_group_map.empty()) {
    record.key("index_to_device_group_map");
    list("[", "]", spec.index_to_device_group_map, [&](const ir::IntIntListEntry& entry) {
      out_ += fmt::format("{}: ", entry.key);
      integers(entry.value);
    });
  }
  if (!spec.sharded_dim.empty()) {
    record.key("sharded_dim");
    list("[", "]", spec.sharded_dim, [&](const ir::ShardedDim& dim) {
      Record inner(*this);
      inner.key("axis").integer(dim.axis);
      inner.key("simple_sharding");
      list("[", "]", dim.simple_sharding,
           [&](const ir::SimpleShardedDim& sharding) { simple_sharding(sharding); });
      inner.close();
    });
  }
  record.close();
}

void TextPrinter::simple_sharding(const ir::SimpleShardedDim& sharding) {
  Record record(*this);
  if (sharding.dim_value) record.key("dim_value").integer(*sharding.dim_value);
  if (sharding.dim_param) record.key("dim_param").quoted(*sharding.dim_param);
  record.key("num_shards").integer(sharding.num_shards);
  record.close();
}

}  // namespace sardonyx::wire
