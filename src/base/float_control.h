// How a thread computes with floating-point numbers.
#pragma once

#include <cstdint>

namespace sardonyx {

// The direction of rounding, and whether numbers below the normal ones count as zeros, in operands
// and results. Each thread has its own; exceptions and their flags are no part of it. All are the
// same on processors that this knows nothing of.
class FloatControl {
 public:
  // This thread's.
  static FloatControl current();
  // To the nearest, and small numbers are what they are: what threads begin with.
  static FloatControl standard();

  FloatControl with_flushed_denormals() const;
  // From now on this thread's.
  void take() const;

  friend bool operator==(const FloatControl&, const FloatControl&) = default;

 private:
  explicit FloatControl(uint64_t bits) : bits_(bits) {}
  uint64_t bits_;
};

// This thread's for the life of the object.
class FloatControlScope {
 public:
  explicit FloatControlScope(FloatControl wanted) : before_(FloatControl::current()) {
    changed_ = !(wanted == before_);
    if (changed_) wanted.take();
  }
  ~FloatControlScope() {
    if (changed_) before_.take();
  }
  FloatControlScope(const FloatControlScope&) = delete;
  FloatControlScope& operator=(const FloatControlScope&) = delete;

 private:
  const FloatControl before_;
  bool changed_;
};

}  // namespace sardonyx
