// Objects that are used again with the memory that they hold.
#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace sardonyx::lower {

// One of the unused objects, or a new one, until its end. It holds what it was left with. Where
// objects are made within others, each level has its own.
template <class T>
class Spare {
 public:
  explicit Spare(std::vector<std::unique_ptr<T>>& unused) : unused_(unused) {
    if (unused.empty()) {
      taken_ = std::make_unique<T>();
    } else {
      taken_ = std::move(unused.back());
      unused.pop_back();
    }
  }
  Spare(const Spare&) = delete;
  Spare& operator=(const Spare&) = delete;
  ~Spare() { unused_.push_back(std::move(taken_)); }
  T& operator*() const { return *taken_; }

 private:
  std::vector<std::unique_ptr<T>>& unused_;
  std::unique_ptr<T> taken_;
};

}  // namespace sardonyx::lower
