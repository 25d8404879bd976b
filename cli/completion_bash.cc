#include <fmt/format.h>

#include "reference.h"

namespace sardonyx::cli {
namespace {

// Names, words and types are made of letters, digits, '-' and '.', so that nothing needs quotes.
std::string words_of(const std::vector<OptionReference>& options) {
  std::string words;
  for (const OptionReference& option : options) {
    for (const std::string& name : option.names)
      words += fmt::format("{}{}", words.empty() ? "" : " ", name);
  }
  return words;
}

std::string assignments(const OptionReference& option) {
  std::string choices = fmt::format("{}", fmt::join(option.choices, " "));
  switch (option.kind) {
    case ValueKind::none: return "kind='none'";
    case ValueKind::other: return "kind='other'";
    case ValueKind::choice: return fmt::format("kind=choice choices='{}'", choices);
    case ValueKind::file: return "kind='file'";
    case ValueKind::folder: return "kind='folder'";
    case ValueKind::named_file: return fmt::format("kind=named_file choices='{}'", choices);
  }
  return {};
}

std::string look_up_case(const CommandReference& command) {
  std::string text =
      fmt::format("    {})\n      options='{}'\n", command.name, words_of(command.options));
  text += "      case $option in\n";
  for (const OptionReference& option : command.options) {
    if (option.kind == ValueKind::none) continue;
    text += fmt::format("        {}) {} ;;\n", fmt::join(option.names, " | "), assignments(option));
  }
  text += "        '')\n";
  if (command.arguments.empty()) text += "          kind='other'\n";
  for (const OptionReference& argument : command.arguments)  // all of a command are of one kind
    if (&argument == &command.arguments[0]) text += "          " + assignments(argument) + "\n";
  return text + "          ;;\n      esac\n      ;;\n";
}

constexpr const char* bash_head =
    R"bash(# Completion of sardonyx's arguments in bash. Made by 'sardonyx completion bash'.

# What follows an option of a command: sets kind, choices and options. Without an option, what an
# argument may be.
_sardonyx_look_up() {
  local command=$1 option=$2
  kind=none choices='' options=''
  case $command in
)bash";

constexpr const char* bash_tail = R"bash(  esac
}

_sardonyx() {
  local words=() word i splits=
  [[ $COMP_WORDBREAKS == *'='* ]] && splits=yes
  # Where readline takes '=' and ':' for words of their own, they are joined to what they belong to.
  for ((i = 0; i <= COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if ((i > 1)) && [[ $word =~ ^[=:]+$ || ${COMP_WORDS[i - 1]} =~ ^[=:]+$ ]]; then
      words[${#words[@]} - 1]+=$word
    else
      words+=("$word")
    fi
  done
  local last=$((${#words[@]} - 1))
  local current=${words[last]} command='' i
  for ((i = 1; i < last; i++)); do
    if [[ ${words[i]} != -* ]]; then
      command=${words[i]}
      break
    fi
  done
  COMPREPLY=()
  local kind choices options
  if [[ -z $command ]]; then
    _sardonyx_look_up '' ''
    mapfile -t COMPREPLY < <(compgen -W "$options $choices" -- "$current")
    return
  fi
  local option='' value=$current
  if [[ $current == --*=* ]]; then
    option=${current%%=*} value=${current#*=}
    _sardonyx_look_up "$command" "$option"
  else
    [[ ${words[last - 1]} == -* ]] && option=${words[last - 1]}
    _sardonyx_look_up "$command" "$option"
    [[ $kind == none ]] && _sardonyx_look_up "$command" ''
    if [[ $kind == none || $current == -* ]]; then
      mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
      return
    fi
  fi
  if [[ $kind == named_file ]]; then
    [[ $value == *=* ]] || return
    value=${value#*=}
  fi
  # What readline replaces begins behind the last '=', or is the whole word.
  local kept=''
  [[ -z $splits && $current == *=* ]] && kept=${current:0:${#current}-${#value}}
  case $kind in
    choice) mapfile -t COMPREPLY < <(compgen -P "$kept" -W "$choices" -- "$value") ;;
    folder) mapfile -t COMPREPLY < <(compgen -P "$kept" -d -- "$value") ;;
    file) mapfile -t COMPREPLY < <(compgen -P "$kept" -f -- "$value") ;;
    named_file)
      mapfile -t COMPREPLY < <(compgen -P "$kept" -W "$choices" -f -- "$value")
      ;;
  esac
  [[ $kind == *file || $kind == folder ]] && compopt -o filenames 2>/dev/null
  return 0
}

complete -F _sardonyx sardonyx
)bash";

}  // namespace

std::string bash_completion(const ProgramReference& program) {
  std::string names;
  for (const CommandReference& command : program.commands)
    names += fmt::format("{}{}", names.empty() ? "" : " ", command.name);
  std::string text = bash_head;
  text += fmt::format("    '')\n      options='{}'\n      kind=choice choices='{}'\n      ;;\n",
                      words_of(program.options), names);
  for (const CommandReference& command : program.commands) text += look_up_case(command);
  return text + bash_tail;
}

}  // namespace sardonyx::cli
