// Light operators of float32 one after the other, each on what the one before gave: the values stay
// in registers. Part of kernels/elementwise/region.
#pragma once

#include <cstdint>

#include "kernels/elementwise/binary.h"
#include "kernels/elementwise/unary.h"

namespace sardonyx::kernels {

struct ChainLink {
  enum class Kind : int32_t {
    load,   // the chain's first value, from memory
    store,  // into memory; the value goes on
    unary,
    binary,
  };
  Kind kind = Kind::load;
  UnaryOp unary = UnaryOp::abs;
  BinaryOp binary = BinaryOp::add;
  bool value_is_b = false;  // the operand in memory is a
  bool single = false;      // the operand is one value for all
  float alpha = 0, beta = 0;
  const float* from = nullptr;  // of load and binary
  float* to = nullptr;          // of store

  int32_t code = 0;  // what chain_code says
};

// How run_chain finds the link's code; negative for an operator that is not light, one whose
// arithmetic takes much longer than the memory's traffic.
int32_t chain_code(const ChainLink& link);

// The first link loads. Elements [0, n) of all memories, on the calling thread; the same results as
// the operators one by one. Memory that is stored to may be read by other links.
void run_chain(const ChainLink* links, int count, int64_t n);

}  // namespace sardonyx::kernels
