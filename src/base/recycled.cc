#include "base/recycled.h"

#include <utility>

namespace sardonyx {
namespace {

constexpr size_t min_size = size_t{128} << 10;  // from about here on the heap asks the system

}  // namespace

Bytes RecycledBlocks::allocate(size_t size) {
  if (size < min_size) return Bytes::allocate(size);
  Bytes block;
  {
    const std::lock_guard lock(spare_->mutex);
    block = std::exchange(spare_->block, Bytes());  // one of another size is let go
  }
  if (block.size() != size) {
    block = {};
    block = Bytes::allocate(size);
  }
  const std::byte* data = block.data();
  const auto come_back = [spare = spare_, block](const void*) {
    const std::lock_guard lock(spare->mutex);
    spare->block = block;
  };
  return Bytes(std::shared_ptr<const void>(data, come_back), data, size);
}

size_t RecycledBlocks::waiting_bytes() const {
  const std::lock_guard lock(spare_->mutex);
  return spare_->block.size();
}

}  // namespace sardonyx
