#include "session.h"

#include <pthread.h>

#include <chrono>
#include <utility>

#include "convert.h"
#include "errors.h"
#include "interrupt.h"
#include "numpy_types.h"

namespace sardonyx::python {
namespace {

std::atomic<int> forks{0};  // in the history of this process

nb::object interned(const std::string& name) {
  PyObject* text = PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size()));
  if (text == nullptr) throw nb::python_error();
  PyUnicode_InternInPlace(&text);
  return nb::steal(text);
}

// Runs this long or longer let Ctrl-C stop them; shorter ones are over before it could matter.
constexpr int64_t worth_interrupting = 1'000'000;

using Clock = std::chrono::steady_clock;

}  // namespace

int forks_so_far() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] {
    forks.fetch_add(1);
    remember_main_thread();  // the thread that forked
  });
  (void)registered;
  return forks.load();
}

RunningSession::RunningSession(const HeldModel& model, const SessionOptions& options)
    : model_(model), options_(options) {
  born_in_ = forks_so_far();
  {
    const nb::gil_scoped_release unlocked;
    session_ = std::make_unique<Session>(model_.model, options_);
  }
  model_.tell();
  descriptions_ = {session_->inputs(), session_->outputs()};
  for (const auto& one : descriptions_.inputs) input_names_.push_back(interned(one.name));
  for (const auto& one : descriptions_.outputs) output_names_.push_back(interned(one.name));
}

RunningSession::~RunningSession() {
  // The workers of a session that came through a fork are not there to be joined.
  if (born_in_ != forks.load()) {
    (void)session_.release();
    return;
  }
  const nb::gil_scoped_release unlocked;
  session_.reset();
}

Session& RunningSession::session() {
  if (born_in_ != forks.load()) {
    (void)session_.release();  // as in the destructor
    session_ = std::make_unique<Session>(model_.model, options_);
    born_in_ = forks.load();
  }
  return *session_;
}

void RunningSession::refuse_names(PyObject* feeds) const {
  std::string known;
  for (const auto& one : descriptions_.inputs) known += (known.empty() ? "" : ", ") + one.name;
  for (auto [key, value] : nb::borrow<nb::dict>(feeds)) {
    bool found = false;
    for (const auto& name : input_names_) found = found || name.equal(key);
    if (!found)
      refuse("there is no input " + std::string(nb::repr(key).c_str()) + "; the inputs are " +
             known);
  }
  refuse("an input is given twice");
}

void RunningSession::take_dict(PyObject* feeds, std::vector<Value>& values, nb::list& made) const {
  Py_ssize_t found = 0;
  for (size_t i = 0; i < input_names_.size(); ++i) {
    PyObject* item = PyDict_GetItemWithError(feeds, input_names_[i].ptr());
    if (item == nullptr) {
      if (PyErr_Occurred()) throw nb::python_error();
      continue;
    }
    ++found;
    try {
      values[i] = borrowed_value_from(item, wanted_of(descriptions_.inputs[i]), made);
    } catch (const Error& error) {
      throw error.within("input '" + descriptions_.inputs[i].name + "'");
    }
  }
  if (found != PyDict_Size(feeds)) refuse_names(feeds);
}

void RunningSession::take_inputs(nb::handle inputs, std::vector<Value>& values,
                                 nb::list& made) const {
  values.resize(input_names_.size());
  if (PyDict_Check(inputs.ptr())) return take_dict(inputs.ptr(), values, made);
  if (nb::hasattr(inputs, "keys")) {  // any other mapping
    nb::dict plain;
    for (nb::handle key : inputs.attr("keys")()) plain[key] = inputs[key];
    made.append(plain);
    return take_dict(plain.ptr(), values, made);
  }
  if (!PyList_Check(inputs.ptr()) && !PyTuple_Check(inputs.ptr()))
    refuse("inputs are a dict by name or a list in the model's order, and " +
           std::string(nb::type_name(inputs.type()).c_str()) + " was given");
  const size_t count = nb::len(inputs);
  if (count > values.size())
    refuse(std::to_string(count) + " inputs were given, and the model has " +
           std::to_string(values.size()));
  for (size_t i = 0; i < count; ++i) {
    nb::object item = inputs[i];
    try {
      values[i] = borrowed_value_from(item, wanted_of(descriptions_.inputs[i]), made);
    } catch (const Error& error) {
      throw error.within("input '" + descriptions_.inputs[i].name + "'");
    }
  }
}

std::vector<Value> RunningSession::run(nb::handle inputs, const RunArguments& arguments) {
  std::vector<Value> outputs(descriptions_.outputs.size());
  run_into(inputs, outputs, arguments);
  return outputs;
}

void RunningSession::run_into(nb::handle inputs, std::vector<Value>& outputs,
                              const RunArguments& arguments) {
  std::vector<Value> values;
  nb::list made;
  take_inputs(inputs, values, made);
  run_values(values, outputs, arguments);
  model_.tell();
}

// A run that a signal stopped, whose handler then raised nothing, is made again.
void RunningSession::run_values(const std::vector<Value>& inputs, std::vector<Value>& outputs,
                                const RunArguments& arguments) {
  const std::vector<Value> targets = outputs;
  while (!run_once(inputs, outputs, arguments)) {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    outputs = targets;
  }
}

bool RunningSession::run_once(const std::vector<Value>& inputs, std::vector<Value>& outputs,
                              const RunArguments& arguments) {
  Session& running = session();
  RunOptions options;
  std::atomic<bool> own{false};
  options.cancel = arguments.cancel != nullptr ? &arguments.cancel->wanted : nullptr;
  if (arguments.memory_limit > 0) options.memory_limit = arguments.memory_limit;
  options.profile = arguments.profile;
  const auto begin = Clock::now();
  if (arguments.timeout) {
    options.deadline = begin + std::chrono::duration_cast<Clock::duration>(
                                   std::chrono::duration<double>(*arguments.timeout));
  }
  const bool guarded = last_nanoseconds_.load(std::memory_order_relaxed) >= worth_interrupting;
  std::optional<Interruptible> interruptible;
  const bool wanted_before = options.cancel != nullptr && options.cancel->load();
  if (guarded) {
    if (options.cancel == nullptr) options.cancel = &own;
    interruptible.emplace(const_cast<std::atomic<bool>*>(options.cancel));
    // What came before the handler stood would be looked at after the run only.
    if (on_main_thread() && PyErr_CheckSignals() != 0) throw nb::python_error();
  }
  try {
    const nb::gil_scoped_release unlocked;
    running.run(std::span<const Value>(inputs), std::span<Value>(outputs), options);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::cancelled || !interruptible || !interruptible->was_interrupted())
      throw;
    if (arguments.cancel != nullptr) {
      arguments.cancel->wanted.store(wanted_before);
      if (wanted_before) throw;
    }
    return false;
  }
  const auto took = std::chrono::nanoseconds(Clock::now() - begin).count();
  last_nanoseconds_.store(took, std::memory_order_relaxed);
  return true;
}

}  // namespace sardonyx::python
