// What a file of packed weights is valid for.
#pragma once

#include <cstdint>
#include <string>

#include "base/content_hash.h"
#include "session/model.h"

namespace sardonyx {

// What tells whether two models' constants are the same. It costs no pass over the weights: of
// tensors of 4 KiB and more it sees the size and some places.
struct ModelFingerprint {
  ContentHash structure{};  // of all messages but for the insides of large tensors
  // Of the sizes and times of the model's files; all zero for a model that is in no file or was
  // changed since it was read, and where they can't be told.
  ContentHash files{};
  bool knows_files() const { return files != ContentHash(); }
  bool operator==(const ModelFingerprint&) const = default;
};
ModelFingerprint fingerprint_of(const Model::Implementation& model);

// What decides how this library packs on this machine.
struct PackingTarget {
  std::string version;     // of the library
  ContentHash build{};     // of the sources that pack and read what is packed
  uint64_t processor = 0;  // its architecture and features, as far as kernels ask for them
  bool operator==(const PackingTarget&) const = default;
};
PackingTarget packing_target();
// "x86-64 avx512 vnni", for messages.
std::string describe_processor(uint64_t processor);

}  // namespace sardonyx
