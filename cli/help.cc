// sardonyx help and sardonyx completion
#include <fmt/format.h>

#include <memory>

#include "arguments.h"
#include "commands.h"
#include "program.h"
#include "reference.h"
#include "terminal.h"

namespace sardonyx::cli {
namespace {

std::string names_of_commands() {
  std::string names;
  for (const Command& command : all_commands())
    names += fmt::format("{}{}", names.empty() ? "" : ",", command.name);
  return "{" + names + "}";
}

struct HelpCommand {
  std::string command;
  bool man = false;

  int run() const {
    if (man) {
      emit(man_page(program_reference()));
      return ok;
    }
    const std::optional<std::string> text = help_text(command);
    if (!text) throw UsageError(no_such_command(command) + "; see 'sardonyx help'");
    emit(*text);
    return ok;
  }
};

struct CompletionCommand {
  std::string shell;

  int run() const {
    const ProgramReference program = program_reference();
    emit(shell == "bash"  ? bash_completion(program)
         : shell == "zsh" ? zsh_completion(program)
                          : fish_completion(program));
    return ok;
  }
};

}  // namespace

void add_help(const Options& app, Action& action) {
  auto command = std::make_shared<HelpCommand>();
  const Options help = app.add_command("help", "Explain the program, or one of its commands");
  const Option name = help.add_option("COMMAND", command->command, "The command to explain")
                          .type_name(names_of_commands());
  help.add_flag("--man", command->man, "Print the manual page, for man(1)").excludes(name);
  help.on_chosen([command, &action] { action = [command] { return command->run(); }; });
}

void add_completion(const Options& app, Action& action) {
  auto command = std::make_shared<CompletionCommand>();
  const Options completion = app.add_command(
      "completion", "Print a script that teaches a shell to complete this program's arguments");
  completion.add_option("SHELL", command->shell, "The shell")
      .required()
      .check(one_of({"bash", "zsh", "fish"}))
      .type_name("{bash,zsh,fish}");
  completion.on_chosen([command, &action] { action = [command] { return command->run(); }; });
}

}  // namespace sardonyx::cli
