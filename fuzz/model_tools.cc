#include "model_tools.h"

#include <cstdlib>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "compose/extract.h"
#include "compose/merge.h"
#include "compose/rename.h"
#include "sardonyx/compose.h"
#include "sardonyx/convert.h"
#include "sardonyx/edit.h"
#include "sardonyx/info.h"
#include "target.h"
#include "tools/diff.h"
#include "tools/drawing.h"
#include "tools/saving.h"
#include "wire/named_forms.h"
#include "wire/read.h"
#include "wire/text_parse.h"
#include "wire/text_print.h"
#include "wire/write.h"

namespace sardonyx::fuzzing {
namespace {

namespace fs = std::filesystem;

Bytes borrowed(std::string_view text) {
  return Bytes(nullptr, reinterpret_cast<const std::byte*>(text.data()), text.size());
}

// What a tool makes, or nothing where it refuses, which is no defect of our own.
template <class Tool>
void answer(const Tool& tool) {
  try {
    tool();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal) std::fprintf(stderr, "%s\n", error.what());
    require(error.code() != ErrorCode::internal, "no error of a tool is a defect of our own");
  }
}

// What was written by us can be read, and is the same.
template <class Read>
void stays(const std::string& first, const char* what, const Read& read_and_write) {
  try {
    require(read_and_write() == first, what);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    require(false, what);
  }
}

void try_binary(const ir::Model& model) {
  const std::string bytes = wire::write_model(model);
  stays(bytes, "a model that was written reads the same",
        [&] { return wire::write_model(wire::read_model(borrowed(bytes))); });
}

// From the model to text and back, and from there to bytes and back to the text.
void try_text(const ir::Model& model) {
  const std::string text = wire::print(model);
  stays(text, "text that was printed reads the same",
        [&] { return wire::print(wire::parse_model(text)); });
  answer([&] {
    const std::string bytes = wire::write_model(wire::parse_model(text));
    stays(text, "bytes of a text are that text again",
          [&] { return wire::print(wire::read_model(borrowed(bytes))); });
  });
}

void try_named(const ir::Model& model) {
  for (const auto form : {wire::NamedForm::json, wire::NamedForm::textproto}) {
    answer([&] {
      const std::string text = wire::named_text(model, form);
      const ir::Model read = wire::read_named_model(text, form);
      stays(text, "JSON and text format are read the same", [&] {
        return wire::named_text(wire::read_model(borrowed(wire::write_model(read))), form);
      });
    });
  }
}

std::vector<std::string> some_values(const ir::Graph& graph, Random& random) {
  std::vector<std::string> names;
  for (size_t count = below(random, 4); count > 0; --count)
    names.push_back(any_value(graph, random));
  return names;
}

MergeOptions merging(const ir::Graph& graph, Random& random) {
  MergeOptions options;
  if (below(random, 4) != 0) options.second_prefix = "second_";
  if (!graph.outputs.empty() && !graph.inputs.empty())
    options.connections.emplace_back(graph.outputs[below(random, graph.outputs.size())].name,
                                     graph.inputs[below(random, graph.inputs.size())].name);
  return options;
}

compose::MergeOptions inner(const MergeOptions& options) {
  return {.connections = options.connections,
          .first_prefix = options.first_prefix,
          .second_prefix = options.second_prefix,
          .outputs = options.outputs};
}

compose::Renaming renaming(const ir::Model& model, Random& random) {
  compose::Renaming names = compose::prefixed(model, "p_");
  if (below(random, 2) == 0) names.values.clear();
  const std::string to = below(random, 2) == 0 ? "new" : any_value(*model.graph, random);
  names.values[any_value(*model.graph, random)] = to;
  return names;
}

void try_composing(const ir::Model& model, Random& random) {
  const ir::Graph& graph = *model.graph;
  answer([&] {
    try_binary(compose::extract(model, some_values(graph, random), some_values(graph, random)));
  });
  answer([&] { try_binary(compose::merge(model, model, inner(merging(graph, random)))); });
  answer([&] {
    ir::Model renamed = model;
    compose::rename(renamed, renaming(model, random));
    try_binary(renamed);
    (void)diff(model, renamed);
  });
  require(diff(model, model).same(), "a model is no other one than itself");
}

void try_drawings(const ir::Model& model) {
  for (const DrawingForm form : {DrawingForm::dot, DrawingForm::svg})
    answer([&] { draw_model(model, form, [](std::string_view) {}); });
}

// A folder for the files of this process, which is empty again when it ends.
class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "sardonyx-fuzz-XXXXXX").string();
    require(mkdtemp(pattern.data()) != nullptr, "there is a folder for files");
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string file(std::string_view name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

constexpr std::string_view endings[] = {".onnx", ".onnxtxt", ".json", ".textproto"};

// A name that the model has, or none of its.
std::string some_name(const Model& model, Random& random) {
  std::vector<std::string> names{"", "new"};
  if (model.has_graph()) {
    for (const ValueInfoView& input : model.graph().inputs()) names.emplace_back(input.name());
    for (const ValueInfoView& output : model.graph().outputs()) names.emplace_back(output.name());
    for (const TensorView& tensor : model.graph().initializers()) names.emplace_back(tensor.name());
    for (const NodeView& node : model.graph().nodes()) {
      for (const std::string& output : node.outputs()) names.push_back(output);
    }
  }
  return names[below(random, names.size())];
}

void edit_once(ModelEditor& editor, const Model& model, Random& random) {
  const std::string name = some_name(model, random);
  switch (below(random, 13)) {
    case 0: editor.set_producer("somebody", "1"); break;
    case 1: editor.set_graph_name(""); break;
    case 2: editor.set_ir_version(static_cast<int64_t>(random())); break;
    case 3: editor.set_metadata("key", "value"); break;
    case 4: editor.remove_metadata("key"); break;
    case 5: editor.set_type(name, "float[n,3]"); break;
    case 6: editor.set_dimension(name, static_cast<int64_t>(below(random, 3)), 7); break;
    case 7: editor.add_input(name, "seq(int64[n])"); break;
    case 8: editor.remove_input(name); break;
    case 9: editor.add_output(name); break;
    case 10: editor.remove_output(name); break;
    case 11: editor.add_initializer(name, Tensor::scalar(1.0f)); break;
    default: editor.remove_initializer(name); break;
  }
}

Model edited(const Model& model, Random& random) {
  ModelEditor editor(model);
  for (size_t count = below(random, 8); count > 0; --count)
    answer([&] { edit_once(editor, model, random); });
  return editor.finish();
}

SaveOptions saving(Random& random) {
  SaveOptions options;
  options.embed = below(random, 4) == 0;
  if (!options.embed && below(random, 3) == 0) {
    options.external_data = "weights.bin";
    options.threshold = below(random, 32);
    options.alignment = size_t{1} << below(random, 8);
    options.checksum = below(random, 2) == 0;
  }
  return options;
}

// What the program does with files.
void try_files(const ir::Model& model, Random& random) {
  static const Folder folder;
  const std::string from = folder.file("from" + std::string(endings[below(random, 4)])),
                    to = folder.file("to" + std::string(endings[below(random, 4)]));
  answer([&] {
    save_model(model, from);
    const Model read(from, {.load_external_data = false});
    const compose::Renaming names = renaming(model, random);
    const auto made = [&] {
      switch (below(random, 7)) {
        case 0: return edited(read, random);
        case 1: return merge(read, read, merging(*model.graph, random));
        case 2:
          return rename(read, {.values = names.values,
                               .nodes = names.nodes,
                               .dimensions = names.dimensions,
                               .functions = names.functions,
                               .prefix = "q_"});
        case 3:
          return extract(read, some_values(*model.graph, random),
                         some_values(*model.graph, random));
        case 4: return inline_functions(read);
        default: return read;
      }
    };
    made().save(to, saving(random));
    (void)model_info(to);
    const Model written(to, {.load_external_data = false});
    written.write_text([](std::string_view) {}, {.max_elements = 8});
    written.save(from, {.embed = true});
  });
}

}  // namespace

void try_tools(const ir::Model& model, Random& random) {
  try_text(model);
  try_named(model);
  try_composing(model, random);
  if (below(random, 4) == 0) try_drawings(model);
  if (below(random, 4) == 0) try_files(model, random);
}

}  // namespace sardonyx::fuzzing
