// What operators that move elements, or only look at sizes, share.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "kernels/convert/packed.h"
#include "kernels/move/cell.h"
#include "kernels/move/strided.h"
#include "ops/operator.h"

namespace sardonyx::ops {

// The most dimensions that steps with fixed arrays in their state take.
inline constexpr int64_t max_step_rank = 16;

// --- While inferring ----------------------------------------------------------------------------

// All elements of an integer input as expressions, however large a constant it is; nullopt where
// they are not known.
std::optional<Dims> values_of(const InferContext& ctx, int i);
// The same as numbers; nullopt where one is not known.
std::optional<std::vector<int64_t>> numbers_of(const InferContext& ctx, int i);

// The shape of input i where it carries its elements as expressions and so has only known sizes.
std::optional<Shape> known_shape(const InferContext& ctx, int i);
// A shape as numbers, where all of it is known and it holds few enough elements to carry them.
std::optional<Shape> small_shape(std::span<const Dim> shape);

// Output 0 has input i's elements, whatever shape was set for it.
void pass_elements(InferContext& ctx, int i = 0);
// Output `output` has these elements of input `input`, copied as `plan` says.
void move_known(InferContext& ctx, int input, const kernels::StridedCopy& plan, int output,
                int64_t count);
void copy_known(const kernels::StridedCopy& plan, std::span<const Dim> x, std::span<Dim> y);

// Sets output 0 to a tensor of which only the rank is known; nothing of a rank that no tensor has.
void set_rank(InferContext& ctx, ElementType type, std::optional<int64_t> rank);
// The number of elements of input i where it is a number: the rank that a shape input speaks of.
std::optional<int64_t> length_of(const InferContext& ctx, int i);

// The product of dimensions.
Dim product(std::span<const Dim> dims);
// Of two sizes that must agree, the one that says more.
Dim agreed(InferContext& ctx, const Dim& a, const Dim& b, std::string_view what);

// --- While preparing and running ----------------------------------------------------------------

// The elements of an integer input that never changes; nullopt otherwise.
std::optional<std::vector<int64_t>> constant_numbers(const PrepareContext& ctx, int i);
// An integer tensor (int32 or int64) widened.
std::vector<int64_t> integers_of(const Tensor& tensor);
// Element i of a running step's int32 or int64 input.
inline int64_t integer_at(const RunContext& run, int input, int64_t i) {
  return run.in_type(input) == ElementType::int32 ? run.in<int32_t>(input)[i]
                                                  : run.in<int64_t>(input)[i];
}

// The cell that elements are moved in: packed ones are unpacked to bytes first.
inline kernels::Cell moving_cell(ElementType type) {
  return kernels::is_packed(type) ? kernels::Cell::bytes1 : kernels::cell_of(type);
}
inline int64_t unpacked_stride(int64_t elements) { return (elements + 63) / 64 * 64; }
// Scratch that with_cells needs for so many elements in and out.
inline int64_t unpacked_bytes(ElementType type, int64_t in, int64_t out) {
  return kernels::is_packed(type) ? unpacked_stride(in) + unpacked_stride(out) : 0;
}
// Calls move(x, y) on memory of moving_cell(type) elements.
template <class Move>
void with_cells(ElementType type, const void* x, int64_t in, void* y, int64_t out, void* scratch,
                Move&& move) {
  if (!kernels::is_packed(type)) {
    move(x, y);
    return;
  }
  auto* from = static_cast<uint8_t*>(scratch);
  uint8_t* to = from + unpacked_stride(in);
  kernels::unpack(type, x, 0, from, in);
  move(static_cast<const void*>(from), static_cast<void*>(to));
  kernels::pack(type, to, y, 0, out);
}

// Copies n elements of any type that is not packed.
void copy_plain(ElementType type, const void* x, void* y, int64_t n);

// A step that makes output 0 by one strided copy of input 0, planned for the sizes by
// `StridedCopy plan(const BindContext&)`. Only input 0 is read.
template <class Plan>
std::unique_ptr<Step> make_copy_step(PrepareContext& ctx, std::string kernel, Plan plan) {
  struct State {
    kernels::StridedCopy copy;
  };
  const ElementType type = ctx.in_element(0);
  const kernels::Cell cell = moving_cell(type);
  auto step = make_step<State>(
      std::move(kernel),
      [type, plan](BindContext& bind, State& state) {
        state.copy = plan(bind);
        bind.need_scratch(unpacked_bytes(type, bind.in_size(0), bind.out_size(0)));
      },
      [type, cell](RunContext& run, const State& state) {
        with_cells(type, run.data(0), run.in_size(0), run.out_data(0), run.out_size(0),
                   run.scratch(), [&](const void* x, void* y) {
                     kernels::copy_strided(cell, state.copy, x, y, run.pool());
                   });
      });
  for (int i = 1; i < ctx.input_count(); ++i) {
    if (ctx.has_input(i)) step->traits().unread_inputs.push_back(i);
  }
  return step;
}

}  // namespace sardonyx::ops
