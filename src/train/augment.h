// Examples of a batch in another form in each epoch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sardonyx/fit.h"

namespace sardonyx::train {

// Changes the images of a batch: arrays [examples, channels, height, width], all alike. What is
// drawn for an example is decided by seed, epoch and its place among all examples. Throws Error
// (bad_input) where the batch has no images.
void augment(std::vector<NamedValue>& batch, std::span<const int64_t> places,
             const Augmentation& how, uint64_t seed, int64_t epoch);

}  // namespace sardonyx::train
