// Beside the test, so that no compiler sees both ends of an allocation.
#include "allocations/failing_new.h"

#include <malloc.h>

#include <cstddef>
#include <cstdlib>
#include <new>

namespace failing_new {

std::atomic<long> left{-1};
std::atomic<long> in_use{0}, max_in_use{0};

}  // namespace failing_new

extern "C" long bytes_in_use(void) { return failing_new::in_use; }

namespace {

using failing_new::in_use;
using failing_new::left;
using failing_new::max_in_use;

bool must_fail() { return left.load() >= 0 && left.fetch_sub(1) == 0; }

void* allocate(std::size_t size, std::size_t alignment) {
  if (must_fail()) return nullptr;
  void* const memory =
      alignment <= alignof(std::max_align_t)
          ? std::malloc(size == 0 ? 1 : size)
          : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) return nullptr;
  const long now = in_use += static_cast<long>(malloc_usable_size(memory));
  long most = max_in_use.load();
  while (most < now && !max_in_use.compare_exchange_weak(most, now)) {
  }
  return memory;
}

void release(void* memory) {
  if (memory != nullptr) in_use -= static_cast<long>(malloc_usable_size(memory));
  std::free(memory);
}

void* allocate_or_throw(std::size_t size, std::size_t alignment) {
  void* memory = allocate(size, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return allocate_or_throw(size, 1); }
void* operator new[](std::size_t size) { return allocate_or_throw(size, 1); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocate(size, 1); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return allocate(size, 1); }
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { release(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { release(memory); }
