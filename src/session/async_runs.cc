#include "session/async_runs.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "base/affinity.h"
#include "base/fail.h"
#include "base/os.h"

namespace sardonyx {

struct AsyncRuns::State {
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<std::function<void()>> queue;
  std::vector<std::thread> threads;
  size_t idle = 0;
  bool stops = false;

  // Does the first of what waits.
  void take_one(std::unique_lock<std::mutex>& lock) {
    {
      const std::function<void()> work = std::move(queue.front());
      queue.pop_front();
      lock.unlock();
      work();
    }
    lock.lock();
  }

  void serve() {
    std::unique_lock lock(mutex);
    for (;;) {
      if (!queue.empty()) {
        take_one(lock);
        continue;
      }
      if (stops) return;
      ++idle;
      wake.wait(lock, [this] { return stops || !queue.empty(); });
      --idle;
    }
  }
};

AsyncRuns::AsyncRuns(int max_threads, std::vector<int> processors, SessionLog log)
    : max_threads_(static_cast<size_t>(max_threads)),
      processors_(std::move(processors)),
      log_(std::move(log)),
      state_(std::make_shared<State>()) {}

void AsyncRuns::start_thread(State& state) {
  const StartOn there(processors_);
  state.threads.reserve(state.threads.size() + 1);
  state.threads.emplace_back([held = state_, place = os::Place()] {
    place.take();
    held->serve();
  });
}

void AsyncRuns::tell_of_fewer(size_t threads) const {
  log_.tell({.level = LogLevel::warning,
             .place = "session",
             .message = fmt::format("asynchronous runs go on {} threads instead of {}: the system "
                                    "does not start another",
                                    threads, max_threads_),
             .advice = "further runs wait for their turn; raise the limit of processes"});
}

void AsyncRuns::add(std::function<void()> work) {
  const std::shared_ptr<State> state = state_;
  std::unique_lock lock(state->mutex);
  // Once it stops, only its own threads add anything: they go on until nothing waits.
  if (!state->stops && state->queue.size() >= state->idle && state->threads.size() < max_threads_) {
    try {
      start_thread(*state);
    } catch (const std::exception& error) {
      // Without one more the threads that there are do the work.
      const size_t threads = state->threads.size();
      if (threads == 0)
        fail(ErrorCode::out_of_memory, "the system does not start a thread for the run: {}",
             error.what());
      if (!std::exchange(told_, true)) {
        lock.unlock();
        tell_of_fewer(threads);
        lock.lock();
      }
    }
  }
  state->queue.push_back(std::move(work));
  state->wake.notify_one();
}

void AsyncRuns::finish() {
  State& state = *state_;
  std::vector<std::thread> threads;
  const auto here = std::this_thread::get_id();
  {
    std::unique_lock lock(state.mutex);
    bool is_inside = false;
    for (const std::thread& thread : state.threads) is_inside |= thread.get_id() == here;
    // This thread can't be waited for: what it would have done besides is done now.
    while (is_inside && !state.queue.empty()) state.take_one(lock);
    state.stops = true;
    threads = std::exchange(state.threads, {});
  }
  state.wake.notify_all();
  for (std::thread& thread : threads) {
    if (thread.get_id() == here) {
      thread.detach();
    } else {
      thread.join();
    }
  }
}

}  // namespace sardonyx
