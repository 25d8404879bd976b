#include "kernels/move/cell.h"

#include <string>

#include "base/fail.h"

namespace sardonyx::kernels {

Cell cell_of(ElementType type) {
  if (type == ElementType::string) return Cell::text;
  switch (bit_width(type)) {
    case 8: return Cell::bytes1;
    case 16: return Cell::bytes2;
    case 32: return Cell::bytes4;
    case 64: return Cell::bytes8;
    case 128: return Cell::bytes16;
    default: fail(ErrorCode::unsupported, "{} elements have no whole bytes to move", name_of(type));
  }
}

int64_t cell_bytes(Cell cell) {
  switch (cell) {
    case Cell::bytes1: return 1;
    case Cell::bytes2: return 2;
    case Cell::bytes4: return 4;
    case Cell::bytes8: return 8;
    case Cell::bytes16: return 16;
    case Cell::text: break;
  }
  return sizeof(std::string);
}

}  // namespace sardonyx::kernels
