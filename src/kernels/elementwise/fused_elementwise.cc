#include "kernels/elementwise/fused_elementwise.h"

#include <algorithm>

namespace sardonyx::kernels {
namespace {

constexpr int64_t tile = 1024;  // a few of them stay in the first-level cache
constexpr int64_t line = 64;    // bytes

using Kind = ElementwiseOperand::Kind;

bool is_single(const ElementwiseOperand& operand, const ElementwiseProgram& program) {
  return operand.kind == Kind::input &&
         program.extents[static_cast<size_t>(operand.index)] == ElementwiseExtent::single;
}

Sides sides_of(const ElementwiseStep& step, const ElementwiseProgram& program) {
  if (is_single(step.a, program)) return Sides::scalar_a;
  return is_single(step.b, program) ? Sides::scalar_b : Sides::both;
}

// Where an operand's elements from `at` on are.
struct Memory {
  const void* const* inputs;
  void* y;
  float (*tiles)[tile];
  int64_t at, column;

  const float* read(const ElementwiseOperand& o, const ElementwiseProgram& program) const {
    if (o.kind == Kind::tile) return tiles[o.index];
    const auto* input = static_cast<const float*>(inputs[o.index]);
    switch (program.extents[static_cast<size_t>(o.index)]) {
      case ElementwiseExtent::whole: return input + at;
      case ElementwiseExtent::row: return input + column;
      case ElementwiseExtent::single: break;
    }
    return input;
  }
  const uint8_t* read_bytes(const ElementwiseOperand& o) const {
    return static_cast<const uint8_t*>(inputs[o.index]) + at;
  }
  float* write(const ElementwiseOperand& o) const {
    return o.kind == Kind::output ? static_cast<float*>(y) + at : tiles[o.index];
  }
  uint8_t* write_bytes() const { return static_cast<uint8_t*>(y) + at; }
};

// `sizes`: bytes of an element of each input.
void fetch_ahead(const ElementwiseProgram& program, const void* const* inputs, const int64_t* sizes,
                 int64_t from, int64_t to) {
  for (size_t i = 0; i < program.extents.size(); ++i) {
    if (program.extents[i] != ElementwiseExtent::whole) continue;
    const auto* bytes = static_cast<const char*>(inputs[i]);
    for (int64_t k = from * sizes[i]; k < to * sizes[i]; k += line)
      __builtin_prefetch(bytes + k, 0, 3);
  }
}

void run_step(const ElementwiseStep& step, const ElementwiseProgram& program, const Memory& memory,
              int64_t n) {
  switch (step.kind) {
    case ElementwiseStep::Kind::unary:
      return step.unary_kernel(memory.read(step.a, program), memory.write(step.to), n, step.params);
    case ElementwiseStep::Kind::binary:
      return step.binary_kernel(memory.read(step.a, program), memory.read(step.b, program),
                                memory.write(step.to), n);
    case ElementwiseStep::Kind::from_bytes:
      return bytes_to_floats(step.bytes, memory.read_bytes(step.a), memory.write(step.to), n);
    case ElementwiseStep::Kind::to_bytes:
      return floats_to_bytes(step.bytes, memory.read(step.a, program), memory.write_bytes(), n);
  }
}

void run_links(const ElementwiseRun& run, const ElementwiseProgram& program, const Memory& memory,
               int64_t n) {
  ChainLink links[ElementwiseProgram::max_links];
  int count = 0;
  for (const ElementwiseLink& one : run.links) {
    ChainLink& link = links[count++] = one.link;
    if (link.kind == ChainLink::Kind::store) {
      link.to = memory.write(one.memory);
    } else if (link.kind != ChainLink::Kind::unary) {
      link.from = memory.read(one.memory, program);
    }
  }
  run_chain(links, count, n);
}

void run_chunk(const ElementwiseProgram& program, const void* const* inputs, void* y, int64_t begin,
               int64_t end, int64_t row) {
  alignas(64) float tiles[ElementwiseProgram::max_tiles][tile];
  int64_t sizes[ElementwiseProgram::max_inputs];
  for (size_t i = 0; i < program.extents.size(); ++i)
    sizes[i] = takes_bytes(program, static_cast<int>(i)) ? 1 : 4;
  int64_t column = begin % row;
  for (int64_t at = begin, n = 0; at < end; at += n) {
    n = std::min({tile, end - at, row - column});
    fetch_ahead(program, inputs, sizes, at + n, std::min(at + 2 * tile, end));
    const Memory memory{inputs, y, tiles, at, column};
    for (const ElementwiseRun& run : program.runs) {
      if (run.links.empty()) {
        run_step(program.steps[run.step], program, memory, n);
      } else {
        run_links(run, program, memory, n);
      }
    }
    column = column + n == row ? 0 : column + n;
  }
}

// --- Chains -------------------------------------------------------------------------------------

bool reads(const ElementwiseStep& step, const ElementwiseOperand& operand) {
  return step.a == operand || (step.kind == ElementwiseStep::Kind::binary && step.b == operand);
}

// Whether what step i leaves is read by a step after i + 1 too.
bool outlives(const ElementwiseProgram& program, size_t i) {
  const ElementwiseOperand& left = program.steps[i].to;
  for (size_t k = i + 1; k < program.steps.size(); ++k) {
    if (k > i + 1 && reads(program.steps[k], left)) return true;
    if (program.steps[k].to == left) return false;
  }
  return false;
}

// A step as a link whose value is operand a or b; its code is negative where it cannot be one.
ElementwiseLink link_of(const ElementwiseStep& step, const ElementwiseProgram& program,
                        bool value_is_b) {
  ElementwiseLink made;
  ChainLink& link = made.link;
  link.code = -1;
  if (step.kind == ElementwiseStep::Kind::unary) {
    link.kind = ChainLink::Kind::unary;
    link.unary = step.unary;
    link.alpha = static_cast<float>(step.params.alpha);
    link.beta = static_cast<float>(step.params.beta);
  } else if (step.kind == ElementwiseStep::Kind::binary) {
    link.kind = ChainLink::Kind::binary;
    link.binary = step.binary;
    link.value_is_b = value_is_b;
    made.memory = value_is_b ? step.a : step.b;
    link.single = is_single(made.memory, program);
  } else {
    return made;
  }
  link.code = chain_code(link);
  return made;
}

ElementwiseLink memory_link(ChainLink::Kind kind, const ElementwiseOperand& memory) {
  ElementwiseLink made;
  made.link.kind = kind;
  made.link.code = chain_code(made.link);
  made.memory = memory;
  return made;
}

// The longest chain from step `first` on: nothing where not even two steps go together.
ElementwiseRun chain_from(const ElementwiseProgram& program, size_t first) {
  using LinkKind = ChainLink::Kind;
  const auto& steps = program.steps;
  ElementwiseRun run{first, {}};
  const bool turned =
      steps[first].kind == ElementwiseStep::Kind::binary && is_single(steps[first].a, program);
  run.links = {memory_link(LinkKind::load, turned ? steps[first].b : steps[first].a),
               link_of(steps[first], program, turned)};
  if (run.links.back().link.code < 0) return {first, {}};
  size_t last = first;
  while (last + 1 < steps.size() && run.links.size() + 3 <= ElementwiseProgram::max_links) {
    const ElementwiseStep& next = steps[last + 1];
    const ElementwiseOperand& value = steps[last].to;
    const bool binary = next.kind == ElementwiseStep::Kind::binary;
    const bool from_a = next.a == value, from_b = binary && next.b == value;
    if (from_a == from_b) break;
    const ElementwiseLink link = link_of(next, program, from_b);
    if (link.link.code < 0) break;
    if (outlives(program, last)) run.links.push_back(memory_link(LinkKind::store, value));
    run.links.push_back(link);
    ++last;
  }
  if (last == first) return {first, {}};
  run.links.push_back(memory_link(LinkKind::store, steps[last].to));
  return run;
}

// Which inputs and tiles the steps so far have read or written, a bit for each.
struct Touched {
  uint32_t written = 0;             // tiles
  uint32_t bytes = 0, numbers = 0;  // inputs, by what they were read as
};

bool is_place(const ElementwiseOperand& operand, int count) {
  return operand.index >= 0 && operand.index < count;
}

bool can_read(const ElementwiseOperand& operand, const ElementwiseProgram& program,
              Touched& touched) {
  switch (operand.kind) {
    case Kind::input:
      if (!is_place(operand, static_cast<int>(program.extents.size()))) return false;
      touched.numbers |= 1u << operand.index;
      return true;
    case Kind::tile:
      return is_place(operand, ElementwiseProgram::max_tiles) &&
             (touched.written >> operand.index & 1) != 0;
    case Kind::output: return false;
  }
  return false;
}

bool can_read_bytes(const ElementwiseStep& step, const ElementwiseProgram& program,
                    Touched& touched) {
  if (step.a.kind != Kind::input || !is_sound(step.bytes) ||
      !is_place(step.a, static_cast<int>(program.extents.size())) ||
      program.extents[static_cast<size_t>(step.a.index)] != ElementwiseExtent::whole)
    return false;
  touched.bytes |= 1u << step.a.index;
  return true;
}

bool can_run(const ElementwiseStep& step, const ElementwiseProgram& program, bool is_last,
             Touched& touched) {
  bool reads = false;
  switch (step.kind) {
    case ElementwiseStep::Kind::unary:
      reads = can_read(step.a, program, touched) && !is_single(step.a, program);
      break;
    case ElementwiseStep::Kind::binary:
      reads = can_read(step.a, program, touched) && can_read(step.b, program, touched) &&
              !(is_single(step.a, program) && is_single(step.b, program));
      break;
    case ElementwiseStep::Kind::from_bytes: reads = can_read_bytes(step, program, touched); break;
    case ElementwiseStep::Kind::to_bytes:
      reads = is_last && is_sound(step.bytes) && can_read(step.a, program, touched) &&
              !is_single(step.a, program);
      break;
  }
  if (!reads || is_last) return reads && step.to.kind == Kind::output;
  if (step.to.kind != Kind::tile || !is_place(step.to, ElementwiseProgram::max_tiles)) return false;
  touched.written |= 1u << step.to.index;
  return true;
}

size_t steps_of(const ElementwiseRun& run) {
  if (run.links.empty()) return 1;
  return static_cast<size_t>(std::ranges::count_if(run.links, [](const ElementwiseLink& one) {
    return one.link.kind == ChainLink::Kind::unary || one.link.kind == ChainLink::Kind::binary;
  }));
}

}  // namespace

bool is_sound(const ElementwiseProgram& program) {
  if (program.steps.empty() || program.extents.size() > ElementwiseProgram::max_inputs ||
      std::ranges::count(program.extents, ElementwiseExtent::whole) == 0)
    return false;
  Touched touched;
  for (const ElementwiseStep& step : program.steps) {
    if (!can_run(step, program, &step == &program.steps.back(), touched)) return false;
  }
  return (touched.bytes & touched.numbers) == 0;
}

bool bind_fused_elementwise(ElementwiseProgram& program) {
  bool all = true;
  for (ElementwiseStep& step : program.steps) {
    if (step.kind == ElementwiseStep::Kind::binary) {
      step.binary_kernel = binary_tile(step.binary, sides_of(step, program));
      all = all && step.binary_kernel != nullptr;
    } else if (step.kind == ElementwiseStep::Kind::unary) {
      step.unary_kernel = unary_tile(step.unary);
      all = all && step.unary_kernel != nullptr;
    }
  }
  program.runs.clear();
  for (size_t i = 0; i < program.steps.size(); i += steps_of(program.runs.back()))
    program.runs.push_back(chain_from(program, i));
  return all;
}

bool takes_bytes(const ElementwiseProgram& program, int input) {
  return std::ranges::any_of(program.steps, [&](const ElementwiseStep& step) {
    return step.kind == ElementwiseStep::Kind::from_bytes && step.a.index == input;
  });
}

bool gives_bytes(const ElementwiseProgram& program) {
  return program.steps.back().kind == ElementwiseStep::Kind::to_bytes;
}

void run_fused_elementwise(const ElementwiseProgram& program, const void* const* inputs, void* y,
                           int64_t n, int64_t row, ThreadPool& pool) {
  const bool has_rows = std::ranges::count(program.extents, ElementwiseExtent::row) > 0;
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
