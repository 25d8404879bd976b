// The program as a whole: its commands, and how it describes itself.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "commands.h"
#include "options.h"

namespace sardonyx::cli {

struct Command {
  std::string_view name;
  void (*add)(const Options& program, Action& action);
};

struct ExitMeaning {
  int code = 0;
  std::string_view meaning;
};

struct Example {
  std::string_view command;
  std::string_view effect;
};

inline constexpr std::string_view program_summary =
    "Reads, checks, explains, runs and trains ONNX models.";

std::span<const Command> all_commands();
std::span<const ExitMeaning> exit_meanings();
std::span<const Example> examples();

// What --version prints.
std::string version_text();

// Declares the program's own options and its commands: only the one of this name where there is
// one, since declaring all takes longer than small models do. `action` and `memory_limit` get what
// the command line says, and must live as long as `app`.
void define_program(CLI::App& app, Action& action, std::string& memory_limit,
                    std::string_view only = {});

// What `sardonyx help` prints of a command, or of the program where `command` is empty; nothing
// where there is none of this name.
std::optional<std::string> help_text(std::string_view command);

// "there is no command 'rnu'; did you mean 'run'?"
std::string no_such_command(std::string_view name);

}  // namespace sardonyx::cli
