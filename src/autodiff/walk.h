// Nodes forward, and their gradients backward: one graph of what a Gradient node differentiates.
// Internal to the gradients.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "autodiff/rules.h"
#include "ir/walk.h"
#include "ops/node_view.h"
#include "schema/gradients.h"

namespace sardonyx::autodiff {

// The parsed texts of one expansion.
class GradientTexts {
 public:
  // Null where there is none.
  const ir::Function* rule(const ir::Node& node);
  const ir::Function* body(const ir::Node& node);

 private:
  const ir::Function& parsed(const schema::FunctionText& text);
  std::map<const schema::FunctionText*, std::unique_ptr<ir::Function>> parsed_;
};

// What the graphs of a node read from around it, each name once.
std::vector<std::string> captured_by(const ir::Node& node);

// Visits the names of a node's inputs that are there, and of what its graphs read of the graph
// around them. Names of the latter do not outlive the visit.
template <class Visit>
void for_each_read(const ir::Node& node, Visit&& visit) {
  for (const std::string& input : node.inputs) {
    if (!input.empty()) visit(input);
  }
  if (!has_graphs(node)) return;
  for (const std::string& name : captured_by(node)) visit(name);
}
std::vector<std::string> reads_of(const ir::Node& node);

// The nodes of a graph under fresh names, its inputs being `inputs`; `outputs` gets the names.
std::vector<ir::Node> copy_of(const ir::Graph& graph, const std::vector<std::string>& inputs,
                              const GradientServices& services, std::vector<std::string>& outputs);

class GradientWalk {
 public:
  GradientWalk(const GradientServices& services, GradientTexts& texts, std::string origin)
      : services_(services),
        texts_(texts),
        origin_(std::move(origin)),
        emitter_(services_, origin_) {}

  GradientEmitter& emitter() { return emitter_; }
  const GradientServices& services() const { return services_; }

  // Names what stands for a value: a node of another name when it is computed again.
  void rename(const std::string& name, const std::string& used) { names_[name] = used; }
  std::string actual(const std::string& name) const;
  // Gradients are asked for this value.
  void activate(const std::string& name) { active_.insert(name); }
  bool is_active(const std::string& name) const { return active_.contains(name); }

  // Takes a node as it is, or again (when told so, or when what it reads is) under other names, and
  // notes what of it depends on active values.
  void forward(const ir::Node& node, bool again);
  // Adds to what flows back into a value.
  void flow_into(const std::string& value, const std::string& gradient);
  // Nodes taken as they are that must hand out more than they did.
  struct Replaced {
    const ir::Node* node;
    std::vector<ir::Node> by;
  };
  std::vector<Replaced> take_replaced() { return std::move(replaced_); }
  // From the last node noted to the first.
  void backward();
  // The sum of what flows into a value; "" where nothing does.
  std::string gathered(const std::string& value);
  std::string gathered_or_zeros(const std::string& value);

 private:
  bool has_rule(const ir::Node& node) const;
  bool has_body(const ir::Node& node) const;
  bool follows(const ir::Node& node, size_t output) const;
  bool passes(const ir::Node& node, size_t input) const;
  bool is_active_node(const ir::Node& node) const;
  void note(const ir::Node& node);
  void add_node(const ir::Node& node, bool keeps);
  void run_body(const ir::Node& node);
  bool put_body_in_place(const ir::Node& node);
  void backward_of(const ir::Node& node);
  void require_complete(const ir::Node& node, const std::vector<char>& wanted,
                        const std::vector<std::string>& of_inputs) const;
  void apply_text(const ir::Node& node, const std::vector<std::string>& of_outputs,
                  const std::vector<char>& wanted, std::vector<std::string>& of_inputs);
  std::string flow_or_zeros(const ir::Node& node, const std::vector<std::string>& of_outputs,
                            int output);

  // graphs.cc, iterations_forward.cc, iterations.cc
  struct Iteration;
  class Reverse;
  // What of the forward run a node with graphs hands to its gradient.
  struct History {
    enum class Form : uint8_t {
      stack,     // tensors of one shape, stacked
      sequence,  // of tensors of several shapes
      items,     // of the sequences that entered, one after the other; `counts` has their lengths
      prefix,    // of the sequence that the state ends as; `counts` has the lengths
      optional,  // as items of what optional values held; `present` says which held one
    };
    std::vector<std::string> states, draws;    // what entered; stacks
    std::vector<Form> forms;                   // by state
    std::vector<std::string> counts, present;  // by state; stacks
    std::vector<std::string> finals;           // what the states end as
    std::string number;
    bool by_sequences() const;
  };
  // The node with more outputs, and nodes before it.
  std::vector<ir::Node> with_history(const ir::Node& node);
  std::vector<ir::Node> with_states(const Iteration& it, History& history);
  bool changes_shape(const Iteration& it, size_t state) const;
  History history_of(const ir::Node& node) const;
  // Where a node with graphs stands once it is lowered: among the nodes of replaced_[replaced], or
  // (none) among those of the emitter.
  static constexpr size_t none = SIZE_MAX;
  struct Place {
    size_t replaced, at;
  };
  void note_place(const ir::Node& made, const std::vector<ir::Node>& list, size_t from,
                  size_t replaced);
  // The node with this output; null where it is not among those.
  ir::Node* placed(const std::string& output);
  void refuse_quantized(const ir::Node& node) const;
  void graphs_backward(const ir::Node& node, const std::vector<std::string>& of_outputs);
  void if_backward(const ir::Node& node, const std::vector<std::string>& of_outputs);
  void sequence_map_backward(const ir::Node& node, const std::vector<std::string>& of_outputs);
  void iterations_backward(const ir::Node& node, const std::vector<std::string>& of_outputs);
  Iteration iteration_of(const ir::Node& node) const;
  std::vector<std::string> active_captures(const ir::Node& node) const;
  bool is_float(const std::string& value) const;

  const GradientServices& services_;
  GradientTexts& texts_;
  std::string origin_;
  GradientEmitter emitter_;
  std::unordered_map<std::string, std::string> names_;  // of values that are computed again
  std::unordered_set<std::string> active_;              // depend on what is asked for
  std::vector<ir::Node> tape_;                          // active nodes in order
  std::unordered_map<std::string, std::vector<std::string>> flows_;
  std::unordered_map<std::string, History> histories_;  // by the node's first output
  std::unordered_map<std::string, Place> places_;       // by each output
  std::vector<Replaced> replaced_;
};

}  // namespace sardonyx::autodiff
