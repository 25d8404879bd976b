// Thorough inference of a whole model.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "infer/infer.h"
#include "ir/model.h"
#include "ops/custom.h"
#include "rewrite/lower.h"
#include "sardonyx/infer.h"

namespace sardonyx {

struct InferredModel {
  // False: of the nodes, the graph gets only those with subgraphs; of the initializers none.
  bool keep_nodes = true;
  ir::Graph graph;  // lowered: nodes of the newest versions, functions inlined
  ir::SymbolTable symbols;
  infer::Scope scope;  // the main graph's values
  std::vector<infer::Constraint> constraints;
  infer::Unknowns unknowns;
  // Names of sizes that no input has: what the model calls a size that only a run decides. The id
  // of the unknown that the name stands for; -1: inference knows of none.
  std::unordered_map<int, int> late_names;
  std::vector<infer::Disagreement> disagreements;
  std::vector<InferFinding> problems;
  // What is known of the values of lowered subgraphs.
  std::unordered_map<const ir::Graph*, std::unordered_map<std::string, ir::ValueType>> subgraphs;
  // Sequences and optionals that surely hold nothing, by graph; null: the main graph.
  std::unordered_map<const ir::Graph*, std::unordered_set<std::string>> empty;
  std::vector<rewrite::InlinedCall> calls;  // of the model's own functions

  // The type of a value of the main graph with all that was learned in it.
  ir::ValueType type(const std::string& name) const;
  ir::ValueType resolved(ir::ValueType type) const;
  // The type of a value of a lowered subgraph; of the main graph where `graph` is null.
  ir::ValueType type_in(const ir::Graph* graph, const std::string& name) const;
  // The same as it was inferred, without what was learned later; null where nothing is known of
  // such a value.
  const ir::ValueType* find_in(const ir::Graph* graph, const std::string& name) const;
  // How much is known of a value that has this type; of `graph` as above.
  InferredValue::State state(const ir::Graph* graph, const std::string& name,
                             const ir::ValueType& type) const;
  // How much is known of a size.
  InferredValue::State state(const ir::Dim& dim) const;
  // The symbol that says what decides a size of this name: itself, or the unknown a name stands
  // for. Null where the caller does: a size of an input or an element of one.
  const ir::Symbol* decided_by(int id) const;
};

// Infers `model` into `made`, which must be fresh. External data need not be resolved. Initializers
// that are inputs are taken to keep their values. `custom` is borrowed for the call. Throws Error
// where the model can't be lowered.
void infer_model(const ir::Model& model, const InferOptions& options,
                 const ops::CustomTable& custom, InferredModel& made);

}  // namespace sardonyx
