#include "passes/running_statistics.h"

#include <cmath>
#include <vector>

#include "ir/tensor.h"
#include "passes/attributes.h"

namespace sardonyx::passes {

std::optional<ChannelFactors> running_statistics(
    const ir::Node& node, const std::function<const Tensor*(const std::string&)>& constant) {
  if (attr_int(node, "training_mode", 0) != 0 || node.inputs.size() < 5) return std::nullopt;
  std::vector<Tensor> parameters;
  for (size_t i = 1; i < 5; ++i) {
    const Tensor* p = constant(node.inputs[i]);
    if (p == nullptr || p->element_type() != ElementType::float32) return std::nullopt;
    parameters.push_back(ir::aligned(*p));
    if (parameters.back().size() != parameters[0].size()) return std::nullopt;
  }
  const double epsilon = attr_float(node, "epsilon", 1e-5f);
  Tensor factors(ElementType::float32, {parameters[0].size()}),
      terms(factors.element_type(), factors.shape());
  const auto factor = factors.mutable_elements<float>(), term = terms.mutable_elements<float>();
  for (size_t c = 0; c < factor.size(); ++c) {
    const auto at = [&](size_t i) { return double{parameters[i].elements<float>()[c]}; };
    const double scale = at(0) / std::sqrt(at(3) + epsilon);
    factor[c] = static_cast<float>(scale);
    term[c] = static_cast<float>(at(1) - at(2) * scale);
  }
  return ChannelFactors{factors, terms};
}

}  // namespace sardonyx::passes
