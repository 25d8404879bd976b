// Values: tensors, and the kinds that are made of others.
#include <algorithm>
#include <numeric>

#include "base/value_kind.h"
#include "ir/tensor.h"
#include "ort_api/handles.h"
#include "sardonyx/elements.h"

namespace sardonyx::ort_api {

namespace {

OrtStatus* CreateTensorAsOrtValue(OrtAllocator* allocator, const int64_t* dims, size_t count,
                                  ONNXTensorElementDataType type, OrtValue** out) {
  return guarded([&] {
    OrtAllocator& from = required(allocator, "allocator");
    const ElementType element = element_type_of(type);
    Shape shape = shape_of(dims, count);
    required(out, "out");
    if (&from == default_allocator() || element == ElementType::string) {
      *out = new OrtValue{Tensor(element, std::move(shape))};
      return;
    }
    int64_t elements = 1;
    for (const int64_t size : shape)
      if (__builtin_mul_overflow(elements, size, &elements))
        refuse(ORT_INVALID_ARGUMENT, "the shape {} has more elements than 64 bits can count",
               to_string(shape));
    const int64_t bytes = byte_size(element, elements);
    std::shared_ptr<const void> memory(
        given_memory(allocator, static_cast<size_t>(bytes)),
        [allocator](const void* data) { allocator->Free(allocator, const_cast<void*>(data)); });
    const void* const data = memory.get();
    *out = new OrtValue{Tensor::view(element, std::move(shape), data, static_cast<size_t>(bytes),
                                     std::move(memory))};
  });
}

OrtStatus* CreateTensorWithDataAsOrtValue(const OrtMemoryInfo* info, void* data, size_t bytes,
                                          const int64_t* dims, size_t count,
                                          ONNXTensorElementDataType type, OrtValue** out) {
  return guarded([&] {
    require_cpu(required(info, "info"));
    items(static_cast<char*>(data), bytes, "p_data");
    give(out, "out",
         new OrtValue{Tensor::view(element_type_of(type), shape_of(dims, count), data, bytes)});
  });
}

OrtStatus* CreateTensorWithDataAndDeleterAsOrtValue(OrtAllocator* deleter, void* data, size_t bytes,
                                                    const int64_t* dims, size_t count,
                                                    ONNXTensorElementDataType type,
                                                    OrtValue** out) {
  return guarded([&] {
    required(deleter, "deleter");
    items(static_cast<char*>(data), bytes, "p_data");
    required(out, "out");
    // Looked at before it is owned: on failure the memory stays the caller's.
    const Tensor seen = Tensor::view(element_type_of(type), shape_of(dims, count), data, bytes);
    auto value = std::make_unique<OrtValue>();
    std::shared_ptr<const void> owner(
        data, [deleter](const void* memory) { deleter->Free(deleter, const_cast<void*>(memory)); });
    value->value = Tensor::view(seen.element_type(), seen.shape(), data, bytes, std::move(owner));
    *out = value.release();
  });
}

OrtStatus* IsTensor(const OrtValue* value, int* out) {
  return guarded([&] { required(out, "out") = required(value, "value").value.is_tensor(); });
}
OrtStatus* HasValue(const OrtValue* value, int* out) {
  return guarded(
      [&] { required(out, "out") = required(value, "value").value.kind() != Value::Kind::none; });
}

OrtStatus* GetTensorMutableData(OrtValue* value, void** out) {
  return guarded([&] { required(out, "out") = tensor_of(value, "value").mutable_data(); });
}
OrtStatus* GetTensorData(const OrtValue* value, const void** out) {
  return guarded([&] { required(out, "out") = tensor_of(value, "value").data(); });
}
OrtStatus* GetTensorSizeInBytes(const OrtValue* value, size_t* out) {
  return guarded([&] {
    const Tensor& tensor = tensor_of(value, "value");
    if (tensor.element_type() == ElementType::string)
      refuse(ORT_INVALID_ARGUMENT,
             "strings have no size in bytes; GetStringTensorDataLength() has their length");
    required(out, "size") = tensor.byte_size();
  });
}

OrtStatus* GetTensorElementTypeAndShapeDataReference(const OrtValue* value,
                                                     ONNXTensorElementDataType* type,
                                                     const int64_t** dims, size_t* count) {
  return guarded([&] {
    const Value& held = required(value, "value").value;
    const bool is_sparse = held.kind() == Value::Kind::sparse_tensor;
    const Tensor& elements = is_sparse ? held.sparse_tensor().values : tensor_of(value, "value");
    const Shape& shape = is_sparse ? held.sparse_tensor().shape : elements.shape();
    required(type, "elem_type") = number_of(elements.element_type());
    required(dims, "shape_data") = shape.empty() ? nullptr : shape.data();
    required(count, "shape_data_count") = shape.size();
  });
}

// The address of one element.
OrtStatus* TensorAt(OrtValue* value, const int64_t* places, size_t count, void** out) {
  return guarded([&] {
    Tensor& tensor = tensor_of(value, "value");
    const Shape& shape = tensor.shape();
    const int bits = bit_width(tensor.element_type());
    if (tensor.element_type() == ElementType::string || bits < 8)
      refuse(ORT_INVALID_ARGUMENT, "elements of type {} have no address",
             name_of(tensor.element_type()));
    items(places, count, "location_values");
    if (count != shape.size())
      refuse(ORT_INVALID_ARGUMENT, "{} numbers were given for the place of an element of shape {}",
             count, to_string(shape));
    int64_t index = 0;
    for (size_t i = 0; i < count; ++i) {
      if (places[i] < 0 || places[i] >= shape[i])
        refuse(ORT_INVALID_ARGUMENT, "{} lies outside of dimension {} of shape {}", places[i], i,
               to_string(shape));
      index = index * shape[i] + places[i];
    }
    required(out, "out") = static_cast<char*>(tensor.mutable_data()) + index * (bits / 8);
  });
}

OrtStatus* GetTensorMemoryInfo(const OrtValue* value, const OrtMemoryInfo** out) {
  return guarded([&] {
    if (!required(value, "value").value.is_tensor() &&
        value->value.kind() != Value::Kind::sparse_tensor)
      refuse(ORT_FAIL, "{} has no memory of its own", with_article(value->value.kind()));
    required(out, "mem_info") = &cpu_memory();
  });
}

// The places of different keys in ascending order, the first of equal ones: callers' maps are
// sorted.
template <class Key>
std::vector<size_t> sorted_places(std::span<const Key> keys) {
  std::vector<size_t> places(keys.size());
  std::iota(places.begin(), places.end(), size_t{0});
  std::ranges::stable_sort(places, {}, [&](size_t i) -> const Key& { return keys[i]; });
  const auto is_same = [&](size_t a, size_t b) { return keys[a] == keys[b]; };
  places.erase(std::unique(places.begin(), places.end(), is_same), places.end());
  return places;
}
std::vector<size_t> sorted_places(const Tensor& keys) {
  if (keys.element_type() == ElementType::string)
    return sorted_places(std::span<const std::string>(keys.elements<std::string>()));
  if (keys.element_type() == ElementType::int64)
    return sorted_places(std::span<const int64_t>(keys.elements<int64_t>()));
  std::vector<size_t> places(static_cast<size_t>(keys.size()));
  std::iota(places.begin(), places.end(), size_t{0});
  return places;
}

// Of the same type, whose elements are texts or whole bytes.
void copy_element(const Tensor& from, size_t place, Tensor& to, size_t at) {
  if (from.element_type() == ElementType::string) {
    to.mutable_elements<std::string>()[at] = from.elements<std::string>()[place];
    return;
  }
  const auto bytes = static_cast<size_t>(bit_width(from.element_type()) / 8);
  std::memcpy(static_cast<char*>(to.mutable_data()) + at * bytes,
              static_cast<const char*>(from.data()) + place * bytes, bytes);
}

// A map's keys, in memory of their own.
Tensor keys_at(const Tensor& keys, const std::vector<size_t>& places) {
  Tensor made(keys.element_type(), {static_cast<int64_t>(places.size())});
  for (size_t i = 0; i < places.size(); ++i) copy_element(keys, places[i], made, i);
  return made;
}

// The values of a map as one tensor, which is how callers see them.
Tensor values_of(const Map& map, const std::vector<size_t>& places) {
  if (map.values.empty()) return Tensor(ElementType::float32, {0});
  const Tensor& first = map.values.front().tensor();
  Tensor all(first.element_type(), {static_cast<int64_t>(places.size())});
  for (size_t i = 0; i < places.size(); ++i) {
    const Tensor& one = map.values[places[i]].tensor();
    if (one.element_type() != first.element_type() || one.size() != 1)
      refuse(ORT_NOT_IMPLEMENTED, "the values of the map are not single elements of one type");
    copy_element(one, 0, all, i);
  }
  return all;
}

// The other way round: scalars, each with memory of its own.
std::vector<Value> scalars_of(const Tensor& all, const std::vector<size_t>& places) {
  std::vector<Value> values;
  for (const size_t place : places) {
    Tensor one(all.element_type(), {});
    copy_element(all, place, one, 0);
    values.emplace_back(std::move(one));
  }
  return values;
}

OrtStatus* GetValueCount(const OrtValue* value, size_t* out) {
  return guarded([&] {
    const Value& held = required(value, "value").value;
    if (held.kind() == Value::Kind::sequence) {
      required(out, "out") = held.sequence().items.size();
    } else if (held.kind() == Value::Kind::map) {
      required(out, "out") = 2;  // keys and values
    } else {
      refuse(ORT_FAIL, "{} is made of no other values", with_article(held.kind()));
    }
  });
}

// Item `index` of a sequence; keys (0) or values (1) of a map.
OrtStatus* GetValue(const OrtValue* value, int index, OrtAllocator*, OrtValue** out) {
  return guarded([&] {
    const Value& held = required(value, "value").value;
    required(out, "out");
    if (held.kind() == Value::Kind::sequence) {
      const auto& found = held.sequence().items;
      if (index < 0 || static_cast<size_t>(index) >= found.size())
        refuse(ORT_FAIL, "the sequence has {} items, and item {} was asked for", found.size(),
               index);
      *out = new_value(found[static_cast<size_t>(index)]);
    } else if (held.kind() == Value::Kind::map) {
      if (index != 0 && index != 1)
        refuse(ORT_FAIL, "a map has keys (0) and values (1), and {} was asked for", index);
      const Map& map = held.map();
      const std::vector<size_t> places = sorted_places(map.keys);
      *out = new OrtValue{index == 0 ? keys_at(map.keys, places) : values_of(map, places)};
    } else {
      refuse(ORT_FAIL, "{} is made of no other values", with_article(held.kind()));
    }
  });
}

bool are_alike(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  if (a.is_tensor()) return a.tensor().element_type() == b.tensor().element_type();
  const Map &first = a.map(), &other = b.map();
  if (first.keys.element_type() != other.keys.element_type()) return false;
  return first.values.empty() || other.values.empty() ||
         are_alike(first.values[0], other.values[0]);
}

bool is_key_type(ElementType type) {
  return type == ElementType::string || type == ElementType::int64;
}
bool is_map_value_type(ElementType type) {
  return is_key_type(type) || type == ElementType::float32 || type == ElementType::float64;
}

OrtStatus* CreateValue(const OrtValue* const* in, size_t count, ONNXType type, OrtValue** out) {
  return guarded([&] {
    items(in, count, "in");
    required(out, "out");
    for (size_t i = 0; i < count; ++i) required(in[i], "in");
    if (type == ONNX_TYPE_SEQUENCE) {
      if (count == 0)
        refuse(ORT_FAIL, "a sequence is made of one value at least, so that it has a type");
      Sequence sequence;
      for (size_t i = 0; i < count; ++i) {
        const Value::Kind kind = in[i]->value.kind();
        if (kind != Value::Kind::tensor && kind != Value::Kind::map)
          refuse(ORT_FAIL, "the items of a sequence are tensors or maps; item {} is a {}", i,
                 name_of(kind));
        if (!are_alike(in[i]->value, in[0]->value))
          refuse(ORT_FAIL, "the items of a sequence are of one type, and item {} is of another", i);
        sequence.items.push_back(run_value(*in[i]));
      }
      *out = new OrtValue{std::move(sequence)};
    } else if (type == ONNX_TYPE_MAP) {
      if (count != 2)
        refuse(ORT_FAIL, "a map is made of two values, keys and values; {} were given", count);
      // A caller's memory may begin anywhere.
      const Tensor keys = ir::aligned(tensor_of(in[0], "in"));
      const Tensor& values = tensor_of(in[1], "in");
      if (keys.size() != values.size())
        refuse(ORT_FAIL, "{} keys were given, and {} values", keys.size(), values.size());
      // Neither graphs nor other callers have others, and their elements are whole bytes.
      if (!is_key_type(keys.element_type()) || !is_map_value_type(values.element_type()))
        refuse(ORT_FAIL, "there are no maps from {} to {}", name_of(keys.element_type()),
               name_of(values.element_type()));
      const std::vector<size_t> places = sorted_places(keys);
      *out = new OrtValue{Map{keys_at(keys, places), scalars_of(values, places)}};
    } else {
      refuse(ORT_FAIL, "values are made of others for sequences and maps alone");
    }
  });
}

OrtStatus* CreateOpaqueValue(const char*, const char*, const void*, size_t, OrtValue**) {
  return new_status(ORT_NOT_IMPLEMENTED, "Sardonyx has no values of opaque types");
}
OrtStatus* GetOpaqueValue(const char*, const char*, const OrtValue*, void*, size_t) {
  return new_status(ORT_NOT_IMPLEMENTED, "Sardonyx has no values of opaque types");
}

void ReleaseValue(OrtValue* value) { delete value; }

}  // namespace

const Tensor& tensor_of(const OrtValue* value, const char* name) {
  const Value& held = required(value, name).value;
  if (!held.is_tensor())
    refuse(ORT_INVALID_ARGUMENT, "'{}' is a tensor in this function; {} was given", name,
           with_article(held.kind()));
  return held.tensor();
}

Tensor& tensor_of(OrtValue* value, const char* name) {
  // The handle is its holder's to write to, with all that share the elements.
  return const_cast<Tensor&>(tensor_of(static_cast<const OrtValue*>(value), name));
}

Shape shape_of(const int64_t* dims, size_t count) {
  items(dims, count, "shape");
  for (size_t i = 0; i < count; ++i)
    if (dims[i] < 0)
      refuse(ORT_INVALID_ARGUMENT, "dimension {} of the shape is negative: {}", i, dims[i]);
  return Shape(dims, dims + count);
}

OrtValue* new_value(Value value) {
  if (value.kind() != Value::Kind::optional) return new OrtValue{std::move(value)};
  const auto& held = value.optional().held;
  return held == nullptr ? new OrtValue : new OrtValue{*held};
}

void add_values(OrtApi& table) {
  table.CreateTensorAsOrtValue = CreateTensorAsOrtValue;
  table.CreateTensorWithDataAsOrtValue = CreateTensorWithDataAsOrtValue;
  table.CreateTensorWithDataAndDeleterAsOrtValue = CreateTensorWithDataAndDeleterAsOrtValue;
  table.IsTensor = IsTensor;
  table.HasValue = HasValue;
  table.GetTensorMutableData = GetTensorMutableData;
  table.GetTensorData = GetTensorData;
  table.GetTensorSizeInBytes = GetTensorSizeInBytes;
  table.GetTensorElementTypeAndShapeDataReference = GetTensorElementTypeAndShapeDataReference;
  table.TensorAt = TensorAt;
  table.GetTensorMemoryInfo = GetTensorMemoryInfo;
  table.GetValueCount = GetValueCount;
  table.GetValue = GetValue;
  table.CreateValue = CreateValue;
  table.CreateOpaqueValue = CreateOpaqueValue;
  table.GetOpaqueValue = GetOpaqueValue;
  table.ReleaseValue = ReleaseValue;
}

}  // namespace sardonyx::ort_api
