// A step of the optimiser, and the graph that it works on.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "infer/infer.h"
#include "ir/model.h"
#include "passes/canonicalize/constant_folding.h"
#include "passes/graph_index.h"

namespace sardonyx::passes {

class PassManager;

// What is known of a graph beside its nodes.
struct Facts {
  bool constants = false;  // of the values in the scope that are constant, that they are
  bool types = false;      // of all values: types, shapes and elements
  bool uses = false;       // who makes and who reads each value: GraphIndex
};
inline constexpr Facts no_facts{};
inline constexpr Facts constants_only{.constants = true};
inline constexpr Facts types{.constants = true, .types = true};
// Nodes that are dead keep their places while uses are kept.
inline constexpr Facts types_and_uses{.constants = true, .types = true, .uses = true};
inline constexpr Facts constants_and_uses{.constants = true, .uses = true};

// A graph while passes work on it.
class PassContext {
 public:
  PassContext(PassManager& manager, ir::Graph& graph, const EnterGraph& enter, std::string place);

  ir::Graph& graph() const { return graph_; }
  // Right as far as the pass asks for facts.
  infer::Scope& scope() const { return *scope_; }
  GraphIndex& uses() { return *uses_; }
  // Whether a pass has changed what was known of values.
  bool lost_types() const { return scope_ != nullptr && !valid_.types; }
  // Infers the graph anew and folds its constants; `inside`: and runs the same passes over the
  // graphs inside its nodes. Returns whether nodes have changed.
  bool infer(bool keep_dequantize, bool inside);

 private:
  friend class PassManager;

  // Makes these facts right; uses only where they are asked for.
  void require(const Facts& facts);
  // What is right after a change that keeps these.
  void keep(const Facts& facts);
  // Closes the gaps that dead nodes have left.
  void drop_uses();

  PassManager& manager_;
  ir::Graph& graph_;
  const EnterGraph& enter_;
  const std::string place_;
  std::unique_ptr<infer::Scope> scope_;
  std::optional<GraphIndex> uses_;
  Facts valid_;
};

struct Pass {
  std::string_view name;     // "fuse-attention"
  std::string_view summary;  // what it does, on one line
  Facts needs;               // right when it runs
  Facts keeps;               // of these, what is still right after it has changed the graph
  // Whether it may have anything to do; null: it always may.
  bool (*applies)(const PassContext& context) = nullptr;
  // Returns whether the graph has changed. For passes that need uses, edits of them count as well.
  bool (*run)(PassContext& context) = nullptr;
};

}  // namespace sardonyx::passes
