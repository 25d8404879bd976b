#include "base/affinity.h"

#include "base/fail.h"

namespace sardonyx {

// What a system's limits leave of a set is seen by reading it back.
StartOn::StartOn(std::span<const int> processors) {
  if (processors.empty()) return;
  cpu_set_t wanted;
  CPU_ZERO(&wanted);
  for (const int processor : processors) {
    if (processor < 0 || processor >= CPU_SETSIZE)
      fail(ErrorCode::bad_input, "there is no processor {}: they are numbered from 0 to {}",
           processor, CPU_SETSIZE - 1);
    CPU_SET(static_cast<size_t>(processor), &wanted);
  }
  if (sched_getaffinity(0, sizeof before_, &before_) != 0)
    fail(ErrorCode::unsupported, "the system does not say which processors a thread may use");
  changed_ = sched_setaffinity(0, sizeof wanted, &wanted) == 0;
  cpu_set_t got;
  CPU_ZERO(&got);
  if (changed_) sched_getaffinity(0, sizeof got, &got);
  for (const int processor : processors) {
    if (CPU_ISSET(static_cast<size_t>(processor), &got)) continue;
    if (changed_) sched_setaffinity(0, sizeof before_, &before_);
    changed_ = false;
    fail(ErrorCode::bad_input,
         "processor {} is none that this process may use; `taskset -p` shows which those are",
         processor);
  }
}

StartOn::~StartOn() {
  if (changed_) sched_setaffinity(0, sizeof before_, &before_);
}

}  // namespace sardonyx
