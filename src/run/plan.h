// The plan of a graph: prepared steps in order, and where every value lives.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory_account.h"
#include "eval/eval.h"
#include "infer/infer.h"
#include "ir/model.h"
#include "ops/operator.h"

namespace sardonyx::run {

using ops::ValueFacts;

struct PlanServices {
  ops::PackCache* packs = nullptr;  // never null
  bool exact = false;
  // Working memory as small as it gets: laying values out takes longer where sizes are new.
  bool compact = false;
  // Of the inference of all plans within one another; never null.
  std::shared_ptr<infer::Budget> budget = std::make_shared<infer::Budget>();
};

// A value of the planned graph.
struct PlanValue {
  enum class Source { input, captured, constant, step };

  std::string name;
  ValueFacts known;
  Source source = Source::step;
  // The value whose memory this one shares: itself, or what it is a view of.
  int root = 0;
  // Lives in Slot::value: not a dense tensor of fixed-width elements, or allocated by the run.
  bool boxed = false;
  // Of roots: the step that makes it, and the last one that needs its memory.
  int made_by = -1;
  int last_use = -1;
  // Of roots: the position among the outputs whose memory it is made in; -1: in the arena.
  int output_storage = -1;
  int dims_offset = 0;  // of its dimensions in a context's array; values of unknown rank have none

  bool has_rank() const { return known.type.is_tensor() && known.type.shape.has_value(); }
  int rank() const { return static_cast<int>(known.type.shape->size()); }
};

class Plan;

struct PlanStep {
  enum class Mode {
    planned,         // sizes of its outputs are known when its segment is bound
    data_dependent,  // sizes of its outputs are known only when it runs; it ends its segment
    interpreted,  // even ranks or types are open: evaluated plainly when it runs; ends its segment
  };
  std::unique_ptr<ops::Step> step;  // null where interpreted
  Mode mode = Mode::planned;
  const ir::Node* node = nullptr;
  infer::Binding binding{};
  std::vector<int> inputs;  // values; -1: absent; what subgraphs capture comes after the node's own
  std::vector<int> outputs;
  std::vector<std::string> captured;  // names of the inputs after the node's own
  // in_place[k] of the step's traits may be taken: the input is not needed afterwards.
  std::vector<ops::InPlace> in_place;
  int64_t state_offset = 0;
  std::vector<ops::Refusal> refusals;
  // Its subgraphs, as it prepared them; without a plan where that is left to the run.
  struct Body {
    const ir::Graph* graph = nullptr;
    std::shared_ptr<const Plan> plan;
  };
  std::vector<Body> bodies;
};

// A stretch of steps whose sizes are all known when it begins.
struct Segment {
  int begin = 0;
  int end = 0;
  std::vector<int> values;  // made by its steps or, in the first, inputs: dims to evaluate
  std::vector<ops::Constraint> constraints;
};

class Context;
class OutputMemory;

// Immutable once built; any number of threads may run it. Nested plans (subgraphs) are inside the
// steps that run them.
class Plan {
 public:
  // `graph`: lowered, all nodes of the newest version. `inputs`: what is known of its inputs, where
  // more than their declarations; `captured`: values of the graphs around it. Throws Error
  // with the place of the node that cannot be planned.
  Plan(ir::Graph graph, std::span<const ValueFacts> inputs,
       std::vector<std::pair<std::string, ValueFacts>> captured, const PlanServices& services);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  // Inputs in the graph's order, then the captured values as slots. Outputs that are tensors of
  // the right type and shape on entry are filled where they lie. Returns false where no output can
  // have another shape than in the run before of the same context. `given`: the inputs again, by a
  // step whose body this is, which gives them away: once all fit, sequences among them are none.
  bool run(std::span<const Value> inputs, std::span<ops::Slot* const> captured,
           std::span<Value> outputs, eval::Environment& environment, OutputMemory* memory = nullptr,
           std::span<Value> given = {}) const;

  const ir::Graph& graph() const { return graph_; }
  std::span<const PlanStep> steps() const { return steps_; }
  std::span<const PlanValue> values() const { return values_; }
  std::span<const Segment> segments() const { return segments_; }
  std::span<const int> inputs() const { return inputs_; }
  std::span<const int> captured() const { return captured_; }
  std::span<const int> outputs() const { return outputs_; }
  const ir::SymbolTable& symbols() const { return symbols_; }
  int64_t state_bytes() const { return state_bytes_; }
  int dims_count() const { return dims_count_; }
  bool is_compact() const { return compact_; }
  // Bytes of working memory in all contexts made so far.
  int64_t arena_bytes() const;

 private:
  friend class Builder;
  MemoryCharge memory_;
  ir::Graph graph_;
  ir::SymbolTable symbols_;
  std::vector<PlanValue> values_;
  std::vector<PlanStep> steps_;
  std::vector<Segment> segments_;
  std::vector<int> inputs_, captured_, outputs_;
  int64_t state_bytes_ = 0;
  int dims_count_ = 0;
  bool compact_ = false;

  // Run contexts that no run is using, each for one number of threads.
  std::unique_ptr<Context> acquire(int threads) const;
  void release(std::unique_ptr<Context> context) const;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Context>> idle_;
};

// Whether a failed match of inputs with the plan is the caller's fault is for the caller to say.
class ShapeMismatch : public Error {
  using Error::Error;
};

// Nothing is wrong with the inputs but that sizes of one name are different.
class SizesDiffer : public ShapeMismatch {
 public:
  // `difference`: "dimension 0 is 3, but 'N' is 2 by dimension 0 of input 'x'". `rename`: the
  // command that gives the size another name.
  SizesDiffer(const std::string& message, const std::string& place, std::string difference,
              std::string rename)
      : ShapeMismatch(ErrorCode::bad_input, message, place),
        difference_(std::move(difference)),
        rename_(std::move(rename)) {}
  const std::string& difference() const { return difference_; }
  const std::string& rename() const { return rename_; }

 private:
  std::string difference_, rename_;
};

}  // namespace sardonyx::run
