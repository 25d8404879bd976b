// The contract of preparation: from a node with inferred types to a step.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/cpu.h"
#include "base/thread_pool.h"
#include "ops/infer_context.h"
#include "ops/node_view.h"
#include "ops/pack_cache.h"
#include "ops/step.h"

namespace sardonyx::ops {

// A subgraph ready to run inside a control-flow step. Outer values it captures reach it as extra
// inputs of that step, after the node's own (the planner appends them); an implementation knows
// their positions.
class PreparedGraph {
 public:
  virtual ~PreparedGraph() = default;
  virtual int input_count() const = 0;
  virtual int output_count() const = 0;
  // Runs the graph once. `outer` is the step's own context, whose inputs hold the captured values.
  // Inputs may borrow memory for the time of the call; outputs own theirs. Sequences among the
  // inputs are none afterwards: the graph may make others of them. Thread-safe.
  virtual std::vector<Value> run(RunContext& outer, std::span<Value> inputs) const = 0;
  // What is known of the outputs of a run with such inputs, told without one. Throws Error where
  // such a run must fail. Thread-safe.
  virtual std::vector<ValueFacts> infer_outputs(RunContext& outer,
                                                std::span<const ValueFacts> inputs) const = 0;
};

// One reason a better kernel was not taken, for explain.
struct Refusal {
  std::string kernel;
  std::string reason;
};

struct PrepareServices {
  PackCache* packs = nullptr;  // never null
  bool exact = false;          // no algorithm that trades accuracy for speed (Winograd)
  // Prepares a graph attribute of the node; null where control flow cannot occur.
  std::function<std::unique_ptr<PreparedGraph>(const ir::Graph&,
                                               std::span<const ValueFacts> inputs)>
      prepare_graph;
};

class PrepareContext : public NodeView {
 public:
  PrepareContext(const ir::Node& node, const schema::Signature* signature,
                 std::span<const ValueFacts* const> inputs,
                 std::span<const ValueFacts* const> outputs, const PrepareServices& services)
      : NodeView(node, signature), inputs_(inputs), outputs_(outputs), services_(services) {}

  const ValueType& in_type(int i) const;
  const ValueType& out_type(int i) const;
  ElementType in_element(int i) const { return in_type(i).element; }
  ElementType out_element(int i) const { return out_type(i).element; }
  std::optional<int64_t> in_rank(int i) const;
  // The input's elements where they never change; null otherwise. Weights come through here.
  const Tensor* constant(int i) const;
  const ValueFacts& known(int i) const;

  InstructionSet instruction_set() const { return sardonyx::instruction_set(); }
  const PrepareServices& services() const { return services_; }

  // The decoded form of a tensor attribute; fails where it is absent.
  Tensor tensor_attribute(std::string_view name) const;
  std::unique_ptr<PreparedGraph> prepare_graph(const ir::Graph& graph,
                                               std::span<const ValueFacts> inputs) const;

  // Constant input i in a kernel's form of these arrays. `make` runs once for all plans that share
  // the model, when a run first asks: it holds what it reads.
  template <class Packed>
  std::shared_ptr<const Pack<Packed>> packed(int i, const PackFormat& format,
                                             std::vector<PackPart> parts,
                                             std::function<Packed(ThreadPool&)> make) const {
    return services_.packs->get<Packed>(*constant(i), format, std::move(parts), std::move(make));
  }

  void refuse(std::string kernel, std::string reason) {
    refusals_.push_back({std::move(kernel), std::move(reason)});
  }
  std::vector<Refusal> take_refusals() { return std::move(refusals_); }

 private:
  std::span<const ValueFacts* const> inputs_;
  std::span<const ValueFacts* const> outputs_;
  const PrepareServices& services_;
  std::vector<Refusal> refusals_;
};

}  // namespace sardonyx::ops
