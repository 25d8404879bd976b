#include "program.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <vector>

#include "memory.h"
#include "sardonyx/about.h"
#include "sardonyx/text.h"
#include "words.h"

namespace sardonyx::cli {
namespace {

constexpr Command commands[] = {
    {"run", add_run},
    {"check", add_check},
    {"info", add_info},
    {"infer", add_infer},
    {"show", add_show},
    {"explain", add_explain},
    {"bench", add_bench},
    {"profile", add_profile},
    {"convert", add_convert},
    {"diff", add_diff},
    {"extract", add_extract},
    {"merge", add_merge},
    {"rename", add_rename},
    {"edit", add_edit},
    {"pack", add_pack},
    {"opset", add_opset},
    {"make-trainable", add_make_trainable},
    {"train", add_train},
    {"help", add_help},
    {"completion", add_completion},
};

constexpr ExitMeaning exits[] = {
    {ok, "ok"},
    {findings, "findings or mismatch"},
    {usage, "usage"},
    {unreadable, "unreadable"},
    {invalid_model, "invalid model"},
    {unsupported, "unsupported"},
    {bad_input, "bad input"},
    {run_failed, "failure during the run"},
    {130, "training interrupted"},
};

constexpr Example example_lines[] = {
    {"run model.onnx --input x=x.npy", "run it, print the outputs"},
    {"run digits.onnx --input image=seven.png --labels labels.txt", "rank what an image shows"},
    {"run model.onnx --inputs test_data_set_0 --expect test_data_set_0",
     "compare with expected outputs"},
    {"info model.onnx", "what is in it"},
    {"infer model.onnx -o typed.onnx", "type and shape of every value"},
    {"check model.onnx --strict", "what is wrong with it"},
    {"profile model.onnx --html profile.html", "where its time goes"},
    {"convert old.onnx new.onnx --opset 21", "the same model in another opset"},
    {"make-trainable model.onnx -o t.onnx", "a training model of it"},
    {"train t.onnx --data d.npz -o new.onnx", "train it"},
};

std::string description_text() {
  std::string text = fmt::format("{}\n\n", program_summary);
  for (const Example& example : example_lines) {
    constexpr size_t column = 41;  // of the effects; longer commands stand alone
    text += fmt::format("  sardonyx {}\n",
                        example.command.size() > column
                            ? example.command
                            : fmt::format("{:{}} {}", example.command, column, example.effect));
  }
  text.pop_back();
  return text;
}

std::string exit_text() {
  std::string text = "Exit codes:";
  for (const ExitMeaning& exit : exits) {
    const char* separator = exit.code == 0 ? " " : exit.code == unsupported ? ",\n" : ", ";
    text += fmt::format("{}{} {}", separator, exit.code, exit.meaning);
  }
  return text + ".";
}

}  // namespace

std::span<const Command> all_commands() { return commands; }
std::span<const ExitMeaning> exit_meanings() { return exits; }
std::span<const Example> examples() { return example_lines; }

std::string version_text() {
  const About a = about();
  return fmt::format(
      "sardonyx {}\nONNX {}: IR version {}, ai.onnx {}, ai.onnx.ml {}, ai.onnx.preview.training "
      "{}; {} operators\n"
      "kernels for {}; PNG and JPEG {}\n",
      a.version, a.onnx_release, a.ir_version, a.opset, a.ml_opset, a.training_opset, a.operators,
      a.instruction_set, a.images ? "yes" : "no");
}

void define_program(CLI::App& app, Action& action, std::string& memory_limit,
                    std::string_view only) {
  app.name("sardonyx");
  app.description(description_text());
  app.set_version_flag(
      "--version", [] { return version_text(); }, "What this program is, and exit");
  app.set_help_flag("-h,--help", "This help, and exit");
  app.require_subcommand(1);
  const auto* named = std::ranges::find(commands, only, &Command::name);
  for (const Command& command : commands) {
    if (named == std::end(commands) || named == &command) command.add(Options(app), action);
  }
  for (CLI::App* command : app.get_subcommands({})) {
    command->footer(exit_text() + "\n");
    add_memory_option(Options(*command), memory_limit);
  }
  app.footer(exit_text() + " 'sardonyx COMMAND --help' says more.\n");
}

std::optional<std::string> help_text(std::string_view command) {
  CLI::App app;
  Action unused;
  std::string limit;
  define_program(app, unused, limit);
  if (command.empty()) return app.help();
  for (const CLI::App* known : app.get_subcommands({})) {
    if (known->get_name() == command) return known->help("sardonyx");
  }
  return std::nullopt;
}

std::string no_such_command(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Command& command : commands) names.push_back(command.name);
  const std::string_view close = closest(name, names);
  return fmt::format("there is no command '{}'{}", printable(name),
                     close.empty() ? "" : fmt::format("; did you mean '{}'?", close));
}

}  // namespace sardonyx::cli
