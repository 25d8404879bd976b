#include "kernels/rows/loss.h"

#include "base/fail.h"

namespace sardonyx::kernels {

template <class T>
void likelihood_loss(const LossShape& s, const T* x, const void* labels, bool wide, const T* weight,
                     T* y) {
  double total = 0, weights = 0;
  for (int64_t at = 0; at < s.n * s.inner; ++at) {
    const int64_t label =
        wide ? static_cast<const int64_t*>(labels)[at] : static_cast<const int32_t*>(labels)[at];
    double loss = 0;
    if (!s.has_ignored || label != s.ignored) {
      if (label < 0 || label >= s.classes)
        fail(ErrorCode::run_failed, "a label must be in [0, {}); got {}", s.classes, label);
      const double factor = weight ? static_cast<double>(weight[label]) : 1.0;
      loss = -static_cast<double>(x[(at / s.inner * s.classes + label) * s.inner + at % s.inner]) *
             factor;
      weights += factor;
    }
    total += loss;
    if (s.reduction == LossReduction::none) y[at] = static_cast<T>(loss);
  }
  if (s.reduction == LossReduction::sum) *y = static_cast<T>(total);
  if (s.reduction == LossReduction::mean) *y = static_cast<T>(total / weights);
}

template void likelihood_loss<float>(const LossShape&, const float*, const void*, bool,
                                     const float*, float*);
template void likelihood_loss<double>(const LossShape&, const double*, const void*, bool,
                                      const double*, double*);

}  // namespace sardonyx::kernels
