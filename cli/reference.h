// The command line as data, read from its definitions: the man page and the completions of shells
// are made of it, so that they name what the program takes.
#pragma once

#include <string>
#include <vector>

namespace sardonyx::cli {

enum class ValueKind {
  none,        // a flag
  other,       // nothing that a shell could complete
  choice,      // one of `choices`
  file,        // of a file or folder
  folder,      // of a folder
  named_file,  // NAME=FILE, or NAME= and one of `choices`
};

struct OptionReference {
  std::vector<std::string> names;  // "-o", "--output"; of an argument only "MODEL"
  std::string value;               // "FILE"; empty for a flag
  std::string help;
  ValueKind kind = ValueKind::none;
  std::vector<std::string> choices;
  bool required = false;
  bool repeatable = false;
};

struct CommandReference {
  std::string name;
  std::string help;
  std::vector<OptionReference> arguments;  // in order
  std::vector<OptionReference> options;
};

struct ProgramReference {
  std::vector<OptionReference> options;  // before the command
  std::vector<CommandReference> commands;
};

// Of all commands. Options that are not listed (old names) are left out.
ProgramReference program_reference();

// roff, for man(1).
std::string man_page(const ProgramReference& program);
// Scripts that teach these shells to complete the program's arguments.
std::string bash_completion(const ProgramReference& program);
std::string zsh_completion(const ProgramReference& program);
std::string fish_completion(const ProgramReference& program);

}  // namespace sardonyx::cli
