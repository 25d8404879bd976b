#include "async_runs.h"

#include <condition_variable>
#include <mutex>
#include <set>
#include <utility>

namespace sardonyx::python {
namespace {

// Nobody waits for the lock of the interpreter while the mutex is held.
struct Registry {
  std::mutex mutex;
  std::condition_variable empty;
  std::multiset<std::atomic<bool>*>
      flags;  // of runs that have not ended; one flag may be of several
  size_t running = 0;
  bool closed = false;
  int forks = 0;
};

// A child that was forked has none of the runs of its parent, and may have found the mutex locked.
Registry& registry() {
  static std::atomic<Registry*> current{new Registry};  // threads may use it after static objects
  Registry* found = current.load();
  if (found->forks != forks_so_far()) {
    auto* fresh = new Registry;
    fresh->forks = forks_so_far();
    if (current.compare_exchange_strong(found, fresh)) return *fresh;
    delete fresh;
  }
  return *found;
}

}  // namespace

AsyncRun::AsyncRun(Cancel* cancel, nb::object callback, nb::object keep)
    : flag_(cancel != nullptr ? &cancel->wanted : &own_flag_),
      callback_(std::move(callback)),
      keep_(std::move(keep)),
      born_in_(forks_so_far()) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  if (all.closed)
    throw Error(ErrorCode::cancelled, "the interpreter ends, and no more runs can be begun");
  all.flags.insert(flag_);
  ++all.running;
}

AsyncRun::~AsyncRun() {
  if (has_ended_) return;
  const nb::gil_scoped_acquire lock;
  leave();
}

void AsyncRun::end(nb::handle outputs, nb::handle exception) {
  try {
    callback_(outputs, exception);
  } catch (nb::python_error& failure) {  // nobody else is there to be told
    failure.discard_as_unraisable("the callback of sardonyx.Session.run_async");
  }
  leave();
}

// The run counts until all is let go of: what that ends, a session perhaps, releases the lock for a
// while and takes it again, which no thread can any more once the interpreter goes on to its end.
void AsyncRun::leave() {
  has_ended_ = true;
  const bool counts = born_in_ == forks_so_far();
  if (counts) {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    const auto found = all.flags.find(flag_);
    if (found != all.flags.end()) all.flags.erase(found);
  }
  callback_ = nb::object();
  keep_ = nb::object();  // perhaps the last that holds the session, and the flag
  if (!counts) return;
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  if (--all.running == 0) all.empty.notify_all();
}

void finish_async_runs() {
  Registry& all = registry();
  const nb::gil_scoped_release unlocked;
  std::unique_lock lock(all.mutex);
  all.closed = true;
  for (std::atomic<bool>* flag : all.flags) flag->store(true);
  all.empty.wait(lock, [&] { return all.running == 0; });
}

}  // namespace sardonyx::python
