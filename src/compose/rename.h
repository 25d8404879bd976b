// Other names for values, nodes, dimensions and functions of a model.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "ir/model.h"

namespace sardonyx::compose {

// Old name -> new name. A value is renamed wherever it occurs: in nested graphs that define or
// capture it, annotations, shardings, bindings of training. Swapping names is allowed.
struct Renaming {
  std::map<std::string, std::string> values;
  std::map<std::string, std::string> nodes;
  // A dimension by its name, wherever that occurs; or, where none has it, by the place of one
  // dimension that an input leaves open: "image.2".
  std::map<std::string, std::string> dimensions;
  std::map<std::string, std::string> functions;  // by name, in every domain and overload
};

// Throws Error (bad_input) where an old name does not occur, a new one is empty or taken, or two
// would become one. The model is unchanged then.
void rename(ir::Model& model, const Renaming& renaming);

// Names of values in all graphs of the model (functions have names of their own).
std::set<std::string> value_names(const ir::Model& model);

// The renaming that puts `prefix` before every value and node, and before every function whose
// name is in `functions`.
Renaming prefixed(const ir::Model& model, std::string_view prefix,
                  const std::set<std::string>& functions = {});

}  // namespace sardonyx::compose
