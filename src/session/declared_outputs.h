// What a model declares of its outputs, held against what runs make.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/model.h"
#include "sardonyx/session.h"

namespace sardonyx {

// Warns of each output once. What a run makes is right: declarations are a hint to readers, and
// many exporters write wrong ones. May be used from any thread.
class DeclaredOutputs {
 public:
  using Warn = std::function<void(const Warning&)>;

  // `inputs` have names for all their sizes (ir::name_open_sizes). Copies what it needs. An empty
  // `warn`: there is nothing to do.
  DeclaredOutputs(std::vector<ir::ValueInfo> inputs, std::vector<ir::ValueInfo> outputs, Warn warn);

  // False where nothing is left to be said.
  bool is_active() const { return open_ > 0; }
  // Whether check() was called. Plans are shared: the first run of a session may be one whose sizes
  // another session's run had before.
  bool has_checked() const { return has_checked_.load(std::memory_order_relaxed); }
  // `names`: of the inputs given, in order. `made`: the outputs, in the model's order.
  void check(std::span<const std::string> names, std::span<const Value> given,
             std::span<const Value> made) const;

 private:
  std::vector<ir::ValueInfo> inputs_, outputs_;
  Warn warn_;
  std::unique_ptr<std::atomic<bool>[]> told_;  // by output
  mutable std::atomic<bool> has_checked_ = false;
  mutable std::atomic<size_t> open_ = 0;  // outputs of which a warning may come yet
};

}  // namespace sardonyx
