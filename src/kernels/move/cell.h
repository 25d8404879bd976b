// An element type as data movement sees it: so many bytes, or a string.
#pragma once

#include <cstdint>

#include "sardonyx/element_type.h"

namespace sardonyx::kernels {

// For Cell::text the pointers that kernels take are arrays of constructed std::string.
enum class Cell : int32_t { bytes1, bytes2, bytes4, bytes8, bytes16, text };

// Throws Error (unsupported) for the types that are packed several to a byte: unpack them first
// (convert/packed.h), move bytes, pack again.
Cell cell_of(ElementType type);

// Bytes of one element; sizeof(std::string) for text.
int64_t cell_bytes(Cell cell);

}  // namespace sardonyx::kernels
