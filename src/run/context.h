// What one run of a plan changes: slots, sizes, memory. Reused by later runs.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/recycled.h"
#include "run/plan.h"

namespace sardonyx::run {

class Context {
 public:
  // For runs on a pool of this many threads: what steps are bound to depends on it.
  Context(const Plan& plan, int threads);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // As Plan::run.
  bool run(std::span<const Value> inputs, std::span<ops::Slot* const> captured,
           std::span<Value> outputs, eval::Environment& environment, OutputMemory* memory,
           std::span<Value> given);
  int threads() const { return threads_; }
  // Memory that stays for the next run.
  int64_t arena_bytes() const;

 private:
  const PlanStep& step(int index) const { return plan_.steps()[static_cast<size_t>(index)]; }
  const PlanValue& value(int index) const { return plan_.values()[static_cast<size_t>(index)]; }
  ops::Slot& slot(int index) { return slots_[static_cast<size_t>(index)]; }
  int64_t* dims_of(int index) { return dims_.data() + value(index).dims_offset; }

  // Takes the inputs; true where their shapes are those of the last run. `aligned`: those that are
  // no tensors are known to lie as their types need.
  bool take_inputs(std::span<const Value> inputs, std::span<ops::Slot* const> captured,
                   bool aligned);
  void take_input(size_t i, const Value& given, bool aligned);
  void note_shape(std::span<const int64_t> shape);
  void match(int index, std::span<const int64_t> shape);
  // Evaluates sizes, checks constraints, lays out memory and binds the steps of a segment.
  void bind_segment(size_t index, eval::Environment& environment);
  void evaluate_dims(const Segment& segment);
  std::vector<ops::Constraint> refuse_shapes(int index);
  bool has_wrong_shapes(int index);
  const PlanStep* step_of(const Segment& segment, const ops::Constraint& constraint,
                          int& index) const;
  void check_by_numbers(const Segment& segment, const ops::Constraint& constraint);
  void check_constraints(const Segment& segment);
  void lay_out(const Segment& segment, size_t index, eval::Environment& environment);
  const PlanStep& largest_in(const Segment& segment);
  bool is_in_arena(int value) const;
  // Where each value of the segment lies in its arena, given the values' numbers of elements;
  // returns the arena's size.
  int64_t place(const Segment& segment, std::span<const int64_t> counts,
                std::vector<int64_t>& offsets) const;
  // The same by size, the largest first, each at the lowest place that is free while it lives.
  int64_t place_by_size(const Segment& segment, std::span<const int64_t> counts,
                        std::vector<int64_t>& offsets) const;
  std::optional<int64_t> max_bytes(const Segment& segment) const;
  void bind_step(int index, eval::Environment& environment);

  // True where its shapes were bound anew.
  bool run_segment(size_t index, std::span<Value> outputs, eval::Environment& environment);
  template <bool observed>
  void run_steps(const Segment& segment, eval::Environment& environment);
  void allocate_outputs(const Segment& segment, std::span<Value> outputs,
                        eval::Environment& environment);
  int64_t working_bytes() const;
  ops::RunContext context_of(int index, Bytes& scratch, eval::Environment& environment);
  // Runs the bound step, and charges the texts that it gives its outputs.
  void run_step(int index, ops::RunContext& run, eval::Environment& environment);
  void run_planned(int index, eval::Environment& environment);
  void run_data_dependent(int index, eval::Environment& environment);
  void run_interpreted(int index, eval::Environment& environment);
  Error reason_of(int index, const Error& error, eval::Environment& environment);
  bool is_view(const PlanStep& step) const;  // its output is its input's memory
  void make_view(const PlanStep& step);
  void make_late_view(const PlanStep& step);
  void check_view(const PlanStep& step);
  void allocate_boxed(const PlanStep& step, eval::Environment& environment);
  void expect_sizes(const PlanStep& step);
  void make_late_outputs(int index, eval::Environment& environment);
  // Where the caller wants the value, if that is of its type and shape.
  Tensor late_tensor(int index, ElementType type, const Shape& shape,
                     eval::Environment& environment);
  std::vector<ValueFacts> infer_late(int index, eval::Environment& environment);
  void check_made_shapes(const PlanStep& step);
  // Bind the sizes that a data_dependent or interpreted step decided.
  void learn_sizes(const PlanStep& step);
  void learn_size(int id, int64_t size);
  void learn_shape(const PlanStep& step, int index, std::span<const int64_t> shape);
  void give_outputs(std::span<Value> outputs);
  Value owned_value(int index);
  bool copy_to(int index, const Value& wanted);
  void drop_run_values();

  struct StepSlots {
    int inputs = 0;  // offset of the step's input pointers in pointers_
    int outputs = 0;
  };

  const Plan& plan_;
  int threads_;
  std::vector<ops::Slot> slots_;      // by value
  std::vector<ops::Slot*> pointers_;  // of all steps
  std::vector<StepSlots> step_slots_;
  std::vector<int64_t> dims_;
  std::vector<int64_t> sizes_;  // by symbol id; -1: not bound
  std::vector<char> segment_bound_;
  // What a segment was bound for is what runs had learned of sizes by then. Each change of a
  // learned size has a number, the next one; a segment is bound anew where one that comes before it
  // in a run changed after it was bound.
  std::vector<int64_t> learned_;     // by symbol id: its size in the last run that learned it
  std::vector<int64_t> changed_at_;  // by symbol id: the number of its last change
  std::vector<int64_t> bound_at_;    // by segment: how many changes there had been
  int64_t changes_ = 0;              // so far
  int64_t newest_change_ = 0;        // among the sizes that this run has learned
  std::vector<int64_t> counts_;      // by value; 0 but while a segment is laid out
  std::vector<Bytes> arenas_;        // by segment
  std::vector<int64_t> offsets_;     // by value: of roots in their segment's arena
  std::vector<RecycledBlocks> given_outputs_;  // by output: what callers have let go of
  std::deque<RecycledBlocks> boxed_blocks_;    // of values that the run makes; in their slots
  Bytes state_;
  Bytes scratch_;
  Bytes late_scratch_;
  bool ranked_outputs_ = true;             // the plan knows all their ranks
  std::vector<int64_t> input_shapes_;      // flattened, of the last run
  std::vector<int64_t> given_shapes_;      // of this one
  std::deque<Value> held_inputs_;          // copies of inputs that did not lie as their type needs
  std::span<Value> run_outputs_;           // of the run in progress
  OutputMemory* output_memory_ = nullptr;  // of the caller's, for that run
};

}  // namespace sardonyx::run
