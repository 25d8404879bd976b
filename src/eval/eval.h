// Plain evaluation: node after node, no plan, no fusion. Constant folding uses it, and the planned
// run is tested against it.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "infer/infer.h"
#include "ir/model.h"
#include "ops/operator.h"

namespace sardonyx::eval {

using Environment = ops::RunEnvironment;

// Values by name, with those of the graphs around.
class Frame {
 public:
  explicit Frame(const Frame* outer = nullptr) : outer_(outer) {}
  const Value* find(std::string_view name) const;
  void set(std::string name, Value value) { values_[std::move(name)] = std::move(value); }
  // Lets go of a value of this frame, of which nothing reads any more.
  void drop(const std::string& name) { values_.erase(name); }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, Value, Hash, std::equal_to<>> values_;
  const Frame* outer_;
};

struct Options {
  // Called with every value a node made, in order.
  std::function<void(const ir::Node&, size_t output, const Value&)> observe;
  // Inference has found nothing wrong with the model before its inputs were there: what it refuses
  // now is theirs or a computed value's, no fault of the model, and the code of the error says so.
  bool is_sound = false;
};

// One node of the newest version on concrete values; kind none stands for an absent input.
std::vector<Value> run_node(const ir::Node& node, std::span<const Value> inputs, const Frame& frame,
                            Environment& environment, const Options& options = {});

// A graph whose nodes are all of the newest version. `frame` holds its inputs (and, in frames
// around it, what it captures); initializers are added to it unless the inputs named them.
std::vector<Value> run_graph(const ir::Graph& graph, Frame& frame, Environment& environment,
                             const Options& options = {});

// What is known of the outputs of such a graph, told by what is known of its inputs, by the values
// in `around` that it captures and by what it declares. Throws Error where a run must fail.
std::vector<ops::ValueFacts> infer_graph_outputs(const ir::Graph& graph, const Frame& around,
                                                 std::span<const ops::ValueFacts> inputs);

}  // namespace sardonyx::eval
