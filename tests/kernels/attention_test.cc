// Attention over keys of which some do not count, against sums in double.
#include "kernels/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace sardonyx::kernels {
namespace {

struct Sizes {
  int64_t batch, q_heads, kv_heads, queries, rows, size, v_size;
  bool causal, scores;
};

std::vector<float> drawn(std::mt19937& random, int64_t count) {
  std::normal_distribution<float> normal;
  std::vector<float> made(static_cast<size_t>(count));
  for (float& x : made) x = normal(random);
  return made;
}

AttentionShape shape_of(const Sizes& s) {
  AttentionShape a;
  a.batch = s.batch, a.q_heads = s.q_heads, a.kv_heads = s.kv_heads;
  a.q_length = s.queries, a.kv_length = s.rows, a.head_size = s.size, a.v_head_size = s.v_size;
  a.q = {s.q_heads * s.queries * s.size, s.queries * s.size, s.size};
  a.k = {s.kv_heads * s.rows * s.size, s.rows * s.size, s.size};
  a.v = {s.kv_heads * s.rows * s.v_size, s.rows * s.v_size, s.v_size};
  a.y = {s.q_heads * s.queries * s.v_size, s.queries * s.v_size, s.v_size};
  a.scale = 0.3, a.causal = s.causal, a.has_lengths = true;
  a.wants_scores = s.scores, a.kind = AttentionScores::probabilities;
  return a;
}

// What query `i` of a head gives, whose keys are the first `count` rows, of which it sees `seen`.
std::vector<double> expected_row(const Sizes& s, const float* q, const float* k, const float* v,
                                 int64_t seen) {
  std::vector<double> weights(static_cast<size_t>(seen)), y(static_cast<size_t>(s.v_size));
  double sum = 0;
  for (int64_t j = 0; j < seen; ++j) {
    double score = 0;
    for (int64_t c = 0; c < s.size; ++c) score += double{q[c]} * k[j * s.size + c];
    sum += weights[static_cast<size_t>(j)] = std::exp(0.3 * score);
  }
  for (int64_t j = 0; j < seen; ++j) {
    for (int64_t c = 0; c < s.v_size; ++c)
      y[static_cast<size_t>(c)] += weights[static_cast<size_t>(j)] / sum * v[j * s.v_size + c];
  }
  return y;
}

// Rows that do not count hold `behind`.
void hold(const Sizes& s, const std::vector<int64_t>& lengths, float behind) {
  std::mt19937 random(7);
  auto q = drawn(random, s.batch * s.q_heads * s.queries * s.size);
  auto k = drawn(random, s.batch * s.kv_heads * s.rows * s.size);
  auto v = drawn(random, s.batch * s.kv_heads * s.rows * s.v_size);
  const AttentionShape a = shape_of(s);
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t h = 0; h < s.kv_heads; ++h) {
      const int64_t end = lengths[static_cast<size_t>(b)];
      std::fill_n(k.begin() + b * a.k.batch + h * a.k.head + end * s.size, (s.rows - end) * s.size,
                  behind);
      std::fill_n(v.begin() + b * a.v.batch + h * a.v.head + end * s.v_size,
                  (s.rows - end) * s.v_size, behind);
    }
  }
  std::vector<float> y(static_cast<size_t>(s.batch * a.y.batch), 5);
  std::vector<float> scores(static_cast<size_t>(s.batch * s.q_heads * s.queries * s.rows), 5);
  ThreadPool alone(1), pool(2);
  std::vector<std::byte> scratch(
      static_cast<size_t>(attention_scratch_bytes<float>(a, pool.threads())) + 64);
  void* aligned = scratch.data();
  size_t space = scratch.size();
  ASSERT_NE(std::align(64, space - 64, aligned, space), nullptr);
  AttentionData<float> data{.q = q.data(), .k = k.data(), .v = v.data()};
  data.lengths = lengths.data(), data.y = y.data();
  data.scores = s.scores ? scores.data() : nullptr;
  attention<float>(a, data, aligned, alone, pool);
  for (int64_t b = 0; b < s.batch; ++b) {
    const int64_t count = lengths[static_cast<size_t>(b)];
    for (int64_t h = 0; h < s.q_heads; ++h) {
      const int64_t kv = h / (s.q_heads / s.kv_heads);
      for (int64_t i = 0; i < s.queries; ++i) {
        const int64_t seen = s.causal ? std::max<int64_t>(0, count - s.queries + i + 1) : count;
        const auto row = expected_row(s, q.data() + b * a.q.batch + h * a.q.head + i * s.size,
                                      k.data() + b * a.k.batch + kv * a.k.head,
                                      v.data() + b * a.v.batch + kv * a.v.head, seen);
        const float* mine = y.data() + b * a.y.batch + h * a.y.head + i * s.v_size;
        for (int64_t c = 0; c < s.v_size; ++c)
          ASSERT_NEAR(mine[c], seen == 0 ? 0 : row[static_cast<size_t>(c)], 2e-5)
              << "batch " << b << " head " << h << " query " << i << " channel " << c;
      }
    }
  }
  for (const float score : scores) ASSERT_TRUE(std::isfinite(score));
}

// One query and many, one tile of keys and several, a tile that ends where the keys do.
const Sizes all_sizes[] = {
    {2, 4, 2, 1, 40, 8, 8, true, false},      {2, 4, 2, 1, 700, 16, 24, true, false},
    {2, 2, 2, 3, 16, 8, 8, false, false},     {1, 2, 1, 70, 600, 16, 16, true, false},
    {2, 4, 4, 5, 300, 8, 12, false, true},    {2, 4, 2, 1, 64, 32, 32, true, true},
    {1, 1, 1, 130, 1100, 64, 64, true, false}};

TEST(Attention, RowsBehindTheLengthMayHoldAnything) {
  const float behind[] = {0, std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity()};
  for (const Sizes& s : all_sizes) {
    for (const int64_t shorter : {int64_t{0}, int64_t{1}, s.rows / 3, s.rows - s.queries}) {
      std::vector<int64_t> lengths(static_cast<size_t>(s.batch), s.rows - shorter);
      lengths.back() = s.rows;
      if (s.batch == 1) lengths[0] = s.rows - shorter;
      for (const float value : behind) {
        SCOPED_TRACE(testing::Message() << s.rows << " rows, " << s.queries << " queries, "
                                        << shorter << " fewer, behind them " << value);
        hold(s, lengths, value);
      }
    }
  }
}

}  // namespace
}  // namespace sardonyx::kernels
