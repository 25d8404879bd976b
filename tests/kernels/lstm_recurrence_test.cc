// The recurrence of an LSTM against its definition, and its gradient against differences.
#include "kernels/recurrent/lstm_recurrence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "base/thread_pool.h"

namespace sardonyx::kernels::test {
namespace {

struct Case {
  int64_t steps, batch, hidden;
  bool reverse, lengths;
};
constexpr Case cases[] = {{1, 1, 1, false, false},  {3, 2, 5, true, false},
                          {4, 3, 16, false, true},  {5, 70, 37, false, false},
                          {5, 67, 33, true, false}, {6, 65, 48, false, true}};

template <class T>
struct Memory {
  explicit Memory(int64_t bytes) : bytes(static_cast<size_t>(bytes) + 64) {}
  void* get() {
    const auto at = reinterpret_cast<uintptr_t>(bytes.data());
    return reinterpret_cast<void*>((at + 63) / 64 * 64);
  }
  std::vector<std::byte> bytes;
};

template <class T>
std::vector<T> drawn(int64_t count, unsigned seed, double scale = 1) {
  std::mt19937 bits(seed);
  std::vector<T> values(static_cast<size_t>(count));
  for (T& value : values)
    value = static_cast<T>(static_cast<float>((bits() % 20001 / 10000.0 - 1) * scale));
  return values;
}

// Inputs, and what flows into each output, of one case.
template <class T>
struct Job {
  explicit Job(const Case& c)
      : shape{c.steps, c.batch, c.hidden, c.reverse},
        sums(drawn<T>(c.steps * c.batch * 4 * c.hidden, 1)),
        r(drawn<T>(4 * c.hidden * c.hidden, 2, 0.4)),
        h(drawn<T>(c.batch * c.hidden, 3)),
        c0(drawn<T>(c.batch * c.hidden, 4)) {
    const int64_t state = c.batch * c.hidden;
    flows[0] = drawn<T>(c.steps * state, 5), flows[1] = drawn<T>(state, 6);
    flows[2] = drawn<T>(state, 7), flows[3] = drawn<T>(4 * c.steps * state, 8);
    flows[4] = drawn<T>(c.steps * state, 9);
    for (int64_t i = 0; c.lengths && i < c.batch; ++i) lengths.push_back(i % (c.steps + 1));
  }

  // y, y_h, y_c, gates, cells
  using Results = std::vector<std::vector<T>>;
  Results forward(int threads) const {
    const auto state = static_cast<size_t>(shape.batch * shape.hidden),
               steps = static_cast<size_t>(shape.steps);
    Results out{std::vector<T>(steps * state), std::vector<T>(state), std::vector<T>(state),
                std::vector<T>(4 * steps * state), std::vector<T>(steps * state)};
    ThreadPool pool(threads);
    Memory<T> scratch(lstm_recurrence_scratch_bytes<T>(shape, threads));
    LstmRecurrence<T> job;
    job.sums = sums.data(), job.r = r.data(), job.h = h.data(), job.c = c0.data();
    job.lengths = lengths.empty() ? nullptr : lengths.data();
    job.y = out[0].data(), job.y_h = out[1].data(), job.y_c = out[2].data();
    job.gates = out[3].data(), job.cells = out[4].data();
    lstm_recurrence(shape, job, scratch.get(), pool);
    return out;
  }
  // sums, h, c
  Results backward(const Results& forward, int threads, bool all) const {
    Results out{std::vector<T>(sums.size()), std::vector<T>(h.size()), std::vector<T>(h.size())};
    ThreadPool pool(threads);
    Memory<T> scratch(lstm_recurrence_gradient_scratch_bytes<T>(shape, threads));
    LstmRecurrenceGradient<T> job;
    job.r = r.data(), job.gates = forward[3].data(), job.cells = forward[4].data();
    job.c = c0.data(), job.lengths = lengths.empty() ? nullptr : lengths.data();
    job.y = flows[0].data();
    if (all) {
      job.y_h = flows[1].data(), job.y_c = flows[2].data();
      job.of_gates = flows[3].data(), job.of_cells = flows[4].data();
    }
    job.sums = out[0].data(), job.h = out[1].data(), job.c_initial = out[2].data();
    lstm_recurrence_gradient(shape, job, scratch.get(), pool);
    return out;
  }
  // The outputs, each weighted with what flows into it.
  double value() const {
    const Results out = forward(1);
    double sum = 0;
    for (size_t k = 0; k < out.size(); ++k)
      for (size_t i = 0; i < out[k].size(); ++i) sum += out[k][i] * flows[k][i];
    return sum;
  }

