// Tensors from and to other libraries by DLPack, without a copy.
//
// The structs are DLPack's binary interface, declared here so that nothing of it need be installed:
// a pointer to one of them is what a Python capsule named "dltensor" or "dltensor_versioned" holds.
#pragma once

#include <cstdint>

#include "sardonyx/value.h"

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx::dlpack {

struct Device {
  int32_t type;  // 1: the processor's memory; 3, 11: memory of it that a GPU sees too
  int32_t id;
};

struct DataType {
  uint8_t code;  // DLDataTypeCode: 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool, 8… float8
  uint8_t bits;
  uint16_t lanes;
};

struct DLTensor {
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: dense, row-major
  uint64_t byte_offset;
};

// As "dltensor" holds it.
struct ManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(ManagedTensor* self);
};

// Of the protocol, as DLPack counts it.
struct Version {
  uint32_t major, minor;
};

inline constexpr uint64_t read_only = 1, is_copied = 2, is_subbyte_padded = 4;  // flags

// As "dltensor_versioned" holds it, since DLPack 1.0.
struct ManagedTensorVersioned {
  Version version;
  void* context;
  void (*deleter)(ManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor tensor;
};

// The tensor for another library, which calls the deleter when it is done with it; until then its
// memory stays. Throws Error (unsupported) for strings and elements of 6 bits. The older form can't
// say that the elements must not be written to: who takes it has to know, since tensors share
// them. `writable`: the caller vouches that nothing else needs them unchanged.
ManagedTensor* to_dlpack(const Tensor& tensor);
ManagedTensorVersioned* to_dlpack_versioned(const Tensor& tensor, bool writable = false);

// A tensor of another library's memory, which is kept until nothing uses it any more, then the
// deleter is called, on whichever thread that is. Memory with strides is copied, and let go at
// once. Throws Error: (bad_input) for null and for shapes and strides that overflow, (unsupported)
// for memory of other devices, for several lanes, for element types that the standard does not have
// and for versions beyond 1; the managed tensor is then still the caller's.
Tensor from_dlpack(ManagedTensor* managed);
Tensor from_dlpack(ManagedTensorVersioned* managed);

}  // namespace sardonyx::dlpack

#pragma GCC visibility pop
