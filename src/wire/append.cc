#include "wire/append.h"

#include <cstring>
#include <string_view>

#include "base/fail.h"
#include "base/os.h"
#include "wire/proto_writer.h"

namespace sardonyx::wire {
namespace {

constexpr uint64_t block = 4096;
constexpr char graph_tag = 7 << 3 | 2;  // ModelProto.graph

// The entry as a whole field of the model: graph { value_info { ... } }.
std::string field_of(const ir::ValueInfo& entry) {
  ir::Graph graph;
  graph.value_info.push_back(entry);
  const std::string text = ProtoWriter::text_of(graph);
  std::string field(1, graph_tag);
  for (uint64_t size = text.size(); true; size >>= 7) {
    field += static_cast<char>(size >= 0x80 ? size | 0x80 : size);
    if (size < 0x80) break;
  }
  return field + text;
}

// Empty graphs, which add nothing: two bytes each, or three with the length spelled out longer.
std::string filler(uint64_t size) {
  std::string text;
  if (size % 2 != 0) text = {graph_tag, '\x80', '\0'};
  while (text.size() < size) text += {graph_tag, '\0'};
  return text;
}

uint64_t room_at(uint64_t position) { return block - position % block; }

class Appender {
 public:
  Appender(int descriptor, const std::string& path, uint64_t size)
      : descriptor_(descriptor), path_(path), position_(size) {}

  // One call for what lies within one block: the system writes that whole or not at all.
  void add(const std::string& field) {
    const uint64_t room = room_at(position_ + chunk_.size());
    const bool fits = field.size() == room || field.size() + 2 <= room;
    if (!fits) {
      chunk_ += filler(room);
      flush();
    }
    chunk_ += field;
    if (room_at(position_ + chunk_.size()) == block) flush();
  }

  void flush() {
    if (chunk_.empty()) return;
    const int64_t done = os::write(descriptor_, chunk_.data(), chunk_.size());
    if (done != static_cast<int64_t>(chunk_.size())) {
      fail_at(path_, ErrorCode::unreadable, "cannot add to the file: {}",
              done < 0 ? std::strerror(errno) : "the disk is full");
    }
    position_ += chunk_.size();
    chunk_.clear();
  }

 private:
  int descriptor_;
  const std::string& path_;
  uint64_t position_;  // of the chunk in the file
  std::string chunk_;
};

void require_unchanged(int descriptor, const std::string& path, uint64_t file_size) {
  if (!os::lock(descriptor))
    fail_at(path, ErrorCode::unreadable, "another process is adding to the file");
  const auto info = os::info_of(descriptor);
  if (!info || info->size != file_size)
    fail_at(path, ErrorCode::unreadable, "the file was changed while it was inferred");
}

}  // namespace

bool can_append(uint64_t file_size) { return file_size > 0 && room_at(file_size) != 1; }

size_t append_value_info(int descriptor, const std::string& path, uint64_t file_size,
                         std::span<const ir::ValueInfo> entries) {
  if (!can_append(file_size)) {
    fail_at(path, ErrorCode::unsupported, "a file of {} bytes cannot be added to; write it anew",
            file_size);
  }
  if (entries.empty()) return 0;
  require_unchanged(descriptor, path, file_size);
  Appender appender(descriptor, path, file_size);
  size_t written = 0;
  try {
    for (const ir::ValueInfo& entry : entries) {
      const std::string field = field_of(entry);
      if (field.size() + 2 > block) continue;
      appender.add(field);
      ++written;
    }
    appender.flush();
    if (!os::sync(descriptor))
      fail_at(path, ErrorCode::unreadable, "cannot add to the file: {}", std::strerror(errno));
  } catch (...) {
    os::set_size(descriptor, file_size);
    throw;
  }
  return written;
}

}  // namespace sardonyx::wire
