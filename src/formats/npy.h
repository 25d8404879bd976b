// NumPy's array files: .npy (one array) and .npz (a zip of named arrays).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "sardonyx/value.h"

namespace sardonyx::formats {

// The array of an .npy file: versions 1 to 3, C and Fortran order, either byte order. A view of
// `bytes` where they can be used as they lie. Element types NumPy does not have are stored by
// ml_dtypes as raw bytes, of which only `expected` can tell what they are ('V2' alone is taken for
// bfloat16, as ml_dtypes writes it); it also says how many bits of an integer to keep where it
// names a 4- or 2-bit type. Other element types are returned as the file says, whatever is
// expected. Throws Error (unreadable) for what is no sound array, (unsupported) for Python
// objects, records and dates.
// A view lies at a multiple of its element's size, but `as_it_lies` gives one at any address, as
// most arrays of an .npz do: who reads it copies bytes.
enum class NpyAlignment { aligned, as_it_lies };
Tensor read_npy(const Bytes& bytes, ElementType expected = ElementType::undefined,
                NpyAlignment alignment = NpyAlignment::aligned);

// Arrays of 4- and 2-bit integers are written as 8-bit ones; bfloat16 and the 8- and 4-bit floats
// as raw bytes ('V2', 'V1'), as ml_dtypes does. Strings are written as Unicode where they all
// are UTF-8, else as bytes.
std::string write_npy(const Tensor& tensor);
void write_npy(const Tensor& tensor, const std::string& path);

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

// All arrays of an .npz file, in its order, without the ".npy" of their names. `expected` (may be
// empty) gives the element type for a name.
using ExpectedType = std::function<ElementType(std::string_view name)>;
std::vector<NamedTensor> read_npz(const Bytes& bytes, const ExpectedType& expected = {},
                                  NpyAlignment alignment = NpyAlignment::aligned);

// Stored, not compressed.
void write_npz(const std::vector<NamedTensor>& tensors, const std::string& path);
std::string write_npz(const std::vector<NamedTensor>& tensors);

}  // namespace sardonyx::formats
