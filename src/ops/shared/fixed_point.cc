#include "ops/shared/fixed_point.h"

#include <cmath>

#include "base/checked.h"

namespace sardonyx::ops {
namespace {

constexpr double largest = 1 << 24;  // above it float32 does not hold all whole numbers

std::optional<Dim> in_units(double value) {
  const double units = value * static_cast<double>(float_unit);
  if (!(std::fabs(value) <= largest) || units != std::floor(units)) return std::nullopt;
  return Dim(static_cast<int64_t>(units));
}

// Calls `visit` with each element of a small tensor of the types that are followed.
template <class Visit>
bool visit_floats(const Tensor& tensor, const Visit& visit) {
  if (!has_float_elements(tensor.element_type()) || tensor.size() > max_known_floats) return false;
  const auto all = [&](const auto* data) {
    for (int64_t i = 0; i < tensor.size(); ++i) {
      if (!visit(static_cast<double>(data[i]))) return false;
    }
    return true;
  };
  return tensor.element_type() == ElementType::float32
             ? all(static_cast<const float*>(tensor.data()))
             : all(static_cast<const double*>(tensor.data()));
}

template <class T>
Tensor filled(ElementType type, const std::vector<double>& values, Shape shape) {
  Tensor tensor(type, std::move(shape));
  T* out = static_cast<T*>(tensor.mutable_data());
  for (size_t i = 0; i < values.size(); ++i) out[i] = static_cast<T>(values[i]);
  return tensor;
}

Tensor filled(ElementType type, const std::vector<double>& values, Shape shape) {
  return type == ElementType::float32 ? filled<float>(type, values, std::move(shape))
                                      : filled<double>(type, values, std::move(shape));
}

}  // namespace

std::shared_ptr<const Dims> float_elements(const Tensor& tensor) {
  auto elements = std::make_shared<Dims>();
  const bool known = visit_floats(tensor, [&](double value) {
    const auto units = in_units(value);
    if (units) elements->push_back(*units);
    return units.has_value();
  });
  return known ? elements : nullptr;
}

Tensor float_tensor(ElementType type, const Dims& elements, Shape shape) {
  std::vector<double> values;
  for (const Dim& element : elements)
    values.push_back(static_cast<double>(*element.value()) / static_cast<double>(float_unit));
  return filled(type, values, std::move(shape));
}

std::optional<std::vector<double>> known_floats(const InferContext& ctx, int i) {
  const Tensor* constant = ctx.constant(i);
  if (!ctx.mode().symbolic_values || constant == nullptr) return std::nullopt;
  std::vector<double> values;
  const bool known = visit_floats(*constant, [&](double value) {
    values.push_back(value);
    return true;
  });
  return known ? std::optional(std::move(values)) : std::nullopt;
}

void set_floats(InferContext& ctx, const std::vector<double>& values) {
  const ValueType& type = ctx.output(0).type;
  const auto shape = type.concrete_shape();
  if (!has_float_elements(type.element) || !shape ||
      checked_count(*shape) != static_cast<int64_t>(values.size()))
    return;
  ctx.set_constant(0, filled(type.element, values, *shape));
}

}  // namespace sardonyx::ops
