// Optimising a lowered graph: the passes of pipeline.h, in their order.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/thread_pool.h"
#include "ir/model.h"
#include "ir/value_type.h"
#include "passes/assumptions.h"
#include "passes/observer.h"

namespace sardonyx::passes {

struct OptimizeOptions {
  ThreadPool* pool = nullptr;  // never null
  // False: constants are folded and dead nodes removed, nothing else.
  bool fuse = true;
  // A folded constant may be at most this many bytes larger than what it was made from, or larger
  // still as long as all these larger ones together grow by no more than `total_growth`.
  int64_t max_growth = int64_t{1} << 20;
  int64_t total_growth = int64_t{32} << 20;
  // All folded constants together, large and small, grow by no more than this and eight times the
  // bytes of the constants that the graph came with; what would go beyond it is left to the run.
  int64_t all_growth = int64_t{64} << 20;
  // Most bytes that folding one node may take: this beside eight times its inputs and outputs.
  int64_t folding_memory = int64_t{256} << 20;
  // Not null: the sizes of a run, with which alone the graph then means what it did; or where to
  // note what sizes would decide.
  Assumptions* assumptions = nullptr;
  // Told of each pass after it has run; empty: nobody. Passes take longer then.
  PassObserver observer = {};
  // The name of the last pass to run on each graph; empty: all.
  std::string stop_after = {};
  // Given each value that the graph's own nodes make, and its type, before anything is rewritten.
  // May be empty.
  std::function<void(const ir::Node&, std::string_view, const ir::ValueType&)> inferred = {};
};

// Keeps the graph's inputs and outputs and their meaning; subgraphs likewise. Throws Error with the
// place of the node that can't be.
void optimize(ir::Graph& graph, const OptimizeOptions& options);
// Only folds what is constant, also in subgraphs, and drops what nobody uses: optimize does the
// rest.
void fold_constants(ir::Graph& graph, const OptimizeOptions& options);
// Throws the Error with which optimize would refuse the graph, and changes nothing: who evaluates
// it node by node refuses the same models.
void require_sound(const ir::Graph& graph, const OptimizeOptions& options);

}  // namespace sardonyx::passes
