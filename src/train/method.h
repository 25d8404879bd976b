// One method of a training model, planned.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "ops/environment.h"
#include "run/plan.h"
#include "sardonyx/training.h"
#include "session/model.h"
#include "train/graphs.h"

namespace sardonyx::train {

// What is given by name in the order of `inputs`. Throws Error (bad_input) for names that are none
// of them, that come twice or that are missing.
std::vector<Value> in_order(const std::vector<ValueDescription>& inputs, const StateTable& table,
                            const std::vector<NamedValue>& named);

class Method {
 public:
  // Throws Error with the place of the node that can't be run. `what`: "step 0", for errors.
  Method(const Model::Implementation& model, MethodModel method, const StateTable& table,
         const TrainingOptions& options, ThreadPool& pool);

  const std::vector<ValueDescription>& inputs() const { return inputs_; }
  // Of the graph, in its order.
  const std::vector<ValueDescription>& outputs() const { return outputs_; }

  // Throws Error as Session::run does. May be called from any number of threads.
  std::vector<Value> run(const std::vector<NamedValue>& inputs, const Snapshot& state,
                         ops::RandomStreams& random, const RunOptions& options) const;

 private:
  std::vector<Value> run_graph(const std::vector<Value>& given, eval::Environment& env,
                               Profile* profile) const;

  ThreadPool& pool_;
  const StateTable& table_;
  std::vector<size_t> states_;
  std::vector<ValueDescription> inputs_, outputs_;  // inputs: without the state
  ir::Graph graph_;                                 // of the reference
  std::shared_ptr<const run::Plan> plan_;           // null: the reference
};

}  // namespace sardonyx::train
