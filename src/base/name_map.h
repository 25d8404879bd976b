// A map from names to small values, in one block of memory.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace sardonyx {

// Of names, of which most are short: two loads where they have 8 to 16 bytes.
inline uint64_t name_hash(std::string_view name) {
  const auto load = [](const char* from, size_t size) {
    uint64_t value = 0;
    std::memcpy(&value, from, size);
    return value;
  };
  const auto mixed = [](uint64_t a, uint64_t b) {
    const auto product =
        static_cast<unsigned __int128>(a ^ 0x9e3779b97f4a7c15) * (b ^ 0xd1b54a32d192ed03);
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  };
  const char* at = name.data();
  size_t left = name.size();
  uint64_t hash = left;
  for (; left > 16; at += 16, left -= 16) hash = mixed(load(at, 8) ^ hash, load(at + 8, 8));
  if (left >= 8) return mixed(load(at, 8) ^ hash, load(at + left - 8, 8));
  if (left >= 4) return mixed(load(at, 4) ^ hash, load(at + left - 4, 4));
  if (left == 0) return mixed(hash, 0);
  // One to three bytes: the first, the middle and the last.
  return mixed(load(at, 1) | load(at + left / 2, 1) << 8 | load(at + left - 1, 1) << 16, hash);
}

// A name with its hash, for those who look it up more than once. Borrows the name.
struct HashedName {
  template <class T>
  requires std::convertible_to<const T&, std::string_view> HashedName(const T& name)  // NOLINT
      : text(name), hash(name_hash(text)) {}
  HashedName(std::string_view name, uint64_t hash) : text(name), hash(hash) {}
  std::string_view text;
  uint64_t hash;
};

// For tables that are filled, asked and thrown away: one allocation where std::unordered_map makes
// one for each name. Names are not copied; no name is removed. Values are trivially copyable.
template <class V>
class NameMap {
 public:
  // Makes room for so many names.
  void reserve(size_t count) {
    if (wanted(count) > slots_.size()) grow(wanted(count));
  }
  size_t size() const { return entries_; }

  // The value of the name, and whether it is new. The pointer is good until the next name.
  std::pair<V*, bool> emplace(const HashedName& name, V value) {
    reserve(entries_ + 1);
    Slot& slot = slots_[place_of(name)];
    if (slot.is_used()) return {&slot.value, false};
    slot = {name.text.data() == nullptr ? std::string_view("", 0) : name.text, value};
    ++entries_;
    return {&slot.value, true};
  }
  const V* find(const HashedName& name) const {
    if (entries_ == 0) return nullptr;
    const Slot& slot = slots_[place_of(name)];
    return slot.is_used() ? &slot.value : nullptr;
  }
  bool contains(const HashedName& name) const { return find(name) != nullptr; }

  // Calls visit(name, value) for each, in an order that is not to be relied on.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const Slot& slot : slots_) {
      if (slot.is_used()) visit(slot.name, slot.value);
    }
  }

 private:
  struct Slot {
    bool is_used() const { return name.data() != nullptr; }
    std::string_view name;
    V value{};
  };

  // At most half of the slots are in use, so that names are close to where they are looked for.
  static size_t wanted(size_t count) { return std::bit_ceil(2 * count + 2); }

  // The slot that holds the name, or that it would take.
  size_t place_of(const HashedName& name) const {
    const size_t mask = slots_.size() - 1;
    size_t place = name.hash & mask;
    while (slots_[place].is_used() && slots_[place].name != name.text) place = (place + 1) & mask;
    return place;
  }

  void grow(size_t size) {
    std::vector<Slot> old(size);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.is_used()) slots_[place_of(slot.name)] = slot;
    }
  }

  std::vector<Slot> slots_;
  size_t entries_ = 0;
};

}  // namespace sardonyx
