// Runs passes over a graph and those inside it.
#pragma once

#include <span>
#include <string>

#include "passes/optimize.h"
#include "passes/pass.h"

namespace sardonyx::passes {

// Makes the facts that each pass needs where they are not right any more, and no others. In builds
// with assertions each graph is verified after each pass (verify.h).
class PassManager {
 public:
  // Borrows both.
  PassManager(std::span<const Pass> passes, const OptimizeOptions& options)
      : passes_(passes), options_(options), folder_(options) {}

  // Throws Error with the place of the node that can't be.
  void run(ir::Graph& graph);
  void run(ir::Graph& graph, const EnterGraph& enter, const std::string& place);

  ConstantFolder& folder() { return folder_; }

 private:
  friend class PassContext;

  // Runs `step`, which returns whether it changed the graph, and tells the observer.
  template <class Step>
  bool watched(PassContext& context, std::string_view name, const Step& step);
  void refuse_broken(const PassContext& context) const;
  void verify(const PassContext& context, std::string_view pass) const;

  std::span<const Pass> passes_;
  const OptimizeOptions& options_;
  ConstantFolder folder_;
  double inside_ = 0;  // seconds spent on graphs inside the pass that is running
};

}  // namespace sardonyx::passes
