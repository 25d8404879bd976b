// Elements of any type, memory with strides, and DLPack.
#include "capi/handles.h"
#include "sardonyx/dlpack.h"
#include "sardonyx/elements.h"
#include "sardonyx/tensor_ref.h"

using namespace sardonyx;
using namespace sardonyx::capi;

namespace {

void require_room(const Tensor& tensor, size_t count) {
  if (static_cast<int64_t>(count) != tensor.size())
    fail(ErrorCode::bad_input, "there is room for {} elements, and the tensor has {}", count,
         tensor.size());
}

template <class T>
void read(const sardonyx_value* tensor, T* to, size_t count) {
  const Tensor& of = value_of(tensor, "tensor").tensor();
  require_room(of, count);
  if (count > 0) required(to, "to");
  const std::vector<T> elements = read_as<T>(of);
  std::ranges::copy(elements, to);
}

}  // namespace

sardonyx_status* sardonyx_tensor_wrap_strided(sardonyx_element_type type, size_t rank,
                                              const int64_t* dims, const int64_t* strides,
                                              const void* data, size_t bytes, size_t bytes_before,
                                              void (*release)(void* user), void* user,
                                              sardonyx_value** tensor) {
  return guarded([&] {
    required(tensor, "tensor");
    if (rank > 0) required(strides, "strides");
    auto owner = release != nullptr ? std::make_shared<Released>() : nullptr;
    auto made = std::make_unique<sardonyx_value>();
    made->value = tensor_of({{static_cast<ElementType>(type), shape_of(rank, dims), data, bytes,
                              std::vector<int64_t>(strides, strides + rank), bytes_before, owner}});
    if (owner) owner->release = release, owner->user = user;  // nothing can fail any more
    *tensor = made.release();
  });
}

sardonyx_status* sardonyx_tensor_read_floats(const sardonyx_value* tensor, float* to,
                                             size_t count) {
  return guarded([&] { read(tensor, to, count); });
}

sardonyx_status* sardonyx_tensor_read_integers(const sardonyx_value* tensor, int64_t* to,
                                               size_t count) {
  return guarded([&] { read(tensor, to, count); });
}

sardonyx_status* sardonyx_tensor_read_doubles(const sardonyx_value* tensor, double* to,
                                              size_t count) {
  return guarded([&] { read(tensor, to, count); });
}

sardonyx_status* sardonyx_tensor_from_integers(sardonyx_element_type type, size_t rank,
                                               const int64_t* dims, const int64_t* from,
                                               size_t count, sardonyx_value** tensor) {
  return guarded([&] {
    required(tensor, "tensor");
    if (count > 0) required(from, "from");
    *tensor = new_value(
        tensor_from(static_cast<ElementType>(type), {from, count}, shape_of(rank, dims)), true);
  });
}

sardonyx_status* sardonyx_tensor_from_floats(sardonyx_element_type type, size_t rank,
                                             const int64_t* dims, const float* from, size_t count,
                                             sardonyx_value** tensor) {
  return guarded([&] {
    required(tensor, "tensor");
    if (count > 0) required(from, "from");
    *tensor = new_value(
        tensor_from(static_cast<ElementType>(type), {from, count}, shape_of(rank, dims)), true);
  });
}

sardonyx_status* sardonyx_tensor_to_dlpack(const sardonyx_value* tensor, int versioned,
                                           int writable, void** managed) {
  return guarded([&] {
    const Tensor& of = value_of(tensor, "tensor").tensor();
    required(managed, "managed");
    if (versioned != 0) {
      *managed = dlpack::to_dlpack_versioned(of, writable != 0);
    } else {
      *managed = dlpack::to_dlpack(of);
    }
  });
}

sardonyx_status* sardonyx_tensor_from_dlpack(void* managed, int versioned,
                                             sardonyx_value** tensor) {
  return guarded([&] {
    required(static_cast<char*>(managed), "managed");
    required(tensor, "tensor");
    auto made = std::make_unique<sardonyx_value>();
    made->value = versioned != 0
                      ? dlpack::from_dlpack(static_cast<dlpack::ManagedTensorVersioned*>(managed))
                      : dlpack::from_dlpack(static_cast<dlpack::ManagedTensor*>(managed));
    *tensor = made.release();
  });
}
