// sardonyx: ONNX models at the command line. docs/cli.md describes all of it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "commands.h"
#include "failure.h"
#include "loading.h"
#include "memory.h"
#include "os.h"
#include "program.h"
#include "sardonyx/error.h"
#include "sardonyx/text.h"
#include "terminal.h"
#include "words.h"

namespace sardonyx::cli {
namespace {

// What is said where a mapping is lost: then nothing may be formatted.
char lost_message[1024];
char lost_report[8192];
ReportForm lost_form = ReportForm::text;

// What programs read goes to standard output, what people read to standard error.
int fail_with(const Failure& failure, ReportForm form) {
  say(fmt::format("sardonyx: {}\n", failure.text()));
  try {
    if (form != ReportForm::text) emit(failure_report(failure, form));
  } catch (const Error&) {  // standard output can't be written to: that may be the failure itself
  }
  return failure.exit_code;
}

std::string did_you_mean(std::string_view text, const std::vector<std::string_view>& names) {
  const std::string_view close = closest(text, names);
  return close.empty() ? "" : fmt::format("; did you mean '{}'?", close);
}

// "; run and bench have it": the other commands that have an option; "" where none has.
std::string others_with(const std::string& option) {
  CLI::App app;
  Action unused;
  std::vector<std::string> names;
  for (const Command& command : all_commands()) {
    command.add(Options(app), unused);
    if (app.get_subcommand(std::string(command.name))->get_option_no_throw(option) != nullptr)
      names.emplace_back(command.name);
  }
  if (names.empty()) return "";
  return fmt::format("; it is an option of {}", listed(names, all_commands().size()));
}

// What was typed that means nothing, and what may have been meant; CLI11 says it of the rest.
std::string misuse(const CLI::App& app, const CLI::App& shown, const CLI::ParseError& error,
                   const std::vector<std::string>& arguments) {
  std::vector<std::string> extra = app.remaining(true);
  std::stable_partition(extra.begin(), extra.end(),
                        [](const std::string& word) { return word.starts_with('-'); });
  std::vector<std::string_view> names;
  if (!extra.empty() && extra[0].starts_with('-')) {
    const std::string option = extra[0].substr(0, extra[0].find('='));
    const bool is_before =
        std::ranges::find(arguments, extra[0]) < std::ranges::find(arguments, shown.get_name());
    if (is_before && &app != &shown && shown.get_option_no_throw(option) != nullptr)
      return fmt::format("options stand behind the command, as in 'sardonyx {} {}'",
                         shown.get_name(), printable(option));
    std::vector<std::string> options;
    for (const CLI::Option* known : shown.get_options()) {
      for (const std::string& name : known->get_lnames()) options.push_back("--" + name);
    }
    names.assign(options.begin(), options.end());
    const std::string others = others_with(option);
    return fmt::format("there is no option '{}'{}", printable(option),
                       others.empty() ? did_you_mean(option, names) : others);
  }
  if (!extra.empty() && &app == &shown) return no_such_command(extra[0]);
  if (!extra.empty()) {
    const bool takes_values = shown.get_option_no_throw("--random-inputs") != nullptr;
    return fmt::format("'{}' is one argument too many{}", printable(extra[0]),
                       takes_values ? "; an input is given as --input NAME=FILE, outputs go to "
                                      "--output FILE"
                                    : "");
  }
  if (&app == &shown) return "a command is needed, as in 'sardonyx run MODEL'";
  // CLI11 has no name for an option that is not listed.
  const std::string_view said = error.what();
  return printable(said.starts_with(": ") ? said.substr(2) : said);
}

int parse_failed(CLI::App& app, const CLI::ParseError& error,
                 const std::vector<std::string>& arguments) {
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
  return fail_with(usage_failure(fmt::format("{}; see 'sardonyx{} --help'",
                                             misuse(app, *shown, error, arguments),
                                             shown == &app ? "" : " " + shown->get_name())),
                   report_form(arguments));
}

// The library takes what it does not know for no wish.
void warn_of_unknown_processor() {
  constexpr std::string_view known[] = {"amx",      "avx512", "avx_vnni", "avx2",
                                        "baseline", "neon",   "neon_dot"};
  const char* wish = std::getenv("SARDONYX_CPU");
  if (wish == nullptr || *wish == 0 || std::ranges::find(known, wish) != std::end(known)) return;
  warn(fmt::format("SARDONYX_CPU={} names no instruction set, and decides nothing; there are {}",
                   printable(wish), fmt::join(known, ", ")));
}

int run_program(const std::vector<std::string>& arguments) {
  warn_of_unknown_processor();
  CLI::App app;
  Action action;
  std::string limit;
  app.allow_windows_style_options(false);  // "/models/a.onnx" is a file on all systems
  const std::string_view named = arguments.size() > 1 ? std::string_view(arguments[1]) : "";
  define_program(app, action, limit, named);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend() - 1));
  } catch (const CLI::ParseError& error) {
    return parse_failed(app, error, arguments);
  }
  // A process that serves others' models does not know their sizes.
  if (!limit.empty() || named != "bench") limit_memory(limit, arguments);
  return action();
}

}  // namespace

void name_mapped_file(const std::string& path) {
  const auto keep = [](const std::string& text, auto& into) {
    if (text.size() < sizeof into) std::memcpy(into, text.c_str(), text.size() + 1);
  };
  const Failure failure{unreadable, "unreadable", printable(path).substr(0, 800),
                        "a mapped file was truncated, or its disk failed, while it was being read"};
  keep("sardonyx: " + failure.text() + "\n", lost_message);
  keep(failure_report(failure, lost_form), lost_report);
}

}  // namespace sardonyx::cli

int main(int count, char** arguments) {
  using namespace sardonyx::cli;
  std::vector<std::string> all = os::begin(count, arguments);
  if (all.empty()) all.emplace_back("sardonyx");
  const ReportForm form = report_form(all);
  lost_form = form;
  try {
    name_mapped_file("");
    os::on_lost_mapping(lost_message, lost_report, unreadable);
    return run_program(all);
  } catch (...) {
    return fail_with(current_failure(), form);
  }
}
