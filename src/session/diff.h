// What distinguishes two models.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ir/model.h"

namespace sardonyx {

struct DiffOptions {
  // Elements of floating-point weights count as equal where |a - b| <= relative * |b| + absolute.
  double relative = 0, absolute = 0;
  bool weights = true;      // compare the elements of tensors, not just types and shapes
  bool annotations = true;  // documentation, metadata, names of nodes, who made the model
  size_t most = 1000;       // differences to list; more are counted
};

struct ModelDifference {
  enum class Kind { only_in_first, only_in_second, changed };
  Kind kind = Kind::changed;
  std::string place;   // "graph, node 'y' (Conv), attribute 'pads'"
  std::string first;   // what the first model says there, cut to a line; empty where it has nothing
  std::string second;  // the same of the second
};

struct DiffResult {
  std::vector<ModelDifference> differences;
  size_t left_out = 0;  // beyond `most`
  bool same() const { return differences.empty() && left_out == 0; }
};

// Nodes are matched by the values they make, all else by names, so that another order of nodes or
// initializers is no difference; another order of inputs and outputs is one. How tensors are
// stored makes none. External tensors that have not been brought in compare by their place.
DiffResult diff(const ir::Model& first, const ir::Model& second, const DiffOptions& options = {});

// The same for files; external data is read where `options.weights` asks for it.
DiffResult diff_files(const std::string& first, const std::string& second,
                      const DiffOptions& options = {}, const std::string& trusted_folder = {});

}  // namespace sardonyx
