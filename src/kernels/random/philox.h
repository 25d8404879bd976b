// Random numbers by counter: the number at a position depends on key, stream and position alone, so
// any thread may compute any part.
#pragma once

#include <array>
#include <cstdint>

#include "base/thread_pool.h"
#include "sardonyx/element_type.h"

namespace sardonyx::kernels {

// Philox 4x32 with ten rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3").
class Philox {
 public:
  static constexpr int rounds = 10;
  static constexpr uint32_t factors[] = {0xD2511F53, 0xCD9E8D57};
  static constexpr uint32_t steps[] = {0x9E3779B9, 0xBB67AE85};  // of the key, each round

  // Different streams of one key are independent.
  Philox(uint64_t key, uint64_t stream) : key_(key), stream_(stream) {}

  // Four numbers for each position.
  std::array<uint32_t, 4> operator()(uint64_t position) const;
  // In [0, 1), multiples of 2^-53.
  double uniform(uint64_t position) const;
  uint64_t key() const { return key_; }
  uint64_t stream() const { return stream_; }

 private:
  uint64_t key_;
  uint64_t stream_;
};

// y[i] uniform in [low, high), or normal with this mean and deviation; float32, float64, float16 or
// bfloat16. Throws Error (unsupported) for other types.
void fill_uniform(ElementType type, const Philox& random, double low, double high, void* y,
                  int64_t n, ThreadPool& pool);
void fill_normal(ElementType type, const Philox& random, double mean, double deviation, void* y,
                 int64_t n, ThreadPool& pool);

// y[i] is 1 with probability p[i], else 0; p as above (NaN gives 0).
void bernoulli(ElementType type, const Philox& random, const void* p, uint8_t* y, int64_t n,
               ThreadPool& pool);

// Draws `samples` classes for each row of `rows` x `classes` log-probabilities, which need not be
// normalised. y is rows x samples. Throws Error (run_failed) for a row without a class to draw.
void multinomial(ElementType type, const Philox& random, const void* logits, int64_t rows,
                 int64_t classes, int64_t samples, int64_t* y, ThreadPool& pool);

}  // namespace sardonyx::kernels
