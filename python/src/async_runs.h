// Runs that go on in threads of sessions, as the interpreter's end has to know of them.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>

#include "session.h"

namespace sardonyx::python {

// One run that was begun. All that have not ended are cancelled and waited for when the interpreter
// ends, after which no thread may ask for its lock.
class AsyncRun {
 public:
  // With the lock held. `keep` lives until the run has ended. Throws Error (cancelled) where the
  // interpreter is about to end.
  AsyncRun(Cancel* cancel, nb::object callback, nb::object keep);
  ~AsyncRun();  // of one that was never begun: takes the lock
  AsyncRun(const AsyncRun&) = delete;
  AsyncRun& operator=(const AsyncRun&) = delete;

  std::atomic<bool>* flag() { return flag_; }
  // Calls back with the outputs and the exception, one of them None, and lets go of all that was
  // kept. With the lock held.
  void end(nb::handle outputs, nb::handle exception);

 private:
  void leave();

  std::atomic<bool> own_flag_ = false;
  std::atomic<bool>* flag_;
  nb::object callback_, keep_;
  bool has_ended_ = false;
  int born_in_;
};

// At the interpreter's end, with the lock held; later runs are refused.
void finish_async_runs();

}  // namespace sardonyx::python
