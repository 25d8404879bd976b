// Thorough inference of a whole model.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "infer/infer.h"
#include "ir/model.h"
#include "ops/custom.h"
#include "rewrite/lower.h"
#include "sardonyx/infer.h"

namespace sardonyx {

struct InferredModel {
  ir::Graph graph;  // lowered: nodes of the newest versions, functions inlined
  ir::SymbolTable symbols;
  infer::Scope scope;  // the main graph's values
  std::vector<infer::Constraint> constraints;
  std::unordered_map<int, infer::Unknown> unknowns;  // by symbol id
  std::vector<infer::Disagreement> disagreements;
  std::vector<InferFinding> problems;
  // What is known of the values of lowered subgraphs.
  std::unordered_map<const ir::Graph*, std::unordered_map<std::string, ir::ValueType>> subgraphs;
  std::vector<rewrite::InlinedCall> calls;  // of the model's own functions

  // The type of a value of the main graph with all that was learned in it.
  ir::ValueType type(const std::string& name) const;
  ir::ValueType resolved(ir::ValueType type) const;
  // The type of a value of a lowered subgraph; of the main graph where `graph` is null.
  ir::ValueType type_in(const ir::Graph* graph, const std::string& name) const;
};

// Infers `model` into `made`, which must be fresh. External data need not be resolved. Initializers
// that are inputs are taken to keep their values. `custom` is borrowed for the call. Throws Error
// where the model can't be lowered.
void infer_model(const ir::Model& model, const InferOptions& options,
                 const ops::CustomTable& custom, InferredModel& made);

InferredValue::State state_of(const ir::ValueType& type, const ir::SymbolTable& symbols);

}  // namespace sardonyx
