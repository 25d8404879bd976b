#include "sardonyx/ranking.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/fail.h"
#include "tools/numbers.h"

namespace sardonyx {
namespace {

bool are_probabilities(const std::vector<double>& numbers, int64_t width) {
  for (size_t begin = 0; begin < numbers.size(); begin += static_cast<size_t>(width)) {
    double sum = 0;
    for (size_t i = begin; i < begin + static_cast<size_t>(width); ++i) {
      if (!(numbers[i] >= -1e-6 && numbers[i] <= 1 + 1e-3)) return false;
      sum += numbers[i];
    }
    if (std::abs(sum - 1) > 1e-2) return false;
  }
  return true;
}

void softmax(std::span<double> row) {
  const double largest = *std::max_element(row.begin(), row.end());
  if (!std::isfinite(largest)) return;
  double sum = 0;
  for (double& number : row) sum += number = std::exp(number - largest);
  for (double& number : row) number /= sum;
}

}  // namespace

Ranking rank_answers(const Tensor& scores, int64_t top, int64_t max_rows) {
  const int64_t width = scores.rank() == 0 ? 1 : scores.shape().back();
  if (width == 0 || number_count(scores) != scores.size()) {
    fail(ErrorCode::bad_input, "{} holds no scores to rank", name_of(scores.element_type()));
  }
  const Tensor doubles = converted(scores, ElementType::float64);
  const int64_t rows = std::clamp<int64_t>(max_rows, 0, scores.size() / width);
  const auto all = doubles.elements<double>().first(static_cast<size_t>(rows * width));
  std::vector<double> numbers(all.begin(), all.end());
  for (double& number : numbers) {
    if (std::isnan(number)) number = -std::numeric_limits<double>::infinity();
  }

  Ranking ranking;
  ranking.given = are_probabilities(numbers, width);
  for (int64_t r = 0; r < rows; ++r) {
    const std::span<double> row(numbers.data() + r * width, static_cast<size_t>(width));
    if (!ranking.given) softmax(row);
    std::vector<int64_t> order(row.size());
    std::iota(order.begin(), order.end(), 0);
    const auto count = static_cast<std::ptrdiff_t>(std::clamp<int64_t>(top, 0, width));
    std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](int64_t a, int64_t b) {
      const double x = row[static_cast<size_t>(a)], y = row[static_cast<size_t>(b)];
      return x != y ? x > y : a < b;
    });
    auto& answers = ranking.rows.emplace_back();
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      const int64_t index = order[static_cast<size_t>(i)];
      answers.push_back({index, row[static_cast<size_t>(index)]});
    }
  }
  return ranking;
}

}  // namespace sardonyx
