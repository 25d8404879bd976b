// What the attention operators of com.microsoft share: the standard's Attention around operands,
// masks, and a past that either grows or lies in a buffer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ops/contrib/body.h"

namespace sardonyx::ops {

// Q, K and V, all of three dimensions [batch, length, heads * size] or all of four [batch, heads,
// length, size].
struct Heads {
  std::string q, k, v;
  // Of four dimensions. With `past_length`, which is a vector of one in int64, they are buffers:
  // new rows are written at that position, and the present has the size of the past.
  std::string past_k, past_v, past_length;
  // cache_indirection [batch, beams, rows of the buffer]: from which beam of its batch a past row
  // is read.
  std::string beams;
  std::string lengths;  // int64 [batch]: how many keys count, where there is no past
  int64_t count = 0;
  size_t like = 0;  // an input of the node that has the type of q

  bool is_buffered() const { return !past_length.empty(); }
};

// Attribute num_heads, which must be at least 1.
int64_t head_count(const UpgradeContext& ctx);

// Attribute mask_filter_value as a scalar in the type of an input. A finite one stays finite: the
// lowest float, which exporters write, is no number of half precision.
std::string mask_filter(Body& body, size_t like);

// An input that holds one number, as a vector of one in int64.
std::string one_number(Body& body, size_t input);

// `value`, whose integers must all be in [low, high]; `high` is a vector of one in int64. `what`
// names them in the error.
std::string in_range(Body& body, const std::string& value, int64_t low, const std::string& high,
                     std::string_view what);

// [batch, length, heads * size] as [batch, heads, length, size], and back.
std::string four_dimensional(Body& body, const std::string& value, int64_t heads);
std::string three_dimensional(Body& body, const std::string& value);

// Adds to Q of three dimensions its part of the input `bias`, and to K and V theirs where these are
// `projected` and have three dimensions, too.
void add_bias(Body& body, Heads& heads, size_t bias, bool projected);

// Attention and QAttention ignore a mask [batch, 1]; other operators know no such masks.
enum class MaskOfOne { ignored, meant };

// The mask of input `mask` and the bias of input `bias` as something to add to the scores, or "".
std::string additive_mask(Body& body, const Heads& heads, int64_t rank, size_t mask, size_t bias,
                          MaskOfOne one = MaskOfOne::meant);

// The names of a node's outputs; absent ones are "".
Names wanted_outputs(const Body& body, size_t count);

// Makes the outputs of the names given (absent: ""): Y [batch, length, heads * size], the present
// keys and values, and the scores after masks are added.
void attend(Body& body, const Heads& heads, int64_t rank, const std::string& mask, Names outputs);

}  // namespace sardonyx::ops
