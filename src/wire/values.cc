// Values of every kind <-> the messages of the standard's data files.
#include <memory>
#include <set>

#include "base/fail.h"
#include "base/value_kind.h"
#include "wire/data_messages.h"
#include "wire/proto_reader.h"
#include "wire/proto_writer.h"
#include "wire/read.h"
#include "wire/tensor.h"
#include "wire/write.h"

namespace sardonyx::wire {
namespace {

using Kind = ir::TypeProto::Kind;

// Message -> value. The reader has bounded the depth of the messages.

class FromMessages {
 public:
  explicit FromMessages(ExternalData* external) : external_(external) {}

  Value value_of(const ir::TensorProto& m) const { return to_tensor(m, external_); }
  Value value_of(const ir::SparseTensorProto& m) const { return to_sparse_tensor(m, external_); }
  Value value_of(const SequenceProto& m) const { return sequence_of(m); }
  Value value_of(const MapProto& m) const { return map_of(m); }
  Value value_of(const OptionalProto& m) const;

 private:
  Sequence sequence_of(const SequenceProto& m) const;
  Map map_of(const MapProto& m) const;

  template <class M>
  void append(const std::vector<M>& from, Sequence& sequence) const {
    for (const M& item : from) sequence.items.push_back(value_of(item));
  }

