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
    CLI::App app;
    Action unused;
    std::string limit;
    define_program(app, unused, limit);
    if (command.empty()) {
      emit(app.help());
      return ok;
    }
    for (const CLI::App* known : app.get_subcommands({})) {
      if (known->get_name() != command) continue;
      emit(known->help("sardonyx"));
      return ok;
    }
    throw UsageError(no_such_command(command) + "; see 'sardonyx help'");
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

void add_help(CLI::App& app, Action& action) {
  auto command = std::make_shared<HelpCommand>();
  CLI::App* help = app.add_subcommand("help", "Explain the program, or one of its commands");
  CLI::Option* name = help->add_option("COMMAND", command->command, "The command to explain")
                          ->type_name(names_of_commands());
  help->add_flag("--man", command->man, "Print the manual page, for man(1)")->excludes(name);
  help->callback([command, &action] { action = [command] { return command->run(); }; });
}

void add_completion(CLI::App& app, Action& action) {
  auto command = std::make_shared<CompletionCommand>();
  CLI::App* completion = app.add_subcommand(
      "completion", "Print a script that teaches a shell to complete this program's arguments");
  completion->add_option("SHELL", command->shell, "The shell")
      ->required()
      ->check(one_of({"bash", "zsh", "fish"}))
      ->type_name("{bash,zsh,fish}");
  completion->callback([command, &action] { action = [command] { return command->run(); }; });
}

}  // namespace sardonyx::cli
