// Files of packed weights and optimised graphs (docs/packed_models.md has their format).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "ops/pack_cache.h"
#include "session/fingerprint.h"
#include "session/optimized_graph.h"

namespace sardonyx {

// What a file says it is valid for.
struct PackedFor {
  ModelFingerprint model;
  PackingTarget target;
};

// One constant in one form.
struct PackedForm {
  ops::ConstantId id;  // with its content
  ops::PackFormat format;
  std::vector<Tensor> parts;  // of one dimension
};

// A file that is open and whose header and table are sound: every offset and length in it has been
// held against the file, nothing else about it is trusted. The elements of its forms are mapped and
// shared with whatever other process has the file open. Immutable, for any thread.
class PackedFile {
 public:
  // Throws Error (unreadable) with the path, and what is wrong where.
  static std::shared_ptr<const PackedFile> open(const std::string& path);
  // The same of bytes in memory, aligned to 64; `path` is for messages.
  static std::shared_ptr<const PackedFile> read(Bytes bytes, const std::string& path);

  const PackedFor& made_for() const { return made_for_; }
  uint64_t size() const { return bytes_.size(); }

  // Why its forms are of no use for that model and target; empty where they are.
  std::string mismatch(const PackedFor& wanted) const;

  // The parts of that form, if it has them in these types and counts; whichever of `by_content` the
  // constant is to be known by.
  std::optional<std::vector<Tensor>> find(const ops::ConstantId& id, const ops::PackFormat& format,
                                          std::span<const ops::PackPart> parts,
                                          bool by_content) const;
  size_t form_count() const { return entries_.size(); }
  PackedForm form(size_t i) const;

  // Of these only where they lie has been held against the file (read_graph).
  std::span<const StoredGraph> graphs() const { return graphs_; }
  const StoredGraph* find_graph(std::string_view choice) const;
  // What passes computed for the graphs.
  Bytes constants() const;
  // Where one of these constants lies, as ids of forms say it.
  std::optional<ops::ConstantPlace> place_of(std::span<const std::byte> constant) const;

 private:
  struct Part {
    ops::PackPart elements;
    uint64_t offset = 0;
  };
  struct Entry {
    ops::ConstantId id;
    ops::PackFormat format;
    std::vector<Part> parts;
  };
  class Parser;

  std::vector<Tensor> views(const Entry& entry) const;

  Bytes bytes_;
  PackedFor made_for_;
  std::vector<Entry> entries_;
  std::vector<StoredGraph> graphs_;
  uint64_t constants_at_ = 0, constants_size_ = 0;
  std::multimap<ops::ConstantPlace, size_t> by_place_;
  std::multimap<ContentHash, size_t> by_content_;
};

// Forms of a file for one model. Constants are known by their places where the model's files are
// those that the file was made of, else by their content.
std::shared_ptr<const ops::PackSource> source_of(std::shared_ptr<const PackedFile> file,
                                                 const ModelFingerprint& model);

// Writes a file: it appears whole or not at all, whoever else writes to that path. Returns its
// size. Constants of forms that `graphs` stores are told by where they lie in the file. Throws
// Error (unreadable) with the path and the reason.
uint64_t write_packed(const std::string& path, const PackedFor& made_for,
                      std::span<const PackedForm> forms, const StoredGraphs& graphs = {});

}  // namespace sardonyx
