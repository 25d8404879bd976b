// What one run carries from step to step.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "base/recycled.h"
#include "base/thread_pool.h"
#include "sardonyx/value.h"

namespace sardonyx::run {
class Observer;
}

namespace sardonyx::ops {

// Where random steps without a seed of their own take their numbers from: each step, distinguished
// by the name of its output, goes on where its last run stopped, whoever runs it. Thread-safe.
class RandomStreams {
 public:
  explicit RandomStreams(uint64_t seed = 0) : seed_(seed) {}
  // The step's own number, to be given to next().
  static uint64_t step_number(std::string_view output);

  struct Stream {
    uint64_t key;
    uint64_t turn;  // 0 for the step's first run
  };
  Stream next(uint64_t step_number);

 private:
  const uint64_t seed_;
  std::mutex mutex_;
  std::unordered_map<uint64_t, uint64_t> turns_;
};

// What a run may use and when it has to stop. The run's own thread alone charges it.
class RunEnvironment {
 public:
  // `random` outlives this; null: streams that begin with this run.
  explicit RunEnvironment(ThreadPool& pool, RandomStreams* random = nullptr)
      : pool_(pool), caller_(pool), random_(random != nullptr ? *random : own_random_) {}
  RunEnvironment(const RunEnvironment&) = delete;
  RunEnvironment& operator=(const RunEnvironment&) = delete;

  // That steps are bound for; what one is to run on is pool().for_caller().
  ThreadPool& pool() const { return pool_; }
  RandomStreams& random() const { return random_; }

  // Throws Error (cancelled) once the caller has cancelled the run or its deadline has passed.
  void check_cancelled() const;
  bool is_watched() const { return cancel != nullptr || deadline.has_value(); }

  // Throws Error (out_of_memory) where `bytes` more would pass the run's memory limit.
  void require(int64_t bytes) const;
  // The same, and counts them until they are given back.
  void charge(int64_t bytes);
  void release(int64_t bytes) { charged_ -= bytes; }
  int64_t charged() const { return charged_; }

  // Gives back, at its end, what was charged since its beginning.
  class Scope {
   public:
    explicit Scope(RunEnvironment& environment)
        : environment_(environment), before_(environment.charged_) {}
    ~Scope() { environment_.charged_ = before_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    RunEnvironment& environment_;
    const int64_t before_;
  };

  const std::atomic<bool>* cancel = nullptr;  // set by anyone to stop the run
  std::optional<std::chrono::steady_clock::time_point> deadline;
  int64_t memory_limit = INT64_MAX;
  run::Observer* observer = nullptr;  // told of the steps of plans (run/observer.h)

 private:
  ThreadPool& pool_;
  ThreadPool::Caller caller_;
  RandomStreams own_random_;
  RandomStreams& random_;
  int64_t charged_ = 0;
};

// A new tensor whose bytes are charged, of one of `blocks` where they are given.
Tensor charged_tensor(RunEnvironment& environment, ElementType type, Shape shape,
                      RecycledBlocks* blocks = nullptr);

// Bytes of the tensors in a value, as far as the value keeps them alive.
int64_t owned_bytes(const Value& value);

}  // namespace sardonyx::ops
