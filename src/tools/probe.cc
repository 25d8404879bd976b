#include "sardonyx/machine.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <system_error>
#include <thread>

#include "base/cpu.h"
#include "base/fail.h"
#include "base/os.h"
#include "base/thread_pool.h"
#include "kernels/gemm/probe.h"

namespace sardonyx {
namespace {

constexpr double probe_seconds = 0.3;
constexpr int64_t memory_buffer = int64_t{256} << 20;  // more than any cache holds

double sum_over_threads(int threads, const std::function<double()>& measure) {
  std::vector<double> results(static_cast<size_t>(threads));
  std::vector<std::exception_ptr> failures(static_cast<size_t>(threads));
  const auto measure_into = [&](size_t i) noexcept {
    try {
      results[i] = measure();
    } catch (...) {
      failures[i] = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  others.reserve(static_cast<size_t>(threads));
  try {
    for (size_t i = 1; i < results.size(); ++i) others.emplace_back(measure_into, i);
  } catch (const std::system_error&) {  // no room for it: its part of the sum is none
  }
  measure_into(0);
  for (std::thread& thread : others) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  double sum = 0;
  for (const double result : results) sum += result;
  return sum;
}

double read_gbps(int threads, int64_t bytes_each, double seconds) {
  return 1e-9 * sum_over_threads(
                    threads, [=] { return kernels::probe_read_bandwidth(bytes_each, seconds); });
}

void require_threads(int threads) {
  if (threads < 1 || threads > 4096)
    fail(ErrorCode::bad_input, "the number of threads must be in [1, 4096]; got {}", threads);
}

}  // namespace

const MachineLimits::Level& MachineLimits::level_for(double bytes) const {
  for (const Level& level : levels) {
    if (bytes <= static_cast<double>(level.bytes)) return level;
  }
  return levels.back();
}

MachineLimits measure_limits(int threads) {
  require_threads(threads);
  MachineLimits limits;
  limits.instruction_set = name_of(instruction_set());
  limits.threads = threads;
  limits.gflops = 1e-9 * sum_over_threads(threads, [] { return kernels::probe_peak_flops(0.06); });
  const int64_t told = os::cache_bytes(2), l2 = told > 0 ? told : int64_t{1} << 20,
                l3 = os::cache_bytes(3);
  limits.levels.push_back({"L2", l2 * threads, read_gbps(threads, l2 / 2, 0.04)});
  const int64_t inside_l3 = 4 * l2;
  if (inside_l3 * threads <= l3 / 2)
    limits.levels.push_back({"L3", l3, read_gbps(threads, inside_l3, 0.05)});
  limits.levels.push_back(
      {"memory", INT64_MAX,
       read_gbps(threads, std::max<int64_t>(memory_buffer / threads, int64_t{16} << 20), 0.08)});
  return limits;
}

MachinePeak probe_machine(int threads) {
  require_threads(threads);
  MachinePeak peak;
  peak.gflops =
      1e-9 * sum_over_threads(threads, [] { return kernels::probe_peak_flops(probe_seconds); });
  peak.gbps = 1e-9 * sum_over_threads(threads, [] {
                return kernels::probe_read_bandwidth(memory_buffer, probe_seconds);
              });
  return peak;
}

int usable_processors() { return usable_cpus(); }

}  // namespace sardonyx
