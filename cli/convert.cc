// sardonyx convert
#include "session/convert.h"

#include <fmt/format.h>

#include <memory>

#include "commands.h"
#include "loading.h"
#include "session/print.h"
#include "terminal.h"

namespace sardonyx::cli {
namespace {

struct ConvertCommand {
  std::string model;
  std::string output;
  ConvertOptions options;

  int run() const {
    Converted done;
    {
      const Progress progress("converting " + model);
      name_mapped_file(model);
      done = convert_file(model, output, options);
    }
    emit(fmt::format("{}: opset {} to {}, {} nodes to {}\n", printable(output), done.from, done.to,
                     done.nodes_before, done.nodes_after));
    return ok;
  }
};

}  // namespace

void add_convert(CLI::App& app, Action& action) {
  auto command = std::make_shared<ConvertCommand>();
  CLI::App* convert =
      app.add_subcommand("convert", "Write a model of an older opset in a newer one");
  convert->add_option("MODEL", command->model, "The model")->required();
  convert->add_option("OUTPUT", command->output, "The file to write")->required();
  convert->add_option("--opset", command->options.opset, "Of ai.onnx; the newest without it")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  convert->add_flag("--assume-inference", command->options.assume_inference,
                    "BatchNormalization and Dropout up to opset 6 without is_test do not train");
  convert->callback([command, &action] { action = [command] { return command->run(); }; });
}

}  // namespace sardonyx::cli
