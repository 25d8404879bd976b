// Reading the standard's binary form: protobuf bytes -> the structs of ir/model.h.
//
// Nothing is lost: fields this version does not know are kept and written back. Nothing large is
// copied: raw_data and packed float and double data are views that share the bytes' owner.
// Every function throws Error (unreadable) with the byte offset and the path of the field where
// the bytes break the format. All may be called from any thread.
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/mapped_file.h"
#include "ir/model.h"
#include "ir/operator_set.h"
#include "sardonyx/value.h"

namespace sardonyx::wire {

// Maps the file and reads a ModelProto, or a model in ONNX Runtime's own format (.ort), which is
// recognised by its content. Sets model.path, and model.folder to the folder part of
// the path as given ("." without one). What is plainly no model (text, an archive, a pointer of
// git-lfs …) is refused with a message that says what it seems to be.
ir::Model read_model(const std::string& path);
// The same of a file that is open already, while it is; what lies between weights is read, not
// mapped, so that opening a model touches few pages.
ir::Model read_model(const MappedFile& file);

// The same from memory. `folder` is where external data is looked for; empty: nowhere.
ir::Model read_model(const Bytes& bytes, std::string folder = {});

ir::TensorProto read_tensor(const Bytes& bytes);

// An operator set document, which begins with a word of its own.
ir::OperatorSet read_operator_set(const Bytes& bytes);

class ExternalData;

// A value as the standard's test data stores it: TensorProto, SparseTensorProto, SequenceProto,
// MapProto or OptionalProto, as `expected` says (a TensorProto where it says nothing).
Value read_value(const Bytes& bytes, const ir::TypeProto& expected,
                 ExternalData* external = nullptr);

}  // namespace sardonyx::wire
