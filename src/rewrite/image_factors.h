// Squeeze and excite with channels last: passes over images that become part of convolutions.
#pragma once

#include "infer/infer.h"
#include "ir/model.h"

namespace sardonyx::rewrite {

// The mean over a depthwise convolution's images becomes its second output; a factor for each
// channel that only a pointwise convolution reads becomes one of its inputs. Runs on the graph that
// lay_out leaves; `scope` knows its values.
void fuse_image_factors(ir::Graph& graph, const infer::Scope& scope);

}  // namespace sardonyx::rewrite
