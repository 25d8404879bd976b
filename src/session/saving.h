// Model files, as every tool writes them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "ir/model.h"

namespace sardonyx {

struct SaveOptions {
  // The file beside the model that takes the larger tensors; empty: tensors stay where they are.
  std::string external_data;
  uint64_t threshold = 1024;  // bytes: smaller tensors stay in the model file
  uint64_t alignment = 4096;
  bool checksum = false;  // state the SHA-1 digest of the data file with each tensor
  // Put all external data into the model file.
  bool embed = false;
  // Of the external data that is read.
  bool verify_checksums = false;
  std::string trusted_folder;
  // An open file that the model holds views of: its weights go from file to file.
  const MappedFile* source = nullptr;

  SaveOptions from(const MappedFile& file) const {
    SaveOptions options = *this;
    options.source = &file;
    return options;
  }
  bool moves_data() const { return embed || !external_data.empty(); }
};

struct Saved {
  uint64_t model_bytes = 0;
  uint64_t data_bytes = 0;  // of the external data file that was written
  std::vector<std::string> notes;
};

// External data as views of its files: for options that move data, and for tools that look at it.
void bring_in_external_data(ir::Model& model, const SaveOptions& options);

// Throws Error (bad_input) where the model has external data that is not in `folder`.
void require_data_in(const ir::Model& model, const std::string& folder);

// Writes the model in the form of the path's ending. Files appear whole or not at all. The memory
// used does not grow with the weights. A model whose external data is to stay outside can be
// written only into the folder that the data is in. Endings of drawings (session/drawing.h) get
// one. Throws Error: (bad_input) where the options, the place or the ending do not fit the model,
// (unreadable) where a file can't be read or written.
Saved save_model(ir::Model model, const std::string& path, const SaveOptions& options = {});

// A file to another form or another placement of its weights.
Saved convert_model(const std::string& from, const std::string& to, const SaveOptions& options);

}  // namespace sardonyx
