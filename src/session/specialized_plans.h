// Plans for runs whose sizes decide what the plan of a model leaves open.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "ir/model.h"
#include "passes/assumptions.h"
#include "run/plan.h"

namespace sardonyx {

// Where names stand for sizes, an If on one whose branches make different ranks leaves open all
// that follows, and so do an input without a declared rank and a list of open length that is a
// shape. A sized plan takes what the sizes of one run decide there for granted, and keeps every
// other size a name: it serves all runs of which the same holds. Thread-safe.
class SpecializedPlans {
 public:
  // How plans are made, whoever asks for them.
  struct Settings {
    ops::PackCache* packs = nullptr;  // never null
    bool fuse = true;
    bool exact = false;
  };
  struct SpecializedPlan {
    std::shared_ptr<const run::Plan> plan;
    // "If 'squeeze' takes its then_branch"; null: symbolic.
    std::shared_ptr<const std::vector<std::string>> guards;
    bool is_new = false;
  };

  // Null where sizes of inputs would decide no rank; `graph` is then still to be simplified. Takes
  // the graph otherwise, which must be lowered.
  // `inferred`: see passes::OptimizeOptions.
  static std::unique_ptr<SpecializedPlans> of(
      ir::Graph& graph, const Settings& settings, ThreadPool& pool,
      const std::function<void(const ir::Node&, std::string_view, const ir::ValueType&)>& inferred =
          {});

  // The plan for a run with these inputs, made now if there is none yet. A model whose sizes always
  // decide something else is run by its symbolic plan most of the time, and that is who complains
  // of shapes that can't be. `pool`: for making one.
  SpecializedPlan plan_for(std::span<const Value> inputs, ThreadPool& pool);
  // The one that holds for all sizes, made when it is first asked for.
  std::shared_ptr<const run::Plan> symbolic(ThreadPool& pool);

  const std::vector<ir::ValueInfo>& outputs() const { return graph_.outputs; }
  // Of all plans made so far.
  int64_t arena_bytes() const;

 private:
  struct Entry;
  using Entries = std::vector<std::shared_ptr<Entry>>;

  SpecializedPlans(ir::Graph graph, std::vector<ir::ValueInfo> inputs, const Settings& settings)
      : graph_(std::move(graph)), declared_inputs_(std::move(inputs)), settings_(settings) {}
  std::shared_ptr<const Entries> entries() const;
  static std::shared_ptr<Entry> find(const Entries& entries, std::span<const Value> inputs);
  // What holds for the inputs, by the plans made so far; null: none.
  std::shared_ptr<Entry> find(std::span<const Value> inputs);
  bool may_make(const Entries& entries);
  std::shared_ptr<Entry> make(std::span<const Value> inputs, ThreadPool& pool) const;
  bool simplify_for(std::span<const Value> inputs, ThreadPool& pool, ir::Graph& graph, Entry& entry,
                    std::unordered_set<std::string>& constants) const;
  std::shared_ptr<const run::Plan> planned(ir::Graph graph) const;
  void add(const Entries& before, std::shared_ptr<Entry> entry);

  const ir::Graph graph_;  // folded, and every size of its inputs with a name
  const std::vector<ir::ValueInfo> declared_inputs_;
  const Settings settings_;
  std::unordered_set<std::string> lengths_;  // sizes of inputs that are lengths of such lists

  mutable std::mutex mutex_;  // of what follows; never held for long
  std::shared_ptr<const Entries> entries_ = std::make_shared<const Entries>();
  std::shared_ptr<Entry> last_;       // that was found
  std::vector<int64_t> last_shapes_;  // for these
  std::shared_ptr<const run::Plan> symbolic_;
  std::mutex making_;   // held while a plan is made
  int64_t missed_ = 0;  // runs without a plan since the last was made, when there are enough
  int replaced_ = 0;    // plans that gave way to others
  std::atomic<int64_t> clock_{0};
};

}  // namespace sardonyx
