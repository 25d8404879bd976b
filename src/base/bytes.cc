#include "base/bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/fail.h"

namespace sardonyx {
namespace {

constexpr size_t huge_page = size_t{2} << 20;

class Descriptor {
 public:
  // A pipe is refused by its kind, without waiting for somebody to write to it.
  explicit Descriptor(const std::string& path)
      : fd_(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
    if (fd_ < 0 && path.empty()) fail(ErrorCode::unreadable, "the name of a file to open is empty");
    if (fd_ < 0) fail_at(path, ErrorCode::unreadable, "cannot open: {}", std::strerror(errno));
  }
  ~Descriptor() { close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

size_t regular_file_size(int descriptor, const std::string& path) {
  struct stat info {};
  if (fstat(descriptor, &info) != 0) {
    fail_at(path, ErrorCode::unreadable, "cannot stat: {}", std::strerror(errno));
  }
  if (S_ISDIR(info.st_mode)) fail_at(path, ErrorCode::unreadable, "is a folder, not a file");
  if (!S_ISREG(info.st_mode)) fail_at(path, ErrorCode::unreadable, "is not a regular file");
  return static_cast<size_t>(info.st_size);
}

// At least one line of the cache.
size_t rounded(size_t size) { return (std::max<size_t>(size, 1) + 63) / 64 * 64; }

// One block holds these, what counts their owners, and the room that aligns them: an aligned block
// of its own takes the system's allocator several times as long.
constexpr size_t small = size_t{1} << 16;

Bytes allocate_small(size_t size) {
  const std::shared_ptr<std::byte[]> block =
      std::make_shared_for_overwrite<std::byte[]>(rounded(size) + 63);
  const auto address = reinterpret_cast<uintptr_t>(block.get());
  const std::byte* data = block.get() + (63 - (address + 63) % 64);
  return Bytes(block, data, size);
}

}  // namespace

Bytes Bytes::copy_of(std::span<const std::byte> source) {
  Bytes copy = allocate(source.size());
  if (!source.empty()) std::memcpy(copy.mutable_data(), source.data(), source.size());
  return copy;
}

Bytes Bytes::allocate(size_t size) {
  if (size <= small) return allocate_small(size);
  const size_t alignment = size >= huge_page ? huge_page : 64;
  if (size > SIZE_MAX / 2) fail(ErrorCode::out_of_memory, "cannot allocate {} bytes", size);
  void* block = nullptr;
  if (posix_memalign(&block, alignment, rounded(size)) != 0)
    fail(ErrorCode::out_of_memory, "cannot allocate {} bytes", size);
  // Whole huge pages only: the rest stays on small ones, or it would cost up to 2 MB more.
  if (size >= huge_page) madvise(block, size / huge_page * huge_page, MADV_HUGEPAGE);
  return Bytes(
      std::shared_ptr<const void>(block, [](const void* p) { std::free(const_cast<void*>(p)); }),
      static_cast<const std::byte*>(block), size);
}

Bytes map_descriptor(int descriptor, const std::string& path) {
  const size_t size = regular_file_size(descriptor, path);
  if (size == 0) return {};
  void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (address == MAP_FAILED) {
    fail_at(path, ErrorCode::unreadable, "cannot map {} bytes: {}", size, std::strerror(errno));
  }
  std::shared_ptr<const void> owner(address,
                                    [size](const void* p) { munmap(const_cast<void*>(p), size); });
  return Bytes(std::move(owner), static_cast<const std::byte*>(address), size);
}

Bytes map_file(const std::string& path) {
  const Descriptor file(path);
  return map_descriptor(file.get(), path);
}

void release_pages(std::span<const std::byte> mapped) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<uintptr_t>(mapped.data()) + page - 1) / page * page;
  const auto end = (reinterpret_cast<uintptr_t>(mapped.data()) + mapped.size()) / page * page;
  if (end > begin) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

Bytes read_file(const std::string& path) {
  const Descriptor file(path);
  Bytes bytes = Bytes::allocate(regular_file_size(file.get(), path));
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = read(file.get(), bytes.mutable_data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_at(path, ErrorCode::unreadable, "cannot read: {}", std::strerror(errno));
    if (got == 0) break;  // shrunk since it was opened
    done += static_cast<size_t>(got);
  }
  return bytes.slice(0, done);
}

}  // namespace sardonyx
