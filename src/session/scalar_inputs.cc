#include "session/scalar_inputs.h"

#include <fmt/format.h>

#include <algorithm>

namespace sardonyx {

ScalarInputs::ScalarInputs(std::span<const ValueDescription> inputs, bool strict, Warn warn)
    : warn_(std::move(warn)) {
  const auto is_scalar = [](const ValueDescription& input) {
    return input.kind == Value::Kind::tensor && input.shape && input.shape->empty();
  };
  if (strict || std::ranges::none_of(inputs, is_scalar)) return;
  for (const ValueDescription& input : inputs)
    names_.push_back(is_scalar(input) ? input.name : std::string());
  told_ = std::make_unique<std::atomic<bool>[]>(names_.size());
}

std::optional<Value> ScalarInputs::meant(size_t i, const Value& given) const {
  if (i >= names_.size() || names_[i].empty() || !given.is_tensor()) return std::nullopt;
  const Tensor& tensor = given.tensor();
  if (tensor.rank() == 0 || tensor.size() != 1) return std::nullopt;
  if (warn_ && !told_[i].exchange(true)) {
    warn_({"", fmt::format("input '{}'", names_[i]),
           fmt::format("the model takes a scalar, and is given one element of shape {}",
                       to_string(tensor.shape())),
           "the element is taken; give it without dimensions"});
  }
  return Value(tensor.reshaped({}));
}

}  // namespace sardonyx
