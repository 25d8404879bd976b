#include <algorithm>
#include <cstring>
#include <memory>

#include "capi/handles.h"
#include "capi/views.h"
#include "sardonyx/edit.h"

using namespace sardonyx;
using namespace sardonyx::capi;

struct sardonyx_editor {
  SARDONYX_TAG('e', 'd');
  ModelEditor editor;
};

namespace {

ModelEditor& editor_of(sardonyx_editor* editor) { return required(editor, "editor").editor; }

SaveOptions save_options(const sardonyx_save_options* given) {
  const sardonyx_save_options known = known_part(given);
  SaveOptions saving;
  if (known.external_data != nullptr) saving.external_data = known.external_data;
  if (known.threshold > 0) saving.threshold = known.threshold;
  if (known.alignment > 0) saving.alignment = known.alignment;
  saving.checksum = known.checksum != 0;
  saving.embed = known.embed != 0;
  saving.verify_checksums = known.verify_checksums != 0;
  if (known.trusted_folder != nullptr) saving.trusted_folder = known.trusted_folder;
  if (known.form != 0) saving.form = form_given(known.form);
  return saving;
}

}  // namespace

const char* sardonyx_bytes_data(const sardonyx_bytes* bytes, size_t* size) {
  if (size != nullptr) *size = !is_usable(bytes) ? 0 : bytes->bytes.size();
  return !is_usable(bytes) ? "" : bytes->bytes.c_str();
}

void sardonyx_bytes_release(sardonyx_bytes* bytes) { release_handle(bytes); }

sardonyx_status* sardonyx_model_read(sardonyx_read_function read, void* user, const char* folder,
                                     const sardonyx_load_options* options, sardonyx_model** model) {
  return guarded([&] {
    required(model, "model");
    if (read == nullptr) fail(ErrorCode::bad_input, "the argument 'read' is NULL");
    *model = new sardonyx_model{
        {},
        Model::from_stream([&](void* buffer, size_t size) { return read(buffer, size, user); },
                           folder == nullptr ? "" : folder, load_options(options))};
  });
}

sardonyx_status* sardonyx_model_save(const sardonyx_model* model, const char* path,
                                     const sardonyx_save_options* options) {
  return sardonyx_model_save_reported(model, path, options, nullptr, nullptr, nullptr);
}

sardonyx_status* sardonyx_model_save_reported(const sardonyx_model* model, const char* path,
                                              const sardonyx_save_options* options,
                                              uint64_t* model_bytes, uint64_t* data_bytes,
                                              sardonyx_bytes** notes) {
  return guarded([&] {
    const SaveOptions saving = save_options(options);
    const Model& given = required(model, "model").model;
    const Saved saved = given.save(&required(path, "path"), saving);
    if (model_bytes != nullptr) *model_bytes = saved.model_bytes;
    if (data_bytes != nullptr) *data_bytes = saved.data_bytes;
    if (notes == nullptr) return;
    std::string lines;
    for (const std::string& note : saved.notes) lines += note + '\n';
    *notes = new sardonyx_bytes{{}, std::move(lines)};
  });
}

sardonyx_status* sardonyx_ending_problem(const char* path, const char* source,
                                         sardonyx_bytes** text) {
  return guarded([&] {
    const std::string to = &required(path, "path");
    give_bytes(text, [&] { return ending_problem(to, source == nullptr ? "" : source); });
  });
}

sardonyx_status* sardonyx_model_write(const sardonyx_model* model, sardonyx_form form,
                                      sardonyx_bytes** bytes) {
  return guarded([&] {
    required(bytes, "bytes");
    if (form < 0 || form > SARDONYX_FORM_TEXTPROTO)
      fail(ErrorCode::bad_input, "{} is no form of a model file", form);
    const Model& given = required(model, "model").model;
    *bytes = new sardonyx_bytes{{}, given.to_bytes(static_cast<ModelForm>(form))};
  });
}

