// External data: tensors whose elements are in a file of their own beside the model.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/os.h"
#include "ir/model.h"

namespace sardonyx::wire {

struct ExternalOptions {
  // Symbolic and hard links are refused, since through them a model could read any file of this
  // machine. A folder named here is trusted: a link is followed where it ends inside it.
  std::string trusted_folder;
  // Compare each file with the SHA-1 digest that a tensor states for it.
  bool verify_checksums = false;
};

// The one way from a tensor to its external bytes. A location is a relative path that stays inside
// the model's folder; files are mapped once and shared by all tensors. May be called from any
// thread. A mapping lives as long as anybody holds bytes of it.
class ExternalData {
 public:
  // `folder` as ir::Model gives it; empty: the model has none and external data is an error.
  explicit ExternalData(std::string folder, ExternalOptions options = {});
  ~ExternalData();
  ExternalData(const ExternalData&) = delete;
  ExternalData& operator=(const ExternalData&) = delete;

  // The `needed` bytes of an external tensor. Throws Error: (invalid_model) for what the tensor
  // says about its data, (unreadable) for the file.
  Bytes bytes_of(const ir::TensorProto& tensor, uint64_t needed);

 private:
  struct File;
  File& open_file(const std::string& location);
  File& open_link(const std::string& location, const std::string& refusal);
  File& map_once(int descriptor, const std::string& location);
  int folder_descriptor();

  std::string folder_;
  ExternalOptions options_;
  os::Descriptor opened_folder_;
  std::mutex mutex_;
  std::map<std::pair<uint64_t, uint64_t>, std::unique_ptr<File>> files_;  // by device and inode
  std::map<std::string, File*, std::less<>> by_location_;
};

}  // namespace sardonyx::wire
