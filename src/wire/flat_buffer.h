// FlatBuffers, as far as reading needs: tables whose fields are found through a list of offsets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"

namespace sardonyx::wire {

// A file that anybody may have written: each offset is checked when it is followed. Tables and
// vectors may overlap in such a file; what is taken of it is counted, so that no file gives more
// than it holds. Views of texts may come again, since writers may store equal texts once, up to 256
// times what the file holds; those who copy them limit that. Throws Error (unreadable) with the
// place.
class FlatBuffer {
 public:
  // `place` says for messages what is being read.
  FlatBuffer(Bytes bytes, std::function<std::string()> place)
      : bytes_(std::move(bytes)), place_(std::move(place)) {}

  class Table;
  // The table that the file begins with. `identifier` are the four letters behind its offset.
  Table root(std::string_view identifier);

 private:
  friend class Table;
  template <class Number>
  Number number(uint64_t at) const {
    if (at > bytes_.size() || bytes_.size() - at < sizeof(Number)) refuse_number(at);
    Number value;
    std::memcpy(&value, bytes_.data() + at, sizeof value);
    return value;
  }
  // Where the offset at `at` leads to.
  uint64_t follow(uint64_t at) const { return at + number<uint32_t>(at); }
  // The offset and the number of bytes of the vector that the offset at `at` leads to.
  std::pair<uint64_t, uint64_t> vector(uint64_t at, uint64_t element_size) const;
  void count(uint64_t at, uint64_t bytes);
  void view(uint64_t at, uint64_t bytes);
  [[noreturn]] void refuse(uint64_t at, std::string_view what) const;
  [[noreturn]] void refuse_number(uint64_t at) const;

  Bytes bytes_;
  std::function<std::string()> place_;
  uint64_t taken_ = 0, viewed_ = 0;
};

// A table of the buffer, which must outlive it. Fields are named by their number in the schema; one
// that is not there has the default.
class FlatBuffer::Table {
 public:
  template <class Number>
  Number number(int field, Number otherwise = {}) const {
    const auto at = place(field);
    return at ? buffer_->number<Number>(*at) : otherwise;
  }
  bool truth(int field) const { return number<uint8_t>(field) != 0; }
  bool has(int field) const { return place(field).has_value(); }
  // Throws where it is no UTF-8.
  std::string text(int field) const;
  std::string_view text_view(int field) const;  // any bytes
  std::vector<std::string_view> text_views(int field) const;
  Bytes bytes(int field) const;  // a view
  template <class Number>
  std::vector<Number> numbers(int field) const {
    const std::string_view elements = counted(field, sizeof(Number));
    std::vector<Number> values(elements.size() / sizeof(Number));
    if (!values.empty()) std::memcpy(values.data(), elements.data(), elements.size());
    return values;
  }
  std::optional<Table> table(int field) const;
  std::vector<Table> tables(int field) const;

 private:
  friend class FlatBuffer;
  Table(FlatBuffer& buffer, uint64_t at);
  // Where the field is; nothing where the table does not have it.
  std::optional<uint64_t> place(int field) const;
  std::string_view counted(int field, uint64_t element_size) const;
  // Calls visit(offset) for each element of a vector of offsets.
  template <class Visit>
  void for_each_offset(int field, const Visit& visit) const;

  FlatBuffer* buffer_;
  uint64_t at_, fields_ = 0;  // of the table, of its list of offsets
  uint16_t size_ = 0;         // of the list, in bytes
};

}  // namespace sardonyx::wire
