// The negative log likelihood of labels.
#pragma once

#include <cstdint>
#include <optional>

#include "base/thread_pool.h"

namespace sardonyx::kernels {

enum class LossReduction : int32_t { none, sum, mean };

struct LossShape {
  int64_t n = 0, classes = 0, inner = 0;  // x is [n, classes, inner], labels [n, inner]
  LossReduction reduction = LossReduction::mean;
  bool has_ignored = false;
  int64_t ignored = 0;  // this label counts nothing
};

// Loss -x[n, label, i] * weight[label] (null: 1) of each label, or their sum, or their sum divided
// by that of the weights. Labels are int32 or (wide) int64; one outside [0, classes) that is not
// `ignored` throws Error (run_failed). T is float or double.
template <class T>
void likelihood_loss(const LossShape& shape, const T* x, const void* labels, bool wide,
                     const T* weight, T* y);

}  // namespace sardonyx::kernels
