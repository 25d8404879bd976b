// Operators in Python: sardonyx/_operators.py is their author's view.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "sardonyx/custom.h"

namespace sardonyx::python {

// Adds an object of sardonyx.Operator to the table. Throws Error (bad_input) for a signature that
// can't be read or a name that is not free, (unsupported) for attributes that are no numbers,
// texts or tensors.
void add_operator(CustomOperators& operators, const std::string& domain,
                  const std::string& signature, nanobind::handle object);

}  // namespace sardonyx::python
