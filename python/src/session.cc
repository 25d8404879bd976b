#include "session.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "async_runs.h"
#include "convert.h"
#include "errors.h"
#include "interrupt.h"
#include "numpy_types.h"
#include "text.h"

namespace sardonyx::python {
namespace {

std::atomic<int> forks{0};  // in the history of this process

nb::object interned(const std::string& name) {
  PyObject* text = text_object(name).release().ptr();
  PyUnicode_InternInPlace(&text);
  return nb::steal(text);
}

// A reference of its own, since another thread may take the item out of the dict; invalid where it
// is not there.
nb::object item_of(PyObject* dict, PyObject* key) {
#ifdef Py_GIL_DISABLED
  // A borrowed one may be gone before it is counted, under a lock on the dict as well: looking up
  // takes the same lock, and lets go of it for a moment where another thread changes the dict.
  PyObject* item = nullptr;
  if (PyDict_GetItemRef(dict, key, &item) < 0) throw nb::python_error();
  return nb::steal(item);
#else
  PyObject* item = PyDict_GetItemWithError(dict, key);
  if (item == nullptr && PyErr_Occurred()) throw nb::python_error();
  return nb::borrow(item);
#endif
}

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

std::optional<Clock::time_point> deadline_in(std::optional<double> timeout) {
  constexpr double beyond = 1e9;  // 31 years
  if (timeout && std::isnan(*timeout)) refuse("timeout is a number of seconds, and nan was given");
  if (!timeout || *timeout >= beyond) return {};
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(std::max(*timeout, 0.0)));
}

RunningSession::RunningSession(nb::handle model, const SessionOptions& options,
                               std::shared_ptr<SharedThreads> threads, nb::handle log)
    : model_(nb::cast<const HeldModel&>(model).unbroken().unheard()),
      held_model_(model),
      options_(options),
      threads_(std::move(threads)),
      messages_(std::make_shared<LogBox>()),
      log_(log.is_none() ? nb::none() : nb::object(nb::weakref(log))) {
  if (!log_.is_none())
    options_.log = [box = messages_](const LogMessage& message) { box->put(message); };
  born_in_ = forks_so_far();
  {
    const InModel inside(model_);
    const nb::gil_scoped_release unlocked;
    session_ = made(model_.model);
  }
  tell();
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

std::unique_ptr<Session> RunningSession::made(const Model& model) const {
  SessionOptions options = options_;
  if (threads_) options.shared_threads = threads_->get();
  return std::make_unique<Session>(model, options);
}

void RunningSession::tell() const {
  if (model_.warnings->waiting()) {
    const nb::object held = held_model_();
    if (!held.is_none()) model_.warnings->tell(nb::cast<const HeldModel&>(held).listener);
  }
  if (!messages_->waiting()) return;
  const nb::object log = log_();
  if (!log.is_none()) messages_->tell(log);
}

Session& RunningSession::session() {
  if (born_in_.load() == forks.load()) return *session_;
  const HeldModel unbroken = model_.unbroken();
  const nb::gil_scoped_release unlocked;  // operators in Python are asked for types
  const std::lock_guard lock(made_anew_);
  if (born_in_.load() != forks.load()) {
    const InModel inside(unbroken);
    (void)session_.release();  // as in the destructor
    if (options_.log) {        // a thread may have been writing into the other box
      const auto box = std::make_shared<LogBox>();
      options_.log = [box](const LogMessage& message) { box->put(message); };
      const nb::gil_scoped_acquire locked;
      messages_ = box;
    }
    session_ = made(unbroken.model);
    {
      const nb::gil_scoped_acquire locked;
      model_ = unbroken;
    }
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

Value RunningSession::taken(nb::handle object, size_t i, KeptObjects* kept) const {
  const ValueDescription& input = descriptions_.inputs[i];
  if (kept != nullptr) kept->append(object);
  try {
    return kept != nullptr ? borrowed_value_from(object, wanted_of(input), *kept)
                           : value_from(object, wanted_of(input));
  } catch (const Error& error) {
    throw error.within("input '" + input.name + "'");
  }
}

void RunningSession::take_dict(PyObject* feeds, std::vector<Value>& values,
                               KeptObjects* kept) const {
  Py_ssize_t found = 0;
  for (size_t i = 0; i < input_names_.size(); ++i) {
    const nb::object item = item_of(feeds, input_names_[i].ptr());
    if (!item.is_valid()) continue;
    ++found;
    values[i] = taken(item, i, kept);
  }
  if (found != PyDict_Size(feeds)) refuse_names(feeds);
}

void RunningSession::take_inputs(nb::handle inputs, std::vector<Value>& values,
                                 KeptObjects* kept) const {
  values.resize(input_names_.size());
  if (PyDict_Check(inputs.ptr())) return take_dict(inputs.ptr(), values, kept);
  if (nb::hasattr(inputs, "keys")) {  // any other mapping
    nb::dict plain;
    for (nb::handle key : inputs.attr("keys")()) plain[key] = inputs[key];
    return take_dict(plain.ptr(), values, kept);
  }
  if (!PyList_Check(inputs.ptr()) && !PyTuple_Check(inputs.ptr()))
    refuse("inputs are a dict by name or a list in the model's order, and " +
           std::string(nb::type_name(inputs.type()).c_str()) + " was given");
  const size_t count = nb::len(inputs);
  if (count > values.size())
    refuse(std::to_string(count) + " inputs were given, and the model has " +
           std::to_string(values.size()));
  for (size_t i = 0; i < count; ++i) values[i] = taken(nb::object(inputs[i]), i, kept);
}

RunOptions RunningSession::run_options(const RunArguments& arguments) const {
  RunOptions options;
  options.cancel = arguments.cancel != nullptr ? &arguments.cancel->wanted : nullptr;
  if (arguments.memory_limit > 0) options.memory_limit = arguments.memory_limit;
  options.profile = arguments.profile;
  options.deadline = arguments.deadline;
  return options;
}

std::vector<Value> RunningSession::run(nb::handle inputs, const RunArguments& arguments) {
  std::vector<Value> outputs(descriptions_.outputs.size());
  run_into(inputs, outputs, arguments);
  return outputs;
}

void RunningSession::run_into(nb::handle inputs, std::vector<Value>& outputs,
                              const RunArguments& arguments) {
  KeptObjects kept;
  std::vector<Value> values;
  take_inputs(inputs, values, &kept);
  run_values(values, outputs, arguments);
  tell();
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
  std::atomic<bool> own{false};
  RunOptions options = run_options(arguments);
  const bool wanted_before = options.cancel != nullptr && options.cancel->load();
  if (options.cancel == nullptr) options.cancel = &own;
  const Interruptible interruptible(const_cast<std::atomic<bool>*>(options.cancel));
  // What came before it watched would be looked at after the run only.
  if (on_main_thread() && PyErr_CheckSignals() != 0) throw nb::python_error();
  try {
    const InModel inside(model_);
    const nb::gil_scoped_release unlocked;
    running.run(std::span<const Value>(inputs), std::span<Value>(outputs), options);
  } catch (const Error& error) {
    throw_if_beyond_exceptions(error);
    if (error.code() != ErrorCode::cancelled || !interruptible.was_interrupted()) throw;
    if (arguments.cancel != nullptr) {
      arguments.cancel->wanted.store(wanted_before);
      if (wanted_before) throw;
    }
    return false;
  }
  forget_remembered();
  return true;
}

void RunningSession::run_async(nb::handle inputs, RunArguments arguments, nb::object callback,
                               nb::object keep, AsObject as_object) {
  std::vector<Value> values;
  take_inputs(inputs, values, nullptr);
  std::vector<NamedValue> named;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].kind() != Value::Kind::none)
      named.emplace_back(descriptions_.inputs[i].name, std::move(values[i]));
  }
  Session& running = session();
  auto begun = std::make_shared<AsyncRun>(arguments.cancel, std::move(callback), std::move(keep));
  RunOptions options = run_options(arguments);
  options.cancel = begun->flag();
  model_.use->enter();
  const std::shared_ptr<void> inside(nullptr, [use = model_.use](void*) { use->leave(); });
  auto finish = [this, begun, inside, as_object](std::vector<Value> outputs,
                                                 const std::exception_ptr& error) {
    const nb::gil_scoped_acquire lock;
    nb::object made = nb::none(), exception = nb::none();
    try {
      if (error) std::rethrow_exception(error);
      made = as_object(*this, std::move(outputs));
      tell();
    } catch (...) {
      made = nb::none();
      exception = exception_of(std::current_exception());
    }
    forget_remembered();
    begun->end(made, exception);
  };
  const nb::gil_scoped_release unlocked;
  running.run_async(std::move(named), std::move(finish), options);
}

}  // namespace sardonyx::python
