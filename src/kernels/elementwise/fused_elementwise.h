// Several element-wise operators of float32 in one pass over memory; bytes may go in and come out.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/convert/byte_scale.h"
#include "kernels/elementwise/binary.h"
#include "kernels/elementwise/chain.h"
#include "kernels/elementwise/unary.h"

namespace sardonyx::kernels {

// What a step of a region reads or writes: an input, or a tile that earlier steps left.
struct ElementwiseOperand {
  enum class Kind : int32_t { input, tile, output };
  Kind kind = Kind::input;
  int index = 0;

  bool operator==(const ElementwiseOperand&) const = default;
};

struct ElementwiseStep {
  enum class Kind : int32_t {
    unary,
    binary,
    from_bytes,  // a is a whole input of bytes, which only such steps read
    to_bytes,    // only as the last step: the output is bytes
  };
  Kind kind = Kind::unary;
  UnaryOp unary = UnaryOp::abs;
  UnaryParams params;
  BinaryOp binary = BinaryOp::add;
  ByteScale bytes;                   // from_bytes, to_bytes
  ElementwiseOperand a, b, to;       // b only where binary; `to` may be an operand
  UnaryTile unary_kernel = nullptr;  // set by bind_fused_elementwise
  BinaryTile binary_kernel = nullptr;
};

// How an input's elements go with the output's.
enum class ElementwiseExtent : int8_t {
  whole,   // one for each
  single,  // one for all
  row,     // one for each position along the last axis
};

// A link of a chain of steps, and where its memory is.
struct ElementwiseLink {
  ChainLink link;
  ElementwiseOperand memory;
};

// What runs over a tile at a time: one step, or a chain that stands for several.
struct ElementwiseRun {
  size_t step = 0;
  std::vector<ElementwiseLink> links;  // empty: the step alone
};

// The last step, and only it, writes the output. Not both operands of a step are single values.
struct ElementwiseProgram {
  static constexpr int max_inputs = 16;
  static constexpr int max_tiles = 6;

  static constexpr int max_links = 64;  // of one chain

  std::vector<ElementwiseStep> steps;
  std::vector<ElementwiseExtent> extents;  // of the inputs
  std::vector<ElementwiseRun> runs;        // made by bind_fused_elementwise
};

// Whether its steps are such: operands are there, tiles are written before they are read, bytes
// are read and written as said, and an input has the output's shape.
bool is_sound(const ElementwiseProgram& program);

// Of a sound program. Finds the kernels of all steps, and what goes together in chains; false where
// one has no form that works tile by tile.
bool bind_fused_elementwise(ElementwiseProgram& program);

// Whether input i is of bytes, and whether the output is.
bool takes_bytes(const ElementwiseProgram& program, int input);
bool gives_bytes(const ElementwiseProgram& program);

// After bind_fused_elementwise: y[i] for i < n, in rows of `row` elements (any divisor of n where
// no input is a row). Inputs and y are float32 or bytes; y may be a whole input of its type.
void run_fused_elementwise(const ElementwiseProgram& program, const void* const* inputs, void* y,
                           int64_t n, int64_t row, ThreadPool& pool);

}  // namespace sardonyx::kernels
