// A list whose first items need no memory of their own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>

namespace sardonyx {

// For lists that nearly always hold at most `few` items and are made and thrown away by the
// thousands. Moving one moves what it holds in itself, so that items must move without throwing.
template <class T, uint32_t few>
class SmallVector {
 public:
  SmallVector() = default;
  SmallVector(std::initializer_list<T> items) { append({items.begin(), items.size()}); }
  explicit SmallVector(std::span<const T> items) { append(items); }
  SmallVector(const SmallVector& other) { append(other); }
  SmallVector(SmallVector&& other) noexcept { take(other); }
  SmallVector& operator=(SmallVector other) noexcept {
    release();
    take(other);
    return *this;
  }
  ~SmallVector() { release(); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return heap_ != nullptr ? heap_ : reinterpret_cast<T*>(room_); }
  T* end() { return begin() + size_; }
  const T* begin() const { return heap_ != nullptr ? heap_ : reinterpret_cast<const T*>(room_); }
  const T* end() const { return begin() + size_; }
  T& operator[](size_t i) { return begin()[i]; }
  const T& operator[](size_t i) const { return begin()[i]; }
  T& back() { return begin()[size_ - 1]; }
  operator std::span<const T>() const { return {begin(), size_}; }  // NOLINT: as std::vector is one

  void reserve(size_t count) {
    if (count > capacity_) grow(count);
  }
  void push_back(T item) {
    if (size_ == capacity_) grow(size_t{2} * capacity_);
    std::construct_at(end(), std::move(item));
    ++size_;
  }
  // `items` are not this list's own.
  void append(std::span<const T> items) {
    reserve(size_ + items.size());
    std::uninitialized_copy(items.begin(), items.end(), end());
    size_ += static_cast<uint32_t>(items.size());
  }
  void erase(T* item) {
    std::move(item + 1, end(), item);
    truncate(size_ - 1);
  }
  // Drops the items from that on which would be number `count`.
  void truncate(size_t count) {
    std::destroy(begin() + count, end());
    size_ = static_cast<uint32_t>(count);
  }

 private:
  void grow(size_t count) {
    T* larger = std::allocator<T>().allocate(count);
    std::uninitialized_move(begin(), end(), larger);
    const uint32_t size = size_;
    release();
    heap_ = larger;
    capacity_ = static_cast<uint32_t>(count);
    size_ = size;
  }

  void release() {
    std::destroy(begin(), end());
    if (heap_ != nullptr) std::allocator<T>().deallocate(heap_, capacity_);
    heap_ = nullptr;
    size_ = 0;
    capacity_ = few;
  }

  // Of an empty list.
  void take(SmallVector& other) {
    if (other.heap_ != nullptr) {
      heap_ = std::exchange(other.heap_, nullptr);
      size_ = std::exchange(other.size_, 0);
      capacity_ = std::exchange(other.capacity_, few);
      return;
    }
    std::uninitialized_move(other.begin(), other.end(), begin());
    size_ = other.size_;
    other.truncate(0);
  }

  T* heap_ = nullptr;
  uint32_t size_ = 0;
  uint32_t capacity_ = few;
  alignas(T) std::byte room_[few * sizeof(T)];
};

}  // namespace sardonyx
