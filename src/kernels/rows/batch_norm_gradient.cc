#include "kernels/rows/batch_norm_gradient.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rows/batch_norm_gradient.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "kernels/rows/grain.h"
#include "kernels/rows/row_math.h"
#include "kernels/simd/masked-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// The sum of (x - center) * dy, in four strands.
float CenteredDot(const float* x, const float* dy, float center, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto middle = hn::Set(d, center);
  auto a = hn::Zero(d), b = a, c = a, e = a;
  const auto add = [&](auto& sum, int64_t i) HWY_ATTR {
    sum = hn::MulAdd(hn::Sub(hn::LoadU(d, x + i), middle), hn::LoadU(d, dy + i), sum);
  };
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    add(a, i), add(b, i + lanes), add(c, i + 2 * lanes), add(e, i + 3 * lanes);
  }
  for (; i + lanes <= n; i += lanes) add(a, i);
  if (i < n) {
    const auto some = hn::FirstN(d, static_cast<size_t>(n - i));
    const auto v = masked::Load(some, d, x + i), w = masked::Load(some, d, dy + i);
    b = hn::MulAdd(hn::IfThenElseZero(some, hn::Sub(v, middle)), w, b);
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
}

// dx = ((dy - mean) - (x - center) * along) * factor.
void GradientRow(const float* x, const float* dy, float center, float mean, float along,
                 float factor, float* dx, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto middle = hn::Set(d, center), less = hn::Set(d, mean), slope = hn::Set(d, along),
             times = hn::Set(d, factor);
  const auto at = [&](auto v, auto w) HWY_ATTR {
    return hn::Mul(hn::NegMulAdd(hn::Sub(v, middle), slope, hn::Sub(w, less)), times);
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(at(hn::LoadU(d, x + i), hn::LoadU(d, dy + i)), d, dx + i);
  if (i < n) {
    const auto some = hn::FirstN(d, static_cast<size_t>(n - i));
    masked::Store(at(masked::Load(some, d, x + i), masked::Load(some, d, dy + i)), some, d, dx + i);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {
namespace {

HWY_EXPORT(CenteredDot);
HWY_EXPORT(GradientRow);

double centered_dot(const float* x, const float* dy, double center, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(CenteredDot)(x, dy, static_cast<float>(center), n);
}
double centered_dot(const double* x, const double* dy, double center, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += (x[i] - center) * dy[i];
  return sum;
}

// What a channel's elements are made of.
struct Slopes {
  double center = 0, mean = 0, along = 0, factor = 0;
};
void gradient_row(const float* x, const float* dy, const Slopes& s, float* dx, int64_t n) {
  HWY_DYNAMIC_DISPATCH(GradientRow)
  (x, dy, static_cast<float>(s.center), static_cast<float>(s.mean), static_cast<float>(s.along),
   static_cast<float>(s.factor), dx, n);
}
void gradient_row(const double* x, const double* dy, const Slopes& s, double* dx, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    dx[i] = ((dy[i] - s.mean) - (x[i] - s.center) * s.along) * s.factor;
}

// Sums over all elements of a channel.
struct Sums {
  double squares = 0, flow = 0, along = 0;  // of (x - mean)^2, dy, (x - mean) dy
};

// Writes the small gradients of channel c.
template <class T>
Slopes finish(const BatchNormGradient<T>& job, int64_t c, double mean, const Sums& sums) {
  const auto count = static_cast<double>(job.n * job.inner);
  const double inverse = 1 / std::sqrt(sums.squares / count + job.epsilon);
  if (job.dscale != nullptr) job.dscale[c] = static_cast<T>(sums.along * inverse);
  if (job.dbias != nullptr) job.dbias[c] = static_cast<T>(sums.flow);
  return {mean, sums.flow / count, sums.along / count * inverse * inverse,
          static_cast<double>(job.scale[c]) * inverse};
}

template <class T>
void one_channel(const BatchNormGradient<T>& job, int64_t c) {
  const auto each = [&](auto&& visit) {
    for (int64_t i = 0; i < job.n; ++i) visit((i * job.channels + c) * job.inner);
  };
  double mean = 0;
  Sums sums;
  each([&](int64_t at) {
    mean += static_cast<double>(row_sum(job.x + at, job.inner));
    sums.flow += static_cast<double>(row_sum(job.dy + at, job.inner));
  });
  mean /= static_cast<double>(job.n * job.inner);
  each([&](int64_t at) {
    sums.squares +=
        static_cast<double>(row_sum_squares(job.x + at, static_cast<T>(mean), job.inner));
    sums.along += centered_dot(job.x + at, job.dy + at, mean, job.inner);
  });
  const Slopes slopes = finish(job, c, mean, sums);
  if (job.dx == nullptr) return;
  each([&](int64_t at) { gradient_row(job.x + at, job.dy + at, slopes, job.dx + at, job.inner); });
}

constexpr int64_t block = 64;  // channels whose elements lie side by side

// Channels [c, c + count) of matrices: rows of x hold an element of each.
template <class T>
void several_channels(const BatchNormGradient<T>& job, int64_t c, int64_t count) {
  double means[block] = {}, squares[block] = {}, flows[block] = {}, alongs[block] = {};
  for (int64_t i = 0; i < job.n; ++i) {
    const T *x = job.x + i * job.channels + c, *dy = job.dy + i * job.channels + c;
    for (int64_t k = 0; k < count; ++k) {
      means[k] += static_cast<double>(x[k]);
      flows[k] += static_cast<double>(dy[k]);
    }
  }
  for (int64_t k = 0; k < count; ++k) means[k] /= static_cast<double>(job.n);
  for (int64_t i = 0; i < job.n; ++i) {
    const T *x = job.x + i * job.channels + c, *dy = job.dy + i * job.channels + c;
    for (int64_t k = 0; k < count; ++k) {
      const double off = static_cast<double>(x[k]) - means[k];
      squares[k] += off * off;
      alongs[k] += off * static_cast<double>(dy[k]);
    }
  }
  Slopes slopes[block];
  for (int64_t k = 0; k < count; ++k)
    slopes[k] = finish(job, c + k, means[k], {squares[k], flows[k], alongs[k]});
  if (job.dx == nullptr) return;
  for (int64_t i = 0; i < job.n; ++i) {
    const int64_t at = i * job.channels + c;
    for (int64_t k = 0; k < count; ++k) {
      const Slopes& s = slopes[k];
      const double x = static_cast<double>(job.x[at + k]), dy = static_cast<double>(job.dy[at + k]);
      job.dx[at + k] = static_cast<T>(((dy - s.mean) - (x - s.center) * s.along) * s.factor);
    }
  }
}

template <class T>
void all_channels(const BatchNormGradient<T>& job, ThreadPool& pool) {
  if (job.inner == 1) {
    const int64_t blocks = (job.channels + block - 1) / block;
    return for_rows_of(blocks, 6 * job.n * block, pool, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        several_channels(job, i * block, std::min(block, job.channels - i * block));
    });
  }
  for_rows_of(job.channels, 3 * job.n * job.inner, pool, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) one_channel(job, c);
  });
}

}  // namespace

void batch_norm_gradient(const BatchNormGradient<float>& job, ThreadPool& pool) {
  all_channels(job, pool);
}
void batch_norm_gradient(const BatchNormGradient<double>& job, ThreadPool& pool) {
  all_channels(job, pool);
}

}  // namespace sardonyx::kernels
#endif
