// Model files, as every tool reads them.
#pragma once

#include <string>

#include "base/bytes.h"
#include "ir/model.h"

namespace sardonyx {

// ".", "/" or whatever leads to the file.
std::string folder_of(const std::string& path);

// Reads a model from bytes in the standard's binary or textual form. `folder` is where external
// data is to be looked for later; it is not read here. Throws Error (invalid_model) where the bytes
// are no model.
enum class ModelForm { binary, text };
ir::Model read_model_bytes(const Bytes& bytes, std::string folder,
                           ModelForm form = ModelForm::binary);

// Text where the name ends in ".onnxtxt".
ModelForm form_of(const std::string& path);

// Maps the file and reads it: (unreadable) where there is none.
ir::Model read_model_file(const std::string& path);

}  // namespace sardonyx
