#include "base/mapped_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/fail.h"

namespace sardonyx {

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

MappedFile::MappedFile(std::string path, Access access) : path_(std::move(path)) {
  const int mode = access == Access::read ? O_RDONLY : O_RDWR | O_APPEND;
  descriptor_ = open(path_.c_str(), mode | O_CLOEXEC);
  if (descriptor_ < 0) {
    fail_at(path_, ErrorCode::unreadable, "cannot open{}: {}",
            access == Access::read ? "" : " for writing", std::strerror(errno));
  }
  try {
    bytes_ = map_descriptor(descriptor_, path_);
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

MappedFile::~MappedFile() { close(descriptor_); }

}  // namespace sardonyx
