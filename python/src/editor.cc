// Changing what a model says.
#include "sardonyx/edit.h"

#include <nanobind/nanobind.h>

#include "convert.h"
#include "model.h"
#include "text.h"

namespace sardonyx::python {

namespace nb = nanobind;

namespace {

// An editor, and whom the models that it makes tell their warnings.
struct HeldEditor {
  explicit HeldEditor(const HeldModel& from)
      : editor(from.model), warnings(from.warnings), listener(from.listener) {}

  HeldModel finish() const { return {editor.finish(), warnings, listener}; }

  ModelEditor editor;
  std::shared_ptr<WarningBox> warnings;
  nb::object listener;
};

Tensor tensor_of(nb::handle array) {
  return value_from(array, {.kind = Value::Kind::tensor}).tensor();
}

}  // namespace

void bind_editor(nb::module_& module) {
  nb::class_<HeldEditor> editor(module, "ModelEditor");
  editor.def(nb::init<const HeldModel&>());
  const auto text = [&](const char* name, ModelEditor& (ModelEditor::*set)(std::string)) {
    editor.def(name,
               [set](HeldEditor& e, std::string value) { (e.editor.*set)(std::move(value)); });
  };
  text("set_producer_name", &ModelEditor::set_producer_name);
  text("set_producer_version", &ModelEditor::set_producer_version);
  text("set_domain", &ModelEditor::set_domain);
  text("set_doc_string", &ModelEditor::set_doc_string);
  text("set_graph_name", &ModelEditor::set_graph_name);
  const auto name = [&](const char* called, ModelEditor& (ModelEditor::*change)(std::string_view)) {
    editor.def(called, [change](HeldEditor& e, const std::string& of) { (e.editor.*change)(of); });
  };
  name("remove_metadata", &ModelEditor::remove_metadata);
  name("remove_input", &ModelEditor::remove_input);
  name("remove_output", &ModelEditor::remove_output);
  name("remove_initializer", &ModelEditor::remove_initializer);
  const auto typed = [&](const char* called,
                         ModelEditor& (ModelEditor::*change)(std::string_view, std::string_view)) {
    editor.def(called, [change](HeldEditor& e, const std::string& of, const std::string& type) {
      (e.editor.*change)(of, type);
    });
  };
  typed("set_type", &ModelEditor::set_type);
  typed("add_input", &ModelEditor::add_input);
  typed("add_output", &ModelEditor::add_output);
  editor.def("set_ir_version",
             [](HeldEditor& e, int64_t version) { e.editor.set_ir_version(version); });
  editor.def("set_model_version",
             [](HeldEditor& e, int64_t version) { e.editor.set_model_version(version); });
  editor.def("set_metadata", [](HeldEditor& e, const std::string& key, std::string value) {
    e.editor.set_metadata(key, std::move(value));
  });
  editor.def("set_opset_import", [](HeldEditor& e, const std::string& domain, int64_t version) {
    e.editor.set_opset_import(domain, version);
  });
  editor.def("set_dimension", [](HeldEditor& e, const std::string& value, int64_t axis,
                                 int64_t size) { e.editor.set_dimension(value, axis, size); });
  editor.def("set_dimension",
             [](HeldEditor& e, const std::string& value, int64_t axis, const std::string& named) {
               e.editor.set_dimension(value, axis, named);
             });
  editor.def("set_denotation", [](HeldEditor& e, const std::string& value, std::string denotation) {
    e.editor.set_denotation(value, std::move(denotation));
  });
  editor.def("set_denotation",
             [](HeldEditor& e, const std::string& value, int64_t axis, std::string denotation) {
               e.editor.set_denotation(value, axis, std::move(denotation));
             });
  editor.def("has_initializer", [](const HeldEditor& e, const std::string& of) {
    return e.editor.has_initializer(of);
  });
  editor.def("add_initializer", [](HeldEditor& e, const std::string& of, nb::handle array) {
    e.editor.add_initializer(of, tensor_of(array));
  });
  editor.def("replace_initializer", [](HeldEditor& e, const std::string& of, nb::handle array) {
    e.editor.replace_initializer(of, tensor_of(array));
  });
  editor.def("finish", &HeldEditor::finish);
}

}  // namespace sardonyx::python
