// A pool where the system starts fewer threads than are asked for.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <string>

#include "base/thread_pool.h"

#ifndef _WIN32
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace sardonyx {
namespace {

#ifndef _WIN32
rlim_t address_space() {
  std::ifstream file("/proc/self/statm");
  rlim_t pages = 0;
  file >> pages;
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

// What the child found, as its exit status.
enum Found : int { fewer = 0, all = 1, wrong_sum = 2, no_limit = 3 };

int found_under_a_limit() {
  const rlim_t most = address_space() + (rlim_t{400} << 20);  // stacks of some threads
  const rlimit limit{most, most};
  if (setrlimit(RLIMIT_AS, &limit) != 0) return no_limit;
  ThreadPool pool(2000);
  std::atomic<int64_t> sum{0};
  pool.parallel_for(1000, 1, [&](int64_t begin, int64_t, int worker) {
    if (worker < pool.threads()) sum += begin;
  });
  if (sum != 999 * 1000 / 2) return wrong_sum;
  return pool.threads() < 2000 && pool.threads() >= 1 ? fewer : all;
}

TEST(ThreadPoolLimits, FewerThreadsWhereTheSystemStartsNoMore) {
#ifdef SARDONYX_SANITIZED
  GTEST_SKIP() << "sanitizers reserve more address space than any limit leaves";
#endif
  if (std::getenv("SARDONYX_EMULATED") != nullptr)
    GTEST_SKIP() << "the limits are the emulator's, which ends where it starts no thread";
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(found_under_a_limit());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), fewer);
}
#endif

}  // namespace
}  // namespace sardonyx
