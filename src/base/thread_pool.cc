#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace sardonyx {
namespace {

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

constexpr auto spin_time = std::chrono::microseconds(50);
constexpr int loop_slots = 8;  // loops that may be under way in one pool at the same time

// True on a thread that is inside a body: loops nested in it run there alone.
thread_local bool inside_body = false;

// One loop under way. A worker may touch `body` only between joining (users + 1, while open)
// and leaving, so the caller can return as soon as the slot is closed and users is 0.
struct Loop {
  std::atomic<uint32_t> state{0};  // bit 31: open; low bits: workers inside
  std::atomic<int64_t> next{0};
  std::atomic<int> next_worker{0};
  std::atomic<int64_t> count{0};
  int64_t grain = 1;
  void* body = nullptr;
  void (*call)(void*, int64_t, int64_t, int) = nullptr;
  std::atomic<bool> taken{false};
  std::atomic<bool> failed{false};
  std::exception_ptr error;

  static constexpr uint32_t open = 1u << 31;

  bool has_work() const {
    return (state.load(std::memory_order_acquire) & open) != 0 &&
           next.load(std::memory_order_relaxed) < count.load(std::memory_order_relaxed);
  }

  void claim_chunks(int worker) {
    const bool outer = inside_body;
    inside_body = true;
    const int64_t end = count.load(std::memory_order_relaxed);
    for (;;) {
      const int64_t begin = next.fetch_add(grain, std::memory_order_relaxed);
      if (begin >= end) break;
      try {
        call(body, begin, std::min(begin + grain, end), worker);
      } catch (...) {
        if (!failed.exchange(true)) error = std::current_exception();
        next.store(end, std::memory_order_relaxed);  // what is left is not worth starting
      }
    }
    inside_body = outer;
  }
};

double cgroup_cpus() {
  std::ifstream v2("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (v2 >> quota >> period && quota != "max" && period > 0) return std::stod(quota) / period;
  std::ifstream quota_v1("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream period_v1("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  double used = 0;
  if (quota_v1 >> used && period_v1 >> period && used > 0 && period > 0) return used / period;
  return 0;
}

}  // namespace

int usable_cpus() {
  static const int usable = [] {
    int cpus = static_cast<int>(std::thread::hardware_concurrency());
    cpu_set_t mask;
    if (sched_getaffinity(0, sizeof mask, &mask) == 0) cpus = CPU_COUNT(&mask);
    const double quota = cgroup_cpus();
    if (quota > 0) cpus = std::min(cpus, static_cast<int>(std::ceil(quota)));
    return std::max(cpus, 1);
  }();
  return usable;
}

struct ThreadPool::Shared {
  Loop loops[loop_slots];
  std::atomic<uint64_t> wake_count{0};
  std::atomic<int> sleepers{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::condition_variable wake;
  std::vector<std::thread> workers;

  // Takes part in any loop that has chunks left; false where there was none.
  bool help() {
    for (Loop& loop : loops) {
      if (!loop.has_work()) continue;
      uint32_t seen = loop.state.load(std::memory_order_acquire);
      while (seen & Loop::open) {
        if (loop.state.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel)) {
          loop.claim_chunks(loop.next_worker.fetch_add(1, std::memory_order_relaxed));
          loop.state.fetch_sub(1, std::memory_order_release);
          return true;
        }
      }
    }
    return false;
  }

  void work() {
    auto idle_since = std::chrono::steady_clock::now();
    while (!stop.load(std::memory_order_relaxed)) {
      if (help()) {
        idle_since = std::chrono::steady_clock::now();
        continue;
      }
      const uint64_t seen = wake_count.load(std::memory_order_acquire);
      for (int i = 0; i < 64; ++i) relax();
      if (std::chrono::steady_clock::now() - idle_since < spin_time) continue;
      std::unique_lock lock(mutex);
      sleepers.fetch_add(1);
      wake.wait(lock, [&] { return stop.load() || wake_count.load() != seen; });
      sleepers.fetch_sub(1);
      idle_since = std::chrono::steady_clock::now();
    }
  }
};

ThreadPool::ThreadPool(int threads)
    : threads_(threads > 0 ? threads : usable_cpus()), shared_(std::make_unique<Shared>()) {
  for (int i = 1; i < threads_; ++i) {
    shared_->workers.emplace_back([shared = shared_.get()] { shared->work(); });
  }
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(shared_->mutex);
    shared_->stop = true;
  }
  shared_->wake.notify_all();
  for (std::thread& worker : shared_->workers) worker.join();
}

void ThreadPool::run(int64_t count, int64_t grain, void* body, Call call) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  Loop* slot = nullptr;
  if (threads_ > 1 && count > grain && !inside_body) {
    for (Loop& loop : shared_->loops) {
      if (!loop.taken.exchange(true, std::memory_order_acquire)) {
        slot = &loop;
        break;
      }
    }
  }
  if (slot == nullptr) {  // alone: the same chunks, in order
    const bool outer = inside_body;
    inside_body = true;
    try {
      for (int64_t begin = 0; begin < count; begin += grain) {
        call(body, begin, std::min(begin + grain, count), 0);
      }
    } catch (...) {
      inside_body = outer;
      throw;
    }
    inside_body = outer;
    return;
  }
  slot->count.store(count, std::memory_order_relaxed);
  slot->grain = grain;
  slot->body = body;
  slot->call = call;
  slot->next_worker.store(1, std::memory_order_relaxed);
  slot->failed.store(false, std::memory_order_relaxed);
  slot->error = nullptr;
  slot->next.store(0, std::memory_order_relaxed);
  slot->state.store(Loop::open, std::memory_order_release);
  shared_->wake_count.fetch_add(1);
  if (shared_->sleepers.load() > 0) {
    { std::lock_guard lock(shared_->mutex); }
    shared_->wake.notify_all();
  }
  slot->claim_chunks(0);
  uint32_t users = slot->state.fetch_and(~Loop::open, std::memory_order_acq_rel) & ~Loop::open;
  for (int spins = 0; users != 0; ++spins) {
    if (spins < 4096) {
      relax();
    } else {
      std::this_thread::yield();
    }
    users = slot->state.load(std::memory_order_acquire);
  }
  const std::exception_ptr error = slot->error;
  slot->taken.store(false, std::memory_order_release);
  if (error) std::rethrow_exception(error);
}

}  // namespace sardonyx
