#include "wire/streaming_reader.h"

#include <span>
#include <vector>

#include "base/fail.h"
#include "base/os.h"
#include "wire/proto_reader.h"

namespace sardonyx::wire {
namespace {

// Makes a message that was read before one that may be read into, with the memory it has.
struct Emptying {
  template <class T>
  void field(uint32_t, const char*, T& member) {
    member.clear();
  }
  void unknown(ir::UnknownFields& kept) {
    kept.bytes.clear();
    kept.written_defaults = 0;
  }
};

void make_empty(ir::Node& node) {
  Emptying visitor;
  fields(visitor, node);
  node.origin.clear();
  node.sources.clear();
  node.is_helper = false;
  node.custom.reset();
}

}  // namespace

struct StreamingReader::Reading {
  Reading(const Bytes& bytes, int descriptor) : reader(bytes, "ModelProto", descriptor) {
    reader.put_nodes_off(nodes);
  }

  ProtoReader reader;
  std::vector<ProtoReader::Item> nodes;
  size_t at = 0;
  ir::Node node;
};

StreamingReader::StreamingReader(const Bytes& bytes, int descriptor)
    : reading_(std::make_unique<Reading>(bytes, descriptor)) {
  reading_->reader.read(model);
  if (!model.graph) fail(ErrorCode::unreadable, "is not an ONNX model: it has no graph");
}

StreamingReader::StreamingReader(const MappedFile& file)
    : StreamingReader(file.bytes(), file.is_mapped() ? file.descriptor() : -1) {
  model.path = file.path();
  model.folder = os::folder_of(file.path());
}

StreamingReader::~StreamingReader() = default;

void StreamingReader::leave_out(bool (*unread)(std::string_view domain, std::string_view op_type,
                                               std::string_view attribute)) {
  reading_->reader.leave_out(unread);
}

size_t StreamingReader::size() const { return reading_->nodes.size(); }

ir::Node* StreamingReader::next() {
  Reading& reading = *reading_;
  if (reading.at == reading.nodes.size()) return nullptr;
  if (reading.at == 0 && reading.nodes.front().start < reading.nodes.back().start)
    reading.reader.bring(reading.nodes.front(), reading.nodes.back());
  make_empty(reading.node);
  reading.reader.read_item(reading.nodes[reading.at++], reading.node);
  return &reading.node;
}

}  // namespace sardonyx::wire
