// Less memory for a step: what only the derivative reads is computed again.
#pragma once

#include "ir/model.h"

namespace sardonyx::train {

// Rewrites the lowered graph of a step, whose nodes stand in the order in which they run. Where
// most of its memory is in use, its nodes are cut: those before are divided into segments, and of
// all segments but the last, what nodes behind the cut read is made again by copies of the
// segment's nodes, right before it is read. Values between segments are kept, and what nodes draw
// without a seed. The choice depends on the graph alone; copies compute the same bits. Returns how
// many nodes were copied: 0 where nothing would be gained.
size_t recompute(ir::Graph& graph);

}  // namespace sardonyx::train
