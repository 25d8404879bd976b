#include "base/bytes.h"

#include <algorithm>
#include <cstring>

#include "base/fail.h"
#include "base/os.h"

namespace sardonyx {
namespace {

constexpr size_t huge_page = size_t{2} << 20;

// A pipe is refused by its kind, without waiting for somebody to write to it.
os::Descriptor opened(const std::string& path) {
  os::Descriptor file(os::open(path, os::Opening::read));
  if (file.is_open()) return file;
  const int reason = errno;
  if (path.empty()) fail(ErrorCode::unreadable, "the name of a file to open is empty");
  fail_at(path, ErrorCode::unreadable, "cannot open: {}", std::strerror(reason));
}

size_t regular_file_size(int descriptor, const std::string& path) {
  const auto info = os::info_of(descriptor);
  if (!info) fail_at(path, ErrorCode::unreadable, "cannot stat: {}", std::strerror(errno));
  if (info->is_folder()) fail_at(path, ErrorCode::unreadable, "is a folder, not a file");
  if (!info->is_regular()) fail_at(path, ErrorCode::unreadable, "is not a regular file");
  return info->size;
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
  void* block = os::allocate(rounded(size), alignment);
  if (block == nullptr) fail(ErrorCode::out_of_memory, "cannot allocate {} bytes", size);
  return Bytes(
      std::shared_ptr<const void>(block, [](const void* p) { os::free(const_cast<void*>(p)); }),
      static_cast<const std::byte*>(block), size);
}

Bytes map_descriptor(int descriptor, const std::string& path) {
  const size_t size = regular_file_size(descriptor, path);
  if (size == 0) return {};
  const std::byte* address = os::map(descriptor, size);
  if (address == nullptr) {
    fail_at(path, ErrorCode::unreadable, "cannot map {} bytes: {}", size, std::strerror(errno));
  }
  std::shared_ptr<const void> owner(
      address, [size](const void* p) { os::unmap(static_cast<const std::byte*>(p), size); });
  return Bytes(std::move(owner), address, size);
}

Bytes map_file(const std::string& path) { return map_descriptor(opened(path).get(), path); }

Bytes read_file(const std::string& path) {
  const os::Descriptor file = opened(path);
  Bytes bytes = Bytes::allocate(regular_file_size(file.get(), path));
  size_t done = 0;
  while (done < bytes.size()) {
    const int64_t got = os::read(file.get(), bytes.mutable_data() + done, bytes.size() - done);
    if (got < 0) fail_at(path, ErrorCode::unreadable, "cannot read: {}", std::strerror(errno));
    if (got == 0) break;  // shrunk since it was opened
    done += static_cast<size_t>(got);
  }
  return bytes.slice(0, done);
}

}  // namespace sardonyx
