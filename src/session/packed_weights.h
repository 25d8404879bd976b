// The files of packed weights that a session takes weights and graphs from, and the one it leaves
// in its cache.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "sardonyx/session.h"
#include "session/packed_file.h"
#include "session/session_log.h"

namespace sardonyx {

// What the cache's plans have asked for, with all that a file says of it. Packs what is not packed.
std::vector<PackedForm> packed_forms(const ops::PackCache& packs, ThreadPool& pool);

// Opens a file for a model. Throws Error: as PackedFile::open, (bad_input) where it is for another
// model, version or processor.
std::shared_ptr<const PackedFile> open_packed(const std::string& path, const PackedFor& wanted);

// Thread-safe.
class PackedWeights {
 public:
  // Lets the model's packs be taken from the files that the options name. Throws what open_packed
  // does for `packed`; a file in `cache_folder` that is of no use is passed over, and the log told.
  PackedWeights(const Model::Implementation& model, const SessionOptions& options, SessionLog log);
  ~PackedWeights();
  PackedWeights(const PackedWeights&) = delete;
  PackedWeights& operator=(const PackedWeights&) = delete;

  // The graph that a file has for a choice, where it is of the model's files as they are. Its
  // inputs and outputs must have these names. Throws Error (unreadable) where `packed` has one that
  // is broken; one in the cache is passed over, and the log told.
  std::optional<OptimizedGraph> graph(const std::string& choice,
                                      std::span<const std::string> inputs,
                                      std::span<const std::string> outputs) const;

  // Whether the file with the graph of a choice says that the model was clean.
  bool knows_clean_model(std::string_view choice) const;

  // Packs and writes what plans have asked for and the file in the cache has not, and the graphs
  // that sessions have made. What can't be
  // written isn't, and not tried again; the log is told.
  void store(ThreadPool& pool);

 private:
  // The files that are of the model's files as they are, in the order to look through them.
  std::vector<std::shared_ptr<const PackedFile>> files_of_same() const;
  bool is_stored(const ops::PackCache::Identified& one) const;
  std::vector<PackedForm> with_earlier(std::vector<PackedForm> forms) const;
  StoredGraphs with_earlier(const std::vector<OptimizedGraph>& graphs) const;

  void add_source(const std::shared_ptr<const PackedFile>& file);
  // Takes the file in the cache, if it is there and of use.
  void take_cached();
  void take_written();

  const Model::Implementation& model_;
  ops::PackCache& packs_;
  const ModelFiles files_;
  const std::string given_path_;             // SessionOptions::packed
  std::shared_ptr<const PackedFile> given_;  // the file there; may be null
  std::vector<std::shared_ptr<const ops::PackSource>> sources_;
  std::mutex mutex_;
  const SessionLog log_;
  std::string path_;  // of the file in the cache; empty: there is none
  PackedFor made_for_;
  std::shared_ptr<const PackedFile> file_;  // that is there; may be null
  std::set<const ops::AnyPack*> stored_;    // since the session was made
};

}  // namespace sardonyx