  LstmRecurrenceShape shape;
  std::vector<T> sums, r, h, c0;
  std::vector<int64_t> lengths;
  std::vector<T> flows[5];
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TEST(LstmRecurrence, IsItsDefinition) {
  for (const Case& c : cases) {
    const Job<double> job(c);
    const auto out = job.forward(1);
    const auto n = static_cast<size_t>(c.hidden), batch = static_cast<size_t>(c.batch);
    for (size_t b = 0; b < batch; ++b) {
      std::vector<double> h(job.h.begin() + static_cast<int64_t>(b * n),
                            job.h.begin() + static_cast<int64_t>((b + 1) * n));
      std::vector<double> state(job.c0.begin() + static_cast<int64_t>(b * n),
                                job.c0.begin() + static_cast<int64_t>((b + 1) * n));
      for (int64_t i = 0; i < c.steps; ++i) {
        const auto step = static_cast<size_t>(c.reverse ? c.steps - 1 - i : i);
        const bool ended = c.lengths && i >= job.lengths[b];
        std::vector<double> next = h;
        for (size_t j = 0; j < n; ++j) {
          double gate[4];
          for (size_t k = 0; k < 4; ++k) {
            gate[k] = job.sums[(step * batch + b) * 4 * n + k * n + j];
            for (size_t m = 0; m < n; ++m) gate[k] += job.r[(k * n + j) * n + m] * h[m];
          }
          if (!ended) {
            state[j] = sigmoid(gate[2]) * state[j] + sigmoid(gate[0]) * std::tanh(gate[3]);
            next[j] = sigmoid(gate[1]) * std::tanh(state[j]);
          }
          EXPECT_NEAR(out[0][(step * batch + b) * n + j], ended ? 0 : next[j], 1e-12);
          EXPECT_NEAR(out[4][(step * batch + b) * n + j], state[j], 1e-12);
        }
        h = next;
      }
      for (size_t j = 0; j < n; ++j) {
        EXPECT_NEAR(out[1][b * n + j], h[j], 1e-12);
        EXPECT_NEAR(out[2][b * n + j], state[j], 1e-12);
      }
    }
  }
}

TEST(LstmRecurrence, GradientIsTheDifferences) {
  for (const Case& c : cases) {
    Job<double> job(c);
    const auto made = job.backward(job.forward(1), 1, true);
    std::vector<double>* const inputs[] = {&job.sums, &job.h, &job.c0};
    for (size_t k = 0; k < 3; ++k) {
      const size_t every = std::max<size_t>(1, inputs[k]->size() / 29);
      for (size_t i = 0; i < inputs[k]->size(); i += every) {
        double& moved = (*inputs[k])[i];
        const double before = moved;
        moved = before + 1e-5;
        const double above = job.value();
        moved = before - 1e-5;
        const double below = job.value();
        moved = before;
        // What flows into the gates of steps behind the end goes nowhere.
        EXPECT_NEAR(made[k][i], (above - below) / 2e-5, 1e-6) << k << " " << i;
      }
    }
  }
}

TEST(LstmRecurrence, FloatsAreAsDoubles) {
  for (const Case& c : cases) {
    const Job<double> wide(c);
    const Job<float> job(c);
    const auto expected = wide.forward(1);
    const auto found = job.forward(1);
    for (const bool all : {false, true}) {
      const auto gradient = wide.backward(expected, 1, all);
      const auto flows = job.backward(found, 1, all);
      for (size_t k = 0; k < gradient.size(); ++k)
        for (size_t i = 0; i < gradient[k].size(); ++i)
          EXPECT_NEAR(flows[k][i], gradient[k][i], 3e-5 * (1 + std::abs(gradient[k][i])));
    }
    for (size_t k = 0; k < expected.size(); ++k)
      for (size_t i = 0; i < expected[k].size(); ++i)
        EXPECT_NEAR(found[k][i], expected[k][i], 1e-5 * (1 + std::abs(expected[k][i])));
  }
}

TEST(LstmRecurrence, BitsDoNotDependOnThreads) {
  for (const Case& c : cases) {
    const Job<float> job(c);
    const auto one = job.forward(1), three = job.forward(3);
    EXPECT_EQ(one, three);
    EXPECT_EQ(job.backward(one, 1, true), job.backward(one, 3, true));
  }
}

// The gates take the place of their sums, and what flows into the sums that of the gates.
TEST(LstmRecurrence, RunsInPlace) {
  for (const Case& c : cases) {
    Job<float> job(c);
    const auto apart = job.forward(2);
    const auto expected = job.backward(apart, 2, true);
    ThreadPool pool(2);
    Memory<float> scratch(std::max(lstm_recurrence_scratch_bytes<float>(job.shape, 2),
                                   lstm_recurrence_gradient_scratch_bytes<float>(job.shape, 2)));
    std::vector<float> shared = job.sums, cells(apart[4].size());
    LstmRecurrence<float> forward;
    forward.sums = forward.gates = shared.data();
    forward.r = job.r.data(), forward.h = job.h.data(), forward.c = job.c0.data();
    forward.lengths = job.lengths.empty() ? nullptr : job.lengths.data();
    forward.cells = cells.data();
    lstm_recurrence(job.shape, forward, scratch.get(), pool);
    EXPECT_EQ(shared, apart[3]);
    EXPECT_EQ(cells, apart[4]);
    LstmRecurrenceGradient<float> back;
    back.r = job.r.data(), back.cells = cells.data(), back.c = job.c0.data();
    back.lengths = forward.lengths;
    back.gates = back.sums = shared.data();
    back.y = job.flows[0].data(), back.y_h = job.flows[1].data(), back.y_c = job.flows[2].data();
    back.of_gates = job.flows[3].data(), back.of_cells = job.flows[4].data();
    lstm_recurrence_gradient(job.shape, back, scratch.get(), pool);
    EXPECT_EQ(shared, expected[0]);
  }
}

}  // namespace
}  // namespace sardonyx::kernels::test
