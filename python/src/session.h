// A session as Python runs it.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "convert.h"
#include "model.h"
#include "sardonyx/profile.h"
#include "sardonyx/session.h"
#include "shared_threads.h"

namespace sardonyx::python {

namespace nb = nanobind;

struct Cancel {
  std::atomic<bool> wanted = false;
};

// What a run may be given beside its inputs.
struct RunArguments {
  Cancel* cancel = nullptr;
  std::optional<std::chrono::steady_clock::time_point> deadline;
  int64_t memory_limit = 0;  // 0: any number
  Profile* profile = nullptr;
};

// When a timeout in seconds is over; none for one beyond what clocks count.
std::optional<std::chrono::steady_clock::time_point> deadline_in(std::optional<double> timeout);

// What inputs and outputs are, as tuples: the fields of sardonyx.ValueInfo.
nb::list described(const std::vector<ValueDescription>& all);

class RunningSession {
 public:
  // `model`: a HeldModel. `log`: None, or what LogBox::tell calls. Both are what the object in
  // Python holds, and are not held here, where collectors of garbage would not see them. `threads`:
  // null where the session has its own.
  RunningSession(nb::handle model, const SessionOptions& options,
                 std::shared_ptr<SharedThreads> threads, nb::handle log);
  ~RunningSession();
  RunningSession(const RunningSession&) = delete;
  RunningSession& operator=(const RunningSession&) = delete;

  const std::vector<ValueDescription>& inputs() const { return descriptions_.inputs; }
  const std::vector<ValueDescription>& outputs() const { return descriptions_.outputs; }
  const HeldModel& model() const { return model_; }
  const SessionOptions& options() const { return options_; }
  Session& session();

  // Inputs by name, as a dict, or in order, as a list.
  std::vector<Value> run(nb::handle inputs, const RunArguments& arguments);
  // Into `outputs`, as Session::run of spans.
  void run_into(nb::handle inputs, std::vector<Value>& outputs, const RunArguments& arguments);
  // Begins a run on a thread of the session's and returns. `callback` is called there with what
  // `as_object` makes of the outputs and None, or with None and the exception. `keep` lives until
  // then: this session's object, and what `arguments` point to.
  using AsObject = nb::object (*)(const RunningSession& session, std::vector<Value>&& outputs);
  void run_async(nb::handle inputs, RunArguments arguments, nb::object callback, nb::object keep,
                 AsObject as_object);
  nb::handle output_name(size_t i) const { return output_names_[i]; }

 private:
  // Inputs are borrowed for the time of the call: they, and what had to be made for them, go to
  // `kept`, since the dict may lose them while the lock is released. Without it values keep them.
  void take_inputs(nb::handle inputs, std::vector<Value>& values, KeptObjects* kept) const;
  void take_dict(PyObject* feeds, std::vector<Value>& values, KeptObjects* kept) const;
  Value taken(nb::handle object, size_t i, KeptObjects* kept) const;
  RunOptions run_options(const RunArguments& arguments) const;
  std::unique_ptr<Session> made(const Model& model) const;
  // What was found on the way, to those who listen. With the lock held.
  void tell() const;
  [[noreturn]] void refuse_names(PyObject* feeds) const;
  void run_values(const std::vector<Value>& inputs, std::vector<Value>& outputs,
                  const RunArguments& arguments);
  bool run_once(const std::vector<Value>& inputs, std::vector<Value>& outputs,
                const RunArguments& arguments);

  struct Descriptions {
    std::vector<ValueDescription> inputs, outputs;
  };
  HeldModel model_;  // without its listener
  nb::weakref held_model_;
  SessionOptions options_;                  // without threads
  std::shared_ptr<SharedThreads> threads_;  // null: those of the session
  std::shared_ptr<LogBox> messages_;
  nb::object log_;  // a weak reference; None: nobody listens
  std::unique_ptr<Session> session_;
  Descriptions descriptions_;
  std::vector<nb::object> input_names_, output_names_;
  std::atomic<int> born_in_ = 0;  // how many forks there had been
  std::mutex made_anew_;          // after a fork
};

}  // namespace sardonyx::python
