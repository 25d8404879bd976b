// What the tests of matrix multiplication and convolution share.
#pragma once

#include <gtest/gtest.h>

#include <hwy/targets.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "base/cpu.h"
#include "kernels/gemm/epilogue.h"

namespace sardonyx::kernels::test {

// Holds dispatch to one instruction set while it lives.
class UseTarget {
 public:
  explicit UseTarget(int64_t target) : before_(hwy::SupportedTargets()) { set(target); }
  ~UseTarget() { set(before_); }
  UseTarget(const UseTarget&) = delete;
  UseTarget& operator=(const UseTarget&) = delete;

 private:
  static void set(int64_t targets) {
    hwy::SetSupportedTargetsForTest(targets);
    hwy::GetChosenTarget().Update(targets);
  }
  int64_t before_;
};

// The instruction sets that this machine (and SARDONYX_CPU) allow, narrowest first.
inline std::vector<int64_t> usable_targets() {
#if !HWY_ARCH_X86
  return {HWY_STATIC_TARGET};
#else
  std::vector<int64_t> targets{HWY_SCALAR};
  if (instruction_set() >= InstructionSet::avx2) targets.push_back(HWY_AVX2);
  if (instruction_set() >= InstructionSet::avx512) targets.push_back(HWY_AVX3);
  return targets;
#endif
}

inline std::string target_name(const ::testing::TestParamInfo<int64_t>& info) {
  return hwy::TargetName(info.param);
}

// Memory aligned to 64 bytes (or `skew` floats beyond that), full of NaN, with guards that notice
// writes outside it.
class Guarded {
 public:
  explicit Guarded(int64_t floats, int64_t skew = 0)
      : count_(floats),
        skew_(skew),
        memory_(static_cast<float*>(
            ::operator new (static_cast<size_t>(floats + skew + 2 * guard) * sizeof(float),
                            std::align_val_t{64}))) {
    std::fill_n(memory_.get(), count_ + skew_ + 2 * guard, canary());
    std::fill_n(data(), count_, std::numeric_limits<float>::quiet_NaN());
  }

  float* data() { return memory_.get() + guard + skew_; }
  const float* data() const { return memory_.get() + guard + skew_; }
  int64_t size() const { return count_; }
  float& operator[](int64_t i) { return data()[i]; }
  float operator[](int64_t i) const { return data()[i]; }

  bool intact() const {
    const float expected = canary();
    for (int64_t i = 0; i < guard + skew_; ++i) {
      if (std::memcmp(memory_.get() + i, &expected, sizeof expected) != 0) return false;
    }
    for (int64_t i = 0; i < guard; ++i) {
      if (std::memcmp(data() + count_ + i, &expected, sizeof expected) != 0) return false;
    }
    return true;
  }

 private:
  static constexpr int64_t guard = 64;
  static float canary() { return -1234.5f; }
  struct Free {
    void operator()(float* p) const { ::operator delete (p, std::align_val_t{64}); }
  };
  int64_t count_;
  int64_t skew_;
  std::unique_ptr<float, Free> memory_;
};

inline void fill_random(float* data, int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  for (int64_t i = 0; i < count; ++i) data[i] = uniform(random);
}

inline double activate(const Epilogue& e, double x) {
  if (std::isnan(x)) return x;
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  const auto clamp = [](double v, double low, double high) {
    return std::min(std::max(v, low), high);
  };
  switch (e.activation) {
    case Activation::none: return x;
    case Activation::relu: return std::max(x, 0.0);
    case Activation::clip: return clamp(x, e.p0, e.p1);
    case Activation::leaky_relu: return x < 0 ? x * e.p0 : x;
    case Activation::hard_sigmoid: return clamp(x * e.p0 + e.p1, 0, 1);
    case Activation::hard_swish: return x * clamp(x / 6 + 0.5, 0, 1);
    case Activation::sigmoid: return sigmoid(x);
    case Activation::silu: return x * sigmoid(x);
    case Activation::tanh: return std::tanh(x);
    case Activation::gelu_erf: return x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
    case Activation::gelu_tanh:
      return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
  }
  return x;
}

// What an epilogue makes of a sum; row and column are C's.
inline double finish(const Epilogue& e, double sum, int64_t row, int64_t column, double residual) {
  double v = e.alpha * sum;
  if (e.bias_axis == BiasAxis::row) v += double{e.beta} * e.bias[row];
  if (e.bias_axis == BiasAxis::column) v += double{e.beta} * e.bias[column];
  if (e.residual != nullptr && !e.residual_last) v += e.beta * residual;
  v = activate(e, v);
  if (e.residual != nullptr && e.residual_last) v += e.beta * residual;
  return v;
}

}  // namespace sardonyx::kernels::test
