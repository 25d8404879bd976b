// Writing the standard's binary form. Fields go out in the order of their numbers, lists of
// numbers packed where the standard's proto2 files declare it: what protobuf's own C++ writer does.
#pragma once

#include <functional>
#include <string>

#include "base/bytes.h"
#include "ir/model.h"
#include "ir/operator_set.h"
#include "sardonyx/value.h"
#include "wire/sink.h"

namespace sardonyx::wire {

// Bytes the model takes when written. External data stays outside.
uint64_t serialized_size(const ir::Model& model);

// Writes the model to a file that appears whole or not at all: a temporary file beside it is
// renamed over it. Memory use does not grow with the weights. Throws Error (unreadable) with the
// path where the file cannot be written.
// What the model holds as views of `source` goes from file to file.
void write_model(const ir::Model& model, const std::string& path,
                 const MappedFile* source = nullptr);

std::string write_model(const ir::Model& model);
void write_model(const ir::Model& model, Sink& sink);
std::string write_tensor(const ir::TensorProto& tensor);
std::string write_value_info(const ir::ValueInfo& info);
std::string write_function(const ir::Function& function);
void write_operator_set(const ir::OperatorSet& set, Sink& sink);
std::string write_operator_set(const ir::OperatorSet& set);

// The message that read_value reads back, and the type it needs for that.
std::string write_value(const Value& value, const std::string& name = {});
ir::TypeProto type_of(const Value& value);

}  // namespace sardonyx::wire
