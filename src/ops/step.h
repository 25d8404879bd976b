// The contract of execution: a prepared step, bound to sizes, run on buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "ops/environment.h"
#include "sardonyx/value.h"

namespace sardonyx::ops {

// Where one value of a running graph is. Dense tensors of fixed-width elements live in `data`;
// strings, sequences, maps, optionals and sparse tensors, and tensors whose memory the run
// allocated one by one, live in `value` (then `data` of a tensor points into it).
struct Slot {
  const void* data = nullptr;
  const int64_t* dims = nullptr;
  int32_t rank = 0;
  ElementType element = ElementType::undefined;
  int64_t count = 0;  // elements
  Value value;
  RecycledBlocks* blocks = nullptr;  // where tensors that a run makes for it come from, if not null

  std::span<const int64_t> shape() const { return {dims, static_cast<size_t>(rank)}; }
};

// Sizes of a step's inputs and outputs. Absent inputs and outputs have slot null.
class StepShapes {
 public:
  bool has_input(int i) const { return i < input_count_ && inputs_[i] != nullptr; }
  bool has_output(int i) const { return i < output_count_ && outputs_[i] != nullptr; }
  int input_count() const { return input_count_; }
  int output_count() const { return output_count_; }
  std::span<const int64_t> in_shape(int i) const { return inputs_[i]->shape(); }
  std::span<const int64_t> out_shape(int i) const { return outputs_[i]->shape(); }
  int64_t in_size(int i) const { return inputs_[i]->count; }
  int64_t out_size(int i) const { return outputs_[i]->count; }
  ElementType in_type(int i) const { return inputs_[i]->element; }
  ElementType out_type(int i) const { return outputs_[i]->element; }

 protected:
  Slot* const* inputs_ = nullptr;
  Slot* const* outputs_ = nullptr;
  int input_count_ = 0;
  int output_count_ = 0;
};

// Given to Step::bind: all sizes of inputs and outputs are known (outputs of steps with
// `allocates_outputs` are not), no data is.
class BindContext : public StepShapes {
 public:
  BindContext(Slot* const* inputs, int input_count, Slot* const* outputs, int output_count,
              void* state, int threads)
      : state_(state), threads_(threads) {
    inputs_ = inputs, outputs_ = outputs, input_count_ = input_count, output_count_ = output_count;
  }
  // The step's memory for this binding: traits.state_bytes, zeroed before each bind.
  template <class State>
  State& state() const {
    return *static_cast<State*>(state_);
  }
  // Scratch memory the run needs, aligned to 64 bytes.
  void need_scratch(int64_t bytes) { scratch_ = bytes; }
  int64_t scratch() const { return scratch_; }
  // Of the pool; a run may be left to one of them (ThreadPool::for_caller).
  int threads() const { return threads_; }

 private:
  void* state_;
  int threads_;
  int64_t scratch_ = 0;
};

// Output `output` may share the memory of input `input` when their byte sizes are equal and nobody
// needs that input afterwards: the step then computes in place. Of sequences: it may take the
// input's items (RunContext::take_sequence).
struct InPlace {
  int output;
  int input;
};

class RunContext : public StepShapes {
 public:
  // `in_place`: what the plan grants of the step's traits; null: nothing.
  RunContext(Slot* const* inputs, int input_count, Slot* const* outputs, int output_count,
             const void* state, void* scratch, RunEnvironment& environment,
             const std::vector<InPlace>* in_place = nullptr)
      : state_(state), scratch_(scratch), environment_(environment), in_place_(in_place) {
    inputs_ = inputs, outputs_ = outputs, input_count_ = input_count, output_count_ = output_count;
  }

  // Elements of a tensor input; T is not checked (the type constraints were).
  const void* data(int i) const { return inputs_[i]->data; }
  template <class T>
  const T* in(int i) const {
    return static_cast<const T*>(inputs_[i]->data);
  }
  // Memory of a tensor output, as large as its shape needs. Strings: std::string objects.
  void* out_data(int i) const { return const_cast<void*>(outputs_[i]->data); }
  template <class T>
  T* out(int i) const {
    return static_cast<T*>(out_data(i));
  }

  // The input as a value of any kind. A tensor in the arena comes as a borrowed view that is
  // valid during this step only: copy what must live longer (to_owned).
  Value in_value(int i) const;
  // The input's sequence, to make another one of: its items themselves where the step may work in
  // place and nothing else shares them, a copy of the list otherwise.
  Sequence take_sequence(int i) const;
  // For outputs that are not dense tensors, and for steps with traits.allocates_outputs. Charges
  // the run for a tensor that is not an input's memory; the items of other values were charged
  // when they were made.
  void set_output(int i, Value value);
  // Makes output i a new tensor of this shape and returns its memory; only for steps with
  // traits.allocates_outputs.
  void* allocate_output(int i, Shape shape);

