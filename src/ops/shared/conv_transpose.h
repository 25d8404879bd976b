// ConvTranspose's way as convolutions (kernels/conv/transposed.h), which alone has an internal
// form, and the other way that has channels last.
#pragma once

#include <string_view>

#include "ir/tensor.h"
#include "ops/internal/products.h"

namespace sardonyx::ops {

// Why a ConvTranspose with these weights (null where they are no constant) does not go
// that way; empty where it does.
std::string_view refuses_phases(const internal::ConvTranspose& conv, const Tensor* weights);

// Why one with these weights (null where they are no constant) is no depthwise one that has a form
// with channels last (kernels/conv/depthwise_transposed.h); empty where it is.
std::string_view refuses_depthwise(const internal::ConvTranspose& conv, const Tensor* weights);

}  // namespace sardonyx::ops
