// The state variables of a training model, and their values at a moment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/model.h"
#include "sardonyx/value.h"

namespace sardonyx::train {

inline constexpr int main_graph = -1;

struct StateVariable {
  std::string name;        // by which callers know it
  std::string key;         // the initializer's
  int entry = main_graph;  // of training_info, whose algorithm has the initializer
  ElementType element = ElementType::undefined;
  Shape shape;
};

class StateTable {
 public:
  // The initializers that bindings name (TR-16): the main graph's, then each algorithm's.
  explicit StateTable(const ir::Model& model);

  const std::vector<StateVariable>& all() const { return all_; }
  // What the graphs of an entry call by this name; the main graph sees only its own.
  std::optional<size_t> find(std::string_view key, int entry) const;
  std::optional<size_t> find_named(std::string_view name) const;
  // "'a', 'b' and 3 more"
  std::string names() const;

 private:
  std::vector<StateVariable> all_;
};

// The values of all state variables by their index, and how many calls have changed them.
struct Snapshot {
  std::vector<Tensor> values;
  uint64_t turn = 0;
};

// The values of the initializers (TR-17).
std::vector<Tensor> initial_values(const ir::Model& model, const StateTable& table);

// Puts the values into the initializers of a model that the table was made of.
void store_values(ir::Model& model, const StateTable& table, const std::vector<Tensor>& values);

// Throws Error (bad_input) where the value has not the type and shape of its variable (TR-21).
// `what`: "the value given for", "the update of".
void require_fits(const StateVariable& variable, const Value& value, std::string_view what);

}  // namespace sardonyx::train
