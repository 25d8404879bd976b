// Walks through trees, node after node.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/trees/nodes.h"

namespace sardonyx::kernels {

// Walks that are made in step.
constexpr int walks_together = 8;

// Cycles that a row's walks through all trees take, about.
template <class T>
double walk_cycles(const TreeNodes<T>& trees);

// leaves[l]: the leaf that row l < count of x[count, columns] reaches in `tree`. At most
// walks_together rows; `leaves` has room for so many.
template <class T>
void walk_rows(const TreeNodes<T>& trees, size_t tree, const T* x, int64_t columns, int64_t count,
               int32_t* leaves);

// leaves[l]: the leaf that the row x reaches in tree first + l, l < count, of at most
// walks_together.
template <class T>
void walk_trees(const TreeNodes<T>& trees, size_t first, size_t count, const T* x, int32_t* leaves);

}  // namespace sardonyx::kernels
