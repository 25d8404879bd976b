#include "kernels/elementwise/region.h"

#include <algorithm>

namespace sardonyx::kernels {
namespace {

constexpr int64_t tile = 1024;  // a few of them stay in the first-level cache
constexpr int64_t line = 64;    // bytes

using Kind = RegionOperand::Kind;

bool is_single(const RegionOperand& operand, const RegionProgram& program) {
  return operand.kind == Kind::input &&
         program.extents[static_cast<size_t>(operand.index)] == RegionExtent::single;
}

Sides sides_of(const RegionStep& step, const RegionProgram& program) {
  if (is_single(step.a, program)) return Sides::scalar_a;
  return is_single(step.b, program) ? Sides::scalar_b : Sides::both;
}

// Where an operand's elements from `at` on are.
struct Memory {
  const void* const* inputs;
  void* y;
  float (*tiles)[tile];
  int64_t at, column;

  const float* read(const RegionOperand& o, const RegionProgram& program) const {
    if (o.kind == Kind::tile) return tiles[o.index];
    const auto* input = static_cast<const float*>(inputs[o.index]);
    switch (program.extents[static_cast<size_t>(o.index)]) {
      case RegionExtent::whole: return input + at;
      case RegionExtent::row: return input + column;
      case RegionExtent::single: break;
    }
    return input;
  }
  const uint8_t* read_bytes(const RegionOperand& o) const {
    return static_cast<const uint8_t*>(inputs[o.index]) + at;
  }
  float* write(const RegionOperand& o) const {
    return o.kind == Kind::output ? static_cast<float*>(y) + at : tiles[o.index];
  }
  uint8_t* write_bytes() const { return static_cast<uint8_t*>(y) + at; }
};

// `sizes`: bytes of an element of each input.
void fetch_ahead(const RegionProgram& program, const void* const* inputs, const int64_t* sizes,
                 int64_t from, int64_t to) {
  for (size_t i = 0; i < program.extents.size(); ++i) {
    if (program.extents[i] != RegionExtent::whole) continue;
    const auto* bytes = static_cast<const char*>(inputs[i]);
    for (int64_t k = from * sizes[i]; k < to * sizes[i]; k += line)
      __builtin_prefetch(bytes + k, 0, 3);
  }
}

void run_step(const RegionStep& step, const RegionProgram& program, const Memory& memory,
              int64_t n) {
  switch (step.kind) {
    case RegionStep::Kind::unary:
      return step.unary_kernel(memory.read(step.a, program), memory.write(step.to), n, step.params);
    case RegionStep::Kind::binary:
      return step.binary_kernel(memory.read(step.a, program), memory.read(step.b, program),
                                memory.write(step.to), n);
    case RegionStep::Kind::from_bytes:
      return bytes_to_floats(step.bytes, memory.read_bytes(step.a), memory.write(step.to), n);
    case RegionStep::Kind::to_bytes:
      return floats_to_bytes(step.bytes, memory.read(step.a, program), memory.write_bytes(), n);
  }
}

void run_chunk(const RegionProgram& program, const void* const* inputs, void* y, int64_t begin,
               int64_t end, int64_t row) {
  alignas(64) float tiles[RegionProgram::max_tiles][tile];
  int64_t sizes[RegionProgram::max_inputs];
  for (size_t i = 0; i < program.extents.size(); ++i)
    sizes[i] = takes_bytes(program, static_cast<int>(i)) ? 1 : 4;
  int64_t column = begin % row;
  for (int64_t at = begin, n = 0; at < end; at += n) {
    n = std::min({tile, end - at, row - column});
    fetch_ahead(program, inputs, sizes, at + n, std::min(at + 2 * tile, end));
    const Memory memory{inputs, y, tiles, at, column};
    for (const RegionStep& step : program.steps) run_step(step, program, memory, n);
    column = column + n == row ? 0 : column + n;
  }
}

}  // namespace

bool bind_region(RegionProgram& program) {
  bool all = true;
  for (RegionStep& step : program.steps) {
    if (step.kind == RegionStep::Kind::binary) {
      step.binary_kernel = binary_tile(step.binary, sides_of(step, program));
      all = all && step.binary_kernel != nullptr;
    } else if (step.kind == RegionStep::Kind::unary) {
      step.unary_kernel = unary_tile(step.unary);
      all = all && step.unary_kernel != nullptr;
    }
  }
  return all;
}

bool takes_bytes(const RegionProgram& program, int input) {
  return std::ranges::any_of(program.steps, [&](const RegionStep& step) {
    return step.kind == RegionStep::Kind::from_bytes && step.a.index == input;
  });
}

bool gives_bytes(const RegionProgram& program) {
  return program.steps.back().kind == RegionStep::Kind::to_bytes;
}

void run_region(const RegionProgram& program, const void* const* inputs, void* y, int64_t n,
                int64_t row, ThreadPool& pool) {
  const bool has_rows = std::ranges::count(program.extents, RegionExtent::row) > 0;
  if (!has_rows) row = n;
  if (n <= 0) return;
  const int64_t grain =
      std::max<int64_t>(1, (int64_t{1} << 16) / static_cast<int64_t>(program.steps.size()) / tile) *
      tile;
  pool.parallel_for(n, grain, [&](int64_t begin, int64_t end, int) {
    run_chunk(program, inputs, y, begin, end, row);
  });
}

}  // namespace sardonyx::kernels
