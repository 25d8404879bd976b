// What Loop and Scan share: carried values, slices of inputs, stacked outputs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ops/operator.h"

namespace sardonyx::ops {

// What is known of the values that a body hands from one iteration to the next. What is known of
// them inside the body holds in every iteration: a size that the body changes is unknown there, a
// rank, too, an element as well. After the last one those that grow by the same in each iteration
// are expressions of the number of iterations: a cache of `past` rows is one of past + trips*n.
class CarriedValues {
 public:
  // Infers the body with these carried values and returns its outputs.
  using InferBody = std::function<std::vector<ValueFacts>(std::span<const ValueFacts> carried)>;

  // `first`: where the carried values begin among the body's outputs. Borrows the context.
  CarriedValues(InferContext& ctx, std::vector<ValueFacts> start, size_t first);
  // Must come first. Returns the body's outputs, which hold in every iteration.
  const std::vector<ValueFacts>& settle(const InferBody& infer_body);
  // Infers the body once more, with bounds for what grows by no more than some size in each of
  // `trips` iterations, so that what the body makes of it has one, too. Does nothing where that
  // adds none.
  void bound(const Dim& trips, const InferBody& infer_body);
  // What is known of carried value i when `trips` iterations are over.
  ValueFacts after(size_t i, const Dim& trips) const;
  // The type of what every iteration makes, told by the first one: all must be of one shape.
  ValueType in_first(ValueType type) const;
  // `symbol` stands for `value` in the first iteration.
  void starts_as(const Dim& symbol, const Dim& value);

 private:
  bool is_of_loop(const Dim& dim) const;
  bool widen(ValueFacts& carried, const ValueFacts& made);
  bool widen_held(ValueType& type, const ValueType& next);
  bool widen_sizes(Dims& sizes, const Dims& next);
  void name_elements(ValueFacts& carried);
  void fill_empty(const InferBody& infer_body);
  Dim size_after(const Dim& start, const Dim& within, const Dim* made, const Dim& trips) const;
  std::optional<Dim> max_growth(Dim growth) const;
  std::shared_ptr<const Dims> elements_after(size_t i, const Dim& trips) const;

  InferContext& ctx_;
  std::vector<ValueFacts> start_, within_, made_;
  size_t first_;
  int first_symbol_;
  std::vector<std::pair<int, Dim>> starts_;  // by symbol id
};

// The first output that the node names. Names of sizes that a body alone knows have it, so that a
// body inside it can tell them from its own.
std::string made_by(const NodeView& view);

// The types of a body's carried inputs, of the node's inputs from `input` and outputs from 0 on:
// what is the same before and after holds in every iteration, other sizes get names of their own.
std::vector<ValueFacts> carried_inputs(const PrepareContext& ctx, int input, size_t count,
                                       ir::SymbolTable& names);

// Element `index` along `axis`, that axis removed. Axis 0 is a view of the tensor.
Tensor slice_at(const Tensor& tensor, int64_t axis, int64_t index);

// The run is charged for the values that an iteration hands to the next ones, for as long as this
// lives: what a body charged is given back when it ends.
class HeldValues {
 public:
  HeldValues(RunEnvironment& environment, size_t carried)
      : scope_(environment), environment_(environment), carried_(carried, 0) {}
  // The value that now stands for carried value `i`.
  void carry(size_t i, const Value& value);
  // A scan output of one more iteration.
  void add(const Value& value) { environment_.charge(owned_bytes(value)); }

 private:
  RunEnvironment::Scope scope_;
  RunEnvironment& environment_;
  std::vector<int64_t> carried_;
};

// Makes a value that a body gave an output of the step: the run is charged for it.
void set_made_output(RunContext& run, int i, Value value);

// What is told before a run of the values that iterations make and the node stacks.
struct ScanOutputs {
  size_t first_made;             // among the body's outputs
  size_t first;                  // among the node's
  std::vector<int64_t> axes;     // of the stacked ones
  std::vector<ValueType> items;  // what one iteration makes
};

// What an iteration would make in a run that has none: as the plan says, and where that says
// nothing as the body does, given `inputs()`.
std::vector<ValueType> items_of_no_iteration(
    RunContext& run, const PreparedGraph& body, const ScanOutputs& outputs,
    const std::function<std::vector<ValueFacts>()>& inputs);

// Tensors of one shape and type side by side along a new axis, in reverse order if asked. Where
// there is none, `item_type` says what one would look like.
Tensor stacked(const RunEnvironment& environment, std::span<const Value> items, int64_t axis,
               bool reverse, const ValueType& item_type);

}  // namespace sardonyx::ops
