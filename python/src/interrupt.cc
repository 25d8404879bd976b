#include "interrupt.h"

#include <nanobind/nanobind.h>

namespace sardonyx::python {
namespace {

std::atomic<unsigned long> main_thread{0};
// Of the one run that the main thread is in; signal handlers may read nothing else.
std::atomic<std::atomic<bool>*> watched{nullptr};
std::atomic<bool> interrupted{false};
std::atomic<void (*)(int)> python_handler{nullptr};

extern "C" void on_interrupt(int signal) {
  interrupted.store(true);
  if (auto* flag = watched.load()) flag->store(true);
  if (auto* handler = python_handler.load()) handler(signal);
}

}  // namespace

void remember_main_thread() { main_thread.store(PyThread_get_thread_ident()); }

bool on_main_thread() { return PyThread_get_thread_ident() == main_thread.load(); }

Interruptible::Interruptible(std::atomic<bool>* flag) {
  if (!on_main_thread() || watched.load() != nullptr)
    return;  // a run within a run: the outer one's
  if (sigaction(SIGINT, nullptr, &before_) != 0) return;
  const bool plain = (before_.sa_flags & SA_SIGINFO) == 0 && before_.sa_handler != SIG_DFL &&
                     before_.sa_handler != SIG_IGN;
  if (!plain) return;
  interrupted.store(false);
  python_handler.store(before_.sa_handler);
  watched.store(flag);
  struct sigaction ours = before_;
  ours.sa_handler = on_interrupt;
  installed_ = sigaction(SIGINT, &ours, nullptr) == 0;
  if (!installed_) watched.store(nullptr);
}

Interruptible::~Interruptible() {
  if (!installed_) return;
  sigaction(SIGINT, &before_, nullptr);
  watched.store(nullptr);
}

bool Interruptible::was_interrupted() const { return installed_ && interrupted.load(); }

}  // namespace sardonyx::python
