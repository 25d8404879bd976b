// The steps by which make_trainable makes a training model of a model for inference.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/walk.h"
#include "sardonyx/trainable.h"
#include "train/graph_builder.h"

namespace sardonyx::train {

// An initializer that learns.
struct Parameter {
  enum class Role { weight, bias, scale };
  std::string name;
  Shape shape;
  Role role = Role::weight;
  int64_t fan_in = 0;  // of weights; 0: unknown
  std::string
      random;  // how it is drawn where that is part of its meaning (LoRA); empty: as options
};

// --- Which initializers learn (parameters.cc) ---------------------------------------------------

// Visits the nodes of all graphs within a node.
template <class Visit>
void for_each_inner(const ir::Node& node, const Visit& visit) {
  ir::for_each_subgraph(node, [&](const ir::Graph& graph, const ir::Attribute&, int) {
    ir::walk(graph,
             {.node = [&](const ir::WalkPlace&, const ir::Node& inner, size_t) { visit(inner); }});
  });
}

// The nodes that compute `value`, by their positions, in order.
std::vector<size_t> nodes_behind(const ir::Graph& graph, const std::string& value);

// Constants that are nodes, and what graphs within nodes have of constants, become initializers of
// the graph, which can be state (lift_constants.cc).
void lift_constants(ir::Graph& graph, NamePool& names);

// Those that the options choose, of the initializers of type `element` that `scores` depends on.
// Those that could be and are not go to report.frozen.
std::vector<Parameter> choose_parameters(const ir::Graph& graph, const std::string& scores,
                                         ElementType element, const TrainableOptions& options,
                                         const std::vector<Parameter>& lora,
                                         TrainableReport& report);

// --- LoRA (lora.cc) -----------------------------------------------------------------------------

// Adds A and B beside the weights that the patterns choose, into the graph itself.
std::vector<Parameter> add_lora(ir::Graph& graph, const TrainableOptions& options,
                                ElementType element, NamePool& names, TrainableReport& report);

// --- The loss (losses.cc) -----------------------------------------------------------------------

struct LossValues {
  std::string loss;
  std::string accuracy;  // empty: there is none
};

// The value that the loss is computed of: the output, or what a Softmax or Sigmoid makes it of.
struct Scores {
  std::string name;
  bool last_axis = false;  // classes stand along the last axis
  bool before_sigmoid = false;
  size_t rank = 0;  // 0: unknown
};
Scores scores_of(const ir::Graph& graph, const ir::ValueInfo& output,
                 const TrainableOptions& options);

// The Softmax (for bce-with-logits, the Sigmoid) that stands before the scores, perhaps with nodes
// between that only give another shape or type, although the loss has one of its own; null where
// there is none.
const ir::Node* applied_twice(const ir::Graph& graph, const Scores& scores, Loss loss);

// What the caller gives as target.
ir::ValueInfo target_of(const std::string& name, const ir::ValueInfo& output, const Scores& scores,
                        ElementType element, const TrainableOptions& options);

LossValues add_loss(GraphBuilder& builder, const std::string& scores, const Scores& about,
                    const std::string& target, const TrainableOptions& options);

// --- Training forms (training_form.cc) ----------------------------------------------------------

// Whether the node may become another one in training.
bool has_training_form(const ir::Node& node, const TrainableOptions& options);

struct RunningStatistics {
  std::string state, updated;
};
// BatchNormalization and Dropout of the main graph and of graphs within its nodes, as far as
// `scores` depends on them, and what follows them, once more in their training form; with half
// precision, products too. Names of the main graph -> names of the copies.
std::map<std::string, std::string> add_training_form(const ir::Graph& main,
                                                     const std::string& scores, ir::Graph& to,
                                                     GraphBuilder& builder, NamePool& names,
                                                     const std::set<std::string>& trained,
                                                     const TrainableOptions& options,
                                                     std::vector<RunningStatistics>& statistics);

// --- The optimizer (optimizers.cc) --------------------------------------------------------------

// A state variable of the algorithm, and the value that it is updated with.
struct UpdateBinding {
  std::string state, updated;
};

// How an update is computed of a gradient.
struct UpdateRule {
  std::string_view op;
  // Of the function that it is, in the textual syntax, one call for each parameter; empty: an
  // operator of the standard, one node for all of them.
  std::string body;
  bool takes_count;                     // of the updates, this one among them
  std::vector<std::string_view> slots;  // what it keeps of each parameter
  std::vector<ir::Attribute> attributes;
  double rate;  // the learning rate unless the options say one
};
UpdateRule rule_of(const TrainableOptions& options);
// AdamW as ONNX Runtime's training API has it. `decay_last`: as Hugging Face's, where weights decay
// after the step, and epsilon is added before the bias of the averages is taken out.
UpdateRule artifact_adamw(double beta1, double beta2, double epsilon, double weight_decay,
                          bool decay_last, bool correct_bias);

// From gradients to updates. Adds initializers, nodes and outputs to the algorithm.
struct Updates {
  std::vector<UpdateBinding> bindings;          // of parameters, slots, counters and the rate
  std::vector<std::string> reset_to_zero;       // states that an initialization begins with zeros
  std::vector<std::vector<std::string>> slots;  // of them: the rule's, one of each parameter
  std::string count;                            // of them: the updates so far
  std::string rate;                             // the learning rate that was used
  std::string norm;                             // of the gradients; empty where it is not computed
  std::string scale;   // the loss scale that was used; empty: there is none
  std::string finite;  // whether the step's gradients are; empty: nobody asked
  std::vector<ir::Function> functions;
};
// `scale`: what the loss that the gradients are of was multiplied with; empty: nothing.
Updates add_updates(GraphBuilder& builder, const std::vector<Parameter>& parameters,
                    const std::vector<std::string>& gradients, const std::string& scale,
                    const UpdateRule& rule, const TrainableOptions& options, int64_t opset);

// The state variable that float16's loss scale is.
std::string add_loss_scale(GraphBuilder& builder, const TrainableOptions& options);

// A Gradient node: the derivatives of `loss` by the parameters, with these values constant.
std::vector<std::string> add_gradient(ir::Graph& graph, GraphBuilder& builder,
                                      const std::vector<Parameter>& parameters,
                                      std::vector<std::string> constants, const std::string& loss);

// --- Initialization (initialization.cc) ---------------------------------------------------------

// Draws weights where the options ask for that, and resets what the updates count and average.
ir::TrainingInfo initialization_of(const ir::Graph& main, const ir::Graph& algorithm,
                                   const std::vector<Parameter>& parameters,
                                   const std::vector<RunningStatistics>& statistics,
                                   const Updates& updates, const std::string& scale,
                                   const TrainableOptions& options, ElementType element,
                                   NamePool& names);

}  // namespace sardonyx::train
