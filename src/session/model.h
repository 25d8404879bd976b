// What a Model holds.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "base/memory_account.h"
#include "check/check.h"
#include "ir/model.h"
#include "ops/custom.h"
#include "ops/prepare_context.h"
#include "sardonyx/session.h"
#include "session/optimized_graph.h"
#include "session/variants.h"
#include "wire/external.h"

namespace sardonyx {

// When a file of the model was last changed, and how large it was.
struct FileStamp {
  uint64_t size = 0;
  int64_t seconds = 0, nanoseconds = 0;
  bool operator==(const FileStamp&) const = default;
};
std::optional<FileStamp> stamp_of(const std::string& path);  // nothing where it can't be told

struct Model::Implementation {
  ir::Model model;  // as the file says; external data are views of its files, unless it is deferred
  Bytes file;       // the mapped file; empty for models from text
  // The open file that the model holds views of, for those who write it to another; may be null.
  std::shared_ptr<const MappedFile> source;
  bool is_mapped = false;  // `file` is a mapping
  // Of the file; none where the model's weights need not be what its files hold.
  std::optional<FileStamp> stamp;
  // By location: of the external data that was brought in.
  mutable std::map<std::string, std::optional<FileStamp>> external_files;
  bool defers_data = false;                  // external data is brought in when the model is to run
  std::string trusted_folder;                // of external data
  ops::CustomTable custom;                   // operators from outside that it may call
  bool strict = false;                       // no lenient reading
  std::function<void(const Warning&)> warn;  // may be null
  SharedAccount memory;                      // that the model charges; null: nobody counts
  MemoryCharge messages;                     // of a model that was made of another
  mutable ops::PackCache packs;
  mutable KeptGraphs graphs;
  mutable Variants variants;  // after the packs, which their plans use

  // Whether the model can run, found out when it is first asked, which is when `warn` is told.
  struct Judged {
    MemoryCharge memory;  // of the mended model
    // What runs instead of `model`, where lenient reading mended it or external data was deferred.
    std::optional<ir::Model> mended;
    std::vector<check::Diagnostic> findings;  // of the checker's runnable profile, after mending
    // Nothing was found, mended or warned of by the lenient reading either.
    bool is_clean = false;
  };
  const Judged& judged() const;
  // Makes external data views of its files.
  void bring_in(ir::Model& into, bool verify = false) const;
  // The model with them.
  ir::Model with_data(bool verify = false) const;
  const ir::Model& runnable() const { return judged().mended ? *judged().mended : model; }

 private:
  void judge() const;

  // Not std::call_once, which for g++ on Windows stays locked where the call throws.
  mutable std::mutex judging_;
  mutable std::atomic<bool> is_judged_ = false;
  mutable Judged judged_;
};

// From what a model holds to the model.
struct ModelMaker {
  static Model make(std::shared_ptr<const Model::Implementation> implementation) {
    Model model;
    model.implementation_ = std::move(implementation);
    return model;
  }
  // Another model that shares what the given one has beside its messages: its file, operators from
  // outside, options.
  static Model derive(const Model& from, ir::Model changed);
  // The same of messages whose weights are those of the given model.
  static Model derive_same_weights(const Model& from, ir::Model changed);
};

}  // namespace sardonyx
