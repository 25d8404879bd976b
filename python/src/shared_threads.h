// Threads that several sessions share, as Python holds them.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>

#include "sardonyx/session.h"

namespace sardonyx::python {

// Threads do not come along through a fork: in the new process others take their place.
class SharedThreads {
 public:
  explicit SharedThreads(int count);
  ~SharedThreads();
  SharedThreads(const SharedThreads&) = delete;
  SharedThreads& operator=(const SharedThreads&) = delete;

  int asked() const { return asked_; }
  // Those of this process.
  Threads get();

 private:
  void leave_behind();

  int asked_;
  std::mutex made_anew_;
  std::atomic<int> born_in_;
  std::optional<Threads> threads_;
};

}  // namespace sardonyx::python
