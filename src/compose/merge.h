// Two models as one: outputs of the first feed inputs of the second.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/model.h"

namespace sardonyx::compose {

struct MergeOptions {
  // (output of the first, input of the second), by the names the models have now.
  std::vector<std::pair<std::string, std::string>> connections;
  // Put before the names of values and nodes of each model, and of functions that clash.
  std::string first_prefix, second_prefix;
  // The outputs of the result, by their names in it; empty: those of both models, without the
  // outputs of the first that a connection uses up.
  std::vector<std::string> outputs;
};

// Throws Error (bad_input) where a name is unknown, types of connected values contradict each
// other, names of values clash, the models import different versions of a domain, or functions of
// one name differ; the message says which option helps.
ir::Model merge(ir::Model first, ir::Model second, const MergeOptions& options);

}  // namespace sardonyx::compose
