// The loop over whole arrays: sardonyx._core.fit and measure.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "convert.h"
#include "errors.h"
#include "interrupt.h"
#include "sardonyx/fit.h"
#include "text.h"
#include "training.h"

namespace sardonyx::python {
namespace {

struct FitArguments {
  int64_t epochs = 1, batch = 32;
  bool shuffle = true, drop_last = false;
  size_t which = 0;
  bool skips_bad_losses = false;
  std::string checkpoints, augment;
  int64_t every = 0, keep = 2, first_step = 0;

  FitOptions options() const {
    FitOptions made;
    made.epochs = epochs;
    made.batch = batch;
    made.shuffle = shuffle;
    made.drop_last = drop_last;
    made.which = which;
    if (!augment.empty()) made.augment = augmentation_named(augment);
    made.bad_loss = skips_bad_losses ? BadLoss::skip : BadLoss::stop;
    made.checkpoints = checkpoints;
    made.every = every;
    made.keep = keep;
    made.first_step = first_step;
    return made;
  }
};

nb::dict object_of(const std::vector<Metric>& metrics) {
  nb::dict made;
  for (const auto& one : metrics) made[nb::cast(one.name)] = one.value;
  return made;
}

std::string shape_text(const Shape& shape) {
  std::string text = "[";
  for (const int64_t size : shape) {
    if (text.size() > 1) text += ',';
    text += std::to_string(size);
  }
  text += ']';
  return text;
}

// What no step would take, said before the first one.
void require_fits(const ValueDescription& input, const Value& value) {
  const std::string place = "array '" + input.name + "'";
  if (!value.is_tensor())
    refuse("data are arrays; this is a " + std::string(name_of(value.kind())), place);
  const Tensor& tensor = value.tensor();
  if (input.element_type != ElementType::undefined && input.element_type != tensor.element_type())
    refuse("holds " + std::string(name_of(tensor.element_type())) + "; a step takes " + input.type +
               " (astype() converts)",
           place);
  if (!input.shape) return;
  bool fits = input.shape->size() == tensor.shape().size();
  for (size_t d = 1; fits && d < input.shape->size(); ++d) {
    const auto& size = (*input.shape)[d].size;
    fits = !size || *size == tensor.shape()[d];
  }
  if (!fits)
    refuse("has shape " + shape_text(tensor.shape()) + "; a step takes " + input.type +
               ", examples along the first axis",
           place);
}

void require_complete(const std::vector<ValueDescription>& inputs,
                      const std::vector<NamedValue>& values) {
  std::string names;
  for (const auto& input : inputs) names += (names.empty() ? "'" : ", '") + input.name + "'";
  for (const auto& [name, value] : values) {
    const auto found = std::ranges::find(inputs, name, &ValueDescription::name);
    if (found == inputs.end())
      refuse("a step takes no array of this name; it takes " + names, "array '" + name + "'");
    require_fits(*found, value);
  }
  for (const auto& input : inputs) {
    if (std::ranges::find(values, input.name, &NamedValue::first) == values.end() &&
        input.kind != Value::Kind::optional)
      refuse("is missing; a step takes " + names, "array '" + input.name + "'");
  }
}

// `kept` keeps alive what the arrays view.
TrainingData data_of(const TrainingSession& session, nb::handle data, size_t which,
                     KeptObjects& kept) {
  if (nb::isinstance<nb::str>(data)) {
    const auto path = nb::cast<std::string>(data);
    const nb::gil_scoped_release unlocked;
    return TrainingData::read(path, session, which);
  }
  const auto& inputs = session.step_inputs(which);
  TakenValues taken = taken_values(data, inputs, "array");
  kept = std::move(taken.kept);
  require_complete(inputs, taken.values);
  return TrainingData(std::move(taken.values));
}

// What the loop asks Python after steps and epochs. An exception, Ctrl-C's among them, ends the
// training as a stop does: with a checkpoint. It is raised when the loop is over.
class Listener {
 public:
  Listener(nb::object on_step, nb::object on_epoch)
      : on_step_(std::move(on_step)), on_epoch_(std::move(on_epoch)) {}

