// sardonyx._core.make_trainable.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "errors.h"
#include "model.h"
#include "sardonyx/training_artifacts.h"
#include "text.h"

namespace sardonyx::python {

namespace nb = nanobind;

namespace {

// Names as text; the rest as the engine has it.
struct TrainableArguments {
  std::string loss, optimizer, schedule, initial_weights, precision;
  TrainableOptions options;

  TrainableOptions named() const {
    TrainableOptions made = options;
    made.loss = loss_named(loss);
    made.optimizer = optimizer_named(optimizer);
    made.schedule = schedule_named(schedule);
    made.schedule.warmup = options.schedule.warmup;
    made.precision = precision_named(precision);
    if (initial_weights == "random")
      made.initial_weights = InitialWeights::random;
    else if (initial_weights != "keep")
      refuse("there are no initial_weights '" + initial_weights + "'; they are keep and random");
    return made;
  }
};

nb::tuple described(const TrainableReport& report) {
  return nb::make_tuple(report.trained, report.frozen, report.trained_elements, report.statistics,
                        report.functions, report.notes, report.target);
}

nb::tuple made_trainable(const HeldModel& held, const TrainableArguments& arguments) {
  const TrainableOptions options = arguments.named();
  TrainableReport report;
  HeldModel made{[&] {
                   const nb::gil_scoped_release unlocked;
                   return make_trainable(held.model, options, &report);
                 }(),
                 held.warnings, held.listener};
  made.tell();
  return nb::make_tuple(std::move(made), described(report));
}

nb::tuple of_artifacts(const std::string& training_model, const std::string& eval_model,
                       const std::string& optimizer_model, const std::string& checkpoint,
                       std::vector<std::string> outputs, double learning_rate) {
  const TrainingArtifacts artifacts{training_model, eval_model, optimizer_model, checkpoint};
  ArtifactOptions options;
  options.outputs = std::move(outputs);
  options.learning_rate = learning_rate;
  TrainableReport report;
  HeldModel made{[&] {
                   const nb::gil_scoped_release unlocked;
                   return make_trainable(artifacts, options, &report);
                 }(),
                 std::make_shared<WarningBox>(), nb::none()};
  return nb::make_tuple(std::move(made), described(report));
}

// A field of the options inside.
template <class T>
void field(nb::class_<TrainableArguments>& made, const char* name, T TrainableOptions::*member) {
  made.def_prop_rw(
      name, [member](const TrainableArguments& a) { return a.options.*member; },
      [member](TrainableArguments& a, T value) { a.options.*member = std::move(value); },
      nb::for_setter(nb::arg("value")));
}

}  // namespace

void bind_trainable(nb::module_& module) {
  nb::class_<TrainableArguments> made(module, "TrainableOptions");
  made.def(nb::init<>())
      .def_rw("loss", &TrainableArguments::loss)
      .def_rw("optimizer", &TrainableArguments::optimizer)
      .def_rw("schedule", &TrainableArguments::schedule)
      .def_rw("initial_weights", &TrainableArguments::initial_weights)
      .def_rw("precision", &TrainableArguments::precision)
      .def_prop_rw(
          "ignore_index", [](const TrainableArguments& a) { return a.options.ignore_index; },
          [](TrainableArguments& a, std::optional<int64_t> index) {
            a.options.ignore_index = index;
          },
          nb::for_setter(nb::arg("value").none()))
      .def_prop_rw(
          "warmup", [](const TrainableArguments& a) { return a.options.schedule.warmup; },
          [](TrainableArguments& a, int64_t steps) { a.options.schedule.warmup = steps; })
      .def("add_lora",
           [](TrainableArguments& a, int64_t rank, const std::string& pattern, double alpha) {
             a.options.lora.push_back({rank, pattern, alpha});
           })
      .def("add_lora_text", [](TrainableArguments& a, const std::string& text) {
        a.options.lora.push_back(lora_named(text));
      });
  field(made, "output", &TrainableOptions::output);
  field(made, "class_axis", &TrainableOptions::class_axis);
  field(made, "huber_delta", &TrainableOptions::huber_delta);
  field(made, "learning_rate", &TrainableOptions::learning_rate);
  field(made, "momentum", &TrainableOptions::momentum);
  field(made, "nesterov", &TrainableOptions::nesterov);
  field(made, "smoothing", &TrainableOptions::smoothing);
  field(made, "beta1", &TrainableOptions::beta1);
  field(made, "beta2", &TrainableOptions::beta2);
  field(made, "epsilon", &TrainableOptions::epsilon);
  field(made, "weight_decay", &TrainableOptions::weight_decay);
  field(made, "clip_norm", &TrainableOptions::clip_norm);
  field(made, "clip_value", &TrainableOptions::clip_value);
  field(made, "accumulate", &TrainableOptions::accumulate);
  field(made, "train", &TrainableOptions::train);
  field(made, "freeze", &TrainableOptions::freeze);
  field(made, "seed", &TrainableOptions::seed);
  field(made, "loss_scale", &TrainableOptions::loss_scale);
  field(made, "scale_growth", &TrainableOptions::scale_growth);
  field(made, "recompute", &TrainableOptions::recompute);
  module.def(
      "merge_lora",
      [](const HeldModel& held) {
        HeldModel made{[&] {
                         const nb::gil_scoped_release unlocked;
                         return merge_lora(held.model);
                       }(),
                       held.warnings, held.listener};
        made.tell();
        return made;
      },
      nb::arg("model"));
  module.def("make_trainable", &made_trainable, nb::arg("model"), nb::arg("options"));
  module.def("make_trainable_of_artifacts", &of_artifacts, nb::arg("training_model"),
             nb::arg("eval_model"), nb::arg("optimizer_model"), nb::arg("checkpoint"),
             nb::arg("outputs"), nb::arg("learning_rate"));
}

}  // namespace sardonyx::python
