// What fuzz targets that draw what they test take from their bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sardonyx/value.h"

namespace sardonyx::fuzzing {

// Numbers, most of them small; all 0 once the bytes are spent.
class Choices {
 public:
  Choices(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  uint8_t byte() { return at_ < size_ ? data_[at_++] : 0; }
  // Below n; two bytes where one does not reach.
  size_t below(size_t n);
  bool one_in(size_t n) { return below(n) == n - 1; }  // false once the bytes are spent
  uint64_t bits();
  int64_t integer();
  double real();

 private:
  const uint8_t* data_;
  size_t size_, at_ = 0;
};

// How the elements of one tensor are drawn.
enum class Style { counted, signed_small, reals, anything, ones, indices };

// Fills a tensor whose elements are numbers.
void draw_elements(Choices& choices, Style style, Tensor& tensor);

}  // namespace sardonyx::fuzzing
