// Ctrl-C during a run.
#pragma once

#include <atomic>

#include <csignal>

namespace sardonyx::python {

// While it lives, SIGINT also sets `flag`, which stops the run that has it; Python's own handler is
// called as ever and makes the KeyboardInterrupt. Only for the main thread, where Python's handlers
// run; elsewhere, and where SIGINT is not Python's business, it does nothing.
class Interruptible {
 public:
  explicit Interruptible(std::atomic<bool>* flag);
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

  bool was_interrupted() const;

 private:
  bool installed_ = false;
  struct sigaction before_ = {};
};

// To be called from the main thread, and again in a child process.
void remember_main_thread();
bool on_main_thread();

}  // namespace sardonyx::python
