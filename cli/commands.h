// The commands of the program. Each add_… function declares one command's options and, when the
// command is chosen, sets `action` to what carries it out and returns the exit code.
#pragma once

#include <functional>

#include "options.h"

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

void add_run(const Options& app, Action& action);
void add_check(const Options& app, Action& action);
void add_info(const Options& app, Action& action);
void add_infer(const Options& app, Action& action);
void add_show(const Options& app, Action& action);
void add_explain(const Options& app, Action& action);
void add_bench(const Options& app, Action& action);
void add_profile(const Options& app, Action& action);
void add_convert(const Options& app, Action& action);
void add_diff(const Options& app, Action& action);
void add_extract(const Options& app, Action& action);
void add_merge(const Options& app, Action& action);
void add_rename(const Options& app, Action& action);
void add_edit(const Options& app, Action& action);
void add_pack(const Options& app, Action& action);
void add_opset(const Options& app, Action& action);
void add_make_trainable(const Options& app, Action& action);
void add_train(const Options& app, Action& action);
void add_help(const Options& app, Action& action);
void add_completion(const Options& app, Action& action);

}  // namespace sardonyx::cli
