// sardonyx._core.Session and what it describes itself with.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "async_runs.h"
#include "convert.h"
#include "errors.h"
#include "held_value.h"
#include "interrupt.h"
#include "sardonyx/packing.h"
#include "session.h"
#include "text.h"

namespace sardonyx::python {
namespace {

struct SessionArguments {
  int threads = 0;
  std::shared_ptr<SharedThreads> shared_threads;
  std::vector<int> processors;
  bool reference = false, fuse = true, exact = false, assume_inference = false, prepack = false;
  bool flush_denormals = false;
  uint64_t seed = 0;
  bool all_outputs = false;
  int64_t memory_limit = 0;
  std::map<std::string, int64_t> dimensions;
  std::vector<NamedValue> initializers;
  std::vector<std::string> extra_outputs;
  std::string packed, cache_folder;
  int log_level = static_cast<int>(LogLevel::warning);
  nb::object log = nb::none();

  SessionOptions options() const {
    SessionOptions made;
    made.threads = threads;
    made.processors = processors;
    made.reference = reference;
    made.fuse = fuse;
    made.exact = exact;
    made.assume_inference = assume_inference;
    made.prepack = prepack;
    made.flush_denormals = flush_denormals;
    made.seed = seed;
    made.all_outputs = all_outputs;
    made.memory_limit = memory_limit;
    made.dimensions.insert(dimensions.begin(), dimensions.end());
    made.initializers = initializers;
    made.extra_outputs = extra_outputs;
    made.packed = packed;
    made.cache_folder = cache_folder;
    made.log_level = static_cast<LogLevel>(log_level);
    return made;
  }
};

nb::object described(const ValueDescription& one) {
  nb::object shape = nb::none();
  if (one.shape) {
    nb::list dims;
    for (const auto& dim : *one.shape) {
      if (dim.size)
        dims.append(*dim.size);
      else if (dim.name.empty())
        dims.append(nb::none());
      else
        dims.append(dim.name);
    }
    shape = nb::tuple(dims);
  }
  return nb::make_tuple(one.name, std::string(name_of(one.kind)),
                        one.kind == Value::Kind::tensor
                            ? nb::cast(std::string(name_of(one.element_type)))
                            : nb::none(),
                        shape, one.type, one.optional);
}

nb::list described(const std::vector<StepDescription>& steps) {
  nb::list list;
  for (const auto& step : steps) {
    nb::list bodies;
    for (const auto& body : step.bodies)
      bodies.append(nb::make_tuple(body.name, body.is_planned, described(body.steps)));
    list.append(
        nb::make_tuple(step.node, step.origin, step.sources, step.kernel, step.refused, bodies));
  }
  return list;
}

RunArguments run_arguments(Cancel* cancel, std::optional<double> timeout, int64_t memory_limit,
                           Profile* profile) {
  if (memory_limit < 0)
    refuse("memory_limit must not be negative; got " + std::to_string(memory_limit));
  return {cancel, deadline_in(timeout), memory_limit, profile};
}

nb::object objects_by_name(const RunningSession& session, std::vector<Value>&& values) {
  nb::dict made;
  for (size_t i = 0; i < values.size(); ++i)
    made[session.output_name(i)] = object_from(std::move(values[i]));
  return made;
}

nb::object objects_in_order(std::vector<Value>&& values) {
  nb::list made;
  for (Value& value : values) made.append(object_from(std::move(value)));
  return made;
}

size_t output_index(const RunningSession& session, nb::handle name) {
  for (size_t i = 0; i < session.outputs().size(); ++i) {
    nb::handle own = session.output_name(i);
    if (own.ptr() == name.ptr() || own.equal(name)) return i;
  }
  refuse("there is no output " + std::string(nb::repr(name).c_str()));
}

// Each output is handed over where its name comes last, and copied before.
nb::object chosen(const RunningSession& session, std::vector<Value>&& values, nb::handle names) {
  std::vector<size_t> wanted, left(values.size());
  for (nb::handle name : names) {
    wanted.push_back(output_index(session, name));
    ++left[wanted.back()];
  }
  nb::list made;
  for (const size_t i : wanted)
    made.append(object_from(--left[i] == 0 ? std::move(values[i]) : Value(values[i])));
  return made;
}

// A dict for inputs by name, a list for inputs in order.
nb::object run(RunningSession& session, nb::handle inputs, Cancel* cancel,
               std::optional<double> timeout, int64_t memory_limit, Profile* profile) {
  auto values = session.run(inputs, run_arguments(cancel, timeout, memory_limit, profile));
  const bool in_order = PyList_Check(inputs.ptr()) || PyTuple_Check(inputs.ptr());
  return in_order ? objects_in_order(std::move(values))
                  : objects_by_name(session, std::move(values));
}

// Outputs as a list: all, or those named.
nb::object run_list(RunningSession& session, nb::handle names, nb::handle inputs, Cancel* cancel,
                    Profile* profile) {
  const bool all = names.is_none() || nb::len(names) == 0;
  if (!all)
    for (nb::handle name : names) (void)output_index(session, name);
  auto values = session.run(inputs, run_arguments(cancel, {}, 0, profile));
  return all ? objects_in_order(std::move(values)) : chosen(session, std::move(values), names);
}

// Of a tensor that shares its memory with weights, an input or another output: one that may be
// written to.
Tensor copy_of(const Tensor& tensor) {
  Tensor made(tensor.element_type(), tensor.shape());
  if (tensor.element_type() == ElementType::string) {
    const auto texts = tensor.elements<std::string>();
    std::copy(texts.begin(), texts.end(), made.mutable_elements<std::string>().begin());
  } else if (tensor.byte_size() > 0) {
    std::memcpy(made.mutable_data(), tensor.data(), tensor.byte_size());
  }
  return made;
}

// Values for values; outputs that are given (by name) are filled where they lie.
nb::list run_values(RunningSession& session, nb::handle inputs, nb::dict outputs, Cancel* cancel,
                    Profile* profile) {
  std::vector<Value> values(session.outputs().size());
  std::vector<const void*> targets(values.size());
  for (auto [name, given] : outputs) {
    const HeldValue* held = held_value(given);
    if (held == nullptr) refuse("an output is written to a Value");
    if (held->read_only)
      refuse("output " + std::string(nb::repr(name).c_str()) +
             " is to be written to an array that must not be written to");
    const size_t i = output_index(session, name);
    values[i] = held->value;
    if (held->value.is_tensor()) targets[i] = held->value.tensor().data();
  }
  session.run_into(inputs, values, run_arguments(cancel, {}, 0, profile));
  nb::list made;
  for (size_t i = 0; i < values.size(); ++i) {
    Value& value = values[i];
    const bool is_target =
        value.is_tensor() && targets[i] != nullptr && value.tensor().data() == targets[i];
    if (value.is_tensor() && !is_target && value.tensor().owner().use_count() != 1)
      value = Value(copy_of(value.tensor()));
    const bool is_own = value.is_tensor() && !is_target;
    made.append(HeldValue{std::move(value), is_own});
  }
  return made;
}

nb::object all_by_name(const RunningSession& session, std::vector<Value>&& values) {
  return objects_by_name(session, std::move(values));
}

nb::object all_in_order(const RunningSession&, std::vector<Value>&& values) {
  return objects_in_order(std::move(values));
}

// As run(), on a thread of the session's.
void run_async(nb::handle self, nb::handle inputs, nb::handle callback, nb::handle cancel,
               std::optional<double> timeout, int64_t memory_limit, nb::handle profile) {
  auto& session = nb::cast<RunningSession&>(self);
  const RunArguments arguments =
      run_arguments(nb::cast<Cancel*>(cancel), timeout, memory_limit, nb::cast<Profile*>(profile));
  const bool in_order = PyList_Check(inputs.ptr()) || PyTuple_Check(inputs.ptr());
  session.run_async(inputs, arguments, nb::borrow(callback),
                    nb::make_tuple(nb::borrow(self), nb::borrow(cancel), nb::borrow(profile)),
                    in_order ? &all_in_order : &all_by_name);
}

constexpr const char* run_text =
    "Outputs as a dict for inputs by name, as a list for inputs in the model's order.\n\n"
    "Arrays are read where they lie, for the time of the call; lists and numbers take the "
    "declared\n"
    "element type. Outputs are numpy arrays that nothing else uses, lists of sequences, dicts of\n"
    "maps, SparseTensors, None for an optional that holds nothing. `timeout` in seconds;\n"
    "`memory_limit`: most bytes that the run may have in use, 0 for any number.\n\n"
    "Raises BadInputError, RunFailedError, CancelledError, OutOfMemoryError; KeyboardInterrupt "
    "stops\n"
    "the run.";

// A run that waits for the interpreter's lock, to call an operator in Python, may hold what this
// waits for.
template <class Ask>
auto without_lock(RunningSession& session, Ask&& ask) {
  Session& asked = session.session();
  const InModel inside(session.model());
  const nb::gil_scoped_release unlocked;
  return ask(asked);
}

}  // namespace

nb::list described(const std::vector<ValueDescription>& all) {
  nb::list list;
  for (const auto& one : all) list.append(described(one));
  return list;
}

void bind_sessions(nb::module_& module) {
  module.def("pack",
             [](const HeldModel& held, const std::string& path, const SessionArguments& arguments) {
               const SessionOptions options = arguments.options();
               const InModel inside(held);
               const nb::gil_scoped_release released;
               const PackedModel packed = pack_model(held.model, path, options);
               return std::pair(packed.forms, packed.bytes);
             });
  module.def("compare_packed", [](const HeldModel& held, const std::string& path,
                                  const SessionArguments& arguments) {
    const SessionOptions options = arguments.options();
    const InModel inside(held);
    const nb::gil_scoped_release released;
    std::vector<std::string> lines;
    for (const PackedDifference& one : compare_packed(held.model, path, options).differences)
      lines.push_back(one.form + ": " + one.what);
    return lines;
  });
  remember_main_thread();
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&finish_async_runs));
  nb::class_<Cancel>(module, "Cancel", "Stops the runs that have it, from any thread.")
      .def(nb::init<>())
      .def("set", [](Cancel& cancel) { cancel.wanted = true; })
      .def("clear", [](Cancel& cancel) { cancel.wanted = false; })
      .def("is_set", [](const Cancel& cancel) { return cancel.wanted.load(); });
  nb::class_<SharedThreads>(module, "Threads", R"(Threads that several sessions share.

`count` counts the caller; 0: as many as the process may use. Raises BadInputError for numbers that are negative or beyond
4096. They live as long as a session has them. In forked processes and where they are unpickled others take their place.)")
      .def(nb::init<int>(), nb::arg("count") = 0)
      .def_prop_ro(
          "count", [](SharedThreads& threads) { return threads.get().count(); },
          "How many there are: fewer than were asked for where the system would not start more.")
      .def("__reduce__",
           [](nb::handle self) {
             return nb::make_tuple(self.type(),
                                   nb::make_tuple(nb::cast<const SharedThreads&>(self).asked()));
           })
      .def("__repr__", [](SharedThreads& threads) {
        return "<sardonyx.Threads (" + std::to_string(threads.get().count()) + ")>";
      });
  nb::class_<SessionArguments>(module, "SessionOptions")
      .def(nb::init<>())
      .def_rw("threads", &SessionArguments::threads)
      .def_rw("shared_threads", &SessionArguments::shared_threads, nb::arg().none())
      .def_rw("processors", &SessionArguments::processors)
      .def_rw("reference", &SessionArguments::reference)
      .def_rw("fuse", &SessionArguments::fuse)
      .def_rw("exact", &SessionArguments::exact)
      .def_rw("assume_inference", &SessionArguments::assume_inference)
      .def_rw("prepack", &SessionArguments::prepack)
      .def_rw("flush_denormals", &SessionArguments::flush_denormals)
      .def_rw("seed", &SessionArguments::seed)
      .def_rw("all_outputs", &SessionArguments::all_outputs)
      .def_rw("memory_limit", &SessionArguments::memory_limit)
      .def_rw("dimensions", &SessionArguments::dimensions)
      .def_rw("extra_outputs", &SessionArguments::extra_outputs)
      .def_rw("packed", &SessionArguments::packed)
      .def_rw("cache_folder", &SessionArguments::cache_folder)
      .def_rw("log_level", &SessionArguments::log_level)
      .def_rw("log", &SessionArguments::log, nb::arg().none())
      .def("add_initializer", [](SessionArguments& arguments, const std::string& name,
                                 nb::handle value) {
        arguments.initializers.emplace_back(name, value_from(value, {.kind = Value::Kind::tensor}));
      });
  nb::class_<RunningSession>(module, "Session", nb::is_weak_referenceable(), nb::dynamic_attr())
      .def(
          "__init__",
          [](RunningSession* place, nb::handle model, const SessionArguments& arguments) {
            new (place)
                RunningSession(model, arguments.options(), arguments.shared_threads, arguments.log);
          },
          nb::arg("model"), nb::arg("options"))
      .def("run", &run, nb::arg("inputs").none(), nb::kw_only(),
           nb::arg("cancel").none() = nb::none(), nb::arg("timeout").none() = nb::none(),
           nb::arg("memory_limit") = 0, nb::arg("profile").none() = nb::none(), run_text)
      .def("run_list", &run_list, nb::arg("names").none(), nb::arg("inputs").none(),
           nb::arg("cancel").none() = nb::none(), nb::arg("profile").none() = nb::none())
      .def("_run_async", &run_async, nb::arg("inputs").none(), nb::arg("callback"),
           nb::arg("cancel").none() = nb::none(), nb::arg("timeout").none() = nb::none(),
           nb::arg("memory_limit") = 0, nb::arg("profile").none() = nb::none())
      .def("run_values", &run_values, nb::arg("inputs").none(), nb::arg("outputs"),
           nb::arg("cancel").none() = nb::none(), nb::arg("profile").none() = nb::none())
      .def_prop_ro("_inputs", [](const RunningSession& s) { return described(s.inputs()); })
      .def_prop_ro("_outputs", [](const RunningSession& s) { return described(s.outputs()); })
      .def("_steps",
           [](RunningSession& s) {
             return described(without_lock(s, [](Session& of) { return of.steps(); }));
           })
      .def_prop_ro("packed_bytes",
                   [](RunningSession& s) {
                     return without_lock(s, [](Session& of) { return of.packed_bytes(); });
                   })
      .def_prop_ro("arena_bytes", [](RunningSession& s) {
        return without_lock(s, [](Session& of) { return of.arena_bytes(); });
      });
}

}  // namespace sardonyx::python
