#include "wire/write.h"

#include "base/fail.h"
#include "wire/proto_writer.h"

namespace sardonyx::wire {

uint64_t serialized_size(const ir::Model& model) { return ProtoWriter::size_of(model); }

void write_model(const ir::Model& model, const std::string& path) {
  write_file(path, [&](Sink& sink) { ProtoWriter::write(model, sink); });
}

std::string write_model(const ir::Model& model) { return ProtoWriter::text_of(model); }
std::string write_tensor(const ir::TensorProto& tensor) { return ProtoWriter::text_of(tensor); }
std::string write_function(const ir::Function& function) { return ProtoWriter::text_of(function); }

}  // namespace sardonyx::wire
