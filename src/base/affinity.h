// Where new threads may run.
#pragma once

#include <span>
#include <vector>

namespace sardonyx {

// While it lives, threads that this thread starts run on these processors only, by the system's
// numbers, and so does this thread. An empty list changes nothing. Throws Error (bad_input) for a
// number that the process may not use.
class StartOn {
 public:
  explicit StartOn(std::span<const int> processors);
  ~StartOn();
  StartOn(const StartOn&) = delete;
  StartOn& operator=(const StartOn&) = delete;

 private:
  std::vector<int> before_;  // empty: nothing was changed
};

}  // namespace sardonyx
