// FlatBuffers, as far as reading needs: tables whose fields are found through a list of offsets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace sardonyx::formats {

// A file that anybody may have written: each offset is checked when it is followed. Tables, texts
// and vectors may overlap in such a file; what is taken of it is counted, so that no file gives
// more than it holds. Throws Error (unreadable) with the name and the place.
class FlatBuffer {
 public:
  // `name` is for messages.
  FlatBuffer(Bytes bytes, std::string name) : bytes_(std::move(bytes)), name_(std::move(name)) {}

  class Table;
  // The table that the file begins with. `identifier` are the four letters behind its offset.
  Table root(std::string_view identifier);

 private:
  friend class Table;
  template <class Number>
  Number number(uint64_t at) const;
  uint64_t follow(uint64_t at) const;  // the offset that stands there
  // The elements of the vector that stands there; they are counted.
  Bytes elements(uint64_t at, uint64_t element_size);
  [[noreturn]] void refuse(uint64_t at, std::string_view what) const;

  Bytes bytes_;
  std::string name_;
  uint64_t taken_ = 0;
};

// A table of the buffer, which must outlive it. Fields are named by their number in the schema; one
// that is not there has the default.
class FlatBuffer::Table {
 public:
  int32_t int32(int field, int32_t otherwise = 0) const;
  int64_t int64(int field, int64_t otherwise = 0) const;
  float float32(int field, float otherwise = 0) const;
  bool truth(int field) const;
  std::string text(int field) const;
  Bytes bytes(int field) const;  // a view
  std::vector<int64_t> int64s(int field) const;
  std::optional<Table> table(int field) const;
  std::vector<Table> tables(int field) const;

 private:
  friend class FlatBuffer;
  Table(FlatBuffer& buffer, uint64_t at);
  // Where the field stands; nothing where the table has none.
  std::optional<uint64_t> place(int field) const;
  template <class Number>
  Number number(int field, Number otherwise) const;

  FlatBuffer* buffer_;
  uint64_t at_, fields_ = 0;  // of the table, of its list of offsets
  uint16_t size_ = 0;         // of the list, in bytes
};

}  // namespace sardonyx::formats
