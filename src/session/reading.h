// Model files, as every tool reads them.
#pragma once

#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/mapped_file.h"
#include "ir/model.h"
#include "ir/operator_set.h"
#include "sardonyx/model.h"

namespace sardonyx {

// What follows the last dot of a file's name, the dot included, in small letters; empty where there
// is none.
std::string lowered_ending(std::string_view path);

// Reads a model from bytes. `folder` is where external data is to be looked for later; it is not
// read here. Throws Error (invalid_model) where the bytes are no model.
ir::Model read_model_bytes(const Bytes& bytes, std::string folder,
                           ModelForm form = ModelForm::binary);

// Maps the file and reads it: (unreadable) where there is none.
ir::Model read_model_file(const std::string& path);
ir::Model read_model_file(const MappedFile& file);

// An operator set document in any form but the textual syntax, which has no way to say one.
ir::OperatorSet read_operator_set_file(const std::string& path);

}  // namespace sardonyx
