// Numbers of many measurements.
#pragma once

#include <vector>

namespace sardonyx {

// The middle number, or the mean of the two in the middle. `numbers` is not empty.
double median(std::vector<double> numbers);

// The nearest rank: the least of the numbers that at least `share` of them (in [0, 1]) do not
// exceed. `numbers` is not empty.
double percentile(std::vector<double> numbers, double share);

}  // namespace sardonyx
