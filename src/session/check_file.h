// The checker on files.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "check/check.h"
#include "sardonyx/error.h"

namespace sardonyx {

struct CheckFileOptions {
  check::Options rules;  // the strict profile asks for `full` and `data`, too
  // Also infer types and shapes: what does not fit an operator, or contradicts what is declared.
  bool full = false;
  // Also look at external data: paths, links, ranges and, where they are stated, checksums.
  bool data = false;
  std::string trusted_folder;
  // Operator set documents the model's imports may refer to.
  std::vector<std::string> operator_sets;
  // Libraries of operators, whose code runs.
  std::vector<std::string> libraries;
};

// Throws Error as read_model_file does. External data is read only for `data`.
std::vector<check::Diagnostic> check_model_file(const std::string& path,
                                                const CheckFileOptions& options);

struct CheckedFile {
  std::string path;
  std::vector<check::Diagnostic> findings;
  std::optional<Error> error;  // why it could not be checked

  int64_t count(check::Severity severity) const;
};

// Each file in turn; one that can't be read, or is no model, does not stop the others. `before` is
// told which comes next.
std::vector<CheckedFile> check_model_files(
    const std::vector<std::string>& paths, const CheckFileOptions& options,
    const std::function<void(const std::string& path)>& before = {});

// The same of a model in memory; external data lies in the folder that it says.
std::vector<check::Diagnostic> check_model(ir::Model model, const CheckFileOptions& options);

// Rules that need more than the model: inference, files, documents.
std::span<const check::Rule> file_rules();

}  // namespace sardonyx
