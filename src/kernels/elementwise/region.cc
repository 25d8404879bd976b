#include "kernels/elementwise/region.h"

#include <algorithm>

namespace sardonyx::kernels {
namespace {

constexpr int64_t tile = 1024;  // a few of them stay in the first-level cache
constexpr int64_t line = 16;

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
  const float* const* inputs;
  float* y;
  float (*tiles)[tile];
  int64_t at, column;

  const float* read(const RegionOperand& o, const RegionProgram& program) const {
    if (o.kind == Kind::tile) return tiles[o.index];
    switch (program.extents[static_cast<size_t>(o.index)]) {
      case RegionExtent::whole: return inputs[o.index] + at;
      case RegionExtent::row: return inputs[o.index] + column;
      case RegionExtent::single: break;
    }
    return inputs[o.index];
  }
  float* write(const RegionOperand& o) const {
    return o.kind == Kind::output ? y + at : tiles[o.index];
  }
};

void fetch_ahead(const RegionProgram& program, const float* const* inputs, int64_t from,
                 int64_t to) {
  for (size_t i = 0; i < program.extents.size(); ++i) {
    if (program.extents[i] != RegionExtent::whole) continue;
    for (int64_t k = from; k < to; k += line) __builtin_prefetch(inputs[i] + k, 0, 3);
  }
}

void run_chunk(const RegionProgram& program, const float* const* inputs, float* y, int64_t begin,
               int64_t end, int64_t row) {
  alignas(64) float tiles[RegionProgram::max_tiles][tile];
  int64_t column = begin % row;
  for (int64_t at = begin, n = 0; at < end; at += n) {
    n = std::min({tile, end - at, row - column});
    fetch_ahead(program, inputs, at + n, std::min(at + 2 * tile, end));
    const Memory memory{inputs, y, tiles, at, column};
    for (const RegionStep& step : program.steps) {
      const float* a = memory.read(step.a, program);
      if (step.is_binary) {
        step.binary_kernel(a, memory.read(step.b, program), memory.write(step.to), n);
      } else {
        step.unary_kernel(a, memory.write(step.to), n, step.params);
      }
    }
    column = column + n == row ? 0 : column + n;
  }
}

}  // namespace

bool bind_region(RegionProgram& program) {
  bool all = true;
  for (RegionStep& step : program.steps) {
    if (step.is_binary) {
      step.binary_kernel = binary_tile(step.binary, sides_of(step, program));
    } else {
      step.unary_kernel = unary_tile(step.unary);
    }
    all = all && (step.is_binary ? step.binary_kernel != nullptr : step.unary_kernel != nullptr);
  }
  return all;
}

void run_region(const RegionProgram& program, const float* const* inputs, float* y, int64_t n,
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
