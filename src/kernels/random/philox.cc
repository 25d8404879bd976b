#include "kernels/random/philox.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "base/fail.h"
#include "base/memory_account.h"
#include "kernels/convert/cast.h"
#include "kernels/random/draw.h"

namespace sardonyx::kernels {
namespace {

constexpr int64_t tile = 1024;
constexpr int64_t grain = 16 * tile;

double to_unit(uint32_t high, uint32_t low) {
  const uint64_t bits = (static_cast<uint64_t>(high) << 32 | low) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

void check_type(ElementType type) {
  switch (type) {
    case ElementType::float32:
    case ElementType::float64:
    case ElementType::float16:
    case ElementType::bfloat16: return;
    default: fail(ErrorCode::unsupported, "no random numbers of type {}", name_of(type));
  }
}

// Calls body(begin, end) for tiles of [0, n), each beginning at a multiple of the tile.
template <class Body>
void for_tiles(int64_t n, ThreadPool& pool, Body&& body) {
  pool.parallel_for(n, grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t at = begin; at < end; at += tile) body(at, std::min(at + tile, end));
  });
}

// `n` numbers from a tile's first on. float32 takes 32 bits for each, float64 twice as many.
void draw_floats(const Philox& random, int64_t begin, uint32_t* bits, int64_t n) {
  draw_bits(random.key(), random.stream(), static_cast<uint64_t>(begin) / 4, bits, n);
}
void draw_units(const Philox& random, int64_t begin, double* unit, int64_t n) {
  uint32_t bits[2 * tile];
  draw_bits(random.key(), random.stream(), static_cast<uint64_t>(begin) / 2, bits, 2 * n);
  unit_doubles(bits, unit, n);
}

int64_t whole_draws(int64_t n) {
  return (n + drawn_together - 1) / drawn_together * drawn_together;
}

// Narrow types are made as float32 and rounded; float64 has twice the random bits. `make`
// fills y[0, n) with elements [begin, begin + n).
template <class MakeFloats, class MakeDoubles>
void fill_tiles(ElementType type, void* y, int64_t n, ThreadPool& pool, MakeFloats make_floats,
                MakeDoubles make_doubles) {
  check_type(type);
  const auto fill = [&](auto* out, int64_t begin, int64_t end, auto make) {
    const int64_t some = whole_draws(end - begin);
    if (end - begin == some) return make(begin, out, some);
    std::remove_pointer_t<decltype(out)> buffer[tile];
    make(begin, buffer, some);
    std::copy_n(buffer, end - begin, out);
  };
  for_tiles(n, pool, [&](int64_t begin, int64_t end) {
    if (type == ElementType::float64) {
      fill(static_cast<double*>(y) + begin, begin, end, make_doubles);
    } else if (type == ElementType::float32) {
      fill(static_cast<float*>(y) + begin, begin, end, make_floats);
    } else {
      float buffer[tile];
      make_floats(begin, buffer, whole_draws(end - begin));
      to_float16(type, buffer, static_cast<std::byte*>(y) + byte_size(type, begin), end - begin);
    }
  });
}

void probabilities(ElementType type, const void* p, int64_t begin, int64_t end, double* y) {
  const auto* from = static_cast<const std::byte*>(p) + byte_size(type, begin);
  if (type == ElementType::float64) {
    std::copy_n(static_cast<const double*>(p) + begin, end - begin, y);
    return;
  }
  float buffer[tile];
  to_floats(type, from, buffer, end - begin);
  std::copy_n(buffer, end - begin, y);
}

}  // namespace

std::array<uint32_t, 4> Philox::operator()(uint64_t position) const {
  std::array<uint32_t, 4> c = {
      static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32),
      static_cast<uint32_t>(stream_), static_cast<uint32_t>(stream_ >> 32)};
  uint32_t low = static_cast<uint32_t>(key_), high = static_cast<uint32_t>(key_ >> 32);
  for (int round = 0; round < rounds; ++round) {
    const uint64_t a = uint64_t{factors[0]} * c[0], b = uint64_t{factors[1]} * c[2];
    c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ low, static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ c[3] ^ high, static_cast<uint32_t>(a)};
    low += steps[0], high += steps[1];
  }
  return c;
}

double Philox::uniform(uint64_t position) const {
  const auto bits = (*this)(position / 2);
  return position % 2 == 0 ? to_unit(bits[0], bits[1]) : to_unit(bits[2], bits[3]);
}

void fill_uniform(ElementType type, const Philox& random, double low, double high, void* y,
                  int64_t n, ThreadPool& pool) {
  const auto low_float = static_cast<float>(low), span = static_cast<float>(high - low);
  fill_tiles(
      type, y, n, pool,
      [&](int64_t begin, float* out, int64_t some) {
        uint32_t bits[tile];
        draw_floats(random, begin, bits, some);
        unit_floats(bits, out, some);
        stretch(out, low_float, span, some);
      },
      [&](int64_t begin, double* out, int64_t some) {
        draw_units(random, begin, out, some);
        stretch(out, low, high - low, some);
      });
}

void fill_normal(ElementType type, const Philox& random, double mean, double deviation, void* y,
                 int64_t n, ThreadPool& pool) {
  fill_tiles(
      type, y, n, pool,
      [&](int64_t begin, float* out, int64_t some) {
        uint32_t bits[tile];
        draw_floats(random, begin, bits, some);
        normal_floats(bits, mean, deviation, out, some);
      },
      [&](int64_t begin, double* out, int64_t some) {
        double unit[tile];
        draw_units(random, begin, unit, some);
        normal_doubles(unit, mean, deviation, out, some);
      });
}

void bernoulli(ElementType type, const Philox& random, const void* p, uint8_t* y, int64_t n,
               ThreadPool& pool) {
  check_type(type);
  for_tiles(n, pool, [&](int64_t begin, int64_t end) {
    double chance[tile] = {}, unit[tile];
    uint8_t heads[tile];
    const int64_t some = whole_draws(end - begin);
    probabilities(type, p, begin, end, chance);
    draw_units(random, begin, unit, some);
    flip_coins(unit, chance, heads, some);
    std::copy_n(heads, end - begin, y + begin);
  });
}

void multinomial(ElementType type, const Philox& random, const void* logits, int64_t rows,
                 int64_t classes, int64_t samples, int64_t* y, ThreadPool& pool) {
  check_type(type);
  const MemoryCharge sums_of_threads(std::min<int64_t>(rows, pool.threads()) * classes *
                                     static_cast<int64_t>(sizeof(double)));
  pool.parallel_for(rows, 1, [&](int64_t row_begin, int64_t row_end, int) {
    std::vector<double> sums(static_cast<size_t>(classes));
    for (int64_t row = row_begin; row < row_end; ++row) {
      for (int64_t at = 0; at < classes; at += tile) {
        const int64_t first = row * classes + at;
        probabilities(type, logits, first, first + std::min(tile, classes - at), sums.data() + at);
      }
      const double top = classes > 0 ? *std::max_element(sums.begin(), sums.end()) : 0;
      double total = 0;
      for (double& sum : sums) sum = total += std::exp(sum - top);
      if (!(total > 0) || !std::isfinite(total))
        fail(ErrorCode::run_failed, "Multinomial: row {} has no class to draw from", row);
      for (int64_t i = row * samples; i < (row + 1) * samples; ++i) {
        const double drawn = random.uniform(static_cast<uint64_t>(i)) * total;
        const auto found = std::upper_bound(sums.begin(), sums.end(), drawn) - sums.begin();
        y[i] = std::min<int64_t>(found, classes - 1);
      }
    }
  });
}

}  // namespace sardonyx::kernels
