// The pool of worker threads that kernels share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace sardonyx {

// Runs loops in parallel. Many callers may use one pool at the same time: each call takes part in
// its own loop, and workers that are free claim chunks of it, each from its own part of it first:
// what it wrote in one loop is near where it reads in the next. No caller ever waits for a worker
// that has claimed nothing. Callers that are as many as the threads run their loops alone. Workers
// spin for 300 microseconds after a loop, then sleep.
class ThreadPool {
 public:
  // `threads` counts the caller: 1 makes no worker; 0 takes usable_cpus(); threads() may be fewer.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // Counts one who will run loop after loop, from its making to its end: a run of a session.
  class Caller {
   public:
    explicit Caller(ThreadPool& pool);
    ~Caller();
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;

   private:
    ThreadPool& pool_;
  };
  // What a counted caller is to give to its next kernel: this pool, or single() where the callers
  // are as many as the threads and keep the processors busy by themselves. A worker beside them
  // would take turns with them, and they would wait for the chunks it holds meanwhile. Kernels that
  // know of it cut their work for one thread.
  ThreadPool& for_caller() { return threads_ > 1 && crowded() ? single() : *this; }
  // A pool of one thread, which any number of callers may use at the same time.
  static ThreadPool& single();

  // Whether all workers sleep, so that a short loop would end before one of them has woken up.
  bool asleep() const;

  // The chunks of a loop that thread `i` takes first are [share_begin(chunks, i),
  // share_begin(chunks, i + 1)); shares differ by one chunk at most.
  int64_t share_begin(int64_t chunks, int64_t i) const {
    return chunks / threads_ * i + std::min(i, chunks % threads_);
  }
  // The end of the share that `chunk` belongs to.
  int64_t share_end(int64_t chunks, int64_t chunk) const {
    int64_t i = 1;
    while (share_begin(chunks, i) <= chunk) ++i;
    return share_begin(chunks, i);
  }

  // Calls body(begin, end, worker) for the chunks [0,grain), [grain,2*grain) … of [0,count), each
  // exactly once, in any order, on several threads. The chunks depend on count and grain alone,
  // never on the number of threads. `worker` is in [0, threads()) and differs between bodies that
  // run at the same time within this call: it indexes per-thread scratch memory. A loop inside a
  // body runs on its thread alone. The first exception of a body is thrown to the caller after
  // every claimed chunk has ended.
  template <class Body>
  void parallel_for(int64_t count, int64_t grain, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    run(count, grain, const_cast<void*>(static_cast<const void*>(std::addressof(body))),
        [](void* data, int64_t begin, int64_t end, int worker) {
          (*static_cast<Plain*>(data))(begin, end, worker);
        });
  }

 private:
  using Call = void (*)(void* body, int64_t begin, int64_t end, int worker);
  void run(int64_t count, int64_t grain, void* body, Call call);
  bool crowded() const;  // as many callers as threads

  struct Shared;
  int threads_;
  std::unique_ptr<Shared> shared_;
};

// CPUs this process may use: the affinity mask, bounded by the cgroup's quota (rounded up).
int usable_cpus();

}  // namespace sardonyx
