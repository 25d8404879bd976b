// Threads that runs of a session go on when their caller does not wait for them.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "session/session_log.h"

namespace sardonyx {

// Does work in order, on threads that are started when they are first needed. May be used from any
// thread, those of its own included.
class AsyncRuns {
 public:
  // `processors`: where its threads run (base/affinity.h).
  // `log` is told once where the system starts fewer threads.
  AsyncRuns(int max_threads, std::vector<int> processors, SessionLog log = {});
  ~AsyncRuns() { finish(); }
  AsyncRuns(const AsyncRuns&) = delete;
  AsyncRuns& operator=(const AsyncRuns&) = delete;

  // `work` throws nothing, and may end this object before the call returns. Throws Error
  // (out_of_memory) where no thread can be started.
  void add(std::function<void()> work);

  // Returns when all work is done and all threads have ended, but for the thread that calls it
  // where that is one of them: it ends when its own work returns. Nothing may be added afterwards.
  void finish();

 private:
  struct State;
  void start_thread(State& state);
  void tell_of_fewer(size_t threads) const;

  const size_t max_threads_;
  const std::vector<int> processors_;
  const SessionLog log_;
  bool told_ = false;             // of fewer threads; under the state's lock
  std::shared_ptr<State> state_;  // which a thread that outlives this object keeps
};

}  // namespace sardonyx
