#include "sardonyx/dlpack.h"

#include <algorithm>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "sardonyx/tensor_ref.h"

namespace sardonyx::dlpack {
namespace {

constexpr Version current{1, 1};
constexpr int32_t processor = 1, cuda_host = 3, rocm_host = 11;
constexpr int32_t max_rank = 4096;

// DLDataTypeCode.
enum Code : uint8_t {
  code_int = 0,
  code_uint = 1,
  code_float = 2,
  code_bfloat = 4,
  code_complex = 5,
  code_bool = 6,
  code_float8_e4m3fn = 10,
  code_float8_e4m3fnuz = 11,
  code_float8_e5m2 = 12,
  code_float8_e5m2fnuz = 13,
  code_float8_e8m0fnu = 14,
  code_float4_e2m1fn = 17,
};

struct Pair {
  ElementType type;
  Code code;
  uint8_t bits;
};

constexpr Pair types[] = {
    {ElementType::float32, code_float, 32},
    {ElementType::float64, code_float, 64},
    {ElementType::float16, code_float, 16},
    {ElementType::bfloat16, code_bfloat, 16},
    {ElementType::int8, code_int, 8},
    {ElementType::int16, code_int, 16},
    {ElementType::int32, code_int, 32},
    {ElementType::int64, code_int, 64},
    {ElementType::int4, code_int, 4},
    {ElementType::int2, code_int, 2},
    {ElementType::uint8, code_uint, 8},
    {ElementType::uint16, code_uint, 16},
    {ElementType::uint32, code_uint, 32},
    {ElementType::uint64, code_uint, 64},
    {ElementType::uint4, code_uint, 4},
    {ElementType::uint2, code_uint, 2},
    {ElementType::boolean, code_bool, 8},
    {ElementType::complex64, code_complex, 64},
    {ElementType::complex128, code_complex, 128},
    {ElementType::float8e4m3fn, code_float8_e4m3fn, 8},
    {ElementType::float8e4m3fnuz, code_float8_e4m3fnuz, 8},
    {ElementType::float8e5m2, code_float8_e5m2, 8},
    {ElementType::float8e5m2fnuz, code_float8_e5m2fnuz, 8},
    {ElementType::float8e8m0, code_float8_e8m0fnu, 8},
    {ElementType::float4e2m1, code_float4_e2m1fn, 4},
};

DataType data_type(ElementType type) {
  const auto* const found = std::ranges::find(types, type, &Pair::type);
  if (found == std::end(types))
    fail(ErrorCode::unsupported, "DLPack has no form of tensors of {}", name_of(type));
  return {found->code, found->bits, 1};
}

ElementType element_type(const DataType& type) {
  if (type.lanes != 1)
    fail(ErrorCode::unsupported, "DLPack elements of {} lanes are no elements of a tensor",
         type.lanes);
  for (const Pair& pair : types) {
    if (pair.code == type.code && pair.bits == type.bits) return pair.type;
  }
  fail(ErrorCode::unsupported, "the standard has no elements of DLPack's type code {} with {} bits",
       type.code, type.bits);
}

// What a managed tensor of ours points to.
template <class Managed>
struct Held {
  Managed managed{};
  Tensor tensor;
  std::vector<int64_t> shape, strides;
};

template <class Managed>
Managed* give_away(const Tensor& tensor) {
  auto held = std::make_unique<Held<Managed>>();
  held->tensor = tensor;
  held->shape = tensor.shape();
  held->strides.resize(held->shape.size());
  int64_t step = 1;
  for (size_t d = held->shape.size(); d-- > 0;) {
    held->strides[d] = step;
    step *= std::max<int64_t>(held->shape[d], 1);
  }
  Managed& managed = held->managed;
  managed.tensor = {const_cast<void*>(tensor.data()),
                    {processor, 0},
                    static_cast<int32_t>(held->shape.size()),
                    data_type(tensor.element_type()),
                    held->shape.data(),
                    held->strides.data(),
                    0};
  managed.context = held.get();
  managed.deleter = [](Managed* self) { delete static_cast<Held<Managed>*>(self->context); };
  return &held.release()->managed;
}

// Bytes that elements reach over on both sides of the first, by shape and strides alone: nobody
// says how large the memory is.
void measure(TensorRef& memory) {
  const int bits = bit_width(memory.element_type);
  const auto count = checked_count(memory.shape);
  if (!count)
    fail(ErrorCode::bad_input, "shape {} has no sound number of elements", to_string(memory.shape));
  if (is_dense(memory) || *count == 0) {
    memory.strides.clear();
    memory.bytes = static_cast<size_t>(byte_size(memory.element_type, *count));
    return;
  }
  int64_t first = 0, last = 1;
  for (size_t d = 0; d < memory.shape.size(); ++d) {
    const auto far = checked_mul(memory.shape[d] - 1, memory.strides[d]);
    int64_t& end = memory.strides[d] < 0 ? first : last;
    const auto sum = far ? checked_add(end, *far) : std::nullopt;
    if (!sum) fail(ErrorCode::bad_input, "strides {} overflow", to_string(memory.strides));
    end = *sum;
  }
  const auto before = checked_mul(first, -std::max(bits / 8, 1));
  const auto after = checked_mul(last, std::max(bits / 8, 1));
  if (!before || !after)
    fail(ErrorCode::bad_input, "strides {} overflow", to_string(memory.strides));
  memory.bytes_before = static_cast<size_t>(*before);
  memory.bytes = static_cast<size_t>(*after);
}

TensorRef memory_of(const DLTensor& tensor) {
  const int32_t device = tensor.device.type;
  if (device != processor && device != cuda_host && device != rocm_host)
    fail(ErrorCode::unsupported,
         "the DLPack tensor lies in memory of device {}; copy it to the processor's first", device);
  if (tensor.ndim < 0 || tensor.ndim > max_rank)
    fail(ErrorCode::bad_input, "the DLPack tensor has {} dimensions", tensor.ndim);
  if (tensor.ndim > 0 && tensor.shape == nullptr)
    fail(ErrorCode::bad_input, "the DLPack tensor has {} dimensions and no shape", tensor.ndim);
  TensorRef memory;
  memory.element_type = element_type(tensor.dtype);
  memory.shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  if (tensor.strides != nullptr)
    memory.strides.assign(tensor.strides, tensor.strides + tensor.ndim);
  if (tensor.data != nullptr)
    memory.data = static_cast<const std::byte*>(tensor.data) + tensor.byte_offset;
  measure(memory);
  return memory;
}

// The deleter belongs to the owner only when nothing can fail any more.
template <class Managed>
Tensor take(Managed* managed) {
  struct Owner {
    Managed* managed = nullptr;
    Owner() = default;
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;
    ~Owner() {
      if (managed != nullptr && managed->deleter != nullptr) managed->deleter(managed);
    }
  };
  TensorRef memory = memory_of(managed->tensor);
  const auto owner = std::make_shared<Owner>();
  memory.owner = owner;
  Tensor tensor = tensor_of(memory);
  owner->managed = managed;
  return tensor;
}

}  // namespace

ManagedTensor* to_dlpack(const Tensor& tensor) { return give_away<ManagedTensor>(tensor); }

ManagedTensorVersioned* to_dlpack_versioned(const Tensor& tensor, bool writable) {
  auto* managed = give_away<ManagedTensorVersioned>(tensor);
  managed->version = current;
  managed->flags = writable ? 0 : read_only;
  return managed;
}

Tensor from_dlpack(ManagedTensor* managed) {
  if (managed == nullptr) fail(ErrorCode::bad_input, "there is no DLPack tensor");
  return take(managed);
}

Tensor from_dlpack(ManagedTensorVersioned* managed) {
  if (managed == nullptr) fail(ErrorCode::bad_input, "there is no DLPack tensor");
  if (managed->version.major > current.major)
    fail(ErrorCode::unsupported, "the DLPack tensor is of version {}.{}, and 1 is the newest known",
         managed->version.major, managed->version.minor);
  if ((managed->flags & is_subbyte_padded) != 0 && managed->tensor.dtype.bits < 8)
    fail(ErrorCode::unsupported,
         "the DLPack tensor has elements of {} bits, each in a byte of its own; pack them",
         managed->tensor.dtype.bits);
  return take(managed);
}

}  // namespace sardonyx::dlpack
