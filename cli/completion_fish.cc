#include <fmt/format.h>

#include "reference.h"

namespace sardonyx::cli {
namespace {

std::string in_quotes(std::string_view text) {
  std::string made = "'";
  for (const char c : text) {
    if (c == '\\' || c == '\'') made += '\\';
    made += c;
  }
  return made + "'";
}

std::string names_of(const OptionReference& option) {
  std::string text;
  for (const std::string& name : option.names) {
    if (name.starts_with("--")) {
      text += " -l " + name.substr(2);
    } else {
      text += " -s " + name.substr(1);
    }
  }
  return text;
}

std::string value_of(const OptionReference& option) {
  const std::string choices = in_quotes(fmt::format("{}", fmt::join(option.choices, " ")));
  switch (option.kind) {
    case ValueKind::none: return "";
    case ValueKind::other: return " -x";
    case ValueKind::choice: return " -x -a " + choices;
    case ValueKind::file: return " -r -F";
    case ValueKind::folder: return " -x -a '(__fish_complete_directories)'";
    case ValueKind::named_file: return " -r -F";
  }
  return "";
}

std::string option_line(const std::string& condition, const OptionReference& option) {
  return fmt::format("complete -c sardonyx -n {}{}{} -d {}\n", condition, names_of(option),
                     value_of(option), in_quotes(option.help));
}

constexpr const char* fish_head =
    R"fish(# Completion of sardonyx's arguments in fish. Made by 'sardonyx completion fish'.

# Whether the command is this one; without one, whether none is given yet.
function __sardonyx_command_is
    for word in (commandline -opc)[2..-1]
        if not string match -q -- '-*' $word
            test "$word" = "$argv[1]"
            return
        end
    end
    test -z "$argv[1]"
end

)fish";

}  // namespace

std::string fish_completion(const ProgramReference& program) {
  std::string text = fish_head;
  const std::string none = "__sardonyx_command_is";
  for (const CommandReference& command : program.commands)
    text += fmt::format("complete -c sardonyx -n {} -f -a {} -d {}\n", none, command.name,
                        in_quotes(command.help));
  for (const OptionReference& option : program.options) text += option_line(none, option);
  for (const CommandReference& command : program.commands) {
    const std::string condition = in_quotes("__sardonyx_command_is " + command.name);
    for (const OptionReference& option : command.options) text += option_line(condition, option);
    for (const OptionReference& argument : command.arguments) {
      if (argument.kind != ValueKind::choice) continue;
      text += fmt::format("complete -c sardonyx -n {} -f -a {} -d {}\n", condition,
                          in_quotes(fmt::format("{}", fmt::join(argument.choices, " "))),
                          in_quotes(argument.help));
    }
  }
  return text;
}

}  // namespace sardonyx::cli
