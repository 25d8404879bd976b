#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/float_control.h"
#include "base/loop_recorder.h"
#include "base/os.h"

namespace sardonyx {
namespace {

int64_t nanoseconds_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#else
  std::this_thread::yield();
#endif
}

// Between two loops of a run there may be as much work for one thread; waking a worker that sleeps
// would take as long.
constexpr auto spin_time = std::chrono::microseconds(300);
constexpr int loop_slots = 8;  // loops that may be under way in one pool at the same time

// True on a thread that is inside a body: loops nested in it run there alone.
thread_local bool inside_body = false;

// The chunks that a thread takes first, so that what it wrote in one loop it often reads in the
// next one. They are taken from the front, by others too when they have no more of their own.
struct alignas(64) Share {
  std::atomic<int64_t> next{0};
  std::atomic<int64_t> end{0};

  bool has_work() const {
    return next.load(std::memory_order_relaxed) < end.load(std::memory_order_relaxed);
  }
};

// One loop under way. A worker may touch `body` only between joining (users + 1, while open)
// and leaving, so the caller can return as soon as the slot is closed and users is 0.
struct alignas(64) Loop {
  std::atomic<uint32_t> state{0};  // bit 31: open; low bits: workers inside
  std::vector<Share> shares;       // one for each thread
  int64_t count = 0;
  int64_t grain = 1;
  void* body = nullptr;
  void (*call)(void*, int64_t, int64_t, int) = nullptr;
  LoopRecorder* recorder = nullptr;
  FloatControl control = FloatControl::standard();  // the caller's
  std::atomic<bool> taken{false};
  std::atomic<bool> failed{false};
  std::exception_ptr error;

  static constexpr uint32_t open = 1u << 31;

  bool has_work() const {
    return (state.load(std::memory_order_acquire) & open) != 0 &&
           std::any_of(shares.begin(), shares.end(), [](const Share& s) { return s.has_work(); });
  }

  void share_out(const ThreadPool& pool) {
    const int64_t chunks = (count - 1) / grain + 1;
    for (size_t i = 0; i < shares.size(); ++i) {
      const auto thread = static_cast<int64_t>(i);
      shares[i].next.store(pool.share_begin(chunks, thread), std::memory_order_relaxed);
      shares[i].end.store(pool.share_begin(chunks, thread + 1), std::memory_order_relaxed);
    }
  }

  void drop_the_rest() {
    for (Share& share : shares) share.next.store(share.end.load(), std::memory_order_relaxed);
  }

  void take_part(int worker) {
    if (recorder == nullptr) {
      claim_chunks(worker);
      return;
    }
    const int64_t begin = nanoseconds_now(), chunks = claim_chunks(worker);
    if (chunks > 0) recorder->parts(worker).push_back({begin, nanoseconds_now(), chunks});
  }

  // Returns how many there were.
  int64_t claim_chunks(int worker) {
    int64_t claimed = 0;
    const bool outer = inside_body;
    inside_body = true;
    const size_t n = shares.size();
    for (size_t i = 0; i < n; ++i) {
      Share& share = shares[(static_cast<size_t>(worker) + i) % n];
      const int64_t end = share.end.load(std::memory_order_relaxed);
      while (share.has_work()) {
        const int64_t chunk = share.next.fetch_add(1, std::memory_order_relaxed);
        if (chunk >= end) break;
        ++claimed;
        try {
          call(body, chunk * grain, std::min((chunk + 1) * grain, count), worker);
        } catch (...) {
          if (!failed.exchange(true)) error = std::current_exception();
          drop_the_rest();  // not worth starting
        }
      }
    }
    inside_body = outer;
    return claimed;
  }
};

}  // namespace

LoopRecorder*& LoopRecorder::current() {
  static thread_local LoopRecorder* recorder = nullptr;
  return recorder;
}

int usable_cpus() {
  static const int usable = [] {
    int cpus = static_cast<int>(std::thread::hardware_concurrency());
    if (const auto mine = os::processors().size(); mine > 0) cpus = static_cast<int>(mine);
    const double quota = os::processor_quota();
    if (quota > 0) cpus = std::min(cpus, static_cast<int>(std::ceil(quota)));
    return std::max(cpus, 1);
  }();
  return usable;
}

