// A session as Python runs it.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model.h"
#include "sardonyx/profile.h"
#include "sardonyx/session.h"

namespace sardonyx::python {

namespace nb = nanobind;

struct Cancel {
  std::atomic<bool> wanted = false;
};

// What a run may be given beside its inputs.
struct RunArguments {
  Cancel* cancel = nullptr;
  std::optional<double> timeout;  // seconds
  int64_t memory_limit = 0;       // 0: any number
  Profile* profile = nullptr;
};

// What inputs and outputs are, as tuples: the fields of sardonyx.ValueInfo.
nb::list described(const std::vector<ValueDescription>& all);

// Counts the forks in the history of this process; what runs on threads does not come through them.
int forks_so_far();

class RunningSession {
 public:
  RunningSession(const HeldModel& model, const SessionOptions& options);
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
  // Inputs are borrowed for the time of the call, and what had to be made for them goes to `made`;
  // without it they are kept by what keeps the values.
  void take_inputs(nb::handle inputs, std::vector<Value>& values, nb::list* made) const;
  void take_dict(PyObject* feeds, std::vector<Value>& values, nb::list* made) const;
  Value taken(nb::handle object, size_t i, nb::list* made) const;
  RunOptions run_options(const RunArguments& arguments) const;
  [[noreturn]] void refuse_names(PyObject* feeds) const;
  void run_values(const std::vector<Value>& inputs, std::vector<Value>& outputs,
                  const RunArguments& arguments);
  bool run_once(const std::vector<Value>& inputs, std::vector<Value>& outputs,
                const RunArguments& arguments);

  struct Descriptions {
    std::vector<ValueDescription> inputs, outputs;
  };
  HeldModel model_;
  SessionOptions options_;
  std::unique_ptr<Session> session_;
  Descriptions descriptions_;
  std::vector<nb::object> input_names_, output_names_;
  int born_in_ = 0;                                   // how many forks there had been
  std::atomic<int64_t> last_nanoseconds_{INT64_MAX};  // none yet
};

}  // namespace sardonyx::python
