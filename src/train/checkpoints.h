// A folder of checkpoints: which one is the newest, and that one process alone writes to it.
#pragma once

#include <cstdint>
#include <string>

#include "base/os.h"
#include "sardonyx/fit.h"

namespace sardonyx::train {

class CheckpointFolder {
 public:
  // Makes the folder where it is missing. Throws Error (unreadable) where it can't be written to,
  // or another process trains into it.
  explicit CheckpointFolder(const std::string& path);

  // Writes one, and then removes all but the newest `keep`. Its path.
  std::string write(const TrainingSession& session, int64_t step, int64_t keep) const;

 private:
  std::string path_;
  os::Descriptor lock_;
};

}  // namespace sardonyx::train
