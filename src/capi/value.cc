#include "capi/handles.h"
#include "ir/tensor.h"

namespace sardonyx::capi {

Shape shape_of(size_t rank, const int64_t* dims) {
  constexpr size_t max_rank = 4096;
  if (rank > max_rank)
    fail(ErrorCode::bad_input, "{} dimensions are more than the {} a tensor may have", rank,
         max_rank);
  if (rank > 0) required(dims, "dims");
  return Shape(dims, dims + rank);
}

const Value& value_of(const sardonyx_value* handle, const char* argument) {
  return required(handle, argument).value;
}

sardonyx_value* new_value(Value value, bool writable) {
  return new sardonyx_value{{}, std::move(value), writable};
}

bool is_alone(const sardonyx_value& handle) {
  return handle.value.tensor().owner().use_count() <= 1;
}

void refuse_string_output(const Tensor& tensor, const std::string& output) {
  if (tensor.element_type() == ElementType::string)
    fail(ErrorCode::bad_input,
         "the tensor given for output '{}' holds strings; runs make such outputs anew, give NULL",
         output);
}

namespace {

ElementType element_of(sardonyx_element_type type) {
  const auto element = static_cast<ElementType>(type);
  if (!is_known(element))
    fail(ErrorCode::bad_input, "{} is the number of no element type", static_cast<int>(type));
  return element;
}

const Tensor& tensor_of(const sardonyx_value* handle) {
  return value_of(handle, "tensor").tensor();
}

void refuse_strings(const Tensor& tensor) {
  if (tensor.element_type() == ElementType::string)
    fail(ErrorCode::bad_input, "strings are read with sardonyx_tensor_string");
}

std::vector<Value> values_of(const sardonyx_value* const* items, size_t count,
                             const char* argument) {
  if (count > 0) required(items, argument);
  std::vector<Value> values;
  for (size_t i = 0; i < count; ++i) values.push_back(value_of(items[i], argument));
  return values;
}

void require_index(size_t index, size_t count) {
  if (index >= count) fail(ErrorCode::bad_input, "there is no item {} of {}", index, count);
}

}  // namespace
}  // namespace sardonyx::capi

using namespace sardonyx;
using namespace sardonyx::capi;

int sardonyx_element_bits(sardonyx_element_type type) {
  const auto element = static_cast<ElementType>(type);
  return is_known(element) ? bit_width(element) : 0;
}

const char* sardonyx_element_name(sardonyx_element_type type) {
  return name_of(static_cast<ElementType>(type)).data();
}

void sardonyx_value_release(sardonyx_value* value) { release_handle(value); }

sardonyx_status* sardonyx_value_share(const sardonyx_value* value, sardonyx_value** shared) {
  return guarded([&] {
    required(shared, "shared");
    *shared = new_value(value_of(value, "value"));
  });
}

sardonyx_kind sardonyx_value_kind(const sardonyx_value* value) {
  return !is_usable(value) ? SARDONYX_NONE : static_cast<sardonyx_kind>(value->value.kind());
}

sardonyx_status* sardonyx_tensor_create(sardonyx_element_type type, size_t rank,
                                        const int64_t* dims, sardonyx_value** tensor) {
  return guarded([&] {
    required(tensor, "tensor");
    Tensor made(element_of(type), shape_of(rank, dims));
    if (made.element_type() != ElementType::string && made.byte_size() > 0)
      std::memset(made.mutable_data(), 0, made.byte_size());
    *tensor = new_value(std::move(made), true);
  });
}

sardonyx_status* sardonyx_tensor_wrap(sardonyx_element_type type, size_t rank, const int64_t* dims,
                                      const void* data, size_t bytes, void (*release)(void* user),
                                      void* user, sardonyx_value** tensor) {
  return guarded([&] {
    required(tensor, "tensor");
    if (bytes > 0) required(static_cast<const char*>(data), "data");
    auto owner = release != nullptr ? std::make_shared<Released>() : nullptr;
    auto made = std::make_unique<sardonyx_value>();
    made->value = Tensor::view(element_of(type), shape_of(rank, dims), data, bytes, owner);
    if (owner) owner->release = release, owner->user = user;  // nothing can fail any more
    *tensor = made.release();
  });
}

sardonyx_status* sardonyx_tensor_wrap_mutable(sardonyx_element_type type, size_t rank,
                                              const int64_t* dims, void* data, size_t bytes,
                                              void (*release)(void* user), void* user,
                                              sardonyx_value** tensor) {
  sardonyx_status* status =
      sardonyx_tensor_wrap(type, rank, dims, data, bytes, release, user, tensor);
  if (status == nullptr) (*tensor)->writable = true;
  return status;
}

sardonyx_status* sardonyx_tensor_create_strings(size_t rank, const int64_t* dims,
                                                const char* const* texts, const size_t* lengths,
                                                sardonyx_value** tensor) {
  return guarded([&] {
    required(tensor, "tensor");
    Tensor made(ElementType::string, shape_of(rank, dims));
    const auto elements = made.mutable_elements<std::string>();
    if (!elements.empty()) required(texts, "texts");
    for (size_t i = 0; i < elements.size(); ++i) {
      const char* text = &required(texts[i], "texts");
      elements[i].assign(text, lengths != nullptr ? lengths[i] : std::strlen(text));
    }
    *tensor = new_value(std::move(made));
  });
}