struct ThreadPool::Shared {
  Loop loops[loop_slots];
  alignas(64) std::atomic<uint64_t> wake_count{
      0};  // loops begun; the one line that idle ones watch
  alignas(64) std::atomic<int> callers{0};
  alignas(64) std::atomic<int> sleepers{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::condition_variable wake;
  std::vector<std::thread> workers;

  ~Shared() { end_workers(); }

  void end_workers() {
    {
      std::lock_guard lock(mutex);
      stop = true;
    }
    wake.notify_all();
    for (std::thread& worker : workers) worker.join();
    workers.clear();
    stop = false;
  }

  // Starts workers; fewer where the system has no room for so many (limits of processes or of
  // memory). What such threads took up is then needed for the work itself: a quarter of them are
  // given up again.
  void start_workers(int wanted) {
    while (wanted > 0) {
      try {
        workers.reserve(static_cast<size_t>(wanted));
        for (int i = 1; i <= wanted; ++i) {
          workers.emplace_back([this, i, place = os::Place()] {
            place.take();
            work(i);
          });
        }
        return;
      } catch (const std::system_error&) {
      } catch (const std::bad_alloc&) {
      }
      wanted = static_cast<int>(workers.size() * 3 / 4);
      end_workers();
    }
  }

  // One that is now the caller's; null where all are under way.
  Loop* free_loop() {
    for (Loop& loop : loops) {
      if (!loop.taken.exchange(true, std::memory_order_acquire)) return &loop;
    }
    return nullptr;
  }

  // Takes part in any loop that has chunks left; false where there was none.
  bool help(int worker) {
    for (Loop& loop : loops) {
      if (!loop.has_work()) continue;
      uint32_t seen = loop.state.load(std::memory_order_acquire);
      while (seen & Loop::open) {
        if (loop.state.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel)) {
          // Workers round, and treat small numbers, as the caller does.
          if (!(loop.control == FloatControl::current())) loop.control.take();
          loop.take_part(worker);
          loop.state.fetch_sub(1, std::memory_order_release);
          return true;
        }
      }
    }
    return false;
  }

  void work(int worker) {
    auto idle_since = std::chrono::steady_clock::now();
    while (!stop.load(std::memory_order_relaxed)) {
      const uint64_t seen = wake_count.load(std::memory_order_acquire);
      if (help(worker)) {
        idle_since = std::chrono::steady_clock::now();
        continue;
      }
      for (int i = 0; i < 64 && wake_count.load(std::memory_order_relaxed) == seen; ++i) relax();
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
  if (threads_ > 1) single();  // not made while one of its callers runs
  shared_->start_workers(threads_ - 1);
  threads_ = static_cast<int>(shared_->workers.size()) + 1;
  // Workers look at shares only where a loop is open.
  for (Loop& loop : shared_->loops) loop.shares = std::vector<Share>(static_cast<size_t>(threads_));
}

ThreadPool::~ThreadPool() = default;

// A pool of one thread counts nobody: there is nothing to decide.
ThreadPool::Caller::Caller(ThreadPool& pool) : pool_(pool) {
  if (pool_.threads_ > 1) pool_.shared_->callers.fetch_add(1, std::memory_order_relaxed);
}

ThreadPool::Caller::~Caller() {
  if (pool_.threads_ > 1) pool_.shared_->callers.fetch_sub(1, std::memory_order_relaxed);
}

bool ThreadPool::crowded() const {
  return shared_->callers.load(std::memory_order_relaxed) >= threads_;
}

ThreadPool& ThreadPool::single() {
  static ThreadPool pool(1);
  return pool;
}

bool ThreadPool::asleep() const {
  return shared_->sleepers.load(std::memory_order_relaxed) == threads_ - 1;
}

void ThreadPool::run(int64_t count, int64_t grain, void* body, Call call) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const bool shared = threads_ > 1 && count > grain && !inside_body && !crowded();
  Loop* slot = shared ? shared_->free_loop() : nullptr;
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
  slot->count = count;
  slot->grain = grain;
  slot->body = body;
  slot->call = call;
  slot->recorder = LoopRecorder::current();
  slot->control = FloatControl::current();
  slot->failed.store(false, std::memory_order_relaxed);
  slot->share_out(*this);
  slot->state.store(Loop::open, std::memory_order_release);
  shared_->wake_count.fetch_add(1);
  if (shared_->sleepers.load() > 0) {
    { std::lock_guard lock(shared_->mutex); }
    shared_->wake.notify_all();
  }
  slot->take_part(0);
  uint32_t users = slot->state.fetch_and(~Loop::open, std::memory_order_acq_rel) & ~Loop::open;
  for (int spins = 0; users != 0; ++spins) {
    if (spins < 4096) {
      relax();
    } else {
      std::this_thread::yield();
    }
    users = slot->state.load(std::memory_order_acquire);
  }
  const std::exception_ptr error = std::exchange(slot->error, nullptr);  // which may be anything
  slot->taken.store(false, std::memory_order_release);
  if (error) std::rethrow_exception(error);
}

}  // namespace sardonyx
