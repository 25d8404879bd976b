// Models made of others, and what distinguishes two.
//
//   auto part = sardonyx::extract(model, {"image"}, {"features"});
//   auto both = sardonyx::merge(detector, classifier, {.connections = {{"crop", "image"}}});
//
// All functions return new models that share the weights of those they are given, may be called
// from any thread, and throw Error (out_of_memory) where a model has a limit that is reached.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sardonyx/model.h"

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

// The nodes that `outputs` need when `inputs` are given, with the initializers, types, annotations
// and functions that belong to them. Names stay. Training information is left out. Throws Error
// (bad_input) where a name is unknown or an output depends on an input of the model that is not
// among `inputs`, naming it.
Model extract(const Model& model, const std::vector<std::string>& inputs,
              const std::vector<std::string>& outputs);

struct MergeOptions {
  // (output of the first, input of the second), by the names the models have now.
  std::vector<std::pair<std::string, std::string>> connections = {};
  // Put before the names of values and nodes of each model, and of functions that clash.
  std::string first_prefix = {}, second_prefix = {};
  // The outputs of the result, by their names in it; empty: those of both models, without the
  // outputs of the first that a connection uses up.
  std::vector<std::string> outputs = {};
};

// Two models as one: outputs of the first feed inputs of the second. Throws Error (bad_input)
// where a name is unknown, types of connected values contradict each other, names of values clash,
// the models import different versions of a domain, functions of one name differ, or the second has
// external data that was not loaded and lies in another folder than the first; the message says
// which option helps.
Model merge(const Model& first, const Model& second, const MergeOptions& options = {});

// Old name -> new name. A value is renamed wherever it occurs: in nested graphs that define or
// capture it, annotations, shardings, bindings of training. Swapping names is allowed.
struct Renaming {
  std::map<std::string, std::string> values = {};
  std::map<std::string, std::string> nodes = {};
  // A dimension by its name, wherever that occurs; or, where none has it, by the place of one
  // dimension that an input leaves open: "image.2".
  std::map<std::string, std::string> dimensions = {};
  std::map<std::string, std::string> functions = {};  // by name, in every domain and overload
  std::string prefix = {};  // then put before the names of all values and nodes
};

// Throws Error (bad_input) where an old name does not occur, a new one is empty or taken, or two
// would become one.
Model rename(const Model& model, const Renaming& renaming);

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
  std::string place = {};  // "graph, node 'y' (Conv), attribute 'pads'"
  std::string first =
      {};  // what the first model says there, cut to a line; empty where it has nothing
  std::string second = {};  // the same of the second
};

struct DiffResult {
  std::vector<ModelDifference> differences = {};
  size_t left_out = 0;  // beyond `most`
  bool same() const { return differences.empty() && left_out == 0; }
};

// Nodes are matched by the values they make, all else by names, so that another order of nodes or
// initializers is no difference; another order of inputs and outputs is one. How tensors are
// stored makes none. Throws Error (unreadable) where weights are compared and external data that
// was not loaded is not there.
DiffResult diff(const Model& first, const Model& second, const DiffOptions& options = {});

}  // namespace sardonyx

#pragma GCC visibility pop
