// What LocalResponseNormalization needs to know of one channel; inside rows/ only.
#pragma once

#include <cstdint>

namespace sardonyx::kernels {

// Channels are `inner` elements apart; the window holds `below` of them before this one and
// `above` after it.
struct LrnTile {
  int64_t inner;
  int64_t below, above;
  float scale, beta, bias;  // scale is alpha / size
};

}  // namespace sardonyx::kernels
