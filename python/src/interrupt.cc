#include "interrupt.h"

#include <nanobind/nanobind.h>

#include <chrono>
#include <csignal>

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

// Whether SIGINT comes here. Asked on the main thread alone.
bool is_handled() {
  using Clock = std::chrono::steady_clock;
  static Clock::time_point next_look;
  static bool handled = false;
  const auto now = Clock::now();
  if (now < next_look) return handled;
  next_look = now + std::chrono::milliseconds(1);
  struct sigaction found = {};
  handled = false;
  if (sigaction(SIGINT, nullptr, &found) != 0 || (found.sa_flags & SA_SIGINFO) != 0) return false;
  if (found.sa_handler == SIG_DFL || found.sa_handler == SIG_IGN) return false;
  if (found.sa_handler == on_interrupt) return handled = true;
  python_handler.store(found.sa_handler);
  found.sa_handler = on_interrupt;
  return handled = sigaction(SIGINT, &found, nullptr) == 0;
}

}  // namespace

void remember_main_thread() { main_thread.store(PyThread_get_thread_ident()); }

bool on_main_thread() { return PyThread_get_thread_ident() == main_thread.load(); }

Interruptible::Interruptible(std::atomic<bool>* flag) {
  if (!on_main_thread() || watched.load() != nullptr)
    return;  // a run within a run: the outer one's
  if (!is_handled()) return;
  interrupted.store(false);
  watched.store(flag);
  watches_ = true;
}

Interruptible::~Interruptible() {
  if (watches_) watched.store(nullptr);
}

bool Interruptible::was_interrupted() const { return watches_ && interrupted.load(); }

}  // namespace sardonyx::python
