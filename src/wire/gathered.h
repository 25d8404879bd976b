// Lists of numbers that come in parts. Internal to wire.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <span>

#include "base/bytes.h"

namespace sardonyx::wire {

// Appends to bytes that a reader gathered before, or that are still a view of the file. The room of
// a gathered block follows from its size, so that nothing else has to remember it.
inline void gather(Bytes& gathered, std::span<const std::byte> more,
                   const std::shared_ptr<const void>& file = nullptr) {
  const auto room_for = [](size_t size) { return std::bit_ceil(std::max<size_t>(size, 64)); };
  const size_t size = gathered.size() + more.size();
  const bool ours = gathered.owner() != nullptr && gathered.owner() != file;
  if (!ours || size > room_for(gathered.size())) {
    Bytes larger = Bytes::allocate(room_for(size));
    if (!gathered.empty()) std::memcpy(larger.mutable_data(), gathered.data(), gathered.size());
    gathered = larger.slice(0, gathered.size());
  }
  if (!more.empty())
    std::memcpy(gathered.mutable_data() + gathered.size(), more.data(), more.size());
  gathered = Bytes(gathered.owner(), gathered.data(), size);
}

}  // namespace sardonyx::wire
