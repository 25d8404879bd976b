// Squeeze and excite with channels last: passes over images that become part of convolutions.
#pragma once

#include "passes/graph_index.h"

namespace sardonyx::passes {

// The mean over a depthwise convolution's images becomes its second output; a factor for each
// channel that only a pointwise convolution reads becomes one of its inputs. Runs on the graph that
// convert_to_nhwc leaves; `scope` knows its values.
void fuse_squeeze_excite(GraphIndex& index);

}  // namespace sardonyx::passes
