// The commands of the program. Each add_… function declares one command's options and, when the
// command is chosen, sets `action` to what carries it out and returns the exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace sardonyx::cli {

enum ExitCode : int {
  ok = 0,
  findings = 1,  // check, infer or opset found errors, models or outputs differ
  usage = 2,
  unreadable = 3,
  invalid_model = 4,
  unsupported = 5,
  bad_input = 6,
  run_failed = 7,
};

using Action = std::function<int()>;

void add_run(CLI::App& app, Action& action);
void add_check(CLI::App& app, Action& action);
void add_info(CLI::App& app, Action& action);
void add_infer(CLI::App& app, Action& action);
void add_show(CLI::App& app, Action& action);
void add_explain(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_profile(CLI::App& app, Action& action);
void add_convert(CLI::App& app, Action& action);
void add_diff(CLI::App& app, Action& action);
void add_extract(CLI::App& app, Action& action);
void add_merge(CLI::App& app, Action& action);
void add_rename(CLI::App& app, Action& action);
void add_edit(CLI::App& app, Action& action);
void add_pack(CLI::App& app, Action& action);
void add_opset(CLI::App& app, Action& action);
void add_make_trainable(CLI::App& app, Action& action);
void add_train(CLI::App& app, Action& action);
void add_help(CLI::App& app, Action& action);
void add_completion(CLI::App& app, Action& action);

}  // namespace sardonyx::cli
