// Attention operators of com.microsoft that begin with one product, which gives Q, K and V side by
// side.
#pragma once

#include "ops/contrib/heads.h"

namespace sardonyx::ops {

struct Projection {
  std::string value;  // [batch, length, q + k + v]
  // Three parts of one size where the sizes are 0.
  int64_t q = 0, k = 0, v = 0;
};

// Which inputs of the node are what; absent ones lie beyond all.
struct ProjectionInputs {
  static constexpr size_t none = 99;
  size_t like = 0;  // of the type of Q
  size_t mask = none, past = none, bias = none, length = none, beams = none;
  std::string past_length = {};  // that of input `length` where empty
};

// The size of each of three equal parts of the last dimension of an input, which has `rank`
// dimensions; 0 where only a run knows it.
int64_t third_of_last(const Body& body, size_t input, size_t rank);

// The product of inputs 0 and 1 and, where it is there, the bias of input 2; qkv_hidden_sizes says
// how it divides.
Projection plain_projection(Body& body, size_t like);

// Q, K and V of the projection, as Heads without a past. Fails where num_heads does not divide
// them.
Heads split_projection(Body& body, const Projection& projection, size_t like);

// Makes outputs 0 (Y) and 1 (the present [2, batch, heads, length, size]).
void attend_projection(Body& body, const Projection& projection, const ProjectionInputs& inputs);

}  // namespace sardonyx::ops
