// Inference of symbolic values of a whole model.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "infer/infer.h"
#include "ir/model.h"
#include "lower/lower.h"
#include "ops/custom.h"
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
  std::unordered_map<const ir::Graph*, std::unique_ptr<infer::Scope>> subgraphs;
  std::vector<lower::InlinedCall> calls;  // of the model's own functions

  // The type of a value of the main graph with all that was learned in it.
  ir::ValueType type(const std::string& name) const;
  ir::ValueType resolved(ir::ValueType type) const;
  // The type of a value of a lowered subgraph; of the main graph where `graph` is null.
  ir::ValueType type_in(const ir::Graph* graph, const std::string& name) const;
  // What was inferred of it, without what was learned later; null where there is no such value.
  const infer::ValueFacts* find_in(const ir::Graph* graph, std::string_view name) const;
  // How much is known of a value that has this type; of `graph` as above. Of a sequence or an
  // optional that surely holds nothing, all is.
  InferredValue::State state(const ir::Graph* graph, std::string_view name,
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
// The same where the main graph's nodes come from elsewhere, as for lower::lower_and_infer. Takes
// the graph's value_info out of the model.
void infer_model(ir::Model& model, ir::NodeSource& nodes, const InferOptions& options,
                 const ops::CustomTable& custom, InferredModel& made);

}  // namespace sardonyx
