// The part of the zip format that .npz files use: stored and deflated members, 64-bit sizes.
// Internal to formats.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "wire/sink.h"

namespace sardonyx::formats {

struct ZipMember {
  std::string name;
  Bytes bytes;  // unpacked; a view of the archive where it is stored
};

// All members, checked against their CRC. Throws Error (unreadable) for what is no sound archive.
// No member is unpacked beyond what its compressed bytes can hold, none overlap.
std::vector<ZipMember> read_zip(const Bytes& archive);

// Writes an archive of stored members: one put per member, then finish.
class ZipWriter {
 public:
  explicit ZipWriter(wire::Sink& sink) : sink_(sink) {}
  // The member's bytes are `head` followed by `body`.
  void put(const std::string& name, std::string_view head, std::string_view body);
  void finish();

 private:
  void emit(std::string_view bytes);

  wire::Sink& sink_;
  uint64_t written_ = 0;
  uint64_t members_ = 0;
  std::string directory_;
};

}  // namespace sardonyx::formats
