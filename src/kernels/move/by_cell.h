// Calling a template for the type that stands for a Cell.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/move/cell.h"

namespace sardonyx::kernels {

struct alignas(8) Bytes16 {
  uint64_t low, high;
};

// call(T{}) with T one of uint8_t, uint16_t, uint32_t, uint64_t, Bytes16, std::string.
template <class Call>
decltype(auto) by_cell(Cell cell, Call&& call) {
  switch (cell) {
    case Cell::bytes1: return call(uint8_t{});
    case Cell::bytes2: return call(uint16_t{});
    case Cell::bytes4: return call(uint32_t{});
    case Cell::bytes8: return call(uint64_t{});
    case Cell::bytes16: return call(Bytes16{});
    case Cell::text: break;
  }
  return call(std::string{});
}

}  // namespace sardonyx::kernels
