// sardonyx extract, sardonyx merge, sardonyx rename, sardonyx edit
#include "sardonyx/compose.h"

#include <functional>
#include <memory>
#include <optional>

#include "arguments.h"
#include "commands.h"
#include "loading.h"
#include "sardonyx/edit.h"
#include "saving.h"
#include "terminal.h"

namespace sardonyx::cli {
namespace {

// What all four do: `make` gives the result, which is then written and told.
int carry_out(const std::string& model, const SavingOptions& saving, std::string_view doing,
              const std::function<Model(const SaveOptions&)>& make) {
  const SaveOptions options = save_options(saving);
  require_known_ending(saving.output, model);
  Saved saved;
  {
    const Progress progress(std::string(doing) + " " + model);
    name_mapped_file(model);
    saved = make(options).save(saving.output, options);
  }
  report_saved(saving, saved);
  return ok;
}

struct ExtractCommand {
  std::string model;
  std::vector<std::string> inputs, outputs;
  SavingOptions saving;

  int run() const {
    return carry_out(model, saving, "extracting from", [&](const SaveOptions& options) {
      return extract(load_file(model, options), inputs, outputs);
    });
  }
};

struct MergeCommand {
  std::string first, second;
  std::vector<std::string> maps;
  MergeOptions merging;
  SavingOptions saving;

  int run() {
    for (const std::string& map : maps)
      merging.connections.push_back(split_pair(map, "--map", "OUT=IN"));
    return carry_out(first, saving, "merging", [&](const SaveOptions& options) {
      const auto load = [&](const std::string& path) {
        const Model model = load_file(path, options);
        return options.moves_data() ? model.with_external_data(options.verify_checksums) : model;
      };
      return merge(load(first), load(second), merging);
    });
  }
};

struct RenameCommand {
  std::string model, prefix;
  std::vector<std::string> values, nodes, dimensions, functions;
  SavingOptions saving;

  int run() const {
    Renaming renaming;
    const auto add = [](auto& to, const std::vector<std::string>& pairs, std::string_view option) {
      for (const std::string& pair : pairs) {
        const auto [from, name] = split_pair(pair, option, "OLD=NEW");
        if (!to.try_emplace(from, name).second)
          throw UsageError(std::string(option) + ": '" + from + "' is renamed twice");
      }
    };
    add(renaming.values, values, "--value");
    add(renaming.nodes, nodes, "--node");
    add(renaming.dimensions, dimensions, "--dim");
    add(renaming.functions, functions, "--function");
    renaming.prefix = prefix;
    if (prefix.empty() && values.empty() && nodes.empty() && dimensions.empty() &&
        functions.empty())
      throw UsageError(
          "nothing to rename: give --value, --node, --dim or --function OLD=NEW, or "
          "--prefix; see 'sardonyx rename --help'");
    return carry_out(model, saving, "renaming in", [&](const SaveOptions& options) {
      return rename(load_file(model, options), renaming);
    });
  }
};

// What a model says of itself. What is not set stays.
struct ModelEdits {
  std::optional<std::string> producer_name, producer_version, domain, doc_string, graph_name;
  std::optional<int64_t> model_version, ir_version;
  std::vector<std::pair<std::string, std::string>> set_metadata;
  std::vector<std::string> remove_metadata;

  Model apply(const Model& model) const {
    ModelEditor editor(model);
    if (producer_name) editor.set_producer_name(*producer_name);
    if (producer_version) editor.set_producer_version(*producer_version);
    if (domain) editor.set_domain(*domain);
    if (doc_string) editor.set_doc_string(*doc_string);
    if (model_version) editor.set_model_version(*model_version);
    if (ir_version) editor.set_ir_version(*ir_version);
    if (graph_name) editor.set_graph_name(*graph_name);
    for (const std::string& key : remove_metadata) editor.remove_metadata(key);
    for (const auto& [key, value] : set_metadata) editor.set_metadata(key, value);
    return editor.finish();
  }
};

struct EditCommand {
  std::string model;
  ModelEdits edits;
  std::vector<std::string> set;
  SavingOptions saving;

