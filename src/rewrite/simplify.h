// Making a lowered graph smaller: constants folded, detours and unused nodes removed, operators
// fused.
#pragma once

#include "base/thread_pool.h"
#include "ir/model.h"
#include "rewrite/assumptions.h"

namespace sardonyx::rewrite {

struct SimplifyOptions {
  ThreadPool* pool = nullptr;  // never null
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
};

// Keeps the graph's inputs and outputs and their meaning; subgraphs likewise. An If whose condition
// is known gives way to the branch that it takes.
void simplify(ir::Graph& graph, const SimplifyOptions& options);
// Only folds what is constant, also in subgraphs, and drops what nobody uses: simplify does the
// rest.
void fold_constants(ir::Graph& graph, const SimplifyOptions& options);
// Throws the Error with which simplify would refuse the graph, and changes nothing: who evaluates
// it plainly refuses the same models.
void require_sound(const ir::Graph& graph, const SimplifyOptions& options);

}  // namespace sardonyx::rewrite
