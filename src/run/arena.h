// The layout of a run's working memory.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>

#include "base/fail.h"

namespace sardonyx::run {

// Offsets in one arena: first fit among freed stretches, then at the end.
class ArenaLayout {
 public:
  // Blocks begin at multiples of 64 bytes.
  static int64_t rounded(int64_t bytes) { return (bytes + 63) / 64 * 64; }

  int64_t take(int64_t bytes) {
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      if (it->second < bytes) continue;
      const int64_t offset = it->first, rest = it->second - bytes;
      free_.erase(it);
      if (rest > 0) free_[offset + bytes] = rest;
      return offset;
    }
    if (!free_.empty()) {  // a free stretch at the end grows
      const auto last = std::prev(free_.end());
      if (last->first + last->second == end_) {
        const int64_t offset = last->first;
        free_.erase(last);
        return end_after(offset, bytes);
      }
    }
    return end_after(end_, bytes);
  }
  void give(int64_t offset, int64_t bytes) {
    if (bytes == 0) return;
    auto next = free_.upper_bound(offset);
    if (next != free_.end() && offset + bytes == next->first) {
      bytes += next->second;
      next = free_.erase(next);
    }
    if (next != free_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == offset) {
        before->second += bytes;
        return;
      }
    }
    free_[offset] = bytes;
  }
  int64_t end() const { return end_; }

 private:
  int64_t end_after(int64_t offset, int64_t bytes) {
    if (__builtin_add_overflow(offset, bytes, &end_))
      fail(ErrorCode::out_of_memory, "the run's working memory overflows");
    return offset;
  }

  std::map<int64_t, int64_t> free_;
  int64_t end_ = 0;
};

}  // namespace sardonyx::run
