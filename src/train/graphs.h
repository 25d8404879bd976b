// The graphs that the methods of a training model run.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ir/model.h"
#include "train/state.h"

namespace sardonyx::train {

// A model whose main graph a method runs. State variables are its last inputs.
struct MethodModel {
  ir::Model model;
  std::vector<size_t> states;  // by index in the table, of the last inputs in their order
  bool runs_once = false;      // so that constants made ahead would only take memory
};

// The main graph.
MethodModel inference_model(const ir::Model& model, const StateTable& table);

// The main graph and an entry's algorithm, list after list (TR-13), as far as `outputs` need them.
MethodModel step_model(const ir::Model& model, const StateTable& table, size_t entry,
                       const std::vector<std::string>& outputs);

// The initialization of an entry, with what it names of the state and of other initializers.
MethodModel initialization_model(const ir::Model& model, const StateTable& table, size_t entry,
                                 const std::vector<std::string>& outputs);

// Names in order, each once.
std::vector<std::string> unique_names(const std::vector<ir::StringEntry>& bindings);

}  // namespace sardonyx::train
