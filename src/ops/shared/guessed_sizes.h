// What sizes are taken to be where a model leaves them open and something must be chosen before the
// first run. They decide how fast a kernel is, never what it computes: every kernel takes any size.
#pragma once

#include <cstdint>

namespace sardonyx::ops {

// Images of one batch: what applications run one at a time is left open most often.
inline constexpr int64_t guessed_batch = 1;
// Height and width of the images that a convolution reads: those in the middle of the usual
// classifiers, which halve 224 three times.
inline constexpr int64_t guessed_image_size = 28;
// The same of images around a depthwise convolution, where tiles by rows are in question: they pay
// for large images, which such networks have in their first layers (224, halved once).
inline constexpr int64_t guessed_first_image_size = 112;

}  // namespace sardonyx::ops
