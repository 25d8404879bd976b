// Moving tensors between a model file and a data file beside it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "ir/model.h"
#include "wire/external.h"
#include "wire/sink.h"

namespace sardonyx::wire {

// Calls `change` for every tensor of the model for which `needs` holds: initializers, the parts of
// sparse tensors, attributes, in all graphs, functions and training graphs. What several
// attributes or models share is copied before it is changed.
void change_tensors(ir::Model& model, const std::function<bool(const ir::TensorProto&)>& needs,
                    const std::function<void(ir::TensorProto&)>& change);

// Whether one of those tensors is external.
bool has_external_data(const ir::Model& model);

// Makes every external tensor an internal one: a view of its mapped file, nothing is copied.
// Throws what ExternalData throws, with the tensor's name. `mapped` sees each with its bytes, while
// it still says where they are from.
void bring_in(ir::Model& model, ExternalData& external,
              const std::function<void(const ir::TensorProto&)>& mapped = {});

struct DataFileOptions {
  uint64_t at_least = 1024;  // bytes; smaller tensors stay in the model file
  // Where each tensor begins: a multiple of this, as the standard recommends for mapping.
  uint64_t alignment = 4096;
  bool checksum = false;               // state the SHA-1 digest of the data file with each tensor
  const MappedFile* source = nullptr;  // see write_file
};

using ModelWriter = std::function<void(const ir::Model&, Sink&)>;

// Writes the model with its larger tensors in the file `data_name` in the same folder (a plain
// file name). Tensors that are external already have to be brought in first. Both files appear
// whole or not at all, the data file before the model. Strings stay in the model file. `write`
// gives the model file's form; binary where it is empty.
void write_model_with_data(ir::Model model, const std::string& path, const std::string& data_name,
                           const DataFileOptions& options = {}, const ModelWriter& write = {});

}  // namespace sardonyx::wire
