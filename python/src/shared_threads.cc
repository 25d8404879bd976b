#include "shared_threads.h"

#include <utility>

#include "session.h"

namespace sardonyx::python {

SharedThreads::SharedThreads(int count)
    : asked_(count), born_in_(forks_so_far()), threads_(std::in_place, count) {}

SharedThreads::~SharedThreads() {
  if (born_in_ != forks_so_far()) leave_behind();
}

// Threads of another process can't be joined.
void SharedThreads::leave_behind() { (void)new std::optional<Threads>(std::move(threads_)); }

Threads SharedThreads::get() {
  if (born_in_.load() != forks_so_far()) {
    const std::lock_guard lock(made_anew_);
    if (born_in_.load() != forks_so_far()) {
      leave_behind();
      threads_.emplace(asked_);
      born_in_ = forks_so_far();
    }
  }
  return *threads_;
}

}  // namespace sardonyx::python
