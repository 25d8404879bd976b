// Changing what a model says.
//
//   sardonyx::ModelEditor editor(model);
//   editor.set_producer("exporter", "1.2").set_metadata("license", "MIT").set_type("x",
//   "float[8,3]"); editor.finish().save("edited.onnx");
//
// Names of values, nodes and dimensions: rename() of sardonyx/compose.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "sardonyx/model.h"
#include "sardonyx/value.h"

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

// A copy of a model's messages that can be changed; weights are shared. The model it is made of
// stays as it is. Each function either does what it says, or throws Error and has changed nothing.
// Move-only; one thread at a time. Whether the result obeys the standard is for check_model to say.
class ModelEditor {
 public:
  // Throws Error (out_of_memory) where the model has a limit that the copy goes beyond.
  explicit ModelEditor(const Model& model);
  ~ModelEditor();
  ModelEditor(ModelEditor&&) noexcept;
  ModelEditor& operator=(ModelEditor&&) noexcept;

  // What the model says of itself (IR.md, "Models").
  ModelEditor& set_ir_version(int64_t version);
  ModelEditor& set_producer_name(std::string name);
  ModelEditor& set_producer_version(std::string version);
  ModelEditor& set_producer(std::string name, std::string version) {
    return set_producer_name(std::move(name)).set_producer_version(std::move(version));
  }
  ModelEditor& set_domain(std::string domain);
  ModelEditor& set_model_version(int64_t version);
  ModelEditor& set_doc_string(std::string text);
  // Adds metadata, or replaces that of the key. Throws Error (bad_input) for an empty key.
  ModelEditor& set_metadata(std::string_view key, std::string value);
  // Throws Error (bad_input) where there is none of this key.
  ModelEditor& remove_metadata(std::string_view key);
  // The version of a domain's operators. Nodes stay as they are: convert_version (convert.h)
  // carries them up. Throws Error (bad_input) for a version below 1.
  ModelEditor& set_opset_import(std::string_view domain, int64_t version);

  // The main graph. All that follow throw Error (invalid_model) where the model has none, and
  // (bad_input) for names that are empty, unknown or taken, and for types that are none.
  ModelEditor& set_graph_name(std::string name);

  // Types are written as in the textual syntax: "float[batch,3,224,224]", "seq(int64[n])".
  // The declared type of an input, of an output, or of a value in between.
  ModelEditor& set_type(std::string_view value, std::string_view type);
  // One dimension of an input's or output's declared shape: a number, or a name ("" leaves it
  // open).
  ModelEditor& set_dimension(std::string_view value, int64_t axis, int64_t size);
  ModelEditor& set_dimension(std::string_view value, int64_t axis, std::string_view name);

  // What an input's or output's type, or one dimension of its shape, stands for: "IMAGE",
  // "DATA_BATCH" (TypeDenotation.md, DimensionDenotation.md); "" for nothing.
  ModelEditor& set_denotation(std::string_view value, std::string denotation);
  ModelEditor& set_denotation(std::string_view value, int64_t axis, std::string denotation);

  // Inputs come last; one whose name is that of an initializer makes it a default. Removed are
  // those that nothing reads, or whose initializer then takes their place.
  ModelEditor& add_input(std::string_view name, std::string_view type);
  ModelEditor& remove_input(std::string_view name);
  // A value of the main graph as an output, after the others. Without a type: that which the model
  // declares or inference finds.
  ModelEditor& add_output(std::string_view name, std::string_view type = {});
  ModelEditor& remove_output(std::string_view name);

  bool has_initializer(std::string_view name) const;  // a dense one
  // Elements are shared with the tensor, which must not be changed any more. A replaced one keeps
  // its name and documentation; other shapes and types are taken.
  ModelEditor& add_initializer(std::string_view name, const Tensor& tensor);
  ModelEditor& replace_initializer(std::string_view name, const Tensor& tensor);
  // Throws Error (bad_input) where something reads it and no input of its name stays.
  ModelEditor& remove_initializer(std::string_view name);

  // The model as it is now. The editor may go on; what it changes later is another model's.
  Model finish() const;

 private:
  struct [[gnu::visibility("hidden")]] State;
  std::unique_ptr<State> state_;
};

}  // namespace sardonyx

#pragma GCC visibility pop