  ExternalData* external_;
};

Sequence FromMessages::sequence_of(const SequenceProto& m) const {
  const bool filled[] = {!m.tensor_values.empty(), !m.sparse_tensor_values.empty(),
                         !m.sequence_values.empty(), !m.map_values.empty(),
                         !m.optional_values.empty()};
  if (m.elem_type < 0 || m.elem_type > 5) {
    fail(ErrorCode::invalid_model, "sequence '{}': its elem_type {} is not in [0, 5]", m.name,
         m.elem_type);
  }
  for (int32_t i = 0; i < 5; ++i) {
    if (filled[i] && i + 1 != m.elem_type) {
      fail(ErrorCode::invalid_model,
           "sequence '{}': its elem_type is {}, but it has elements of type {}", m.name,
           m.elem_type, i + 1);
    }
  }
  Sequence sequence;
  append(m.tensor_values, sequence);
  append(m.sparse_tensor_values, sequence);
  append(m.sequence_values, sequence);
  append(m.map_values, sequence);
  append(m.optional_values, sequence);
  for (const Value& item : sequence.items) {
    if (item.is_tensor() &&
        item.tensor().element_type() != sequence.items[0].tensor().element_type()) {
      fail(ErrorCode::invalid_model, "sequence '{}': it mixes tensors of {} and {}", m.name,
           name_of(sequence.items[0].tensor().element_type()),
           name_of(item.tensor().element_type()));
    }
  }
  return sequence;
}

template <class To>
Tensor narrowed_keys(const MapProto& m) {
  Tensor keys(element_type_of<To>::value, {static_cast<int64_t>(m.keys.size())});
  auto out = keys.mutable_elements<To>();
  for (size_t i = 0; i < m.keys.size(); ++i) {
    out[i] = static_cast<To>(m.keys[i]);
    if (static_cast<int64_t>(out[i]) != m.keys[i]) {
      fail(ErrorCode::invalid_model, "map '{}': its key {} does not fit its key type", m.name,
           m.keys[i]);
    }
  }
  return keys;
}

Tensor keys_of(const MapProto& m) {
  const auto type = static_cast<ElementType>(m.key_type);
  const bool strings = type == ElementType::string;
  if (!strings && (!is_integer(type) || bit_width(type) < 8)) {
    fail(ErrorCode::invalid_model,
         "map '{}': its key_type {} is neither an integer type nor string", m.name, m.key_type);
  }
  if (strings ? !m.keys.empty() : !m.string_keys.empty()) {
    fail(ErrorCode::invalid_model, "map '{}': its key_type is {}, but it has other keys", m.name,
         name_of(type));
  }
  switch (type) {
    case ElementType::string:
      return Tensor::of<std::string>(m.string_keys, {static_cast<int64_t>(m.string_keys.size())});
    case ElementType::int8: return narrowed_keys<int8_t>(m);
    case ElementType::int16: return narrowed_keys<int16_t>(m);
    case ElementType::int32: return narrowed_keys<int32_t>(m);
    case ElementType::uint8: return narrowed_keys<uint8_t>(m);
    case ElementType::uint16: return narrowed_keys<uint16_t>(m);
    case ElementType::uint32: return narrowed_keys<uint32_t>(m);
    case ElementType::uint64: return narrowed_keys<uint64_t>(m);
    default: return narrowed_keys<int64_t>(m);
  }
}

Map FromMessages::map_of(const MapProto& m) const {
  Map map;
  map.keys = keys_of(m);
  if (m.values) map.values = sequence_of(*m.values).items;
  const auto count = static_cast<size_t>(map.keys.size());
  if (map.values.size() != count) {
    fail(ErrorCode::invalid_model, "map '{}': it has {} keys and {} values", m.name, count,
         map.values.size());
  }
  if (std::set<int64_t>(m.keys.begin(), m.keys.end()).size() != m.keys.size() ||
      std::set<std::string>(m.string_keys.begin(), m.string_keys.end()).size() !=
          m.string_keys.size()) {
    fail(ErrorCode::invalid_model, "map '{}': it has a key twice", m.name);
  }
  return map;
}

Value FromMessages::value_of(const OptionalProto& m) const {
  const bool filled[] = {m.tensor_value != nullptr, m.sparse_tensor_value != nullptr,
                         m.sequence_value != nullptr, m.map_value != nullptr,
                         m.optional_value != nullptr};
  Optional optional;
  if (m.elem_type == 0) return optional;
  if (m.elem_type < 0 || m.elem_type > 5) {
    fail(ErrorCode::invalid_model, "optional '{}': its elem_type {} is not in [0, 5]", m.name,
         m.elem_type);
  }
  for (int32_t i = 0; i < 5; ++i) {
    if (filled[i] && i + 1 != m.elem_type) {
      fail(ErrorCode::invalid_model, "optional '{}': its elem_type is {}, but it holds type {}",
           m.name, m.elem_type, i + 1);
    }
  }
  if (m.tensor_value) optional.held = std::make_unique<Value>(value_of(*m.tensor_value));
  if (m.sparse_tensor_value)
    optional.held = std::make_unique<Value>(value_of(*m.sparse_tensor_value));
  if (m.sequence_value) optional.held = std::make_unique<Value>(value_of(*m.sequence_value));
  if (m.map_value) optional.held = std::make_unique<Value>(value_of(*m.map_value));
  if (m.optional_value) optional.held = std::make_unique<Value>(value_of(*m.optional_value));
  return optional;
}

template <class M>
Value read_as(const Bytes& bytes, std::string_view root, ExternalData* external) {
  M message;
  ProtoReader(bytes, root).read(message);
  return FromMessages(external).value_of(message);
}

// Value -> message.

constexpr int max_value_depth = 40;

[[noreturn]] void too_deep() {
  fail(ErrorCode::unsupported, "values nested more than {} deep cannot be written",
       max_value_depth);
}

MapProto message_of(const Map& map, const std::string& name, int depth);
OptionalProto message_of(const Optional& optional, const std::string& name, int depth);

// Which of the message kinds a value becomes.
DataKind data_kind(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::tensor: return DataKind::tensor;
    case Value::Kind::sparse_tensor: return DataKind::sparse_tensor;
    case Value::Kind::sequence: return DataKind::sequence;
    case Value::Kind::map: return DataKind::map;
    case Value::Kind::optional: return DataKind::optional;
    case Value::Kind::none: break;
  }
  fail(ErrorCode::bad_input, "there is no value to write");
}

SequenceProto message_of(const std::vector<Value>& items, const std::string& name, int depth) {
  if (depth > max_value_depth) too_deep();
  SequenceProto m;
  m.name = name;
  // An empty sequence says nothing about its elements; tensors are what the readers expect.
  m.elem_type = static_cast<int32_t>(items.empty() ? DataKind::tensor : data_kind(items[0]));
  for (const Value& item : items) {
    if (static_cast<int32_t>(data_kind(item)) != m.elem_type) {
      fail(ErrorCode::bad_input, "a sequence holds both {} and {}", with_article(items[0].kind()),
           with_article(item.kind()));
    }
    switch (item.kind()) {
      case Value::Kind::tensor: m.tensor_values.push_back(to_proto(item.tensor())); break;
      case Value::Kind::sparse_tensor:
        m.sparse_tensor_values.push_back(to_proto(item.sparse_tensor()));
        break;
      case Value::Kind::sequence:
        m.sequence_values.push_back(message_of(item.sequence().items, {}, depth + 1));
        break;
      case Value::Kind::map: m.map_values.push_back(message_of(item.map(), {}, depth + 1)); break;
      default: m.optional_values.push_back(message_of(item.optional(), {}, depth + 1)); break;
    }
  }
  return m;
}

template <class T>
void widen_keys(const Tensor& keys, MapProto& m) {
  for (const T key : keys.elements<T>()) m.keys.push_back(static_cast<int64_t>(key));
}

MapProto message_of(const Map& map, const std::string& name, int depth) {
  MapProto m;
  m.name = name;
  m.key_type = static_cast<int32_t>(map.keys.element_type());
  switch (map.keys.element_type()) {
    case ElementType::string: {
      const auto keys = map.keys.elements<std::string>();
      m.string_keys.assign(keys.begin(), keys.end());
      break;
    }
    case ElementType::int8: widen_keys<int8_t>(map.keys, m); break;
    case ElementType::int16: widen_keys<int16_t>(map.keys, m); break;
    case ElementType::int32: widen_keys<int32_t>(map.keys, m); break;
    case ElementType::int64: widen_keys<int64_t>(map.keys, m); break;
    case ElementType::uint8: widen_keys<uint8_t>(map.keys, m); break;
    case ElementType::uint16: widen_keys<uint16_t>(map.keys, m); break;
    case ElementType::uint32: widen_keys<uint32_t>(map.keys, m); break;
    case ElementType::uint64: widen_keys<uint64_t>(map.keys, m); break;
    default:
      fail(ErrorCode::bad_input, "a map cannot have keys of {}", name_of(map.keys.element_type()));
  }
  m.values = std::make_shared<SequenceProto>(message_of(map.values, {}, depth + 1));
  return m;
}

OptionalProto message_of(const Optional& optional, const std::string& name, int depth) {
  if (depth > max_value_depth) too_deep();
  OptionalProto m;
  m.name = name;
  if (!optional.held) return m;
  const Value& held = *optional.held;
  m.elem_type = static_cast<int32_t>(data_kind(held));
  switch (held.kind()) {
    case Value::Kind::tensor:
      m.tensor_value = std::make_shared<ir::TensorProto>(to_proto(held.tensor()));
      break;
    case Value::Kind::sparse_tensor:
      m.sparse_tensor_value =
          std::make_shared<ir::SparseTensorProto>(to_proto(held.sparse_tensor()));
      break;
    case Value::Kind::sequence:
      m.sequence_value =
          std::make_shared<SequenceProto>(message_of(held.sequence().items, {}, depth + 1));
      break;
    case Value::Kind::map:
      m.map_value = std::make_shared<MapProto>(message_of(held.map(), {}, depth + 1));
      break;
    default:
      m.optional_value =
          std::make_shared<OptionalProto>(message_of(held.optional(), {}, depth + 1));
      break;
  }
  return m;
}

ir::TypeProto type_at(const Value& value, int depth) {
  if (depth > max_value_depth) too_deep();
  ir::TypeProto type;
  const auto shape_of = [](const Shape& dims) {
    ir::TensorShape shape;
    for (const int64_t dim : dims) shape.dims.emplace_back().value = dim;
    return shape;
  };
  const auto hold = [&](const Value* element) {
    type.nested =
        std::make_shared<ir::TypeProto>(element ? type_at(*element, depth + 1) : ir::TypeProto{});
  };
  switch (value.kind()) {
    case Value::Kind::none: break;
    case Value::Kind::tensor:
      type.kind = Kind::tensor;
      type.elem_type = static_cast<int32_t>(value.tensor().element_type());
      type.shape = shape_of(value.tensor().shape());
      break;
    case Value::Kind::sparse_tensor:
      type.kind = Kind::sparse_tensor;
      type.elem_type = static_cast<int32_t>(value.sparse_tensor().values.element_type());
      type.shape = shape_of(value.sparse_tensor().shape);
      break;
    case Value::Kind::sequence:
      type.kind = Kind::sequence;
      hold(value.sequence().items.empty() ? nullptr : &value.sequence().items[0]);
      break;
    case Value::Kind::map:
      type.kind = Kind::map;
      type.elem_type = static_cast<int32_t>(value.map().keys.element_type());
      hold(value.map().values.empty() ? nullptr : &value.map().values[0]);
      break;
    case Value::Kind::optional:
      type.kind = Kind::optional;
      hold(value.optional().held.get());
      break;
  }
  return type;
}

}  // namespace