  void listen_to(FitOptions& options) {
    options.stop = &stop_;
    options.on_step = [this](const FitProgress& now) {
      if (on_step_.is_none() && !interrupted_.load()) return;
      ask([&] {
        return on_step_.is_none()
                   ? nb::none()
                   : on_step_(now.epoch, now.step, now.steps, now.examples, now.seconds, now.loss,
                              now.skipped, object_of(now.metrics));
      });
    };
    options.on_epoch = [this](const EpochResult& done) {
      ask([&] { return on_epoch_(done.epoch, object_of(done.training), done.seconds); });
    };
  }
  std::atomic<bool>* interrupted() { return &interrupted_; }
  void raise() {
    if (raised_) throw nb::python_error(std::move(*raised_));
  }

 private:
  // The answer true stops.
  template <class Question>
  void ask(Question&& question) {
    const nb::gil_scoped_acquire locked;
    if (raised_) return;
    try {
      if (interrupted_.exchange(false) && PyErr_CheckSignals() != 0) throw nb::python_error();
      if (question().is(nb::handle(Py_True))) stop_ = true;
    } catch (nb::python_error& failure) {
      raised_.emplace(std::move(failure));
      stop_ = true;
    }
  }

  nb::object on_step_, on_epoch_;
  std::atomic<bool> stop_{false}, interrupted_{false};
  std::optional<nb::python_error> raised_;
};

nb::tuple fitted(const RunningTraining& training, nb::handle data, const FitArguments& arguments,
                 nb::object on_step, nb::object on_epoch) {
  TrainingSession& session = training.changed_session();
  KeptObjects kept;
  const TrainingData examples = data_of(session, data, arguments.which, kept);
  FitOptions options = arguments.options();
  Listener listener(std::move(on_step), std::move(on_epoch));
  listener.listen_to(options);
  FitResult result;
  {
    const Interruptible interruptible(listener.interrupted());
    if (on_main_thread() && PyErr_CheckSignals() != 0) throw nb::python_error();
    const nb::gil_scoped_release unlocked;
    result = fit(session, examples, options);
  }
  training.tell();
  listener.raise();
  return nb::make_tuple(result.step, result.stopped, result.skipped, result.checkpoint);
}

nb::dict measured(const RunningTraining& training, nb::handle data, int64_t batch,
                  int64_t algorithm) {
  const size_t which = algorithm_numbered(algorithm);
  TrainingSession& session = training.changed_session();
  KeptObjects kept;
  const TrainingData examples = data_of(session, data, which, kept);
  std::vector<Metric> metrics;
  {
    const nb::gil_scoped_release unlocked;
    metrics = measure(session, examples, batch, which);
  }
  return object_of(metrics);
}

}  // namespace

void bind_fit(nb::module_& module) {
  nb::class_<FitArguments>(module, "FitOptions")
      .def(nb::init<>())
      .def_rw("epochs", &FitArguments::epochs)
      .def_rw("batch", &FitArguments::batch)
      .def_rw("shuffle", &FitArguments::shuffle)
      .def_rw("drop_last", &FitArguments::drop_last)
      .def_rw("augment", &FitArguments::augment)
      .def_rw("which", &FitArguments::which)
      .def_rw("skips_bad_losses", &FitArguments::skips_bad_losses)
      .def_rw("checkpoints", &FitArguments::checkpoints)
      .def_rw("every", &FitArguments::every)
      .def_rw("keep", &FitArguments::keep)
      .def_rw("first_step", &FitArguments::first_step);
  module.def("fit", &fitted, nb::arg("session"), nb::arg("data"), nb::arg("options"),
             nb::arg("on_step").none(), nb::arg("on_epoch"));
  module.def("measure", &measured);
  module.def("last_checkpoint", [](const std::string& folder) {
    const Checkpoint found = last_checkpoint(folder);
    return nb::make_tuple(found.path, found.step);
  });
}

}  // namespace sardonyx::python
