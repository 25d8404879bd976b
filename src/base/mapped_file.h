// A mapped file whose descriptor stays open, for those who also write to it or copy from it.
#pragma once

#include <string>

#include "base/bytes.h"

namespace sardonyx {

// ".", "/" or whatever leads to the file.
std::string folder_of(const std::string& path);

class MappedFile {
 public:
  enum class Access { read, append };

  // Throws Error (unreadable) with the path and the reason.
  explicit MappedFile(std::string path, Access access = Access::read);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  int descriptor() const { return descriptor_; }
  const Bytes& bytes() const { return bytes_; }  // as long as the file was when it was opened

 private:
  std::string path_;
  int descriptor_ = -1;
  Bytes bytes_;
};

}  // namespace sardonyx
