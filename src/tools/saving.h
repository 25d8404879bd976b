// Model files, as every tool writes them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "ir/model.h"
#include "sardonyx/model.h"

namespace sardonyx::wire {
class Sink;
}

namespace sardonyx {

// External data as views of its files: for options that move data, and for tools that look at it.
void bring_in_external_data(ir::Model& model, const SaveOptions& options);

// Throws Error (bad_input) where the model has external data that is not in `folder`.
void require_data_in(const ir::Model& model, const std::string& folder);

// Writes the model in the form of the path's ending. Files appear whole or not at all. The memory
// used does not grow with the weights. A model whose external data is to stay outside can be
// written only into the folder that the data is in. Endings of drawings (tools/drawing.h) get
// one. Throws Error: (bad_input) where the options, the place or the ending do not fit the model,
// (unreadable) where a file can't be read or written.
// `source`: an open file that the model holds views of, whose weights go from file to file.
Saved save_model(const ir::Model& model, const std::string& path, const SaveOptions& options = {},
                 const MappedFile* source = nullptr);
void write_form(const ir::Model& model, ModelForm form, wire::Sink& sink);

// A file to another form or another placement of its weights.
Saved convert_model(const std::string& from, const std::string& to, const SaveOptions& options);

}  // namespace sardonyx
