// Large blocks of memory that come back to who gave them out.
#pragma once

#include <memory>
#include <mutex>

#include "base/bytes.h"

namespace sardonyx {

// Gives out blocks, one size at a time. A block that its last user lets go of, on any thread and
// even after this object is gone, waits here for the next request of its size: its pages need not
// be taken from the system and cleared again. At most one block waits.
class RecycledBlocks {
 public:
  // As Bytes::allocate. Small blocks are not worth keeping and go back to the heap.
  Bytes allocate(size_t size);
  size_t waiting_bytes() const;

 private:
  struct Spare {
    mutable std::mutex mutex;
    Bytes block;
  };
  std::shared_ptr<Spare> spare_ = std::make_shared<Spare>();
};

}  // namespace sardonyx
