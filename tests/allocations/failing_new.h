// An operator new that fails when it is told to. It replaces the one of the whole program, which is
// why these tests are one of their own.
#pragma once

#include <atomic>

namespace failing_new {

// So many allocations succeed before one fails; below 0: all do.
extern std::atomic<long> left;
// Bytes of all allocations that stand, and the most there were since somebody set it.
extern std::atomic<long> in_use, max_in_use;

}  // namespace failing_new

// The bytes in use, for tests in C.
extern "C" long bytes_in_use(void);
