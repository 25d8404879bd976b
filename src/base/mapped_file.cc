#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/fail.h"

namespace sardonyx {

std::optional<int> descriptor_named(std::string_view path) {
  if (path == "/dev/stdin") return STDIN_FILENO;
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    int descriptor = -1;
    const char* end = path.data() + path.size();
    const auto [stop, problem] = std::from_chars(path.data() + folder.size(), end, descriptor);
    if (problem == std::errc() && stop == end && descriptor >= 0) return descriptor;
  }
  return std::nullopt;
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

MappedFile::MappedFile(std::string path, Access access) : path_(std::move(path)) {
  if (path_.empty()) fail(ErrorCode::unreadable, "the name of a file to open is empty");
  // A pipe is refused below, without waiting for somebody to write to it.
  const int mode = access == Access::read ? O_RDONLY | O_NONBLOCK : O_RDWR | O_APPEND;
  descriptor_ = open(path_.c_str(), mode | O_CLOEXEC);
  if (descriptor_ < 0) {
    fail_at(path_, ErrorCode::unreadable, "cannot open{}: {}",
            access == Access::read ? "" : " for writing", std::strerror(errno));
  }
  try {
    is_mapped_ = !read_small();
    if (is_mapped_) bytes_ = map_descriptor(descriptor_, path_);
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

bool MappedFile::read_small() {
  constexpr size_t largest = 1 << 16;
  struct stat info {};
  if (fstat(descriptor_, &info) != 0 || !S_ISREG(info.st_mode)) return false;
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0 || size > largest) return false;
  Bytes bytes = Bytes::allocate(size);
  if (pread(descriptor_, bytes.mutable_data(), size, 0) != info.st_size) return false;
  bytes_ = std::move(bytes);
  return true;
}

MappedFile::~MappedFile() { close(descriptor_); }

}  // namespace sardonyx
