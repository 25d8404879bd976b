#include "passes/optimize.h"

#include "passes/pass_manager.h"
#include "passes/pipeline.h"

namespace sardonyx::passes {

void optimize(ir::Graph& graph, const OptimizeOptions& options) {
  PassManager(options.fuse ? optimizing_passes() : cleaning_passes(), options).run(graph);
}

void fold_constants(ir::Graph& graph, const OptimizeOptions& options) {
  PassManager(folding_passes(), options).run(graph);
}

void require_sound(const ir::Graph& graph, const OptimizeOptions& options) {
  ir::Graph copy = graph;
  fold_constants(copy, options);
}

}  // namespace sardonyx::passes
