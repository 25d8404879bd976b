// Running a kernel of one float type on tensors of another: what is not of the kernel's type is
// converted into scratch memory and back.
#pragma once

#include <cstdint>

#include "kernels/convert/cast.h"
#include "ops/step.h"

namespace sardonyx::ops {

// Deals out scratch memory in 64-byte aligned parts.
class ScratchPlanner {
 public:
  int64_t take(int64_t bytes) {
    const int64_t at = bytes_;
    bytes_ += (bytes + 63) / 64 * 64;
    return at;
  }
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_ = 0;
};

inline std::byte* scratch_at(const RunContext& run, int64_t offset) {
  return static_cast<std::byte*>(run.scratch()) + offset;
}

// float64 is computed in double, every narrower float in float.
inline ElementType compute_type(ElementType type) {
  return type == ElementType::float64 ? ElementType::float64 : ElementType::float32;
}

// Where the converted inputs and outputs of a step lie. Trivially copyable: part of a step's state.
class ConvertedArguments {
 public:
  static constexpr int most = 10;

  void plan_in(const BindContext& bind, int i, ElementType compute, ScratchPlanner& layout) {
    const bool convert = bind.has_input(i) && bind.in_type(i) != compute;
    in_[i] = convert ? layout.take(byte_size(compute, bind.in_size(i))) : -1;
  }
  void plan_out(const BindContext& bind, int i, ElementType compute, ScratchPlanner& layout) {
    const bool convert = bind.has_output(i) && bind.out_type(i) != compute;
    out_[i] = convert ? layout.take(byte_size(compute, bind.out_size(i))) : -1;
  }
  // All inputs and outputs.
  void plan(const BindContext& bind, ElementType compute, ScratchPlanner& layout) {
    for (int i = 0; i < bind.input_count(); ++i) plan_in(bind, i, compute, layout);
    for (int i = 0; i < bind.output_count(); ++i) plan_out(bind, i, compute, layout);
  }

  // The input as T, converted now where need be; null where absent.
  template <class T>
  const T* in(const RunContext& run, int i) const {
    if (!run.has_input(i)) return nullptr;
    if (in_[i] < 0) return run.in<T>(i);
    T* wide = reinterpret_cast<T*>(scratch_at(run, in_[i]));
    kernels::cast(run.in_type(i), element_type_of<T>::value, run.data(i), wide, run.in_size(i), {},
                  run.pool());
    return wide;
  }
  // The same, for kernels that take the type as a value.
  const void* in_as(const RunContext& run, int i, ElementType compute) const {
    if (!run.has_input(i)) return nullptr;
    if (in_[i] < 0) return run.data(i);
    std::byte* wide = scratch_at(run, in_[i]);
    kernels::cast(run.in_type(i), compute, run.data(i), wide, run.in_size(i), {}, run.pool());
    return wide;
  }
  void* out_as(const RunContext& run, int i) const {
    if (!run.has_output(i)) return nullptr;
    return out_[i] < 0 ? run.out_data(i) : scratch_at(run, out_[i]);
  }
  void finish_as(const RunContext& run, int i, ElementType compute) const {
    if (!run.has_output(i) || out_[i] < 0) return;
    kernels::cast(compute, run.out_type(i), scratch_at(run, out_[i]), run.out_data(i),
                  run.out_size(i), {}, run.pool());
  }
  // Where to write output i; null where absent. finish() brings it home.
  template <class T>
  T* out(const RunContext& run, int i) const {
    if (!run.has_output(i)) return nullptr;
    return out_[i] < 0 ? run.out<T>(i) : reinterpret_cast<T*>(scratch_at(run, out_[i]));
  }
  template <class T>
  void finish(const RunContext& run, int i) const {
    if (!run.has_output(i) || out_[i] < 0) return;
    kernels::cast(element_type_of<T>::value, run.out_type(i), scratch_at(run, out_[i]),
                  run.out_data(i), run.out_size(i), {}, run.pool());
  }

 private:
  int64_t in_[most];
  int64_t out_[most];
};

}  // namespace sardonyx::ops
