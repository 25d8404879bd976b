// Types and shapes, and profiles.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <string>

#include "model.h"
#include "sardonyx/infer.h"
#include "sardonyx/profile.h"
#include "text.h"

namespace sardonyx::python {

namespace nb = nanobind;

namespace {

using Sizes = std::map<std::string, int64_t>;

InferOptions infer_options(const Sizes& sizes, bool strict) {
  InferOptions options;
  options.sizes.insert(sizes.begin(), sizes.end());
  options.strict = strict;
  return options;
}

const char* text_of(InferredValue::State state) {
  switch (state) {
    case InferredValue::State::known: return "known";
    case InferredValue::State::bounded: return "bounded";
    case InferredValue::State::open: return "open";
    case InferredValue::State::partial: return "partial";
    case InferredValue::State::unknown: return "unknown";
  }
  return "unknown";
}

nb::object shape_of(const InferredValue& value) {
  if (!value.shape) return nb::none();
  nb::list dims;
  for (const InferredSize& size : *value.shape) {
    if (size.number >= 0)
      dims.append(size.number);
    else
      dims.append(std::string(size.expression));
  }
  return nb::tuple(dims);
}

nb::object described(const Inference& inference) {
  nb::list values, unknowns, names, findings;
  for (const auto& value : inference.values) {
    nb::object element = value.element == ElementType::undefined
                             ? nb::none()
                             : nb::cast(std::string(name_of(value.element)));
    values.append(nb::make_tuple(std::string(value.graph), std::string(value.name), value.type(),
                                 element, shape_of(value), text_of(value.state)));
  }
  for (const auto& one : inference.unknowns)
    unknowns.append(nb::make_tuple(one.name, one.bound, one.node, one.reason));
  for (const auto& one : inference.names) names.append(nb::make_tuple(one.name, one.expression));
  for (const auto& one : inference.findings)
    findings.append(nb::make_tuple(one.is_error, one.place, one.message));
  return nb::make_tuple(values, unknowns, names, findings);
}

template <class Infer>
nb::object unlocked(Infer&& infer) {
  Inference inference;
  {
    const nb::gil_scoped_release released;
    inference = infer();
  }
  return described(inference);
}

nb::list described_runs(const Profile& profile) {
  nb::list runs;
  for (const auto& run : profile.runs()) {
    nb::list sums;
    for (const auto& sum : run.steps)
      sums.append(nb::make_tuple(sum.nanoseconds, sum.inside_nanoseconds, sum.helped_nanoseconds,
                                 sum.calls, sum.operations, sum.bytes));
    runs.append(nb::make_tuple(run.begin, run.end, sums));
  }
  return runs;
}

}  // namespace

void bind_inference(nb::module_& module) {
  module.def("infer_model", [](const HeldModel& held, const Sizes& sizes, bool strict) {
    return unlocked([&] { return infer_types(held.model, infer_options(sizes, strict)); });
  });
  module.def("infer_path", [](const std::string& path, const Sizes& sizes, bool strict) {
    return unlocked([&] { return infer_types(path, infer_options(sizes, strict)); });
  });
  module.def("infer_file", [](const std::string& path, const std::string& output,
                              const Sizes& sizes, bool strict) {
    return unlocked([&] { return infer_file(path, output, infer_options(sizes, strict)); });
  });
}

void bind_profiles(nb::module_& module) {
  nb::class_<Profile>(module, "Profile")
      .def(nb::init<>())
      .def("_steps",
           [](const Profile& profile) {
             nb::list steps;
             for (const auto& step : profile.steps())
               steps.append(nb::make_tuple(step.node, step.operator_name, step.origin, step.sources,
                                           step.kernel, step.graph, step.inside));
             return steps;
           })
      .def("_runs", &described_runs)
      .def("_events",
           [](const Profile& profile) {
             nb::list events;
             for (const auto& event : profile.events())
               events.append(
                   nb::make_tuple(event.run, event.step, event.thread, event.begin, event.end));
             return events;
           })
      .def_prop_ro("dropped_events", &Profile::dropped_events)
      .def_prop_ro("threads", &Profile::threads);
}

}  // namespace sardonyx::python
