// What is known of a model's values while it is lowered.
#pragma once

#include <cstddef>

#include "infer/infer.h"
#include "ir/model.h"

namespace sardonyx::lower {

// Serves upgrade rules, few of which ask: the nodes of the graphs that are being lowered are
// inferred when one does. Gradients ask for everything: where a model has any, each node is
// inferred when it is placed. What can't be inferred stays unknown here; the inference proper
// reports it.
class LazyTypes {
 public:
  LazyTypes();
  LazyTypes(const LazyTypes&) = delete;
  LazyTypes& operator=(const LazyTypes&) = delete;

  // Instead of a table of its own; said before the first graph. Borrowed.
  void use_symbols(ir::SymbolTable& symbols) { inference_.symbols = &symbols; }
  void infer_at_once() { at_once_ = true; }

  // Calls lower(), which appends lowered nodes to `graph`. What is known of its values is put into
  // `scope`. Graphs nest.
  template <class Lower>
  void within(const ir::Graph& graph, infer::Scope& scope, const Lower& lower) {
    Pending pending{graph, scope, innermost_};
    innermost_ = &pending;
    if (at_once_) enter(graph, scope);
    lower();
    innermost_ = pending.around;
  }

  // A node is placed in the graph of `scope`.
  void placed(const ir::Node& node, infer::Scope& scope) {
    if (at_once_) infer(node, scope);
  }
  // Brings the scopes of all graphs being lowered up to what has been placed in them.
  void catch_up() { catch_up(innermost_); }

 private:
  struct Pending {
    const ir::Graph& graph;
    infer::Scope& scope;
    Pending* around;
    bool entered = false;
    size_t inferred = 0;  // so many of its nodes
  };
  void catch_up(Pending* pending);
  void enter(const ir::Graph& graph, infer::Scope& scope);
  void infer(const ir::Node& node, infer::Scope& scope);

  ir::SymbolTable symbols_;
  infer::InferenceContext inference_;
  bool at_once_ = false;
  Pending* innermost_ = nullptr;
};

}  // namespace sardonyx::lower
