// Tools that make one model file of others: cut, join, rename, edit what it says of itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compose/merge.h"
#include "compose/rename.h"
#include "session/saving.h"

namespace sardonyx {

// All read files in any form, write as save_model does, and throw Error.

Saved extract_file(const std::string& from, const std::string& to,
                   const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                   const SaveOptions& options = {});

Saved merge_files(const std::string& first, const std::string& second, const std::string& to,
                  const compose::MergeOptions& merging, const SaveOptions& options = {});

Saved rename_in_file(const std::string& from, const std::string& to,
                     const compose::Renaming& renaming, const std::string& prefix = {},
                     const SaveOptions& options = {});

// What a model says of itself. What is not set stays.
struct ModelEdits {
  std::optional<std::string> producer_name, producer_version, domain, doc_string, graph_name;
  std::optional<int64_t> model_version, ir_version;
  std::vector<std::pair<std::string, std::string>> set_metadata;
  std::vector<std::string> remove_metadata;
};
Saved edit_file(const std::string& from, const std::string& to, const ModelEdits& edits,
                const SaveOptions& options = {});

}  // namespace sardonyx
