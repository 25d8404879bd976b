// Threads that runs of a session go on when their caller does not wait for them.
#pragma once

#include <atomic>
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

  // `work` throws nothing. Throws Error (out_of_memory) where no thread can be started.
  void add(std::function<void()> work);

  // Returns when all work is done and all threads have ended, but for the thread that calls it
  // where that is one of them: it ends when its own work returns. Nothing may be added afterwards.
  void finish();

 private:
  struct State;
  void start_thread(State& state);
  // How many threads there are where one more could not be started; 0 otherwise.
  size_t enqueue(std::function<void()> work);

  const size_t max_threads_;
  const std::vector<int> processors_;
  const SessionLog log_;
  std::atomic<bool> told_ = false;  // of fewer threads
  std::shared_ptr<State> state_;    // which a thread that outlives this object keeps
};

}  // namespace sardonyx
