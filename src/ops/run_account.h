// What steps allocate beside their outputs and scratch memory, held against the run's limit.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "base/memory_account.h"
#include "ir/model.h"
#include "ir/origin.h"
#include "ir/walk.h"
#include "ops/environment.h"

namespace sardonyx::ops {

// While it lives, what the environment is charged by this thread is charged to the step's account,
// too, so that its tables and its outputs together keep to the limit.
class StepAccount {
 public:
  StepAccount(RunEnvironment& environment, SharedAccount account);
  ~StepAccount();
  StepAccount(const StepAccount&) = delete;
  StepAccount& operator=(const StepAccount&) = delete;

  void charge(const RunEnvironment& environment, int64_t bytes);
  int64_t mirrored() const { return mirrored_; }

 private:
  RunEnvironment& environment_;
  SharedAccount account_;
  StepAccount* const outer_;
  int64_t mirrored_ = 0;
};

// Calls `work`, which binds or runs a step of the node. Tables that it makes (base/counted.h) count
// before they have their memory; those that stay are charged to the run. Throws Error
// (out_of_memory) with the node's place where they pass its limit.
template <class Work>
void within_run_limit(RunEnvironment& environment, const ir::Node& node, const Work& work) {
  if (environment.memory_limit == INT64_MAX) return work();
  const int64_t used = environment.charged();
  const auto account = std::make_shared<MemoryAccount>(
      std::max<int64_t>(environment.memory_limit, 1), "RunOptions::memory_limit", used);
  int64_t mirrored = 0;
  try {
    const UseAccount use(account);
    if (ir::has_graphs(node)) {  // its iterations give back what they charge
      work();
    } else {
      StepAccount step(environment, account);
      work();
      mirrored = step.mirrored();
    }
  } catch (const MemoryLimitReached& reached) {
    throw Error(ErrorCode::out_of_memory, reached.what(), ir::place_of(node));
  }
  const int64_t stays = account->used() - used - mirrored;
  if (stays > 0) environment.charge(stays);
}

}  // namespace sardonyx::ops
