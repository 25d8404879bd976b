// Model files: reading, looking at, changing and writing them.
//
//   sardonyx::Model model("model.onnx");
//   for (const auto& input : model.graph().inputs()) std::cout << input.name() << '\n';
//   model.save("model.onnxtxt");
//
// Changing a model: sardonyx/edit.h; checking: sardonyx/check.h; other versions:
// sardonyx/convert.h; parts, merging, comparing: sardonyx/compose.h; types of its values:
// sardonyx/infer.h; running: sardonyx/session.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sardonyx/error.h"
#include "sardonyx/graph.h"

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

class CustomOperators;

// What was found that does not keep a model from being used. Texts are for people; `rule` is that
// of the checker (docs/checker.md), or empty.
struct Warning {
  std::string rule = {};     // "G-03"
  std::string place = {};    // "graph 'main', node 3 Softmax 'probs'"
  std::string message = {};  // what was found
  std::string advice = {};   // what was made of it, or what to do
  // "graph 'main', node 3 Softmax 'probs': …; … [G-03]"
  std::string to_string() const;
};

// The forms of a model file: the standard's binary form (protobuf) and textual syntax
// (docs/text_syntax.md), and protobuf's two readable forms, JSON and text format. What is read as
// binary may also be in ONNX Runtime's own format (.ort), which is recognised by its content.
enum class ModelForm { binary, text, json, textproto };

// By the end of the name: .onnxtxt, .json, .textproto (.pbtxt, .prototxt); binary for any other.
ModelForm form_of(const std::string& path);

// What `memory_limit` of LoadOptions, SessionOptions and InferOptions holds down is what files can
// make grow: the messages that are read and copies of them, bytes of files that are read instead of
// mapped, nodes that upgrades, functions and gradients add, what inference knows of values, folded
// constants, the steps of plans, the packed forms of weights (whether a run has packed them yet or
// not) and lists of results. It is counted before it is allocated, or a few kilobytes later, by
// sizes of the structs; what an allocator adds, mapped files, threads, and what does not depend on
// the model (about 10 MB) do not count. Where the limit is reached: Error (out_of_memory), with
// the node or the field of the file.

struct LoadOptions {
  // Refuse a model that breaks a rule of the standard in a way that leaves no doubt of what it
  // means (nodes out of order, an operator set that is used and not imported: docs/lenient.md).
  // Otherwise it is mended in memory, and `warn` is told of each rule.
  bool strict = false;
  // Called once for each warning, from within the call that finds it: for what was mended, and of
  // values that inference contradicts the declaration of, when the first session of the model is
  // made; of outputs that are not what the model declares, and of scalars that are given with
  // dimensions around them, from a run, once for each output and input of a session. It may be
  // called from several threads at a time where sessions of the model run on several. Warnings
  // without it are dropped.
  std::function<void(const Warning&)> warn = {};
  // A folder that links of external data may lead into; links are refused otherwise.
  std::string trusted_folder = {};
  // Read the file instead of mapping it: for files that somebody may truncate meanwhile.
  bool read_into_memory = false;
  // Operator set documents (files). What they define is there for models that import the domain
  // and version of the document.
  std::vector<std::string> operator_sets = {};
  // Operators beside those of Sardonyx that the model may call (sardonyx/custom.h), and libraries
  // (files) with more of them: code of a library runs from here on, so only ever name what you
  // trust. A model never names one itself.
  std::shared_ptr<const CustomOperators> custom_operators = nullptr;
  std::vector<std::string> libraries = {};
  // Most bytes that reading, judging and mending may take, and the model may hold; 0: any number.
  int64_t memory_limit = 0;
  // Make external data a part of the model: its files must be there, are mapped, and `save` writes
  // their data into the new file. False: for tools. Tensors keep saying where their data is, which
  // need not be there; the first session brings it in. The file stays open as long as the model.
  bool load_external_data = true;
  // How the bytes are to be read. Unset: a file by the end of its name, memory and streams as
  // binary.
  std::optional<ModelForm> form = std::nullopt;
};

struct SaveOptions {
  // The file beside the model that takes the larger tensors, a plain file name; empty: tensors stay
  // where they are. Not together with `embed`. (IR.md, "External Tensor Data")
  std::string external_data = {};
  uint64_t threshold = 1024;  // bytes: smaller tensors stay in the model file
  uint64_t alignment = 4096;  // each tensor of the data file begins at a multiple of this
  bool checksum = false;      // state the SHA-1 digest of the data file with each tensor
  // Put all external data into the model file.
  bool embed = false;
  // Of the external data that is read.
  bool verify_checksums = false;
  std::string trusted_folder = {};  // as in LoadOptions, for external data that is read here
  // Unset: by the end of the name, which has to be one of a model file (.onnx, .pb, .onnxtxt,
  // .json, .textproto, .pbtxt, .prototxt) or of a drawing (.svg, .dot, .gv), or to have no end.
  std::optional<ModelForm> form = std::nullopt;

  // Whether it says where external data is to be.
  bool moves_data() const { return embed || !external_data.empty(); }
};

struct Saved {
  uint64_t model_bytes = 0;
  uint64_t data_bytes = 0;           // of the external data file that was written
  std::vector<std::string> notes{};  // what the caller should know: a file that others can't read
};

struct TextOptions {
  // Tensors with more elements are cut, which makes the text unreadable for parsers.
  size_t max_elements = static_cast<size_t>(-1);
  // What models hold beyond the standard's syntax, on "#@" lines, which other parsers skip.
  bool annotations = true;
};

// Drawings of a model: DOT for Graphviz, and SVG with a layout of our own.
enum class DrawingForm { dot, svg };
// By the end of the name: .dot (.gv), .svg.
std::optional<DrawingForm> drawing_form_of(std::string_view path);

