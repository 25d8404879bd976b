#include "kernels/move/selected_boxes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/move/selected_boxes.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

bool AnyOverlaps(const float* groups, int64_t count, const Box& box, float threshold) {
  const hn::CappedTag<float, SelectedBoxes::group> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto zero = hn::Zero(d);
  const auto y0 = hn::Set(d, box.y0), x0 = hn::Set(d, box.x0), y1 = hn::Set(d, box.y1),
             x1 = hn::Set(d, box.x1), area = hn::Set(d, box.area());
  const auto least = hn::Set(d, threshold);
  if (!(box.area() > 0)) return false;
  for (int64_t i = 0; i < count;
       i += SelectedBoxes::group, groups += SelectedBoxes::fields * SelectedBoxes::group) {
    for (int64_t j = 0; j < SelectedBoxes::group; j += lanes) {
      const auto field = [&](int64_t f) HWY_ATTR {
        return hn::LoadU(d, groups + f * SelectedBoxes::group + j);
      };
      const auto height = hn::Sub(hn::Min(field(2), y1), hn::Max(field(0), y0)),
                 width = hn::Sub(hn::Min(field(3), x1), hn::Max(field(1), x0));
      const auto touch = hn::And(hn::Gt(height, zero), hn::Gt(width, zero));
      if (hn::AllFalse(d, touch)) continue;  // as most do
      const auto common = hn::Mul(width, height), other = field(4);
      const auto joint = hn::Sub(hn::Add(area, other), common);
      const auto valid =
          hn::And(hn::And(hn::Gt(common, zero), hn::Gt(other, zero)), hn::Gt(joint, zero));
      const auto above = hn::Gt(hn::Div(common, joint), least);
      if (!hn::AllFalse(d, hn::And(hn::And(touch, valid), above))) return true;
    }
  }
  return false;
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(AnyOverlaps);

void SelectedBoxes::clear() {
  count_ = 0;
  values_.clear();
}

void SelectedBoxes::add(const Box& box) {
  const int64_t place = count_ % group;
  if (place == 0) values_.resize(values_.size() + static_cast<size_t>(fields * group));
  float* to = values_.data() + count_ / group * fields * group + place;
  to[0] = box.y0, to[group] = box.x0, to[2 * group] = box.y1, to[3 * group] = box.x1;
  to[4 * group] = box.area();
  ++count_;
}

bool SelectedBoxes::any_overlaps(const Box& box, float threshold) const {
  return HWY_DYNAMIC_DISPATCH(AnyOverlaps)(values_.data(), count_, box, threshold);
}

}  // namespace sardonyx::kernels
#endif
