#include "kernels/signal/time_warping.h"

#include <algorithm>
#include <limits>

namespace sardonyx::kernels {
namespace {

enum Move : uint8_t { both, down, right };

}  // namespace

CountedVector<std::pair<int32_t, int32_t>> time_warping_path(const float* costs, int64_t m,
                                                             int64_t n) {
  constexpr float infinite = std::numeric_limits<float>::infinity();
  // Sums of a row, each with an element before the first column.
  const auto width = static_cast<size_t>(n) + 1;
  CountedVector<float> above(width, infinite), sums(width, infinite);
  above[0] = 0;
  CountedVector<uint8_t> moves(static_cast<size_t>(m) * static_cast<size_t>(n));
  for (int64_t i = 0; i < m; ++i) {
    sums[0] = infinite;
    for (size_t j = 1; j < width; ++j) {
      const float diagonal = above[j - 1], upper = above[j], left = sums[j - 1];
      const auto at = static_cast<size_t>(i * n) + j - 1;
      const Move move = diagonal < upper && diagonal < left ? both
                        : upper < diagonal && upper < left  ? down
                                                            : right;
      moves[at] = move;
      sums[j] = costs[at] + (move == both ? diagonal : move == down ? upper : left);
    }
    std::swap(above, sums);
  }
  CountedVector<std::pair<int32_t, int32_t>> path;
  for (int64_t i = m - 1, j = n - 1; i >= 0 && j >= 0;) {
    path.emplace_back(static_cast<int32_t>(i), static_cast<int32_t>(j));
    const uint8_t move = moves[static_cast<size_t>(i * n + j)];
    i -= move != right;
    j -= move != down;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace sardonyx::kernels
