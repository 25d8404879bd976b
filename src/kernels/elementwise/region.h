// Several element-wise operators of float32 in one pass over memory.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/elementwise/binary.h"
#include "kernels/elementwise/unary.h"

namespace sardonyx::kernels {

// What a step of a region reads or writes: an input, or a tile that earlier steps left.
struct RegionOperand {
  enum class Kind : int32_t { input, tile, output };
  Kind kind = Kind::input;
  int index = 0;
};

struct RegionStep {
  bool is_binary = false;
  UnaryOp unary = UnaryOp::abs;
  UnaryParams params;
  BinaryOp binary = BinaryOp::add;
  RegionOperand a, b, to;            // b only where is_binary; `to` may be an operand
  UnaryTile unary_kernel = nullptr;  // set by bind_region
  BinaryTile binary_kernel = nullptr;
};

// How an input's elements go with the output's.
enum class RegionExtent : int8_t {
  whole,   // one for each
  single,  // one for all
  row,     // one for each position along the last axis
};

// The last step, and only it, writes the output. Not both operands of a step are single values.
struct RegionProgram {
  static constexpr int max_inputs = 16;
  static constexpr int max_tiles = 6;

  std::vector<RegionStep> steps;
  std::vector<RegionExtent> extents;  // of the inputs
};

// Finds the kernels of all steps; false where one has no form that works tile by tile.
bool bind_region(RegionProgram& program);

// After bind_region: y[i] for i < n, in rows of `row` elements (any divisor of n where no input is
// a row). y may be a whole input.
void run_region(const RegionProgram& program, const float* const* inputs, float* y, int64_t n,
                int64_t row, ThreadPool& pool);

}  // namespace sardonyx::kernels
