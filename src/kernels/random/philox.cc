#include "kernels/random/philox.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "base/fail.h"
#include "kernels/convert/cast.h"

namespace sardonyx::kernels {
namespace {

constexpr int64_t tile = 1024;
constexpr int64_t grain = 16 * tile;

double to_unit(uint32_t high, uint32_t low) {
  const uint64_t bits = (static_cast<uint64_t>(high) << 32 | low) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}
float to_unit(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

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

// Narrow types are made as float32 and rounded; float64 has twice the random bits. `make` fills
// y[0, end - begin) with elements [begin, end).
template <class MakeFloat, class MakeDouble>
void fill_tiles(ElementType type, void* y, int64_t n, ThreadPool& pool, MakeFloat make_float,
                MakeDouble make_double) {
  check_type(type);
  for_tiles(n, pool, [&](int64_t begin, int64_t end) {
    if (type == ElementType::float64) {
      make_double(static_cast<double*>(y) + begin, begin, end);
    } else if (type == ElementType::float32) {
      make_float(static_cast<float*>(y) + begin, begin, end);
    } else {
      float buffer[tile];
      make_float(buffer, begin, end);
      to_halves(type, buffer, static_cast<std::byte*>(y) + byte_size(type, begin), end - begin);
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
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * c[0], b = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ low, static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ c[3] ^ high, static_cast<uint32_t>(a)};
    low += 0x9E3779B9, high += 0xBB67AE85;
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
      [&](float* out, int64_t begin, int64_t end) {
        for (int64_t at = begin; at < end; at += 4) {
          const auto bits = random(static_cast<uint64_t>(at) / 4);
          for (int64_t i = at; i < std::min(at + 4, end); ++i)
            out[i - begin] = low_float + span * to_unit(bits[static_cast<size_t>(i - at)]);
        }
      },
      [&](double* out, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          out[i - begin] = low + (high - low) * random.uniform(static_cast<uint64_t>(i));
      });
}

// Two uniform numbers give two normal ones (Box and Muller); 1 - u is never 0.
void fill_normal(ElementType type, const Philox& random, double mean, double deviation, void* y,
                 int64_t n, ThreadPool& pool) {
  const auto pair = [&](double u, double v, double* normal) {
    const double radius = deviation * std::sqrt(-2 * std::log(1 - u)),
                 angle = 2 * std::numbers::pi * v;
    normal[0] = mean + radius * std::cos(angle);
    normal[1] = mean + radius * std::sin(angle);
  };
  fill_tiles(
      type, y, n, pool,
      [&](float* out, int64_t begin, int64_t end) {
        for (int64_t at = begin; at < end; at += 4) {
          const auto bits = random(static_cast<uint64_t>(at) / 4);
          double normal[4];
          // 32 random bits in the radius reach 6.6 deviations.
          pair(static_cast<double>(bits[0]) * 0x1p-32, static_cast<double>(bits[1]) * 0x1p-32,
               normal);
          pair(static_cast<double>(bits[2]) * 0x1p-32, static_cast<double>(bits[3]) * 0x1p-32,
               normal + 2);
          for (int64_t i = at; i < std::min(at + 4, end); ++i)
            out[i - begin] = static_cast<float>(normal[i - at]);
        }
      },
      [&](double* out, int64_t begin, int64_t end) {
        for (int64_t at = begin; at < end; at += 2) {
          double normal[2];
          pair(random.uniform(static_cast<uint64_t>(at)),
               random.uniform(static_cast<uint64_t>(at) + 1), normal);
          for (int64_t i = at; i < std::min(at + 2, end); ++i) out[i - begin] = normal[i - at];
        }
      });
}

void bernoulli(ElementType type, const Philox& random, const void* p, uint8_t* y, int64_t n,
               ThreadPool& pool) {
  check_type(type);
  for_tiles(n, pool, [&](int64_t begin, int64_t end) {
    double chance[tile];
    probabilities(type, p, begin, end, chance);
    for (int64_t i = begin; i < end; ++i)
      y[i] = random.uniform(static_cast<uint64_t>(i)) < chance[i - begin] ? 1 : 0;
  });
}

void multinomial(ElementType type, const Philox& random, const void* logits, int64_t rows,
                 int64_t classes, int64_t samples, int64_t* y, ThreadPool& pool) {
  check_type(type);
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