  int run() {
    for (const std::string& pair : set) {
      const size_t at = pair.find('=');
      if (at == std::string::npos || at == 0)
        throw UsageError("--set-metadata: '" + pair + "' must be of the form KEY=VALUE");
      edits.set_metadata.emplace_back(pair.substr(0, at), pair.substr(at + 1));
    }
    const ModelEdits& e = edits;
    if (!e.producer_name && !e.producer_version && !e.domain && !e.doc_string && !e.graph_name &&
        !e.model_version && !e.ir_version && e.set_metadata.empty() && e.remove_metadata.empty())
      throw UsageError("nothing to edit: say what to change; see 'sardonyx edit --help'");
    return carry_out(model, saving, "editing", [&](const SaveOptions& options) {
      return edits.apply(load_file(model, options));
    });
  }
};

template <class Command>
void offer(const Options& app, const std::shared_ptr<Command>& command, Action& action) {
  app.on_chosen([command, &action] { action = [command] { return command->run(); }; });
}

}  // namespace

void add_extract(const Options& app, Action& action) {
  auto command = std::make_shared<ExtractCommand>();
  const Options extract =
      app.add_command("extract", "Cut a part out of a model, by names of values");
  add_model_argument(extract, "MODEL", command->model, "The model, in any form");
  extract.add_option("--input", command->inputs, "A value that the part is given; repeatable")
      .one_value_each()
      .type_name("NAME");
  extract.add_option("--output", command->outputs, "A value that it makes; repeatable")
      .one_value_each()
      .required()
      .type_name("NAME");
  add_saving_options(extract, command->saving);
  offer(extract, command, action);
}

void add_merge(const Options& app, Action& action) {
  auto command = std::make_shared<MergeCommand>();
  const Options merge =
      app.add_command("merge", "Join two models: outputs of the first feed the second");
  add_model_argument(merge, "FIRST", command->first, "The first model");
  add_model_argument(merge, "SECOND", command->second, "The second model");
  merge.add_option("--map", command->maps, "An output of the first and the input it feeds")
      .one_value_each()
      .type_name("OUT=IN");
  merge.add_option("--prefix1", command->merging.first_prefix, "Before the first model's names");
  merge.add_option("--prefix2", command->merging.second_prefix, "Before the second model's names");
  merge
      .add_option("--output", command->merging.outputs,
                  "An output of the result, by its new name; all that nothing uses up without it")
      .one_value_each()
      .type_name("NAME");
  add_saving_options(merge, command->saving);
  offer(merge, command, action);
}

void add_rename(const Options& app, Action& action) {
  auto command = std::make_shared<RenameCommand>();
  const Options rename = app.add_command("rename", "Give values, nodes or dimensions other names");
  add_model_argument(rename, "MODEL", command->model, "The model, in any form");
  const auto pairs = [&](const char* option, std::vector<std::string>& to, const char* what) {
    rename.add_option(option, to, what).one_value_each().type_name("OLD=NEW");
  };
  pairs("--value", command->values, "A value, wherever it occurs; repeatable");
  pairs("--node", command->nodes, "A node");
  pairs("--dim", command->dimensions, "A named dimension, or one of an input: image.2");
  pairs("--function", command->functions, "A function of the model, with its calls");
  rename.add_option("--prefix", command->prefix, "Before the names of all values and nodes");
  add_saving_options(rename, command->saving);
  offer(rename, command, action);
}

void add_edit(const Options& app, Action& action) {
  auto command = std::make_shared<EditCommand>();
  ModelEdits& edits = command->edits;
  const Options edit = app.add_command("edit", "Change what a model says of itself");
  add_model_argument(edit, "MODEL", command->model, "The model, in any form");
  edit.add_option("--producer", edits.producer_name, "What made it");
  edit.add_option("--producer-version", edits.producer_version, "The version of that");
  edit.add_option("--domain", edits.domain, "Reversed DNS name of who answers for it");
  edit.add_option("--model-version", edits.model_version, "The version of the model")
      .check(whole_number())
      .type_name("N");
  edit.add_option("--ir-version", edits.ir_version,
                  "The IR version it claims; what is in it does not change")
      .check(whole_number(1))
      .type_name("N");
  edit.add_option("--doc", edits.doc_string, "Its documentation");
  edit.add_option("--graph-name", edits.graph_name, "The name of the main graph");
  edit.add_option("--set-metadata", command->set, "Metadata to add or replace; repeatable")
      .one_value_each()
      .type_name("KEY=VALUE");
  edit.add_option("--remove-metadata", edits.remove_metadata, "Metadata to remove; repeatable")
      .one_value_each()
      .type_name("KEY");
  add_saving_options(edit, command->saving);
  offer(edit, command, action);
}

}  // namespace sardonyx::cli
