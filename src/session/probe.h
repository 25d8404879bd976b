// How fast this machine could be: what benchmarks are compared with.
#pragma once

#include <vector>

namespace sardonyx {

struct MachinePeak {
  double gflops = 0;  // fp32 multiply-adds in registers, counted as two operations
  double gbps = 0;    // 10^9 bytes a second read from memory
};

// The peak of `threads` threads that work at the same time. Takes about a second.
MachinePeak probe_machine(int threads);

}  // namespace sardonyx
