// What distinguishes two models.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ir/model.h"
#include "sardonyx/compose.h"

namespace sardonyx {

// Nodes are matched by the values they make, all else by names, so that another order of nodes or
// initializers is no difference; another order of inputs and outputs is one. How tensors are
// stored makes none. External tensors that have not been brought in compare by their place.
DiffResult diff(const ir::Model& first, const ir::Model& second, const DiffOptions& options = {});

}  // namespace sardonyx
