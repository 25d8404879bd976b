#include "statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace sardonyx {

double median(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  const size_t middle = numbers.size() / 2;
  return numbers.size() % 2 == 1 ? numbers[middle] : (numbers[middle - 1] + numbers[middle]) / 2;
}

double percentile(std::vector<double> numbers, double share) {
  std::sort(numbers.begin(), numbers.end());
  const double rank = std::ceil(share * static_cast<double>(numbers.size()) - 1e-9);
  const auto position = static_cast<size_t>(std::max(rank, 1.0)) - 1;
  return numbers[std::min(position, numbers.size() - 1)];
}

}  // namespace sardonyx