namespace {

// People write the bare element where an optional is asked for. A TensorProto can be read as an
// OptionalProto, of which nothing but an element type is left: what that does not know tells them
// apart.
Value read_optional(const Bytes& bytes, const ir::TypeProto& expected, ExternalData* external) {
  OptionalProto message;
  ProtoReader(bytes, "OptionalProto").read(message);
  if (message.unknown.bytes.empty() || !expected.nested)
    return FromMessages(external).value_of(message);
  Optional optional;
  optional.held = std::make_unique<Value>(read_value(bytes, *expected.nested, external));
  return optional;
}

}  // namespace

Value read_value(const Bytes& bytes, const ir::TypeProto& expected, ExternalData* external) {
  switch (expected.kind) {
    case Kind::sequence: return read_as<SequenceProto>(bytes, "SequenceProto", external);
    case Kind::map: return read_as<MapProto>(bytes, "MapProto", external);
    case Kind::sparse_tensor:
      return read_as<ir::SparseTensorProto>(bytes, "SparseTensorProto", external);
    case Kind::optional: return read_optional(bytes, expected, external);
    case Kind::opaque: fail(ErrorCode::unsupported, "values of opaque types have no stored form");
    case Kind::none:
    case Kind::tensor: break;
  }
  return read_as<ir::TensorProto>(bytes, "TensorProto", external);
}

std::string write_value(const Value& value, const std::string& name) {
  switch (data_kind(value)) {
    case DataKind::sparse_tensor:
      return ProtoWriter::text_of(to_proto(value.sparse_tensor(), name));
    case DataKind::sequence:
      return ProtoWriter::text_of(message_of(value.sequence().items, name, 0));
    case DataKind::map: return ProtoWriter::text_of(message_of(value.map(), name, 0));
    case DataKind::optional: return ProtoWriter::text_of(message_of(value.optional(), name, 0));
    default: return ProtoWriter::text_of(to_proto(value.tensor(), name));
  }
}

ir::TypeProto type_of(const Value& value) { return type_at(value, 0); }

}  // namespace sardonyx::wire
