// What a program and the libraries it named bring to a model (include/sardonyx/custom.h).
#pragma once

#include <string>
#include <vector>

#include "ops/custom.h"

namespace sardonyx {

struct CustomOperators::Implementation {
  ops::CustomTable table;
};

// The operators of `given`, which may be null, and of the libraries together. Throws Error as
// CustomOperators::load does.
ops::CustomTable custom_table(const CustomOperators* given,
                              const std::vector<std::string>& libraries);

}  // namespace sardonyx
