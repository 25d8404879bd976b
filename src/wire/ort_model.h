// Reading models in ONNX Runtime's own format (.ort), a file of FlatBuffers.
#pragma once

#include <string_view>

#include "base/bytes.h"
#include "ir/model.h"

namespace sardonyx::wire {

// Whether bytes are a model in this format. No ONNX model is taken for one: the offset of the root
// table that the file begins with is a multiple of 4 below 2^24. As a message of protobuf, these
// bytes begin with a varint or an end of a group, and by the zero at the fourth byte a field ends,
// so that a field without a number or the 'O' of the letters, which is no type of field, is next.
bool is_ort_model(std::string_view bytes);

// Raw data are views of the bytes; nodes are sorted topologically. What ONNX Runtime notes for its
// own kernels is dropped. Throws Error with the place: (unreadable) where the bytes break the
// format, (unsupported) for files of a version to come and for what only ONNX Runtime can run.
ir::Model read_ort_model(const Bytes& bytes);

}  // namespace sardonyx::wire