// Takes a text piece by piece.
using TextSink = std::function<void(std::string_view piece)>;
// Gives up to `size` bytes into `buffer` and returns how many; 0 at the end. It may throw.
using ByteSource = std::function<size_t(void* buffer, size_t size)>;

// A model, as a file holds it: read only, ready to make sessions of. Cheap to copy; copies and the
// sessions made from them share the file's bytes and the packed forms of its weights; sessions with
// the same options share all that preparing makes, while one of them lives, so that the second one
// is there in microseconds. May be used from any thread. What changes a model returns another one,
// which shares the weights.
class Model {
 public:
  // Maps and reads a file, external data beside it. Throws Error (unreadable), (invalid_model).
  explicit Model(const std::string& path, const LoadOptions& options = {});
  // Reads from memory, which is copied unless `owner` keeps it alive. `folder` is where external
  // data is looked for; empty: nowhere.
  Model(const void* data, size_t size, std::string folder = {},
        std::shared_ptr<const void> owner = nullptr, const LoadOptions& options = {});
  // Parses ONNX's textual syntax. Throws Error (invalid_model) with line and column.
  static Model from_text(std::string_view text, const LoadOptions& options = {});
  // Reads a stream to its end, and then as from memory. What `read` throws passes through; Error
  // (bad_input) where it says that it gave more than it was asked for.
  static Model from_stream(const ByteSource& read, std::string folder = {},
                           const LoadOptions& options = {});
  // Moving is copying: there is always a model behind one.
  Model(const Model&) = default;
  Model& operator=(const Model&) = default;

  // The file it was read from; empty for others. Where external data lies: the file's folder, or
  // what the caller said. Both stay valid as long as a copy of the model lives.
  const std::string& path() const;
  const std::string& folder() const;

  // Header (IR.md, "Models"). Views into the model, valid as long as a copy of it lives.
  std::optional<int64_t> ir_version() const;
  std::string_view producer_name() const;
  std::string_view producer_version() const;
  std::string_view domain() const;
  int64_t model_version() const;
  std::string_view doc_string() const;
  ViewList<EntryView> metadata() const;
  // The value of a key of the metadata; nothing where there is no such key.
  std::optional<std::string_view> metadata(std::string_view key) const;
  ViewList<OpsetImportView> opset_imports() const;
  // The version of a domain ("" and "ai.onnx" are one) that it imports; 0 where it does not.
  int64_t opset(std::string_view domain = {}) const;

  // Whether it has a main graph, which a model must have to be anything but metadata.
  bool has_graph() const;
  // Throws Error (invalid_model) where there is none.
  GraphView graph() const;
  ViewList<FunctionView> functions() const;
  bool has_training_info() const;
  // Whether tensors say that their data is in other files: not once that has been brought in.
  bool has_external_data() const;

  // The same model with its external data as a part of it, if that was left where it is
  // (LoadOptions::load_external_data). `verify_checksums`: compare the files with the SHA-1 digests
  // that the model states. Throws Error (unreadable), (invalid_model).
  Model with_external_data(bool verify_checksums = false) const;

  // Calls `visit` for each node of the model, in the order of the file: those of the main graph,
  // of training, and of functions, each followed by those of the graphs inside it. No depth of
  // nesting exhausts the stack. `visit` returns false to stop.
  void for_each_node(
      const std::function<bool(const NodePlace& place, const NodeView& node)>& visit) const;

  // Writes a file that appears whole or not at all, as does the file of external data. Memory use
  // does not grow with the weights. A model with external data that is to stay where it is can
  // only be written into the folder the data is in. The path may be the model's own. Throws Error:
  // (bad_input) where the options, the place or the ending do not fit the model, (unreadable)
  // where a file can't be read or written.
  Saved save(const std::string& path, const SaveOptions& options = {}) const;
  // The file's bytes. External data that has not been brought in stays outside.
  std::string to_bytes(ModelForm form = ModelForm::binary) const;
  // The same piece by piece, in memory that does not grow with the weights.
  void write(const TextSink& sink, ModelForm form = ModelForm::binary) const;

  // ONNX's textual syntax.
  std::string to_text(const TextOptions& options = {}) const;
  void write_text(const TextSink& sink, const TextOptions& options = {}) const;
  // To a file of any name, which appears when it is whole. Throws Error (unreadable).
  void save_text(const std::string& path, const TextOptions& options = {}) const;
  // The JSON of protobuf's proto3 mapping. Throws Error (unsupported) for strings that are no
  // UTF-8.
  std::string to_json() const { return to_bytes(ModelForm::json); }

  // Draws the main graph, the bodies of its nodes inside them, and the functions beside it, with
  // operators, names, attributes and types, also those that are inferred where that succeeds.
  std::string to_drawing(DrawingForm form) const;
  void draw(const TextSink& sink, DrawingForm form) const;
  void save_drawing(const std::string& path, DrawingForm form) const;

  // For the library's own programs; not part of the stable interface.
  struct [[gnu::visibility("hidden")]] Implementation;
  const Implementation& implementation() const { return *implementation_; }
  std::shared_ptr<const Implementation> share() const { return implementation_; }

 private:
  friend struct ModelMaker;
  Model() = default;
  std::shared_ptr<const Implementation> implementation_;
};

// What to say where a model can't be written to a file of this name, because its ending is none
// that says how; empty where it can. Streams, devices and names without an ending get the binary
// form, and so does `source`, the file that was read (empty: none).
std::string ending_problem(const std::string& path, const std::string& source = {});

}  // namespace sardonyx

#pragma GCC visibility pop