sardonyx_status* sardonyx_model_describe(const sardonyx_model* handle, sardonyx_model_info* info) {
  return guarded([&] {
    const Model& model = required(handle, "model").model;
    sardonyx_model_info made{};
    made.ir_version = model.ir_version().value_or(0);
    made.producer_name = text(model.producer_name());
    made.producer_version = text(model.producer_version());
    made.domain = text(model.domain());
    made.model_version = model.model_version();
    made.doc_string = text(model.doc_string());
    made.graph_name = model.has_graph() ? text(model.graph().name()) : "";
    made.metadata_count = model.metadata().size();
    made.opset_count = model.opset_imports().size();
    made.function_count = model.functions().size();
    made.node_count = model.has_graph() ? model.graph().nodes().size() : 0;
    made.initializer_count = model.has_graph() ? model.graph().initializers().size() : 0;
    made.path = model.path().c_str();
    made.folder = model.folder().c_str();
    made.opset = model.opset();
    made.has_training_info = model.has_training_info() ? 1 : 0;
    made.has_external_data = model.has_external_data() ? 1 : 0;
    fill(info, "info", made);
  });
}

sardonyx_status* sardonyx_model_metadata(const sardonyx_model* handle, size_t index,
                                         const char** key, const char** value) {
  return guarded([&] {
    const auto entries = required(handle, "model").model.metadata();
    required(key, "key"), required(value, "value");
    if (index >= entries.size())
      fail(ErrorCode::bad_input, "there is no metadata {} of {}", index, entries.size());
    *key = text(entries[index].key());
    *value = text(entries[index].value());
  });
}

sardonyx_status* sardonyx_model_opset(const sardonyx_model* handle, size_t index,
                                      const char** domain, int64_t* version) {
  return guarded([&] {
    const auto imports = required(handle, "model").model.opset_imports();
    required(domain, "domain"), required(version, "version");
    if (index >= imports.size())
      fail(ErrorCode::bad_input, "there is no import {} of {}", index, imports.size());
    *domain = text(imports[index].domain());
    *version = imports[index].version();
  });
}

sardonyx_status* sardonyx_model_initializer(const sardonyx_model* handle, size_t index,
                                            const char** name, sardonyx_value** value) {
  return guarded([&] {
    const auto tensors = required(handle, "model").model.graph().initializers();
    if (index >= tensors.size())
      fail(ErrorCode::bad_input, "there is no initializer {} of {}", index, tensors.size());
    const TensorView tensor = tensors[index];
    if (value != nullptr) *value = new_value(tensor.tensor());
    if (name != nullptr) *name = text(tensor.name());
  });
}

sardonyx_status* sardonyx_editor_create(const sardonyx_model* model, sardonyx_editor** editor) {
  return guarded([&] {
    required(editor, "editor");
    *editor = new sardonyx_editor{{}, ModelEditor(required(model, "model").model)};
  });
}

void sardonyx_editor_release(sardonyx_editor* editor) { release_handle(editor); }

sardonyx_status* sardonyx_editor_finish(const sardonyx_editor* editor, sardonyx_model** model) {
  return guarded([&] {
    required(model, "model");
    *model = new sardonyx_model{{}, required(editor, "editor").editor.finish()};
  });
}

sardonyx_status* sardonyx_editor_set_text(sardonyx_editor* editor, sardonyx_field field,
                                          const char* given) {
  return guarded([&] {
    ModelEditor& editing = editor_of(editor);
    const std::string value = &required(given, "text");
    switch (field) {
      case SARDONYX_FIELD_PRODUCER_NAME: editing.set_producer_name(value); break;
      case SARDONYX_FIELD_PRODUCER_VERSION: editing.set_producer_version(value); break;
      case SARDONYX_FIELD_DOMAIN: editing.set_domain(value); break;
      case SARDONYX_FIELD_DOC_STRING: editing.set_doc_string(value); break;
      case SARDONYX_FIELD_GRAPH_NAME: editing.set_graph_name(value); break;
      default: fail(ErrorCode::bad_input, "{} is no field that holds a text", field);
    }
  });
}

