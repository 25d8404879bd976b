// Lowering: from a model as written to one graph of newest-version operators that have kernels.
#pragma once

#include <string>
#include <vector>

#include "infer/infer.h"
#include "ir/instantiate.h"
#include "ir/model.h"
#include "ir/node_source.h"

namespace sardonyx::ops {
class CustomTable;
}

namespace sardonyx::lower {

struct LowerOptions {
  // BatchNormalization and Dropout up to opset 6 without is_test mean inference, not training.
  bool assume_inference = false;
  // Expand standard functions even where a kernel exists (tests compare body and kernel).
  bool prefer_function_bodies = false;
  // Nodes of operators that nobody knows stay as they are instead of being errors.
  bool keep_unknown = false;
  // Replace standard functions without a kernel by their bodies. A conversion keeps them.
  bool expand_bodies = true;
  // False: lower_and_infer leaves nodes without graphs out of the main graph that it makes.
  bool keep_nodes = true;
  // Gradients of loops compute each iteration again instead of keeping what it made: less memory.
  bool recompute_iterations = false;
  // Operators from outside that nodes may call; null: none. Borrowed for the call.
  const ops::CustomTable* custom = nullptr;
};

// The main graph of `model` with calls of model-local functions inlined, every node upgraded to
// the newest version of its operator, and standard functions without a kernel replaced by their
// bodies; subgraphs likewise. External data must have been resolved. Each node's `origin` tells
// where it came from when it is not in the file as such. Throws Error (invalid_model, unsupported)
// with the node's place.
ir::Graph lower(const ir::Model& model, const LowerOptions& options = {});

// A call of a model's own function that was inlined, and what became of its values.
struct InlinedCall {
  const ir::Function* function;
  const ir::Graph* graph;  // where it stands when lowered; null: the main graph
  ir::Renamed names;
};

// Lowers and infers in one walk: the main graph's inputs, outputs, declarations and initializers
// are those of `graph` (see ir::interface_of), which gets the nodes of the model's. What is
// inferred of its values is put into `scope`. `nodes`: null, or where the main graph's nodes come
// from instead; Gradient can't be among them. Returns the calls of the model's functions.
std::vector<InlinedCall> lower_and_infer(const ir::Model& model, ir::NodeSource* nodes,
                                         ir::Graph& graph, const LowerOptions& options,
                                         const infer::InferenceContext& inference,
                                         infer::Scope& scope);

}  // namespace sardonyx::lower
