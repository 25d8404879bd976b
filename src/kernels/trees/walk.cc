#include "kernels/trees/walk.h"

#include <algorithm>
#include <bit>
#include <type_traits>

namespace sardonyx::kernels {
namespace {

// Trees up to this height are walked to their end; in higher ones most paths are shorter.
constexpr int32_t low_height = 8;
constexpr int lanes = walks_together;

template <class T>
T with_sign_flipped(T value, uint32_t flag) {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<float>(std::bit_cast<uint32_t>(value) ^ flag);
  else
    return std::bit_cast<double>(std::bit_cast<uint64_t>(value) ^ static_cast<uint64_t>(flag)
                                                                      << 32);
}

// Several walks in step: each waits for its own memory, together they keep the processor busy.
template <bool sign_flipped, class T, class SampleOf>
void walk_by(const TreeNodes<T>& trees, int32_t (&at)[lanes], int steps, SampleOf&& sample) {
  const auto* const nodes = trees.nodes.data();
  constexpr uint32_t sign_flag = TreeNodes<T>::sign_flag;
  const auto step = [&] {
    for (int l = 0; l < lanes; ++l) {
      const auto& node = nodes[at[l]];
      T value;
      if constexpr (sign_flipped)
        value = with_sign_flipped(sample(l)[node.feature & ~sign_flag], node.feature & sign_flag);
      else
        value = sample(l)[node.feature];
      at[l] = node.next + static_cast<int32_t>(value <= node.bound);
    }
  };
  if (steps <= low_height) {
    for (int i = 0; i < steps; ++i) step();
    return;
  }
  for (int i = 0; i < steps; i += 4) {
    for (int k = 0; k < 4; ++k) step();
    int32_t open = 0;
    for (int l = 0; l < lanes; ++l) open |= nodes[at[l]].leaf < 0;
    if (open == 0) return;
  }
}

template <class T, class SampleOf>
void walk(const TreeNodes<T>& trees, int32_t (&at)[lanes], int steps, SampleOf&& sample) {
  return trees.any_flipped ? walk_by<true>(trees, at, steps, sample)
                           : walk_by<false>(trees, at, steps, sample);
}

}  // namespace

template <class T>
double walk_cycles(const TreeNodes<T>& trees) {
  constexpr double step = 6.5;       // as measured on Zen 4
  constexpr int32_t max_steps = 16;  // that are usual in high trees
  double steps = 0;
  for (const int32_t height : trees.heights) steps += std::min(height, max_steps);
  return step * steps;
}

template <class T>
void walk_rows(const TreeNodes<T>& trees, size_t tree, const T* x, int64_t columns, int64_t count,
               int32_t* leaves) {
  const T* rows[lanes];
  int32_t at[lanes];
  for (int l = 0; l < lanes; ++l) rows[l] = x + std::min<int64_t>(l, count - 1) * columns;
  std::fill_n(at, lanes, trees.roots[tree]);
  walk(trees, at, trees.heights[tree], [&](int l) { return rows[l]; });
  for (int l = 0; l < lanes; ++l) leaves[l] = trees.nodes[static_cast<size_t>(at[l])].leaf;
}

template <class T>
void walk_trees(const TreeNodes<T>& trees, size_t first, size_t count, const T* x,
                int32_t* leaves) {
  int32_t at[lanes], height = 0;
  for (size_t l = 0; l < static_cast<size_t>(lanes); ++l) {
    const size_t tree = first + std::min(l, count - 1);
    at[l] = trees.roots[tree];
    height = std::max(height, trees.heights[tree]);
  }
  walk(trees, at, height, [&](int) { return x; });
  for (size_t l = 0; l < count; ++l) leaves[l] = trees.nodes[static_cast<size_t>(at[l])].leaf;
}

template double walk_cycles(const TreeNodes<float>& trees);
template double walk_cycles(const TreeNodes<double>& trees);
template void walk_rows(const TreeNodes<float>& trees, size_t tree, const float* x, int64_t columns,
                        int64_t count, int32_t* leaves);
template void walk_rows(const TreeNodes<double>& trees, size_t tree, const double* x,
                        int64_t columns, int64_t count, int32_t* leaves);
template void walk_trees(const TreeNodes<float>& trees, size_t first, size_t count, const float* x,
                         int32_t* leaves);
template void walk_trees(const TreeNodes<double>& trees, size_t first, size_t count,
                         const double* x, int32_t* leaves);

}  // namespace sardonyx::kernels
