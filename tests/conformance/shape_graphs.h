// Random graphs that compute shapes: out of the sizes and small integers of their inputs, through
// arithmetic, floats, branches, loops and sequences, into what takes shapes.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "ir/model.h"
#include "sardonyx/value.h"

namespace sardonyx::conformance {

struct ShapeGraph {
  ir::Model model;  // of the newest opset; every size of an input has a name
  // Inputs of other sizes: at least `least`, at most 7. The graph need not run with them.
  std::vector<Value> draw_inputs(std::mt19937_64& random, int64_t least) const;
};

// One that runs for some inputs. The same seed gives the same graph.
ShapeGraph draw_shape_graph(uint64_t seed, int nodes);

}  // namespace sardonyx::conformance
