// How fast this machine could be: what benchmarks are compared with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

// How many threads this process may run at the same time: by its affinity and its control group.
int usable_processors();

struct MachinePeak {
  double gflops = 0;  // fp32 multiply-adds in registers, counted as two operations
  double gbps = 0;    // 10^9 bytes a second read from memory
};

// The peak of `threads` threads that work at the same time. Takes about a second. Throws Error
// (bad_input) for numbers that are not in [1, 4096].
MachinePeak probe_machine(int threads);

// What all steps of a run have in common: how fast the machine could compute and read.
struct MachineLimits {
  struct Level {
    std::string name = {};  // "L2", "L3", "memory"
    int64_t bytes = 0;      // that fit in, of all threads together; INT64_MAX of memory
    double gbps = 0;        // 10^9 bytes a second read by all threads together
  };
  std::string instruction_set = {};
  int threads = 0;
  double gflops = 0;               // of all threads together: fp32 multiply-adds in registers
  std::vector<Level> levels = {};  // the smallest first; the last is memory

  // The smallest level that holds so many bytes.
  const Level& level_for(double bytes) const;
};

// Takes less than half a second.
MachineLimits measure_limits(int threads);

}  // namespace sardonyx

#pragma GCC visibility pop
