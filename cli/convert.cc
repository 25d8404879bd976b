// sardonyx convert
#include <memory>

#include "commands.h"
#include "loading.h"
#include "saving.h"
#include "terminal.h"

namespace sardonyx::cli {
namespace {

struct ConvertCommand {
  std::string model;
  SavingOptions saving;

  int run() const {
    const SaveOptions options = save_options(saving);
    Saved saved;
    {
      const Progress progress("converting " + model);
      name_mapped_file(model);
      saved = convert_model(model, saving.output, options);
    }
    report_saved(saving, saved);
    return ok;
  }
};

}  // namespace

void add_convert(CLI::App& app, Action& action) {
  auto command = std::make_shared<ConvertCommand>();
  CLI::App* convert = app.add_subcommand(
      "convert", "Write a model in another form, or with its weights in another place");
  convert->add_option("MODEL", command->model, "The model, in any form")->required();
  add_saving_options(*convert, command->saving);
  convert->callback([command, &action] { action = [command] { return command->run(); }; });
}

}  // namespace sardonyx::cli
