// sardonyx convert
#include "sardonyx/convert.h"

#include <memory>

#include "arguments.h"
#include "commands.h"
#include "loading.h"
#include "saving.h"
#include "terminal.h"

namespace sardonyx::cli {
namespace {

struct ConvertCommand {
  std::string model;
  SavingOptions saving;
  ConvertOptions upgrade;
  std::vector<std::string> libraries;

  int run() const {
    const SaveOptions options = save_options(saving);
    require_known_ending(saving.output, model);
    LoadOptions load_options;
    load_options.libraries = libraries;
    load_options.trusted_folder = options.trusted_folder;
    Saved saved;
    {
      const Progress progress("converting " + model);
      name_mapped_file(model);
      const Model result = upgrade.opset == 0
                               ? load_file(model, options)
                               : convert_version(Model(model, load_options), upgrade);
      saved = result.save(saving.output, options);
    }
    report_saved(saving, saved);
    return ok;
  }
};

}  // namespace

void add_convert(const Options& app, Action& action) {
  auto command = std::make_shared<ConvertCommand>();
  const Options convert = app.add_command(
      "convert", "Write a model in another form, in another opset, or with its weights elsewhere");
  add_model_argument(convert, "MODEL", command->model, "The model, in any form");
  add_saving_options(convert, command->saving);
  const auto opset = convert
                         .add_option("--opset", command->upgrade.opset,
                                     "Bring every node to this version of ai.onnx, newer or older")
                         .check(whole_number(1))
                         .type_name("N");
  convert
      .add_flag("--assume-inference", command->upgrade.assume_inference,
                "BatchNormalization and Dropout up to opset 6 without is_test do not train")
      .needs(opset);
  add_library_option(convert, command->libraries);
  convert.option("--library").needs(opset);
  convert.on_chosen([command, &action] { action = [command] { return command->run(); }; });
}

}  // namespace sardonyx::cli
