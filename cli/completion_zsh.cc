#include <fmt/format.h>

#include "reference.h"

namespace sardonyx::cli {
namespace {

// Text within single quotes and, where `special` names some characters, with those escaped.
std::string escaped(std::string_view text, std::string_view special = {}) {
  std::string made;
  for (const char c : text) {
    if (c == '\\' || special.find(c) != std::string_view::npos) made += '\\';
    made += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return made;
}

std::string action_of(const OptionReference& option) {
  const std::string choices = fmt::format("{}", fmt::join(option.choices, " "));
  switch (option.kind) {
    case ValueKind::none: return {};
    case ValueKind::other: return " ";
    case ValueKind::choice: return "(" + choices + ")";
    case ValueKind::file: return "_files";
    case ValueKind::folder: return "_files -/";
    case ValueKind::named_file: return "_sardonyx_named_file " + choices;
  }
  return {};
}

// One line of _arguments for each name of an option.
std::string option_lines(const OptionReference& option, std::string_view indent) {
  std::string lines;
  for (const std::string& name : option.names) {
    const bool is_long = name.starts_with("--");
    std::string line = option.repeatable ? "*" : fmt::format("({})", fmt::join(option.names, " "));
    line += name;
    if (option.kind != ValueKind::none) line += is_long ? "=" : "+";
    line += "[" + escaped(option.help, "[]:") + "]";
    if (option.kind != ValueKind::none)
      line += ":" + escaped(option.value, ":") + ":" + action_of(option);
    lines += fmt::format("{}'{}' \\\n", indent, line);
  }
  return lines;
}

std::string arguments_case(const CommandReference& command) {
  std::string text = fmt::format("        {})\n          _arguments -S \\\n", command.name);
  for (const OptionReference& option : command.options)
    text += option_lines(option, "            ");
  for (size_t i = 0; i < command.arguments.size(); ++i) {
    const OptionReference& argument = command.arguments[i];
    const std::string place = argument.repeatable ? "*" : fmt::format("{}", i + 1);
    text +=
        fmt::format("            '{}:{}:{}' \\\n", place, argument.names[0], action_of(argument));
  }
  return text + "            && found=0\n          ;;\n";
}

constexpr const char* zsh_head = R"zsh(#compdef sardonyx
# Completion of sardonyx's arguments in zsh. Made by 'sardonyx completion zsh'.

# NAME=FILE, or NAME= and one of the words.
_sardonyx_named_file() {
  if compset -P '*='; then
    _alternative 'files:file:_files' "words:word:($*)"
  else
    _message 'NAME=FILE or NAME=VALUE'
  fi
}

_sardonyx() {
  local curcontext=$curcontext state line found=1
  typeset -A opt_args
  local -a commands
)zsh";

}  // namespace

std::string zsh_completion(const ProgramReference& program) {
  std::string text = zsh_head;
  text += "  commands=(\n";
  for (const CommandReference& command : program.commands)
    text += fmt::format("    '{}:{}'\n", command.name, escaped(command.help, ":"));
  text += "  )\n  _arguments -C \\\n";
  for (const OptionReference& option : program.options) text += option_lines(option, "    ");
  text +=
      "    '1:command:->command' \\\n"
      "    '*::argument:->argument' \\\n"
      "    && found=0\n"
      "  case $state in\n"
      "    command) _describe -t commands command commands && found=0 ;;\n"
      "    argument)\n"
      "      curcontext=\"${curcontext%:*:*}:sardonyx-$words[1]:\"\n"
      "      case $words[1] in\n";
  for (const CommandReference& command : program.commands) text += arguments_case(command);
  text +=
      "      esac\n"
      "      ;;\n"
      "  esac\n"
      "  return found\n"
      "}\n\n"
      "if [[ $funcstack[1] == _sardonyx ]]; then\n"
      "  _sardonyx \"$@\"\n"
      "else\n"
      "  compdef _sardonyx sardonyx\n"
      "fi\n";
  return text;
}

}  // namespace sardonyx::cli
