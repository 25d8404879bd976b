// BatchNormalization by statistics that are constants.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "ir/model.h"
#include "sardonyx/value.h"

namespace sardonyx::passes {

// What each channel is multiplied with, and what is added to it: float32.
struct ChannelFactors {
  Tensor factors, terms;
};

// Of a BatchNormalization; nothing where it trains or its parameters are no constants of float32,
// as `constant` says.
std::optional<ChannelFactors> running_statistics(
    const ir::Node& node, const std::function<const Tensor*(const std::string&)>& constant);

}  // namespace sardonyx::passes
