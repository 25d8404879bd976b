// Internal operators that update state in training.
#pragma once

#include <array>
#include <string_view>

#include "ops/internal/takes.h"

namespace sardonyx::ops::internal {

using namespace std::string_view_literals;

// One step of AdamW for one parameter: X, its gradient G and the averages V and H of the one shape;
// rate, and what V and the root of H are divided by (1 where absent), are scalars of their type:
//   V_new = alpha V + alpha_rest G          H_new = beta H + beta_rest G G
//   X_new = X - rate ((V_new / share) / (Sqrt(H_new) / spread + epsilon) + decay X)
struct AdamW {
  static constexpr std::string_view name = "AdamW";
  static constexpr std::array inputs = {"rate"sv, "X"sv,      "G"sv,      "V"sv,
                                        "H"sv,    "share?"sv, "spread?"sv};
  static constexpr std::array takes = {Takes::float32_or_64, Takes::first};
  static constexpr std::array outputs = {"X_new"sv, "V_new"sv, "H_new"sv};
  enum Input { rate, x, g, v, h, share, spread };

  float alpha = 0, alpha_rest = 0, beta = 0, beta_rest = 0, epsilon = 0, decay = 0;

  template <class Visit, class... Self>
  static void fields(Visit&& visit, Self&... self) {
    visit("alpha", self.alpha...);
    visit("alpha_rest", self.alpha_rest...);
    visit("beta", self.beta...);
    visit("beta_rest", self.beta_rest...);
    visit("epsilon", self.epsilon...);
    visit("decay", self.decay...);
  }
  bool operator==(const AdamW&) const = default;
};

}  // namespace sardonyx::ops::internal
