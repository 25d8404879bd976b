// Files of FlatBuffers written by hand, front to back, for tests of what no proper writer writes.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>

namespace sardonyx::wire_test {

class FlatBuilder {
 public:
  explicit FlatBuilder(std::string_view identifier) {
    bytes_.assign(4, '\0');
    bytes_ += identifier;
  }

  // A table with these fields, each of 8 bytes that are 0. Returns its offset.
  size_t table(std::initializer_list<int> fields) {
    const int count = fields.size() == 0 ? 0 : std::max(fields) + 1;
    align();
    const size_t list = bytes_.size();
    const size_t list_size = 4 + 2 * static_cast<size_t>(count);
    bytes_.append((list_size + 7) / 8 * 8, '\0');
    const size_t at = bytes_.size();
    bytes_.append(8 + 8 * fields.size(), '\0');
    put(list, static_cast<uint16_t>(list_size));
    put(list + 2, static_cast<uint16_t>(bytes_.size() - at));
    put(at, static_cast<int32_t>(at - list));
    uint16_t offset = 8;
    for (const int field : fields) {
      put(list + 4 + 2 * static_cast<size_t>(field), offset);
      offset = static_cast<uint16_t>(offset + 8);
    }
    return at;
  }
  // Where the value of a field of a table is.
  size_t slot(size_t table, int field) const {
    const auto list = table - static_cast<size_t>(get<int32_t>(table));
    return table + get<uint16_t>(list + 4 + 2 * static_cast<size_t>(field));
  }
  // A vector of `count` offsets; they are at its own offset + 4, + 8 …
  size_t list(size_t count) {
    align();
    const size_t at = bytes_.size();
    bytes_.append(4 + 4 * count, '\0');
    put(at, static_cast<uint32_t>(count));
    return at;
  }
  size_t text(std::string_view text) {
    align();
    const size_t at = bytes_.size();
    bytes_.append(4, '\0');
    put(at, static_cast<uint32_t>(text.size()));
    bytes_ += text;
    bytes_ += '\0';
    return at;
  }
  // The offset at `from`, which comes before what it leads to.
  void link(size_t from, size_t to) { put(from, static_cast<uint32_t>(to - from)); }
  template <class T>
  void put(size_t at, T value) {
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  template <class T>
  T get(size_t at) const {
    T value;
    std::memcpy(&value, bytes_.data() + at, sizeof value);
    return value;
  }
  void align() { bytes_.resize((bytes_.size() + 7) / 8 * 8); }

  std::string bytes_;
};

}  // namespace sardonyx::wire_test
