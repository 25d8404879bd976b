// Options of the commands that write a model.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "options.h"
#include "sardonyx/model.h"

namespace sardonyx::cli {

struct SavingOptions {
  std::string output;
  SaveOptions save;
  std::string threshold = "1024";  // bytes, with K, M, G behind them
};

// OUTPUT and where the weights go.
void add_saving_options(const Options& command, SavingOptions& options);

// The model to change, with its external data where it is.
Model load_file(const std::string& path, const SaveOptions& options);

// The same as the library takes them. Throws UsageError.
SaveOptions save_options(const SavingOptions& options);

// Throws UsageError where the ending of `output` says no form that a model can be written in.
void require_known_ending(const std::string& output, const std::string& model);

// "wrote m.onnx, 12.3 MB, and m.data, 1.2 GB", where standard output does not hold the model
// itself; notes go to standard error.
void report_saved(const SavingOptions& options, const Saved& saved);

// "OLD=NEW" at the last '=' whose left side is not empty. Throws UsageError that names `option` and
// the form it should have.
std::pair<std::string, std::string> split_pair(const std::string& text, std::string_view option,
                                               std::string_view form);

}  // namespace sardonyx::cli
