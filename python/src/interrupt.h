// Ctrl-C during a run.
#pragma once

#include <atomic>

namespace sardonyx::python {

// While it lives, SIGINT also sets `flag`, which stops the run that has it; Python's own handler is
// called as ever and makes the KeyboardInterrupt. Only for the main thread, where Python's handlers
// run; elsewhere, and where SIGINT is not Python's business, it does nothing. The handler that sees
// to it stays, so that a brief run need not ask the system; whether it is still there is looked at
// once a millisecond.
class Interruptible {
 public:
  explicit Interruptible(std::atomic<bool>* flag);
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

  bool was_interrupted() const;

 private:
  bool watches_ = false;
};

// To be called from the main thread, and again in a child process.
void remember_main_thread();
bool on_main_thread();

}  // namespace sardonyx::python
