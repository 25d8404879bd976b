// States of loops that no iteration changes.
#pragma once

#include "ir/model.h"

namespace sardonyx::passes {

// A state that the body of a Loop or Scan hands on as it came, as exporters of TensorFlow's loops
// do with weights, is no state any more: the body reads the value from around the loop, where what
// is constant counts as such, and who read what the node gave reads that value, too. Those that are
// outputs of the graph stay. The nodes of this graph only, not those of its subgraphs.
bool hoist_loop_invariants(ir::Graph& graph);

}  // namespace sardonyx::passes