sardonyx_status* sardonyx_tensor_type(const sardonyx_value* tensor, sardonyx_element_type* type,
                                      size_t* rank, const int64_t** dims, int64_t* elements) {
  return guarded([&] {
    const Tensor& of = tensor_of(tensor);
    if (type != nullptr) *type = static_cast<sardonyx_element_type>(of.element_type());
    if (rank != nullptr) *rank = of.shape().size();
    if (dims != nullptr) *dims = of.shape().data();
    if (elements != nullptr) *elements = of.size();
  });
}

sardonyx_status* sardonyx_tensor_data(const sardonyx_value* tensor, const void** data,
                                      size_t* bytes) {
  return guarded([&] {
    const Tensor& of = tensor_of(tensor);
    refuse_strings(of);
    required(data, "data") = of.data();
    if (bytes != nullptr) *bytes = of.byte_size();
  });
}

sardonyx_status* sardonyx_tensor_mutable_data(sardonyx_value* tensor, void** data, size_t* bytes) {
  return guarded([&] {
    const Tensor& of = tensor_of(tensor);
    refuse_strings(of);
    required(data, "data");
    if (!tensor->writable)
      fail(ErrorCode::bad_input,
           "the tensor is not for writing: it was made neither by sardonyx_tensor_create nor by "
           "sardonyx_tensor_wrap_mutable");
    if (!is_alone(*tensor))
      fail(ErrorCode::bad_input, "something else shares the tensor's elements");
    *data = const_cast<void*>(of.data());
    if (bytes != nullptr) *bytes = of.byte_size();
  });
}

sardonyx_status* sardonyx_tensor_string(const sardonyx_value* tensor, size_t index,
                                        const char** text, size_t* length) {
  return guarded([&] {
    const auto elements = tensor_of(tensor).elements<std::string>();
    require_index(index, elements.size());
    required(text, "text") = elements[index].c_str();
    if (length != nullptr) *length = elements[index].size();
  });
}

sardonyx_status* sardonyx_sparse_create(const sardonyx_value* values, const sardonyx_value* indices,
                                        size_t rank, const int64_t* dims, sardonyx_value** sparse) {
  return guarded([&] {
    required(sparse, "sparse");
    *sparse = new_value(SparseTensor{value_of(values, "values").tensor(),
                                     value_of(indices, "indices").tensor(), shape_of(rank, dims)});
  });
}

sardonyx_status* sardonyx_sparse_parts(const sardonyx_value* sparse, sardonyx_value** values,
                                       sardonyx_value** indices, size_t* rank,
                                       const int64_t** dims) {
  return guarded([&] {
    const SparseTensor& of = value_of(sparse, "sparse").sparse_tensor();
    std::unique_ptr<sardonyx_value> made_values, made_indices;
    if (values != nullptr) made_values.reset(new_value(of.values));
    if (indices != nullptr) made_indices.reset(new_value(of.indices));
    if (values != nullptr) *values = made_values.release();
    if (indices != nullptr) *indices = made_indices.release();
    if (rank != nullptr) *rank = of.shape.size();
    if (dims != nullptr) *dims = of.shape.data();
  });
}

sardonyx_status* sardonyx_sequence_create(const sardonyx_value* const* items, size_t count,
                                          sardonyx_value** sequence) {
  return guarded([&] {
    required(sequence, "sequence");
    *sequence = new_value(Sequence{values_of(items, count, "items")});
  });
}

sardonyx_status* sardonyx_sequence_size(const sardonyx_value* sequence, size_t* count) {
  return guarded(
      [&] { required(count, "count") = value_of(sequence, "sequence").sequence().items.size(); });
}

sardonyx_status* sardonyx_sequence_item(const sardonyx_value* sequence, size_t index,
                                        sardonyx_value** item) {
  return guarded([&] {
    const auto& items = value_of(sequence, "sequence").sequence().items;
    require_index(index, items.size());
    required(item, "item"), *item = new_value(items[index]);
  });
}

sardonyx_status* sardonyx_map_create(const sardonyx_value* keys,
                                     const sardonyx_value* const* values, size_t count,
                                     sardonyx_value** map) {
  return guarded([&] {
    required(map, "map");
    const Tensor& of = value_of(keys, "keys").tensor();
    if (of.rank() != 1 || of.size() != static_cast<int64_t>(count))
      fail(ErrorCode::bad_input, "keys have the shape {}, and there are {} values",
           to_string(of.shape()), count);
    if (!is_integer(of.element_type()) && of.element_type() != ElementType::string)
      fail(ErrorCode::bad_input, "keys are integers or strings, not {}",
           name_of(of.element_type()));
    *map = new_value(Map{ir::aligned(of), values_of(values, count, "values")});
  });
}

sardonyx_status* sardonyx_map_keys(const sardonyx_value* map, sardonyx_value** keys) {
  return guarded(
      [&] { required(keys, "keys"), *keys = new_value(value_of(map, "map").map().keys); });
}

sardonyx_status* sardonyx_map_value(const sardonyx_value* map, size_t index,
                                    sardonyx_value** value) {
  return guarded([&] {
    const auto& values = value_of(map, "map").map().values;
    require_index(index, values.size());
    required(value, "value"), *value = new_value(values[index]);
  });
}

sardonyx_status* sardonyx_optional_create(const sardonyx_value* held, sardonyx_value** optional) {
  return guarded([&] {
    required(optional, "optional");
    Optional made;
    if (held != nullptr) made.held = std::make_unique<Value>(value_of(held, "held"));
    *optional = new_value(std::move(made));
  });
}

sardonyx_status* sardonyx_optional_held(const sardonyx_value* optional, sardonyx_value** held) {
  return guarded([&] {
    const Optional& of = value_of(optional, "optional").optional();
    required(held, "held"), *held = of.held ? new_value(*of.held) : nullptr;
  });
}
