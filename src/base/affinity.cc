#include "base/affinity.h"

#include <algorithm>

#include "base/fail.h"
#include "base/os.h"

namespace sardonyx {

// What a system's limits leave of a set is seen by reading it back.
StartOn::StartOn(std::span<const int> processors) {
  if (processors.empty()) return;
  for (const int processor : processors) {
    if (processor < 0 || processor >= os::processor_limit())
      fail(ErrorCode::bad_input, "there is no processor {}: they are numbered from 0 to {}",
           processor, os::processor_limit() - 1);
  }
  std::vector<int> before = os::processors();
  if (before.empty())
    fail(ErrorCode::unsupported, "the system does not say which processors a thread may use");
  const bool changed = os::run_on(processors);
  const std::vector<int> got = changed ? os::processors() : std::vector<int>();
  for (const int processor : processors) {
    if (std::ranges::find(got, processor) != got.end()) continue;
    if (changed) os::run_on(before);
    fail(ErrorCode::bad_input,
         "processor {} is none that this process may use; `taskset -p` shows which those are",
         processor);
  }
  before_ = std::move(before);
}

StartOn::~StartOn() {
  if (!before_.empty()) os::run_on(before_);
}

}  // namespace sardonyx
