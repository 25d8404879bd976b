// Attention that a model decomposes in products and a Softmax.
#pragma once

#include "ops/internal/fields.h"
#include "ops/internal/takes.h"

namespace sardonyx::ops::internal {

using namespace std::string_view_literals;

// It means what the nodes did: a query that may attend to nothing gives NaN, as Softmax does, and
// masks broadcast as Where and Add do it. With three dimensions those of a mask are batch, queries
// and keys.
struct Attention {
  static constexpr std::string_view name = "Attention";
  static constexpr std::array inputs = {"Q"sv,          "K"sv,           "V"sv,
                                        "attn_mask?"sv, "past_key?"sv,   "past_value?"sv,
                                        "lengths?"sv,   "second_mask?"sv};
  static constexpr std::array takes = {Takes::floats,         Takes::first,  Takes::first,
                                       Takes::first_or_truth, Takes::first,  Takes::first,
                                       Takes::int64,          Takes::float32};
  static constexpr std::array outputs = {"Y"sv};
  enum Input {
    q,
    k,
    v,
    mask,
    past_key,  // of the standard's operator only; as past_value and lengths
    past_value,
    lengths,
    second_mask,  // float32, added
  };

  std::optional<float> scale;  // of the products; absent: 1 / sqrt(size of a head)
  // Which of Q, K, V and Y have their length before their heads (of three dimensions: before their
  // batch).
  std::array<bool, 4> transposed{};
  std::optional<float> masked;  // the score where a boolean mask is false; absent: -infinity
  // Of each mask, how the batches are counted that it is for: where that is not 1, its first
  // dimension is of rows of so many batches, and its second of those in a row.
  std::vector<int64_t> inner;
  int64_t q_num_heads = 0, kv_num_heads = 0;  // with three dimensions

  template <class Visit, class... Self>
  static void fields(Visit&& visit, Self&... self) {
    visit("scale", self.scale...);
    visit("transposed", self.transposed...);
    visit("masked", self.masked...);
    visit("inner", self.inner...);
    visit("q_num_heads", self.q_num_heads...);
    visit("kv_num_heads", self.kv_num_heads...);
  }
  bool operator==(const Attention&) const = default;
};

}  // namespace sardonyx::ops::internal
