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

// Counts the forks in the history of this process; what runs on threads does not come through them.
int forks_so_far();

// How many threads are inside a model, or a session of it. A child that is forked off meanwhile has
// none of them, and what they had locked stays locked there.
class ModelUse {
 public:
  void enter() {
    look();
    inside_.fetch_add(1);
  }
  void leave() { inside_.fetch_sub(1); }
  bool is_broken() {
    look();
    return broken_.load();
  }

 private:
  void look() {
    const int forks = forks_so_far();
    if (seen_.load() == forks) return;
    if (inside_.load() > 0) broken_.store(true);
    seen_.store(forks);
  }

  std::atomic<int> inside_ = 0, seen_ = forks_so_far();
  std::atomic<bool> broken_ = false;
};

// The same for messages of a session's log.
class LogBox {
 public:
  void put(const LogMessage& message);
  // Gives each to `listener` (the level, the rule, the place, the message, the advice). With the
  // lock held.
  void tell(nanobind::handle listener);
  bool waiting() const { return waiting_.load(std::memory_order_relaxed); }

 private:
  std::mutex mutex_;
  std::vector<LogMessage> messages_;
  std::atomic<bool> waiting_ = false;
};

struct HeldModel {
  Model model;
  std::shared_ptr<WarningBox> warnings;
  nanobind::object listener;  // None: nobody
  std::shared_ptr<ModelUse> use = std::make_shared<ModelUse>();

  // In a forked process, where threads were inside at that time: a copy that shares nothing but the
  // memory of weights. The model itself otherwise.
  HeldModel unbroken() const;
  void tell() const {
    if (warnings->waiting()) warnings->tell(listener);
  }
  // Without the listener, for what must not keep it.
  HeldModel unheard() const { return {model, warnings, nanobind::none(), use}; }
};

// While it lives a thread is inside the model, which lives as long.
class InModel {
 public:
  explicit InModel(const HeldModel& model) : InModel(*model.use) {}
  explicit InModel(ModelUse& use) : use_(use) { use_.enter(); }
  ~InModel() { use_.leave(); }
  InModel(const InModel&) = delete;
  InModel& operator=(const InModel&) = delete;

 private:
  ModelUse& use_;
};

void bind_models(nanobind::module_& module);
void bind_values(nanobind::module_& module);
void bind_sessions(nanobind::module_& module);
void bind_inference(nanobind::module_& module);
void bind_profiles(nanobind::module_& module);
void bind_tools(nanobind::module_& module);
void bind_editor(nanobind::module_& module);
void bind_training(nanobind::module_& module);
void bind_fit(nanobind::module_& module);
void bind_trainable(nanobind::module_& module);
void bind_operators(nanobind::module_& module);

}  // namespace sardonyx::python