sardonyx_status* sardonyx_editor_set_number(sardonyx_editor* editor, sardonyx_field field,
                                            int64_t number) {
  return guarded([&] {
    ModelEditor& editing = editor_of(editor);
    switch (field) {
      case SARDONYX_FIELD_IR_VERSION: editing.set_ir_version(number); break;
      case SARDONYX_FIELD_MODEL_VERSION: editing.set_model_version(number); break;
      default: fail(ErrorCode::bad_input, "{} is no field that holds a number", field);
    }
  });
}

sardonyx_status* sardonyx_editor_set_metadata(sardonyx_editor* editor, const char* key,
                                              const char* value) {
  return guarded([&] {
    ModelEditor& editing = editor_of(editor);
    const std::string name = &required(key, "key");
    if (value == nullptr) {
      editing.remove_metadata(name);
    } else {
      editing.set_metadata(name, value);
    }
  });
}

sardonyx_status* sardonyx_editor_set_opset(sardonyx_editor* editor, const char* domain,
                                           int64_t version) {
  return guarded([&] { editor_of(editor).set_opset_import(&required(domain, "domain"), version); });
}

sardonyx_status* sardonyx_editor_set_type(sardonyx_editor* editor, const char* value,
                                          const char* type) {
  return guarded(
      [&] { editor_of(editor).set_type(&required(value, "value"), &required(type, "type")); });
}

sardonyx_status* sardonyx_editor_set_dimension(sardonyx_editor* editor, const char* value,
                                               int64_t axis, int64_t size, const char* name) {
  return guarded([&] {
    ModelEditor& editing = editor_of(editor);
    const std::string of = &required(value, "value");
    if (size >= 0 && name != nullptr)
      fail(ErrorCode::bad_input, "dimension {} of '{}' is given a number and a name", axis, of);
    if (size >= 0) {
      editing.set_dimension(of, axis, size);
    } else {
      editing.set_dimension(of, axis, std::string_view(name == nullptr ? "" : name));
    }
  });
}

sardonyx_status* sardonyx_editor_set_denotation(sardonyx_editor* editor, const char* value,
                                                int64_t axis, const char* denotation) {
  return guarded([&] {
    ModelEditor& editing = editor_of(editor);
    const std::string of = &required(value, "value"), meaning = &required(denotation, "denotation");
    if (axis < 0) {
      editing.set_denotation(of, meaning);
    } else {
      editing.set_denotation(of, axis, meaning);
    }
  });
}

sardonyx_status* sardonyx_editor_add_input(sardonyx_editor* editor, const char* name,
                                           const char* type) {
  return guarded(
      [&] { editor_of(editor).add_input(&required(name, "name"), &required(type, "type")); });
}

sardonyx_status* sardonyx_editor_remove_input(sardonyx_editor* editor, const char* name) {
  return guarded([&] { editor_of(editor).remove_input(&required(name, "name")); });
}

sardonyx_status* sardonyx_editor_add_output(sardonyx_editor* editor, const char* name,
                                            const char* type) {
  return guarded(
      [&] { editor_of(editor).add_output(&required(name, "name"), type == nullptr ? "" : type); });
}

sardonyx_status* sardonyx_editor_remove_output(sardonyx_editor* editor, const char* name) {
  return guarded([&] { editor_of(editor).remove_output(&required(name, "name")); });
}

sardonyx_status* sardonyx_editor_set_initializer(sardonyx_editor* editor, const char* name,
                                                 const sardonyx_value* value) {
  return guarded([&] {
    ModelEditor& editing = editor_of(editor);
    const std::string of = &required(name, "name");
    if (value == nullptr) {
      editing.remove_initializer(of);
      return;
    }
    // The value's holder may write to it later.
    const Tensor& given = value_of(value, "value").tensor();
    Tensor copy(given.element_type(), given.shape());
    if (given.element_type() == ElementType::string) {
      const auto from = given.elements<std::string>();
      std::copy(from.begin(), from.end(), copy.mutable_elements<std::string>().begin());
    } else if (given.byte_size() > 0) {
      std::memcpy(copy.mutable_data(), given.data(), given.byte_size());
    }
    if (editing.has_initializer(of)) {
      editing.replace_initializer(of, copy);
    } else {
      editing.add_initializer(of, copy);
    }
  });
}
