// Optimised graphs as messages, for files that keep them (docs/packed_models.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/content_hash.h"
#include "ir/model.h"
#include "ops/pack_cache.h"
#include "sardonyx/model.h"
#include "sardonyx/value.h"

namespace sardonyx {

// What passes made of a model's graph for one choice of options.
struct OptimizedGraph {
  std::string choice;              // to_text(VariantChoice)
  bool is_of_clean_model = false;  // Judged::is_clean
  ir::Graph graph;
  std::vector<Warning> warnings;  // that were told while it was made
};

// Where the elements of a model's tensors lie: its own file, and those of its external data.
class ModelFiles {
 public:
  // Shares the bytes of the files.
  ModelFiles(const Bytes& own, const ops::PackCache& packs);

  // Nothing where they lie in none of the files.
  std::optional<ops::ConstantPlace> place_of(std::span<const std::byte> bytes) const;
  // Nothing where the files have no such bytes.
  std::optional<Bytes> bytes_at(const ops::ConstantPlace& place, uint64_t size) const;
  uint64_t size() const;  // of all

 private:
  using File = ops::PackCache::File;
  std::vector<File> by_address_, by_place_;
};

// Elements that passes computed, each once, one behind the other from multiples of `alignment`.
class StoredConstants {
 public:
  static constexpr uint64_t alignment = 64;

  // Returns where they begin.
  uint64_t add(const Bytes& elements);
  // Where the constant of that content and size begins; nothing where it was not added.
  std::optional<uint64_t> find(const ContentHash& content, uint64_t size) const;
  const std::vector<Bytes>& all() const { return all_; }
  uint64_t size() const { return size_; }  // up to a multiple of `alignment`
  Bytes bytes() const;                     // all, as a file has them

 private:
  std::vector<Bytes> all_;
  std::map<std::pair<ContentHash, uint64_t>, size_t> found_;  // by content and size: which it is
  std::vector<uint64_t> offsets_;
  uint64_t size_ = 0;
};

// Writes the graph as a ModelProto. Elements that lie in the model's files are said to be there,
// larger ones go to `constants`; origins and sources of nodes are metadata. Nothing where the graph
// can't be kept: it calls operators from outside, or would be refused when it is read.
std::optional<std::string> write_graph(const ir::Graph& graph, const ModelFiles& files,
                                       StoredConstants& constants);

// Reads what write_graph has written; `constants` are those that were added, as they lie. Throws
// Error (unreadable, invalid_model) where the message is none, its tensors lie outside of the
// files and of the constants, or the graph breaks a rule that its running depends on.
ir::Graph read_graph(const Bytes& message, const ModelFiles& files, const Bytes& constants);

// A graph as a file keeps it.
struct StoredGraph {
  std::string choice;
  bool is_of_clean_model = false;
  std::vector<Warning> warnings;
  Bytes message;  // of write_graph
};

// All graphs of a file, and what they have in common.
struct StoredGraphs {
  StoredConstants constants;
  std::vector<StoredGraph> graphs;

  // Returns false where the graph can't be kept, or what passes computed for it would make the file
  // larger than the model's own are.
  bool add(const OptimizedGraph& graph, const ModelFiles& files);
};

// The graphs that sessions of a model have made, from when they are asked for until somebody has
// written them: the last ones, as many as a file keeps. Thread-safe.
class KeptGraphs {
 public:
  static constexpr size_t max_graphs = 8;

  void ask();
  bool are_wanted() const;
  // Does nothing where nobody has asked.
  void add(OptimizedGraph graph);
  std::vector<OptimizedGraph> take();

 private:
  mutable std::mutex mutex_;
  bool wanted_ = false;
  std::vector<OptimizedGraph> graphs_;
};

}  // namespace sardonyx
