// How the reader looks at a file: through a small copy of the part at hand. Internal to wire.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/bytes.h"

namespace sardonyx::wire {

// Touching a page of a mapping costs more than reading hundreds of bytes from a descriptor, and a
// model is a few bytes between weights that nobody looks at yet. Places are named by their address
// in the mapping; where there is no descriptor, they are read there.
class Window {
 public:
  // `bytes` map the whole file of `descriptor`; -1: they are in memory. Neither is owned.
  explicit Window(const Bytes& bytes, int descriptor = -1);
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  // The `size` bytes at `place`, which lie inside; good until the next call. Throws Error
  // (unreadable) where the file has become shorter.
  [[gnu::always_inline]] const std::byte* look(const std::byte* place, size_t size) {
    const std::byte* seen = glance(place, size);
    return seen != nullptr ? seen : move(static_cast<size_t>(place - file_), size);
  }
  // The same where it takes no reading; else null.
  [[gnu::always_inline]] const std::byte* glance(const std::byte* place, size_t size) const {
    const auto offset = static_cast<size_t>(place - file_);
    return offset >= begin_ && offset + size <= end_ ? seen_ + (offset - begin_) : nullptr;
  }
  // For those who are about to look at these bytes: as many of them as fit are read at once.
  void bring(const std::byte* place, size_t size) {
    if (size > most) size = most;
    if (glance(place, size) == nullptr) move(static_cast<size_t>(place - file_), size);
  }
  // What can be seen from `place` on without reading; good until the next call of look.
  std::span<const std::byte> sight(const std::byte* place) const {
    const auto offset = static_cast<size_t>(place - file_);
    if (offset < begin_ || offset >= end_) return {};
    return {seen_ + (offset - begin_), end_ - offset};
  }

 private:
  static constexpr size_t least = 512, most = size_t{1} << 14;

  const std::byte* move(size_t offset, size_t size);

  const std::byte* file_;
  size_t file_size_;
  int descriptor_;
  const std::byte* seen_;              // what is at begin_
  size_t begin_ = 0, end_ = 0;         // the offsets that can be seen
  std::unique_ptr<std::byte[]> copy_;  // null: nothing was read yet
};

}  // namespace sardonyx::wire
