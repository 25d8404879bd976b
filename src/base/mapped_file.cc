#include "base/mapped_file.h"

#include <cstring>
#include <utility>

#include "base/fail.h"

namespace sardonyx {

MappedFile::MappedFile(std::string path, Access access) : path_(std::move(path)) {
  if (path_.empty()) fail(ErrorCode::unreadable, "the name of a file to open is empty");
  const bool reads = access == Access::read;
  file_ = os::Descriptor(os::open(path_, reads ? os::Opening::read : os::Opening::append));
  if (!file_.is_open()) {
    fail_at(path_, ErrorCode::unreadable, "cannot open{}: {}", reads ? "" : " for writing",
            std::strerror(errno));
  }
  is_mapped_ = !read_small();
  if (is_mapped_) bytes_ = map_descriptor(file_.get(), path_);
}

bool MappedFile::read_small() {
  constexpr size_t largest = 1 << 16;
  const auto info = os::info_of(file_.get());
  if (!info || !info->is_regular() || info->size == 0 || info->size > largest) return false;
  Bytes bytes = Bytes::allocate(info->size);
  if (os::read_at(file_.get(), bytes.mutable_data(), info->size, 0) !=
      static_cast<int64_t>(info->size))
    return false;
  bytes_ = std::move(bytes);
  return true;
}

}  // namespace sardonyx
