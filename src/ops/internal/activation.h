// The activation that an internal operator applies to what it makes.
#pragma once

#include "kernels/gemm/epilogue.h"
#include "ops/internal/fields.h"

namespace sardonyx::ops::internal {

template <>
struct EnumNames<kernels::Activation> {
  using enum kernels::Activation;
  static constexpr std::pair<std::string_view, kernels::Activation> list[] = {
      {"none", none},
      {"relu", relu},
      {"clip", clip},
      {"leaky_relu", leaky_relu},
      {"hard_sigmoid", hard_sigmoid},
      {"hard_swish", hard_swish},
      {"sigmoid", sigmoid},
      {"silu", silu},
      {"tanh", tanh},
      {"gelu_erf", gelu_erf},
      {"gelu_tanh", gelu_tanh},
  };
};

struct FusedActivation {
  kernels::Activation function = kernels::Activation::none;
  float alpha = 0, beta = 0;  // its parameters: p0 and p1 of kernels::Epilogue

  bool is_none() const { return function == kernels::Activation::none; }
  kernels::Epilogue epilogue() const {
    kernels::Epilogue made;
    made.activation = function, made.p0 = alpha, made.p1 = beta;
    return made;
  }

  template <class Visit, class... Self>
  static void fields(Visit&& visit, Self&... self) {
    visit("activation", self.function...);
    visit("activation_alpha", self.alpha...);
    visit("activation_beta", self.beta...);
  }
  bool operator==(const FusedActivation&) const = default;
};

}  // namespace sardonyx::ops::internal
