#include "session/probe.h"

#include <functional>
#include <thread>

#include "kernels/gemm/probe.h"

namespace sardonyx {
namespace {

constexpr double probe_seconds = 0.3;
constexpr int64_t memory_buffer = int64_t{256} << 20;  // more than any cache holds

double sum_over_threads(int threads, const std::function<double()>& measure) {
  std::vector<double> results(static_cast<size_t>(threads));
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) {
    others.emplace_back([&, i] { results[static_cast<size_t>(i)] = measure(); });
  }
  results[0] = measure();
  for (std::thread& thread : others) thread.join();
  double sum = 0;
  for (const double result : results) sum += result;
  return sum;
}

}  // namespace

MachinePeak probe_machine(int threads) {
  MachinePeak peak;
  peak.gflops =
      1e-9 * sum_over_threads(threads, [] { return kernels::probe_peak_flops(probe_seconds); });
  peak.gbps = 1e-9 * sum_over_threads(threads, [] {
                return kernels::probe_read_bandwidth(memory_buffer, probe_seconds);
              });
  return peak;
}

}  // namespace sardonyx
