#include "choices.h"

#include <array>
#include <cstring>
#include <iterator>
#include <limits>

namespace sardonyx::fuzzing {

size_t Choices::below(size_t n) {
  if (n <= 1) return 0;
  const size_t number = n > 200 ? byte() * size_t{256} + byte() : byte();
  return number % n;
}

uint64_t Choices::bits() {
  uint64_t all = 0;
  for (int i = 0; i < 8; ++i) all = all << 8 | byte();
  return all;
}

int64_t Choices::integer() {
  constexpr int64_t limits[] = {INT64_MAX, INT64_MIN,  INT64_MAX - 1, INT32_MAX,
                                INT32_MIN, 1LL << 32,  1LL << 62,     -(1LL << 62),
                                255,       256,        65536,         1LL << 40,
                                -128,      2147483648, 1000003,       -INT64_MAX};
  switch (below(16)) {
    case 15: return limits[below(std::size(limits))];
    case 14: return static_cast<int64_t>(bits());
    case 13: return -static_cast<int64_t>(below(6));
    case 12: return static_cast<int64_t>(below(64));
    default: return static_cast<int64_t>(below(4));
  }
}

double Choices::real() {
  constexpr double limits[] = {std::numeric_limits<double>::quiet_NaN(),
                               std::numeric_limits<double>::infinity(),
                               -std::numeric_limits<double>::infinity(),
                               -0.0,
                               3e38,
                               -1e300,
                               1e-40,
                               65504,
                               2147483648.0,
                               -9.3e18,
                               1.9e19,
                               0.5};
  switch (below(8)) {
    case 7: return limits[below(std::size(limits))];
    case 6: return static_cast<double>(integer());
    default: return (static_cast<int>(byte()) - 128) / 32.0;
  }
}

namespace {

void put(ElementType type, void* data, int64_t i, Choices& choices, double real, int64_t integer) {
  const auto store = [&](auto number) {
    std::memcpy(static_cast<std::byte*>(data) + static_cast<size_t>(i) * sizeof number, &number,
                sizeof number);
  };
  constexpr uint16_t halves[] = {0x3c00, 0,      0xbc00, 0x4000, 0x3800,
                                 0x7c00, 0x7e00, 0x8000, 0x7bff, 1};
  switch (type) {
    case ElementType::float32: return store(static_cast<float>(real));
    case ElementType::float64: return store(real);
    case ElementType::complex64: store(std::array{static_cast<float>(real), 0.5f}); return;
    case ElementType::complex128: store(std::array{real, 0.5}); return;
    case ElementType::float16: return store(halves[choices.below(std::size(halves))]);
    case ElementType::bfloat16: {
      const auto number = static_cast<float>(real);
      uint32_t bits;
      std::memcpy(&bits, &number, sizeof bits);
      return store(static_cast<uint16_t>(bits >> 16));
    }
    case ElementType::boolean: return store(static_cast<uint8_t>(integer & 1));
    case ElementType::int64:
    case ElementType::uint64: return store(integer);
    case ElementType::int32:
    case ElementType::uint32: return store(static_cast<int32_t>(integer));
    case ElementType::int16:
    case ElementType::uint16: return store(static_cast<int16_t>(integer));
    default: return;
  }
}

}  // namespace

void draw_elements(Choices& choices, Style style, Tensor& tensor) {
  const ElementType type = tensor.element_type();
  const bool bytes = bit_width(type) <= 8 && type != ElementType::boolean;
  if (bytes) {
    auto* data = static_cast<uint8_t*>(tensor.mutable_data());
    for (size_t i = 0; i < tensor.byte_size(); ++i)
      data[i] = style == Style::ones      ? 1
                : style == Style::indices ? choices.byte() & 3
                                          : choices.byte();
    return;
  }
  for (int64_t i = 0; i < tensor.size(); ++i) {
    double real = 1;
    int64_t integer = 1;
    switch (style) {
      case Style::ones: break;
      case Style::counted: real = static_cast<double>(integer = i); break;
      case Style::indices:
        real = static_cast<double>(integer = static_cast<int64_t>(choices.below(3)));
        break;
      case Style::signed_small:
        real = static_cast<double>(integer = static_cast<int64_t>(choices.below(7)) - 3);
        break;
      case Style::reals:
        real = (static_cast<int>(choices.byte()) - 128) / 48.0;
        integer = static_cast<int64_t>(choices.below(8));
        break;
      case Style::anything: real = choices.real(), integer = choices.integer(); break;
    }
    put(type, tensor.mutable_data(), i, choices, real, integer);
  }
}

}  // namespace sardonyx::fuzzing
