// sardonyx explain --passes
#pragma once

#include <string>

#include "loading.h"
#include "options.h"

namespace sardonyx::cli {

// What the optimiser does, instead of the steps of the plan.
struct PassReport {
  bool passes = false;  // the table
  std::string stop_after, print_after;

  void add_options(const Options& command);
  bool is_wanted() const { return passes || !stop_after.empty() || !print_after.empty(); }
  // Prints the report; returns the exit code.
  int print(const LoadingOptions& loading, bool as_json) const;
};

}  // namespace sardonyx::cli
