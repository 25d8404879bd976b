// Lists whose memory is charged to the account of the thread that makes them, before they have it.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

#include "base/memory_account.h"

namespace sardonyx {

template <class T>
class CountedAllocator {
 public:
  using value_type = T;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;

  CountedAllocator() : account_(current_account()) {}
  template <class U>
  CountedAllocator(const CountedAllocator<U>& other) : account_(other.account()) {}  // NOLINT

  T* allocate(size_t count) {
    const auto bytes = static_cast<int64_t>(count * sizeof(T));
    if (account_) account_->charge(bytes);
    try {
      return std::allocator<T>().allocate(count);
    } catch (...) {
      if (account_) account_->release(bytes);
      throw;
    }
  }
  void deallocate(T* memory, size_t count) noexcept {
    std::allocator<T>().deallocate(memory, count);
    if (account_) account_->release(static_cast<int64_t>(count * sizeof(T)));
  }
  const SharedAccount& account() const { return account_; }
  bool operator==(const CountedAllocator& other) const { return account_ == other.account_; }

 private:
  SharedAccount account_;
};

// For what a kernel makes for a size, beside its scratch memory.
template <class T>
using CountedVector = std::vector<T, CountedAllocator<T>>;

}  // namespace sardonyx
