// The header of .npy files.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "sardonyx/value.h"

namespace sardonyx::formats {

inline constexpr std::string_view npy_magic("\x93NUMPY", 6);

struct NpyHeader {
  std::string descr;  // the element type, such as '<f4'
  bool fortran_order = false;
  Shape shape;
  size_t data_offset = 0;
};

// Throws Error (unreadable, unsupported for arrays of records).
NpyHeader read_npy_header(std::string_view file);

[[noreturn]] void unsound_npy(std::string_view what);

}  // namespace sardonyx::formats
