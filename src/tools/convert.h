// Carrying a model to another opset.
#pragma once

#include <cstdint>

#include "ir/model.h"
#include "sardonyx/convert.h"

namespace sardonyx {

// See convert_version in sardonyx/convert.h.
ir::Model convert(const Model& model, const ConvertOptions& options = {});

}  // namespace sardonyx
