// sardonyx: ONNX models at the command line. docs/cli.md describes all of it.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "commands.h"
#include "failure.h"
#include "loading.h"
#include "memory.h"
#include "sardonyx/about.h"
#include "sardonyx/error.h"
#include "sardonyx/text.h"
#include "terminal.h"
#include "words.h"

namespace sardonyx::cli {
namespace {

// What the SIGBUS handler prints: it may not format.
char sigbus_message[1024];
char sigbus_report[8192];
ReportForm sigbus_form = ReportForm::text;

void on_sigbus(int) {
  [[maybe_unused]] ssize_t written =
      write(STDERR_FILENO, sigbus_message, std::strlen(sigbus_message));
  written = write(STDOUT_FILENO, sigbus_report, std::strlen(sigbus_report));
  _exit(unreadable);
}

void catch_sigbus() {
  name_mapped_file("");
  struct sigaction action {};
  action.sa_handler = on_sigbus;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
}

// What programs read goes to standard output, what people read to standard error.
int fail_with(const Failure& failure, ReportForm form) {
  fmt::print(stderr, "sardonyx: {}\n", failure.text());
  try {
    if (form != ReportForm::text) emit(failure_report(failure, form));
  } catch (const Error&) {  // standard output can't be written to: that may be the failure itself
  }
  return failure.exit_code;
}

std::string version_text() {
  const About a = about();
  return fmt::format(
      "sardonyx {}\nONNX {}: IR version {}, ai.onnx {}, ai.onnx.ml {}, ai.onnx.preview.training "
      "{}; {} operators\n"
      "kernels for {}; PNG and JPEG {}\n",
      a.version, a.onnx_release, a.ir_version, a.opset, a.ml_opset, a.training_opset, a.operators,
      a.instruction_set, a.images ? "yes" : "no");
}

constexpr const char* description =
    "Reads, checks, explains and runs ONNX models.\n\n"
    "  sardonyx run model.onnx --input x=x.npy            run it, print the outputs\n"
    "  sardonyx run digits.onnx --input image=seven.png --labels labels.txt\n"
    "  sardonyx run model.onnx --inputs test_data_set_0 --expect test_data_set_0\n"
    "  sardonyx info model.onnx                           what is in it\n"
    "  sardonyx infer model.onnx -o typed.onnx            type and shape of every value\n"
    "  sardonyx check model.onnx --strict                 what is wrong with it\n"
    "  sardonyx profile model.onnx --html profile.html    where its time goes\n"
    "  sardonyx convert old.onnx new.onnx --opset 21      the same model in a newer opset\n"
    "  sardonyx make-trainable model.onnx -o t.onnx       a training model of it\n"
    "  sardonyx train t.onnx --data d.npz -o new.onnx     train it";

constexpr const char* closing =
    "Exit codes: 0 ok, 1 findings or mismatch, 2 usage, 3 unreadable, 4 invalid model,\n"
    "5 unsupported, 6 bad input, 7 failure during the run.";

struct Command {
  std::string_view name;
  void (*add)(CLI::App& app, Action& action);
};

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
};

std::string did_you_mean(std::string_view text, const std::vector<std::string_view>& names) {
  const std::string_view close = closest(text, names);
  return close.empty() ? "" : fmt::format("; did you mean '{}'?", close);
}

// "; run and bench have it": the other commands that have an option; "" where none has.
std::string others_with(const std::string& option) {
  CLI::App app;
  Action unused;
  std::vector<std::string> names;
  for (const Command& command : commands) {
    command.add(app, unused);
    if (app.get_subcommand(std::string(command.name))->get_option_no_throw(option) != nullptr)
      names.emplace_back(command.name);
  }
  if (names.empty()) return "";
  return fmt::format("; it is an option of {}", listed(names, std::size(commands)));
}

// What was typed that means nothing, and what may have been meant; CLI11 says it of the rest.
std::string misuse(const CLI::App& app, const CLI::App& shown, const CLI::ParseError& error) {
  std::vector<std::string> extra = app.remaining(true);
  std::stable_partition(extra.begin(), extra.end(),
                        [](const std::string& word) { return word.starts_with('-'); });
  std::vector<std::string_view> names;
  if (!extra.empty() && extra[0].starts_with('-')) {
    const std::string option = extra[0].substr(0, extra[0].find('='));
    std::vector<std::string> options;
    for (const CLI::Option* known : shown.get_options()) {
      for (const std::string& name : known->get_lnames()) options.push_back("--" + name);
    }
    names.assign(options.begin(), options.end());
    const std::string others = others_with(option);
    return fmt::format("there is no option '{}'{}", printable(option),
                       others.empty() ? did_you_mean(option, names) : others);
  }
  if (!extra.empty() && &app == &shown) {
    for (const Command& command : commands) names.push_back(command.name);
    return fmt::format("there is no command '{}'{}", printable(extra[0]),
                       did_you_mean(extra[0], names));
  }
  if (!extra.empty()) {
    const bool takes_values = shown.get_option_no_throw("--random-inputs") != nullptr;
    return fmt::format("'{}' is one argument too many{}", printable(extra[0]),
                       takes_values ? "; an input is given as --input NAME=FILE, outputs go to "
                                      "--output FILE"
                                    : "");
  }
  if (&app == &shown) return "a command is needed, as in 'sardonyx run MODEL'";
  return printable(error.what());
}

int parse_failed(CLI::App& app, const CLI::ParseError& error, ReportForm form) {
  CLI::App* shown = &app;
  for (CLI::App* command : app.get_subcommands()) shown = command;
  if (error.get_exit_code() == 0) {  // --help, --version
    std::string text;
    if (dynamic_cast<const CLI::CallForVersion*>(&error) != nullptr) {
      text = version_text();
    } else {
      text = shown == &app ? app.help() : shown->help("sardonyx");
    }
    emit(text);
    return ok;
  }
  return fail_with(
      usage_failure(fmt::format("{}; see 'sardonyx{} --help'", misuse(app, *shown, error),
                                shown == &app ? "" : " " + shown->get_name())),
      form);
}

int run_program(int count, char** arguments) {
  CLI::App app(description, "sardonyx");
  app.set_version_flag(
      "--version", [] { return version_text(); }, "What this program is, and exit");
  app.set_help_flag("-h,--help", "This help, and exit");
  app.require_subcommand(1);
  Action action;
  // Declaring all commands takes longer than small models do: the one that is named is enough.
  const std::string_view named = count > 1 ? arguments[1] : "";
  const auto* only = std::ranges::find(commands, named, &Command::name);
  for (const Command& command : commands) {
    if (only == std::end(commands) || only == &command) command.add(app, action);
  }
  std::string limit;
  for (CLI::App* command : app.get_subcommands({})) {
    command->footer(std::string(closing) + "\n");
    add_memory_option(*command, limit);
  }
  app.footer(std::string(closing) + " 'sardonyx COMMAND --help' says more.\n");
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& error) {
    return parse_failed(app, error, report_form(count, arguments));
  }
  // A process that serves others' models does not know their sizes.
  if (!limit.empty() || named != "bench") limit_memory(limit, count, arguments);
  return action();
}

}  // namespace

void name_mapped_file(const std::string& path) {
  const auto keep = [](const std::string& text, auto& into) {
    if (text.size() < sizeof into) std::memcpy(into, text.c_str(), text.size() + 1);
  };
  const Failure failure{unreadable, "unreadable", printable(path).substr(0, 800),
                        "a mapped file was truncated, or its disk failed, while it was being read"};
  keep("sardonyx: " + failure.text() + "\n", sigbus_message);
  keep(failure_report(failure, sigbus_form), sigbus_report);
}

}  // namespace sardonyx::cli

int main(int count, char** arguments) {
  using namespace sardonyx::cli;
  const ReportForm form = report_form(count, arguments);
  sigbus_form = form;
  try {
    catch_sigbus();
    return run_program(count, arguments);
  } catch (...) {
    return fail_with(current_failure(), form);
  }
}
