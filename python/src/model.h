// A model as Python holds it.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "sardonyx/session.h"

namespace sardonyx::python {

// Warnings come from any thread of a call, without the interpreter's lock; they are told when the
// call is over.
class WarningBox {
 public:
  void put(const Warning& warning);
  // Gives each to `listener` (the rule, the place, the message, the advice). With the lock held.
  void tell(nanobind::handle listener);
  bool waiting() const { return waiting_.load(std::memory_order_relaxed); }

 private:
  std::mutex mutex_;
  std::vector<Warning> warnings_;
  std::atomic<bool> waiting_ = false;
};

struct HeldModel {
  Model model;
  std::shared_ptr<WarningBox> warnings;
  nanobind::object listener;  // None: nobody

  void tell() const {
    if (warnings->waiting()) warnings->tell(listener);
  }
};

void bind_models(nanobind::module_& module);
void bind_values(nanobind::module_& module);
void bind_sessions(nanobind::module_& module);
void bind_inference(nanobind::module_& module);
void bind_profiles(nanobind::module_& module);
void bind_tools(nanobind::module_& module);
void bind_training(nanobind::module_& module);
void bind_fit(nanobind::module_& module);
void bind_trainable(nanobind::module_& module);
void bind_operators(nanobind::module_& module);

}  // namespace sardonyx::python
