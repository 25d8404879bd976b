// Images between grouped convolutions that stay interleaved.
#pragma once

#include "infer/infer.h"
#include "ir/model.h"

namespace sardonyx::passes {

// Where pointwise convolutions in as many groups make and read images, and only sums and
// activations stand between them (the units of a ShuffleNet), those images keep the channels of
// their groups side by side, as such convolutions have them in vectors (attributes shuffles_output
// and input_shuffle); whoever else makes or reads one gets a Reshape, Transpose and Reshape, a pool
// behind it, where there are less pixels; a Concat becomes a InterleavedConcat. Runs behind
// fuse_channel_shuffles; `scope` knows the graph's values. True where anything changed: the new
// values are unknown to `scope`.
bool keep_groups_interleaved(ir::Graph& graph, const infer::Scope& scope);

}  // namespace sardonyx::passes
