#include "wire/write.h"

#include "base/fail.h"
#include "wire/proto_writer.h"

namespace sardonyx::wire {

uint64_t serialized_size(const ir::Model& model) { return ProtoWriter::size_of(model); }

void write_model(const ir::Model& model, const std::string& path, const MappedFile* source) {
  write_file(
      path, [&](Sink& sink) { ProtoWriter::write(model, sink); }, source);
}

void write_model(const ir::Model& model, Sink& sink) { ProtoWriter::write(model, sink); }
std::string write_model(const ir::Model& model) { return ProtoWriter::text_of(model); }
std::string write_tensor(const ir::TensorProto& tensor) { return ProtoWriter::text_of(tensor); }
std::string write_value_info(const ir::ValueInfo& info) { return ProtoWriter::text_of(info); }
std::string write_function(const ir::Function& function) { return ProtoWriter::text_of(function); }
void write_operator_set(const ir::OperatorSet& set, Sink& sink) { ProtoWriter::write(set, sink); }
std::string write_operator_set(const ir::OperatorSet& set) { return ProtoWriter::text_of(set); }

}  // namespace sardonyx::wire
