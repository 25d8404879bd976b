// A list whose first items need no memory of their own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace sardonyx {

// What may be moved by copying its bytes, if the place it leaves is forgotten, not destroyed. A
// class says so by naming a type `moves_as_bytes`.
template <class T>
concept MovesAsBytes = std::is_trivially_copyable_v<T> || requires {
  typename T::moves_as_bytes;
};

// For lists that nearly always hold at most `few` items and are made and thrown away by the
// thousands. Members are those of std::vector. Moving one moves what it holds in itself, so that
// items must move without throwing.
template <class T, uint32_t few>
class SmallVector {
 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  SmallVector() = default;
  SmallVector(std::initializer_list<T> items) { append({items.begin(), items.size()}); }
  explicit SmallVector(std::span<const T> items) { append(items); }
  explicit SmallVector(size_t count) { resize(count); }
  SmallVector(size_t count, const T& item) { resize(count, item); }
  template <std::forward_iterator It>
  SmallVector(It first, It last) {
    insert(end(), first, last);
  }
  SmallVector(const SmallVector& other) { append(other); }
  SmallVector(SmallVector&& other) noexcept { take(other); }
  SmallVector& operator=(SmallVector other) noexcept {
    release();
    take(other);
    return *this;
  }
  ~SmallVector() { release(); }
  bool operator==(const SmallVector& other) const { return std::ranges::equal(*this, other); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return heap_ != nullptr ? heap_ : reinterpret_cast<T*>(room_); }
  T* end() { return begin() + size_; }
  const T* begin() const { return heap_ != nullptr ? heap_ : reinterpret_cast<const T*>(room_); }
  const T* end() const { return begin() + size_; }
  T& operator[](size_t i) { return begin()[i]; }
  const T& operator[](size_t i) const { return begin()[i]; }
  T* data() { return begin(); }
  const T* data() const { return begin(); }
  T& front() { return *begin(); }
  const T& front() const { return *begin(); }
  T& back() { return begin()[size_ - 1]; }
  const T& back() const { return begin()[size_ - 1]; }
  operator std::span<const T>() const { return {begin(), size_}; }  // NOLINT: as std::vector is one

  void reserve(size_t count) {
    if (count > capacity_) grow(count);
  }
  void push_back(T item) { emplace_back(std::move(item)); }
  // `arguments` are no items of this list.
  template <class... Arguments>
  T& emplace_back(Arguments&&... arguments) {
    if (size_ == capacity_) grow(size_t{2} * capacity_);
    T* item = std::construct_at(end(), std::forward<Arguments>(arguments)...);
    ++size_;
    return *item;
  }
  void pop_back() { truncate(size_ - 1); }
  void clear() { truncate(0); }
  // The item may be one of this list's, as with std::vector.
  void resize(size_t count, T item = T()) {
    if (count <= size_) return truncate(count);
    reserve(count);
    std::uninitialized_fill(end(), begin() + count, item);
    size_ = static_cast<uint32_t>(count);
  }
  T* insert(const T* at, T item) {
    const auto place = at - begin();
    push_back(std::move(item));
    std::rotate(begin() + place, end() - 1, end());
    return begin() + place;
  }
  // Items that are not this list's own.
  template <std::forward_iterator It>
  T* insert(const T* at, It first, It last) {
    const auto place = at - begin();
    const auto count = static_cast<size_t>(std::distance(first, last)), before = size();
    reserve(before + count);
    std::uninitialized_copy(first, last, end());
    size_ = static_cast<uint32_t>(before + count);
    std::rotate(begin() + place, begin() + before, end());
    return begin() + place;
  }
  // `items` are not this list's own.
  void append(std::span<const T> items) {
    reserve(size_ + items.size());
    std::uninitialized_copy(items.begin(), items.end(), end());
    size_ += static_cast<uint32_t>(items.size());
  }
  void erase(T* item) { erase(item, item + 1); }
  void erase(T* first, T* last) {
    std::move(last, end(), first);
    truncate(size_ - static_cast<size_t>(last - first));
  }
  // Drops the items from that on which would be number `count`.
  void truncate(size_t count) {
    std::destroy(begin() + count, end());
    size_ = static_cast<uint32_t>(count);
  }

 private:
  void grow(size_t count) {
    T* larger = std::allocator<T>().allocate(count);
    const uint32_t size = size_;
    if constexpr (MovesAsBytes<T>) {
      std::memcpy(static_cast<void*>(larger), begin(), size * sizeof(T));
      size_ = 0;
    } else {
      std::uninitialized_move(begin(), end(), larger);
    }
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
    if constexpr (MovesAsBytes<T>) {  // all of the room: no loop, no branch
      std::memcpy(room_, other.room_, sizeof room_);
      size_ = std::exchange(other.size_, 0);
    } else {
      std::uninitialized_move(other.begin(), other.end(), begin());
      size_ = other.size_;
      other.truncate(0);
    }
  }

  T* heap_ = nullptr;
  uint32_t size_ = 0;
  uint32_t capacity_ = few;
  alignas(T) std::byte room_[few * sizeof(T)];
};

}  // namespace sardonyx
