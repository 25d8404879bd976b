// Building a plan.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "run/plan.h"
#include "run/subgraph.h"

namespace sardonyx::run {

class Builder {
 public:
  Builder(Plan& plan, const PlanServices& services) : plan_(plan), services_(services) {}
  void build(std::span<const ValueFacts> inputs,
             std::vector<std::pair<std::string, ValueFacts>> captured);

 private:
  int add_value(const std::string& name, ValueFacts known, PlanValue::Source source);
  int value_of(const ir::Node& node, const std::string& name) const;
  void define_symbols(const ValueFacts& known);
  bool is_defined(const ValueFacts& known) const;
  void add_node(const ir::Node& node);
  void take_node(const ir::Node& node);
  void connect(const ir::Node& node, PlanStep& step) const;
  void prepare(PlanStep& step, std::span<const ValueFacts* const> inputs,
               const std::vector<ValueFacts>& outputs);
  void add_outputs(PlanStep& step, std::vector<ValueFacts> outputs);
  bool is_interpreted(const ir::Node& node, const PlanStep& step,
                      std::span<const ValueFacts> outputs) const;
  // Sizes that only the run decides get a plain symbol each, so that the run can bind them.
  void name_late_sizes(std::vector<ValueFacts>& outputs);
  std::unique_ptr<PlannedGraph> prepare_graph(const ir::Graph& graph,
                                              std::span<const ValueFacts> inputs,
                                              const PlanStep& step);
  void share_memory(PlanStep& step);
  void end_segment();
  void find_lifetimes();
  void place_outputs();
  void take_in_place();
  void align_constants();

  Plan& plan_;
  const PlanServices& services_;
  std::unordered_map<std::string, int> by_name_;
  infer::Scope scope_;
  infer::InferenceContext inference_;
  std::vector<ops::Constraint> constraints_;
  std::vector<char> defined_;  // by symbol id
  Segment segment_;
};

}  // namespace sardonyx::run
