// The nodes of a forest, brought to one kind of test and laid side by side.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/trees/parts.h"

namespace sardonyx::kernels {

// Nodes for samples of T, float or double.
template <class T>
struct TreeNodes {
  // One test for every kind of node: the second of the two nodes at `next` where the value, its
  // sign sign_flipped where `feature` has sign_flag, is at most `bound`; else the first, NaN too. A
  // leaf's bound is NaN and its `next` is itself, so that a walk may go on below it.
  struct Node {
    T bound;
    uint32_t feature;
    int32_t next;
    int32_t leaf;  // -1: no leaf
  };
  static constexpr uint32_t sign_flag = 1u << 31;

  std::vector<Node> nodes;
  std::vector<int32_t> roots;    // of the trees
  std::vector<int32_t> heights;  // of the trees: 0 for a leaf alone
  int64_t features = 0;          // that a sample must have
  bool any_flipped = false;      // whether a node has sign_flag
};

// Throws Error (invalid_model) for an index out of range, a target outside [0, targets), or a tree
// that leads back to a node above; (unsupported) for too many nodes or leaves.
template <class T>
TreeNodes<T> tree_nodes(ForestParts parts, int64_t targets);

}  // namespace sardonyx::kernels
