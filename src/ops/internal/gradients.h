// Internal operators that gradients are made with.
#pragma once

#include "ops/internal/window_fields.h"

namespace sardonyx::ops::internal {

using namespace std::string_view_literals;

// What flows back into the weights of a convolution: X is batch x channels x spatial, dY batch x
// output channels x spatial, dW of the weights' shape.
struct ConvWeightGradient {
  static constexpr std::string_view name = "ConvWeightGradient";
  static constexpr std::array inputs = {"X"sv, "dY"sv};
  static constexpr std::array outputs = {"dW"sv};
  enum Input { x, dy };

  Window window;  // of the convolution
  int64_t group = 1;
  std::vector<int64_t> weights_shape;

  template <class Visit, class... Self>
  static void fields(Visit&& visit, Self&... self) {
    window_fields(visit, self.window...);
    visit("group", self.group...);
    visit.required("weights_shape", self.weights_shape...);
  }
  bool operator==(const ConvWeightGradient&) const = default;
};

// What flows back through a BatchNormalization that normalises with the moments of its batch.
// src/autodiff makes it; spec/functions/sardonyx has its meaning.
struct BatchNormalizationGradient {
  static constexpr std::string_view name = "BatchNormalizationGradient";
  static constexpr std::array inputs = {"X"sv, "scale"sv, "dY"sv};
  static constexpr std::array outputs = {"dX?"sv, "dscale?"sv, "dB?"sv};
  enum Input { x, scale, dy };
  enum Output { dx, dscale, db };

  float epsilon = 1e-5f;

  template <class Visit, class... Self>
  static void fields(Visit&& visit, Self&... self) {
    visit("epsilon", self.epsilon...);
  }
  bool operator==(const BatchNormalizationGradient&) const = default;
};

}  // namespace sardonyx::ops::internal
