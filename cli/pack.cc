// sardonyx pack
#include <fmt/format.h>

#include <memory>

#include "arguments.h"
#include "commands.h"
#include "fail.h"
#include "loading.h"
#include "sardonyx/packing.h"
#include "sardonyx/text.h"
#include "terminal.h"

namespace sardonyx::cli {
namespace {

using json = nlohmann::ordered_json;
constexpr size_t shown_differences = 20;

struct PackCommand {
  LoadingOptions loading;
  std::string output;
  bool verify = false, as_json = false;

  int run() const;

 private:
  int write(const Model& model) const;
  int compare(const Model& model) const;
};

int PackCommand::write(const Model& model) const {
  PackedModel packed;
  {
    const Progress progress("packing " + loading.model);
    packed = pack_model(model, output, planning_options(loading));
  }
  if (as_json) {
    emit_json({{"model", loading.model},
               {"output", output},
               {"forms", packed.forms},
               {"bytes", packed.bytes}});
  } else {
    emit(fmt::format("{}: {} packed weights, {} bytes\n", printable(output), packed.forms,
                     packed.bytes));
  }
  return ok;
}

int PackCommand::compare(const Model& model) const {
  PackedComparison comparison;
  {
    const Progress progress("verifying " + output);
    comparison = compare_packed(model, output, planning_options(loading));
  }
  const auto& differences = comparison.differences;
  if (as_json) {
    json report = {{"model", loading.model},
                   {"output", output},
                   {"forms", comparison.forms},
                   {"differences", json::array()}};
    for (const PackedDifference& one : differences)
      report["differences"].push_back({{"form", one.form}, {"what", one.what}});
    emit_json(report);
  } else {
    std::string text;
    for (size_t i = 0; i < std::min(differences.size(), shown_differences); ++i)
      text += fmt::format("{}: {}\n", differences[i].form, differences[i].what);
    if (differences.size() > shown_differences)
      text += fmt::format("and {} more\n", differences.size() - shown_differences);
    text += fmt::format("{}: {} packed weights and the optimised graph compared, {}\n",
                        printable(output), comparison.forms,
                        differences.empty() ? "all as packing gives them"
                                            : fmt::format("{} differ", differences.size()));
    emit(text);
  }
  return differences.empty() ? ok : findings;
}

int PackCommand::run() const {
  if (!output.ends_with(".sdx"))
    throw UsageError(fmt::format("--output {}: files of packed weights end in .sdx", output));
  if (loading.reference) throw UsageError("reference runs pack no weights");
  name_mapped_file(loading.model);
  const Model model = load_model(loading);
  return verify ? compare(model) : write(model);
}

}  // namespace

void add_pack(const Options& app, Action& action) {
  auto command = std::make_shared<PackCommand>();
  const Options pack = app.add_command(
      "pack",
      "Write a model's weights as this processor's kernels read them, and its optimised graph, for "
      "--packed");
  add_loading_options(pack, command->loading);
  for (const char* name :
       {"--prepack", "--reference", "--flush-denormals", "--packed", "--cache-folder"})
    pack.remove_option(name);
  pack.add_option("-o,--output", command->output, "The file to write, MODEL.sdx")
      .required()
      .type_name("FILE");
  pack.add_flag("--verify", command->verify,
                "Write nothing: pack anew and compare all bytes with the file's");
  pack.add_flag("--json", command->as_json, "Print JSON");
  pack.on_chosen([command, &action] { action = [command] { return command->run(); }; });
}

}  // namespace sardonyx::cli
