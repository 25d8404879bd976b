// Which thread took which part of the parallel loops that one thread began, for profiles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sardonyx {

// What one thread did of one loop. Moments are nanoseconds of the steady clock.
struct LoopPart {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t chunks = 0;
};

// While a Scope of it lives, loops that the scope's thread begins are recorded here: by each thread
// its own parts. May be read by the scope's thread between its loops.
class LoopRecorder {
 public:
  // `threads`: of the pool, the caller included.
  explicit LoopRecorder(int threads) : parts_(static_cast<size_t>(threads)) {}

  std::vector<LoopPart>& parts(int worker) { return parts_[static_cast<size_t>(worker)]; }
  int threads() const { return static_cast<int>(parts_.size()); }
  void clear() {
    for (auto& parts : parts_) parts.clear();
  }

  class Scope {
   public:
    explicit Scope(LoopRecorder& recorder) : outer_(current()) { current() = &recorder; }
    ~Scope() { current() = outer_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    LoopRecorder* outer_;
  };

  // Of the calling thread; null where nobody records.
  static LoopRecorder*& current();

 private:
  std::vector<std::vector<LoopPart>> parts_;
};

}  // namespace sardonyx
