// sardonyx._core.TrainingSession.
#include "training.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "convert.h"
#include "errors.h"
#include "interrupt.h"
#include "text.h"

namespace sardonyx::python {
namespace {

using Deadline = std::optional<std::chrono::steady_clock::time_point>;

// False: Ctrl-C came, and stopped it.
template <class Work>
bool ran(Cancel* cancel, Deadline deadline, Work& work) {
  std::atomic<bool> own{false};
  std::atomic<bool>& flag = cancel != nullptr ? cancel->wanted : own;
  const bool wanted_before = flag.load();
  const Interruptible interruptible(&flag);
  // What came before the handler stood would be looked at after the work only.
  if (on_main_thread() && PyErr_CheckSignals() != 0) throw nb::python_error();
  RunOptions options;
  options.cancel = &flag;
  options.deadline = deadline;
  try {
    const nb::gil_scoped_release unlocked;
    work(options);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::cancelled || !interruptible.was_interrupted() || wanted_before)
      throw;
    flag.store(false);
    return false;
  }
  return true;
}

// Work that a signal stopped, whose handler then raised nothing, is done again: it changed nothing.
template <class Work>
void run(Cancel* cancel, std::optional<double> timeout, Work&& work) {
  const Deadline deadline = deadline_in(timeout);
  while (!ran(cancel, deadline, work)) {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

std::string class_name(nb::handle object) { return nb::type_name(object.type()).c_str(); }

Value value_of(nb::handle object, const ValueDescription* wanted, const std::string& name,
               std::string_view what, KeptObjects& kept) {
  kept.append(object);  // the dict may lose it while the lock is released
  try {
    return borrowed_value_from(object, wanted == nullptr ? Wanted{} : wanted_of(*wanted), kept);
  } catch (const Error& error) {
    throw error.within(std::string(what) + " '" + name + "'");
  }
}

TakenValues taken_by_name(nb::dict given, const std::vector<ValueDescription>& wanted,
                          std::string_view what) {
  TakenValues taken;
  for (auto [key, object] : given) {
    if (!nb::isinstance<nb::str>(key))
      refuse("names are str, and " + class_name(key) + " was given: " + nb::repr(key).c_str());
    const auto name = nb::cast<std::string>(key);
    const auto found = std::ranges::find(wanted, name, &ValueDescription::name);
    taken.values.emplace_back(
        name, value_of(object, found == wanted.end() ? nullptr : &*found, name, what, taken.kept));
  }
  return taken;
}

}  // namespace

TakenValues taken_values(nb::handle given, const std::vector<ValueDescription>& wanted,
                         std::string_view what) {
  if (nb::isinstance<nb::dict>(given))
    return taken_by_name(nb::borrow<nb::dict>(given), wanted, what);
  if (nb::hasattr(given, "keys")) {  // any other mapping
    nb::dict plain;
    for (nb::handle key : given.attr("keys")()) plain[key] = given[key];
    return taken_by_name(plain, wanted, what);
  }
  if (!nb::isinstance<nb::list>(given) && !nb::isinstance<nb::tuple>(given))
    refuse("a dict by name or a list in order is taken, and " + class_name(given) + " was given");
  const size_t count = nb::len(given);
  if (count > wanted.size()) {
    std::string names;
    for (const auto& one : wanted) names += (names.empty() ? "'" : ", '") + one.name + "'";
    refuse(std::to_string(count) +
           " values were given; those taken are, in order: " + (names.empty() ? "none" : names));
  }
  TakenValues taken;
  for (size_t i = 0; i < count; ++i) {
    nb::object object = given[i];
    taken.values.emplace_back(wanted[i].name,
                              value_of(object, &wanted[i], wanted[i].name, what, taken.kept));
  }
  return taken;
}

size_t algorithm_numbered(int64_t which) {
  if (which < 0)
    refuse("algorithms are counted from 0; there is no number " + std::to_string(which));
  return static_cast<size_t>(which);
}

nb::dict objects_by_name(const std::vector<ValueDescription>& described,
                         std::vector<Value> values) {
  nb::dict made;
  for (size_t i = 0; i < values.size(); ++i)
    made[nb::cast(described[i].name)] = object_from(std::move(values[i]));
  return made;
}

RunningTraining::RunningTraining(const HeldModel& model, const TrainingOptions& options)
    : model_(model.unbroken()), born_in_(forks_so_far()) {
  {
    const InModel inside(model_);
    const nb::gil_scoped_release unlocked;
    session_ = std::make_unique<TrainingSession>(model_.model, options);
  }
  model_.tell();
}

RunningTraining::~RunningTraining() {
  // The workers of a session that came through a fork are not there to be joined.
  if (born_in_ != forks_so_far()) {
    (void)session_.release();
    return;
  }
  const nb::gil_scoped_release unlocked;
  session_.reset();
}

TrainingSession& RunningTraining::session() const {
  if (born_in_ != forks_so_far())
    throw Error(ErrorCode::run_failed,
                "the session was made before this process was forked off, and its threads did not "
                "come along; make one here, of a file that save() wrote or by pickle");
  return *session_;
}

TrainingSession& RunningTraining::changed_session() const {
  // It waits for itself otherwise.
  if (accepting_.load() == PyThread_get_thread_ident())
    throw Error(ErrorCode::run_failed,
                "accept decides about a step that is not over; nothing can change the state there");
  return session();
}

void RunningTraining::initialize(Cancel* cancel, std::optional<double> timeout) {
  TrainingSession& training = changed_session();
  const InModel inside(model_);
  run(cancel, timeout, [&](const RunOptions& options) { training.initialize(options); });
  model_.tell();
}

bool RunningTraining::is_accepted(const nb::object& accept, std::span<const Value> outputs,
                                  size_t which) {
  const nb::gil_scoped_acquire locked;
  struct Deciding {
    std::atomic<unsigned long>& thread;
    explicit Deciding(std::atomic<unsigned long>& own) : thread(own) {
      thread.store(PyThread_get_thread_ident());
    }
    ~Deciding() { thread.store(0); }
  } const deciding(accepting_);
  const nb::object answer = accept(
      objects_by_name(session().step_outputs(which), std::vector(outputs.begin(), outputs.end())));
  const int truth = PyObject_IsTrue(answer.ptr());
  if (truth < 0) throw nb::python_error();
  return truth != 0;
}

nb::dict RunningTraining::step(nb::handle inputs, size_t which, nb::object accept, Cancel* cancel,
                               std::optional<double> timeout) {
  TrainingSession& training = changed_session();
  const TakenValues taken = taken_values(inputs, training.step_inputs(which), "input");
  StepOptions options;
  if (!accept.is_none()) {
    options.accept = [&](std::span<const Value> outputs) {
      return is_accepted(accept, outputs, which);
    };
  }
  std::vector<Value> told;
  const InModel inside(model_);
  run(cancel, timeout, [&](const RunOptions& running) {
    options.run = running;
    told = training.step(taken.values, which, options);
  });
  model_.tell();
  return objects_by_name(training.step_outputs(which), std::move(told));
}

nb::dict RunningTraining::infer(nb::handle inputs, Cancel* cancel, std::optional<double> timeout) {
  const TrainingSession& training = session();
  const TakenValues taken = taken_values(inputs, training.inputs(), "input");
  std::vector<Value> made;
  const InModel inside(model_);
  run(cancel, timeout,
      [&](const RunOptions& options) { made = training.infer(taken.values, options); });
  model_.tell();
  return objects_by_name(training.outputs(), std::move(made));
}

void RunningTraining::set_state(nb::handle values) {
  TrainingSession& training = changed_session();
  if (!nb::hasattr(values, "keys"))
    refuse("state variables are given as a dict by name, and " + class_name(values) + " was given");
  TakenValues taken = taken_values(values, training.state_variables(), "state variable");
  for (auto& [name, value] : taken.values) {
    // A Value of Python may view an array: without an owner it is copied.
    if (!value.is_tensor() || value.tensor().element_type() == ElementType::string) continue;
    const Tensor& tensor = value.tensor();
    value = Value(Tensor::view(tensor.element_type(), tensor.shape(), tensor.data(),
                               tensor.byte_size(), nullptr));
  }
  const nb::gil_scoped_release unlocked;
  training.set_state(taken.values);
}

namespace {

nb::dict state_of(const RunningTraining& training) {
  nb::dict made;
  for (auto& [name, value] : training.session().state())
    made[nb::cast(name)] = object_from(std::move(value));
  return made;
}

void save(const RunningTraining& training, const std::string& path,
          const std::string& external_data, bool inference_only, bool merge_lora,
          const std::map<std::string, std::string>& metadata) {
  const TrainingSession& session = training.session();
  TrainingSaveOptions options;
  options.external_data = external_data;
  options.inference_only = inference_only;
  options.merge_lora = merge_lora;
  options.metadata.assign(metadata.begin(), metadata.end());
  const nb::gil_scoped_release unlocked;
  session.save(path, options);
}

struct TrainingArguments {
  int threads = 0;
  bool reference = false, fuse = true, exact = false;
  std::optional<uint64_t> seed;
  std::optional<bool> recompute;

  TrainingOptions options() const {
    return {.threads = threads,
            .reference = reference,
            .fuse = fuse,
            .exact = exact,
            .seed = seed,
            .recompute = recompute};
  }
};

}  // namespace

void bind_training(nb::module_& module) {
  nb::class_<TrainingArguments>(module, "TrainingOptions")
      .def(nb::init<>())
      .def_rw("threads", &TrainingArguments::threads)
      .def_rw("reference", &TrainingArguments::reference)
      .def_rw("fuse", &TrainingArguments::fuse)
      .def_rw("exact", &TrainingArguments::exact)
      .def_rw("seed", &TrainingArguments::seed, nb::arg().none())
      .def_rw("recompute", &TrainingArguments::recompute, nb::arg().none());
  const auto cancel = nb::arg("cancel").none() = nb::none();
  const auto timeout = nb::arg("timeout").none() = nb::none();
  nb::class_<RunningTraining>(module, "TrainingSession", nb::is_weak_referenceable(),
                              nb::dynamic_attr())
      .def(
          "__init__",
          [](RunningTraining* place, const HeldModel& model, const TrainingArguments& arguments) {
            new (place) RunningTraining(model, arguments.options());
          },
          nb::arg("model"), nb::arg("options"))
      .def("_initialize", &RunningTraining::initialize, cancel, timeout)
      .def(
          "_step",
          [](RunningTraining& training, nb::handle inputs, int64_t which, nb::object accept,
             Cancel* stopper, std::optional<double> seconds) {
            return training.step(inputs, algorithm_numbered(which), std::move(accept), stopper,
                                 seconds);
          },
          nb::arg("inputs").none(), nb::arg("which"), nb::arg("accept").none(), cancel, timeout)
      .def("_infer", &RunningTraining::infer, nb::arg("inputs").none(), cancel, timeout)
      .def("_state", &state_of)
      .def("_set_state", &RunningTraining::set_state, nb::arg("values"))
      .def("_save", &save, nb::arg("path"), nb::arg("external_data"), nb::arg("inference_only"),
           nb::arg("merge_lora"), nb::arg("metadata"))
      .def("_metadata", [](const RunningTraining& t,
                           const std::string& key) { return t.session().metadata(key); })
      .def_prop_ro("algorithm_count",
                   [](const RunningTraining& t) { return t.session().algorithm_count(); })
      .def_prop_ro("turn", [](const RunningTraining& t) { return t.session().turn(); })
      .def_prop_ro("seed", [](const RunningTraining& t) { return t.session().seed(); })
      .def_prop_ro("_inputs",
                   [](const RunningTraining& t) { return described(t.session().inputs()); })
      .def_prop_ro("_outputs",
                   [](const RunningTraining& t) { return described(t.session().outputs()); })
      .def("_step_inputs", [](const RunningTraining& t,
                              size_t which) { return described(t.session().step_inputs(which)); })
      .def("_step_outputs", [](const RunningTraining& t,
                               size_t which) { return described(t.session().step_outputs(which)); })
      .def_prop_ro("_state_variables", [](const RunningTraining& t) {
        return described(t.session().state_variables());
      });
}

}  // namespace sardonyx::python
