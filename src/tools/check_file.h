// The checker on files.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "check/check.h"
#include "ops/custom.h"
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

// The same of a model in memory; external data lies in the folder that it says. `custom` are
// operators from outside beside those of libraries; may be null.
std::vector<check::Diagnostic> check_model(ir::Model model, const CheckFileOptions& options,
                                           const ops::CustomTable* custom = nullptr);

// Rules that need more than the model: inference, files, documents.
std::span<const check::Rule> file_rules();

}  // namespace sardonyx
