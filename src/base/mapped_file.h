// A file in memory whose descriptor stays open, for those who also write to it or copy from it. A
// small one is read, which costs less than a mapping and its first page; others are mapped.
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/os.h"

namespace sardonyx {

class MappedFile {
 public:
  enum class Access { read, append };

  // Throws Error (unreadable) with the path and the reason.
  explicit MappedFile(std::string path, Access access = Access::read);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  int descriptor() const { return file_.get(); }
  const Bytes& bytes() const { return bytes_; }  // as long as the file was when it was opened
  bool is_mapped() const { return is_mapped_; }

 private:
  bool read_small();  // whether the file was small and could be read

  std::string path_;
  os::Descriptor file_;
  Bytes bytes_;
  bool is_mapped_ = false;
};

}  // namespace sardonyx
