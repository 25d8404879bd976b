// A view of bytes together with whatever keeps them alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace sardonyx {

// Cheap to copy; copies share the bytes. The owner may be a mapped file, a heap block or, for
// borrowed memory, nothing. Immutable unless whoever made it says otherwise.
class Bytes {
 public:
  Bytes() = default;
  Bytes(std::shared_ptr<const void> owner, const std::byte* data, size_t size)
      : owner_(std::move(owner)), data_(data), size_(size) {}

  // A copy of `text` on the heap.
  static Bytes copy_of(std::span<const std::byte> source);
  // A block of `size` uninitialised bytes, aligned to 64; huge pages are asked for above 2 MB.
  // Throws Error (out_of_memory). Until it is shared, its maker may write through mutable_data.
  static Bytes allocate(size_t size);

  const std::byte* data() const { return data_; }
  std::byte* mutable_data() { return const_cast<std::byte*>(data_); }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::span<const std::byte> span() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  const std::shared_ptr<const void>& owner() const { return owner_; }

  // A part of these bytes, with the same owner. offset + length must lie inside.
  Bytes slice(size_t offset, size_t length) const { return {owner_, data_ + offset, length}; }

 private:
  std::shared_ptr<const void> owner_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Maps a regular file for reading (private, read-only). Throws Error (unreadable) with the path
// and the reason. An empty file gives empty bytes. A file truncated while mapped raises SIGBUS on
// access: programs that fear it read into memory instead.
Bytes map_file(const std::string& path);
// Maps an already opened descriptor's file; `path` is for messages. Does not close it.
Bytes map_descriptor(int descriptor, const std::string& path);
// Reads a whole file into memory.
Bytes read_file(const std::string& path);

}  // namespace sardonyx