  template <class State>
  const State& state() const {
    return *static_cast<const State*>(state_);
  }
  void* scratch() const { return scratch_; }
  // Of as many threads as bind was told, or of one.
  ThreadPool& pool() const { return environment_.pool().for_caller(); }
  RunEnvironment& environment() const { return environment_; }
  // For PreparedGraph implementations: the slots behind the inputs.
  Slot* const* input_slots() const { return inputs_; }

 private:
  const void* state_;
  void hold_output(int i, Value value);

  void* scratch_;
  RunEnvironment& environment_;
  const std::vector<InPlace>* in_place_;
};

// A value that does not borrow run memory: tensors without an owner are copied.
Value to_owned(const Value& value);

// What the planner must know of a step. Filled by prepare.
struct StepTraits {
  std::vector<InPlace> in_place;
  // >= 0: output 0 is the same bytes as this input under another shape (Reshape, Identity …);
  // the executor makes it a view and does not call run at all.
  int view_of_input = -1;
  // Inputs that run() does not read, because prepare packed them or because only their sizes
  // matter.
  std::vector<int> unread_inputs;
  // Inputs that run() reads at any address, whatever their type's alignment: a constant stays where
  // it lies in its file. Others are copied where the file has them at odd addresses.
  std::vector<int> unaligned_inputs;
  // Sizes of outputs are known only to run(), which calls allocate_output or set_output for each.
  bool allocates_outputs = false;
  int32_t state_bytes = 0;  // of the state that bind computes; at most 64-byte aligned
};

// One prepared operation. Immutable after prepare: many threads may bind and run it at the same
// time, each with its own state, scratch and buffers.
class Step {
 public:
  virtual ~Step() = default;
  // Name of the kernel that was chosen, for explain and profiles.
  virtual std::string_view kernel() const = 0;
  // Computes whatever depends on sizes into the state; called when sizes changed. May refuse sizes
  // by throwing Error.
  virtual void bind(BindContext&) const {}
  // No allocation, no look-up by name, no shape arithmetic (control flow and steps that allocate
  // outputs excepted).
  virtual void run(RunContext&) const = 0;

  const StepTraits& traits() const { return traits_; }
  StepTraits& traits() { return traits_; }

 private:
  StepTraits traits_;
};

// A step from a function `void(RunContext&)`.
template <class Run>
std::unique_ptr<Step> make_step(std::string kernel, Run run) {
  class Made final : public Step {
   public:
    Made(std::string kernel, Run run) : kernel_(std::move(kernel)), run_(std::move(run)) {}
    std::string_view kernel() const override { return kernel_; }
    void run(RunContext& context) const override { run_(context); }

   private:
    std::string kernel_;
    Run run_;
  };
  return std::make_unique<Made>(std::move(kernel), std::move(run));
}

// A step with a state: `void bind(BindContext&, State&)` and `void run(RunContext&, const State&)`.
// State is trivially copyable: a run context keeps it in flat memory.
template <class State, class Bind, class Run>
std::unique_ptr<Step> make_step(std::string kernel, Bind bind, Run run) {
  static_assert(std::is_trivially_copyable_v<State> && std::is_trivially_destructible_v<State>);
  static_assert(alignof(State) <= 64);
  class Made final : public Step {
   public:
    Made(std::string kernel, Bind bind, Run run)
        : kernel_(std::move(kernel)), bind_(std::move(bind)), run_(std::move(run)) {
      traits().state_bytes = sizeof(State);
    }
    std::string_view kernel() const override { return kernel_; }
    void bind(BindContext& context) const override { bind_(context, context.state<State>()); }
    void run(RunContext& context) const override { run_(context, context.state<State>()); }

   private:
    std::string kernel_;
    Bind bind_;
    Run run_;
  };
  return std::make_unique<Made>(std::move(kernel), std::move(bind), std::move(run));
}

// A step that makes its own outputs (traits.allocates_outputs).
template <class Run>
std::unique_ptr<Step> make_allocating_step(std::string kernel, Run run) {
  auto step = make_step(std::move(kernel), std::move(run));
  step->traits().allocates_outputs = true;
  return step;
}

// A step whose output 0 is input `input` under another shape.
std::unique_ptr<Step> make_view_step(std::string kernel, int input = 0);

}  // namespace sardonyx::ops
