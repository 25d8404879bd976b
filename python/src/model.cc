#include "model.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <utility>

#include "errors.h"
#include "operators.h"
#include "owner.h"
#include "sardonyx/edit.h"
#include "sardonyx/passes.h"
#include "text.h"

namespace sardonyx::python {

namespace nb = nanobind;

void WarningBox::put(const Warning& warning) {
  const std::lock_guard lock(mutex_);
  warnings_.push_back(warning);
  waiting_ = true;
}

void WarningBox::tell(nb::handle listener) {
  std::vector<Warning> warnings;
  {
    const std::lock_guard lock(mutex_);
    warnings.swap(warnings_);
    waiting_ = false;
  }
  if (listener.is_none()) return;
  for (const Warning& one : warnings) listener(one.rule, one.place, one.message, one.advice);
}

HeldModel HeldModel::unbroken() const {
  if (!use->is_broken()) return *this;
  return {ModelEditor(model).finish(), std::make_shared<WarningBox>(), listener};
}

void LogBox::put(const LogMessage& message) {
  const std::lock_guard lock(mutex_);
  messages_.push_back(message);
  waiting_ = true;
}

void LogBox::tell(nb::handle listener) {
  std::vector<LogMessage> messages;
  {
    const std::lock_guard lock(mutex_);
    messages.swap(messages_);
    waiting_ = false;
  }
  for (const LogMessage& one : messages)
    listener(static_cast<int>(one.level), one.rule, one.place, one.message, one.advice);
}

namespace {

struct LoadArguments {
  bool strict = false;
  std::string trusted_folder;
  bool read_into_memory = false;
  std::vector<std::string> operator_sets;
  std::vector<std::string> libraries;
  int64_t memory_limit = 0;
  bool load_external_data = true;
  std::shared_ptr<CustomOperators> operators;
  nb::object listener = nb::none();
};

LoadOptions options_of(LoadArguments arguments, const std::shared_ptr<WarningBox>& box) {
  LoadOptions options;
  options.strict = arguments.strict;
  options.trusted_folder = std::move(arguments.trusted_folder);
  options.read_into_memory = arguments.read_into_memory;
  options.operator_sets = std::move(arguments.operator_sets);
  options.libraries = std::move(arguments.libraries);
  options.memory_limit = arguments.memory_limit;
  options.load_external_data = arguments.load_external_data;
  options.custom_operators = arguments.operators;
  options.warn = [box](const Warning& warning) { box->put(warning); };
  return options;
}

template <class Load>
HeldModel loaded(const LoadArguments& arguments, Load&& load) {
  auto box = std::make_shared<WarningBox>();
  const LoadOptions options = options_of(arguments, box);
  HeldModel held{[&] {
                   const nb::gil_scoped_release unlocked;
                   return load(options);
                 }(),
                 box, arguments.listener};
  held.tell();
  return held;
}

HeldModel load_file(const std::string& path, const LoadArguments& arguments) {
  return loaded(arguments, [&](const LoadOptions& options) { return Model(path, options); });
}

HeldModel load_bytes(const nb::bytes& data, const std::string& folder,
                     const LoadArguments& arguments) {
  auto owner = owner_of(data);
  const void* bytes = data.data();
  const size_t size = data.size();
  return loaded(arguments, [&](const LoadOptions& options) {
    return Model(bytes, size, folder, std::move(owner), options);
  });
}

// As bytes, since strings in it need not be UTF-8.
HeldModel load_text(const nb::bytes& text, const LoadArguments& arguments) {
  const std::string_view view(text.c_str(), text.size());
  return loaded(arguments,
                [&](const LoadOptions& options) { return Model::from_text(view, options); });
}

// A listener may be a method of what has the model: collectors of garbage must see that.
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<HeldModel>(self)->listener.ptr());
  return 0;
}

int clear(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<HeldModel>(self)->listener = nb::none();
  return 0;
}

PyType_Slot collected[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
                           {Py_tp_clear, reinterpret_cast<void*>(&clear)},
                           {0, nullptr}};

}  // namespace

void bind_models(nb::module_& module) {
  nb::class_<LoadArguments>(module, "LoadOptions")
      .def(nb::init<>())
      .def_rw("strict", &LoadArguments::strict)
      .def_rw("trusted_folder", &LoadArguments::trusted_folder)
      .def_rw("read_into_memory", &LoadArguments::read_into_memory)
      .def_rw("operator_sets", &LoadArguments::operator_sets)
      .def_rw("libraries", &LoadArguments::libraries)
      .def_rw("memory_limit", &LoadArguments::memory_limit)
      .def_rw("load_external_data", &LoadArguments::load_external_data)
      .def(
          "add_operator",
          [](LoadArguments& arguments, const std::string& domain, const std::string& signature,
             nb::handle object) {
            if (!arguments.operators) arguments.operators = std::make_shared<CustomOperators>();
            add_operator(*arguments.operators, domain, signature, object);
          },
          nb::arg("domain"), nb::arg("signature"), nb::arg("operator"))
      .def_rw("listener", &LoadArguments::listener, nb::arg().none());
  nb::class_<HeldModel>(module, "Model", nb::is_weak_referenceable(), nb::type_slots(collected),
                        "A model, read and ready to make sessions of.")
      .def_static("from_file", &load_file, nb::arg("path"), nb::arg("options"))
      .def_static("from_bytes", &load_bytes, nb::arg("data"), nb::arg("folder"), nb::arg("options"))
      .def_static("from_text", &load_text, nb::arg("text"), nb::arg("options"));
  module.def(
      "optimized_text",
      [](const HeldModel& held, size_t max_elements) {
        const nb::gil_scoped_release unlocked;
        return optimized_text(held.model, {}, {.max_elements = max_elements});
      },
      nb::arg("model"), nb::arg("max_elements"));
  module.def("optimizer_passes", [] {
    nb::list passes;
    for (const auto& [name, summary] : optimizer_passes())
      passes.append(nb::make_tuple(name, summary));
    return passes;
  });
}

}  // namespace sardonyx::python
