// Internal operators that gradients are made with.
#pragma once

#include "ops/internal/takes.h"
#include "ops/internal/window_fields.h"

namespace sardonyx::ops::internal {

using namespace std::string_view_literals;

// What flows back into the weights of a convolution: X is batch x channels x spatial, dY batch x
// output channels x spatial, dW of the weights' shape.
struct ConvWeightGradient {
  static constexpr std::string_view name = "ConvWeightGradient";
  static constexpr std::array inputs = {"X"sv, "dY"sv};
  static constexpr std::array takes = {Takes::floats, Takes::first};
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
  static constexpr std::array takes = {Takes::floats, Takes::floats, Takes::first};
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

// What flows back through the largest of each window, to the element that MaxPool's Indices name.
// src/autodiff makes it; spec/functions/sardonyx has its meaning.
struct MaxPoolGradient {
  static constexpr std::string_view name = "MaxPoolGradient";
  static constexpr std::array inputs = {"X"sv, "dY"sv};
  static constexpr std::array takes = {Takes::floats, Takes::first};
  static constexpr std::array outputs = {"dX"sv};
  enum Input { x, dy };

  Window window = pool_window();

  template <class Visit, class... Self>
  static void fields(Visit&& visit, Self&... self) {
    window_fields(visit, self.window...);
    visit("ceil_mode", self.window.ceil_mode...);
  }
  bool operator==(const MaxPoolGradient&) const = default;
};

// What flows back through a LayerNormalization over the axes from `axis` on into X and scale.
// src/autodiff makes it; spec/functions/sardonyx has its meaning.
struct LayerNormalizationGradient {
  static constexpr std::string_view name = "LayerNormalizationGradient";
  static constexpr std::array inputs = {"X"sv, "scale"sv, "dY"sv};
  static constexpr std::array takes = {Takes::floats, Takes::floats, Takes::first};
  static constexpr std::array outputs = {"dX?"sv, "dscale?"sv};
  enum Input { x, scale, dy };
  enum Output { dx, dscale };

  int64_t axis = -1;
  float epsilon = 1e-5f;

  template <class Visit, class... Self>
  static void fields(Visit&& visit, Self&... self) {
    visit("axis", self.axis...);
    visit("epsilon", self.epsilon...);
  }
  bool operator==(const LayerNormalizationGradient&) const = default;
};

// The recurrence of one direction of an LSTM, of the functions Sigmoid, Tanh and Tanh: `sums` are
// what inputs and biases add to the gates, steps x batch x 4 hidden, in the standard's order; R is
// 4 hidden x hidden. `gates` and `cells` are what its gradient reads. Behind the end of a sequence
// (`lengths`, int64) states stay, and Y and gates are 0. src/autodiff makes it.
struct LSTMRecurrence {
  static constexpr std::string_view name = "LSTMRecurrence";
  static constexpr std::array inputs = {"sums"sv, "R"sv, "initial_h"sv, "initial_c"sv,
                                        "lengths?"sv};
  static constexpr std::array takes = {Takes::floats, Takes::first, Takes::first, Takes::first,
                                       Takes::int64};
  static constexpr std::array outputs = {"Y?"sv, "Y_h?"sv, "Y_c?"sv, "gates"sv, "cells"sv};
  enum Input { sums, r, initial_h, initial_c, lengths };
  enum Output { y, y_h, y_c, gates, cells };

  bool reverse = false;  // begins with the last step; without lengths

  template <class Visit, class... Self>
  static void fields(Visit&& visit, Self&... self) {
    visit("reverse", self.reverse...);
  }
  bool operator==(const LSTMRecurrence&) const = default;
};

// What flows back through it into sums and the initial states. What flows into R is a product of
// dsums with the states before each step.
struct LSTMRecurrenceGradient {
  static constexpr std::string_view name = "LSTMRecurrenceGradient";
  static constexpr std::array inputs = {"R"sv,   "gates"sv, "cells"sv, "initial_c"sv, "lengths?"sv,
                                        "dY?"sv, "dY_h?"sv, "dY_c?"sv, "dgates?"sv,   "dcells?"sv};
  static constexpr std::array takes = {Takes::floats, Takes::first, Takes::first,
                                       Takes::first,  Takes::int64, Takes::first};
  static constexpr std::array outputs = {"dsums"sv, "dinitial_h?"sv, "dinitial_c?"sv};
  enum Input { r, gates, cells, initial_c, lengths, dy, dy_h, dy_c, dgates, dcells };
  enum Output { dsums, dinitial_h, dinitial_c };

  bool reverse = false;

  template <class Visit, class... Self>
  static void fields(Visit&& visit, Self&... self) {
    visit("reverse", self.reverse...);
  }
  bool operator==(const LSTMRecurrenceGradient&) const = default;
};

}  // namespace sardonyx::ops::internal
