// Sequences of different lengths side by side against each of them alone.
#include "kernels/recurrent/recurrent.h"

#include <algorithm>
#include <cmath>

#include "kernels/rows_support.h"

namespace sardonyx::kernels {
namespace {

using test::one_thread;
using test::two_threads;

template <class T>
struct Layer {
  RecurrentShape shape;
  std::vector<T> w, r, bias, h0, c0, peephole;  // states: [directions, batch, hidden]
  std::vector<T> x;                             // [steps, batch, input]
  std::vector<int32_t> lengths;

  struct Result {
    std::vector<T> y, y_h, y_c;
  };
  Result run(ThreadPool& pool) const {
    const RecurrentShape& s = shape;
    const auto bytes = [](int64_t n) {
      return std::vector<std::max_align_t>(static_cast<size_t>(n / 16 + 8));
    };
    auto packed_w = bytes(recurrent_input_pack_bytes<T>(s));
    auto packed_r = bytes(recurrent_state_pack_bytes<T>(s));
    auto scratch = bytes(recurrent_scratch_bytes<T>(s, pool.threads()));
    const auto aligned = [](auto& memory) {
      const auto at = reinterpret_cast<uintptr_t>(memory.data());
      return reinterpret_cast<void*>((at + 63) / 64 * 64);
    };
    pack_recurrent_input(s, w.data(), aligned(packed_w), nullptr);
    pack_recurrent_state(s, r.data(), aligned(packed_r), nullptr);
    const auto state = static_cast<size_t>(s.directions * s.batch * s.hidden);
    Result made{std::vector<T>(static_cast<size_t>(s.steps) * state, T(7)), std::vector<T>(state),
                std::vector<T>(state)};
    RecurrentData<T> data;
    data.x = x.data(), data.w = aligned(packed_w), data.r = aligned(packed_r);
    data.bias = bias.data(), data.h0 = h0.data();
    if (!lengths.empty()) data.lengths = lengths.data();
    if (s.kind == RecurrentKind::lstm) data.c0 = c0.data(), data.peephole = peephole.data();
    data.y = made.y.data(), data.y_h = made.y_h.data(), data.y_c = made.y_c.data();
    run_recurrent(s, data, aligned(scratch), pool);
    return made;
  }
};

template <class T>
std::vector<T> random_values(int64_t n, uint32_t seed) {
  const auto floats = test::random_floats(n, -1, 1, seed);
  return {floats.begin(), floats.end()};
}

template <class T>
Layer<T> layer_of(RecurrentKind kind, int directions, bool before_reset,
                  const std::vector<int32_t>& lengths, int64_t steps) {
  Layer<T> made;
  RecurrentShape& s = made.shape;
  s.kind = kind, s.directions = directions, s.linear_before_reset = before_reset;
  s.steps = steps, s.batch = static_cast<int64_t>(lengths.size()), s.input = 5, s.hidden = 19;
  for (auto& gates : s.gates) {
    const bool rnn = kind == RecurrentKind::rnn;
    gates[0].function = rnn ? GateFunction::tanh : GateFunction::sigmoid;
  }
  const int64_t n = s.gate_columns();
  made.w = random_values<T>(directions * n * s.input, 1);
  made.r = random_values<T>(directions * n * s.hidden, 2);
  made.bias = random_values<T>(directions * 2 * n, 3);
  made.h0 = random_values<T>(directions * s.batch * s.hidden, 4);
  made.c0 = random_values<T>(directions * s.batch * s.hidden, 5);
  made.peephole = random_values<T>(directions * 3 * s.hidden, 6);
  made.x = random_values<T>(steps * s.batch * s.input, 7);
  made.lengths = lengths;
  return made;
}

// Sequence b alone, without the steps behind its end.
template <class T>
Layer<T> alone(const Layer<T>& all, int64_t b) {
  Layer<T> made = all;
  const RecurrentShape& s = all.shape;
  made.shape.batch = 1, made.shape.steps = all.lengths[static_cast<size_t>(b)];
  made.lengths.clear();
  const auto take = [&](const std::vector<T>& from, int64_t outer, int64_t inner) {
    std::vector<T> taken;
    for (int64_t i = 0; i < outer; ++i) {
      const auto begin = from.begin() + (i * s.batch + b) * inner;
      taken.insert(taken.end(), begin, begin + inner);
    }
    return taken;
  };
  made.x = take(all.x, made.shape.steps, s.input);
  made.h0 = take(all.h0, s.directions, s.hidden);
  made.c0 = take(all.c0, s.directions, s.hidden);
  return made;
}

template <class T>
void compare(const Layer<T>& layer, double tolerance) {
  const RecurrentShape& s = layer.shape;
  for (ThreadPool* pool : {&one_thread(), &two_threads()}) {
    const auto found = layer.run(*pool);
    for (int64_t b = 0; b < s.batch; ++b) {
      const Layer<T> single = alone(layer, b);
      const auto expected = single.run(one_thread());
      for (int64_t t = 0; t < s.steps * s.directions; ++t) {
        for (int64_t j = 0; j < s.hidden; ++j) {
          const T y = found.y[static_cast<size_t>((t * s.batch + b) * s.hidden + j)];
          const auto at = static_cast<size_t>(t * s.hidden + j);
          ASSERT_NEAR(y, at < expected.y.size() ? expected.y[at] : T(0), tolerance)
              << "sequence " << b << " of " << single.shape.steps << ", step " << t / s.directions;
        }
      }
      for (int64_t d = 0; d < s.directions; ++d) {
        for (int64_t j = 0; j < s.hidden; ++j) {
          const auto here = static_cast<size_t>((d * s.batch + b) * s.hidden + j),
                     there = static_cast<size_t>(d * s.hidden + j);
          ASSERT_NEAR(found.y_h[here], expected.y_h[there], tolerance);
          const bool has_cells = s.kind == RecurrentKind::lstm;
          ASSERT_NEAR(found.y_c[here], has_cells ? expected.y_c[there] : T(0), tolerance);
        }
      }
    }
  }
}

template <class T>
void compare_all(double tolerance) {
  const std::vector<std::vector<int32_t>> lengths = {
      {3, 7, 0, 5, 7}, {9, 9, 9}, {70, 33, 64, 1}, {40, 80, 50}, {0, 0}};
  for (const auto kind : {RecurrentKind::rnn, RecurrentKind::gru, RecurrentKind::lstm}) {
    for (const int directions : {1, 2}) {
      for (const bool before_reset : {false, true}) {
        if (before_reset && kind != RecurrentKind::gru) continue;
        for (const auto& each : lengths) {
          const int32_t longest = std::ranges::max(each);
          compare(layer_of<T>(kind, directions, before_reset, each, longest + 2), tolerance);
        }
      }
    }
  }
}

TEST(Recurrent, SequencesEndByThemselves) {
  compare_all<float>(2e-5);
  compare_all<double>(1e-12);
}

}  // namespace
}  // namespace sardonyx::kernels
