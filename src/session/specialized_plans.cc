#include "session/specialized_plans.h"

#include <algorithm>

#include "base/fail.h"
#include "base/float_control.h"
#include "base/small_vector.h"
#include "ir/dimension.h"
#include "ir/value_type.h"
#include "ir/walk.h"
#include "passes/optimize.h"

namespace sardonyx {
namespace {

// Sizes that decide something else in most runs must not make a plan in most runs: so many are made
// when they are first wanted, then one takes the place of the one that was used longest ago after
// so many runs without a plan, and each further one after twice as many.
constexpr size_t max_plans = 8;
constexpr int64_t first_patience = 64;
constexpr int max_doublings = 40;

bool is_ranked(const ir::ValueInfo& input) {
  return input.type && input.type->kind == ir::TypeProto::Kind::tensor && input.type->shape;
}

bool is_rankless(const ir::ValueInfo& input) {
  return input.type && input.type->kind == ir::TypeProto::Kind::tensor && !input.type->shape;
}

bool is_named(const ir::Dimension& dim) { return !dim.value || *dim.value < 0; }

// Whether there is anything at all by which sizes of inputs could decide ranks.
bool may_decide(const ir::Graph& graph) {
  for (const ir::ValueInfo& input : graph.inputs) {
    if (is_rankless(input)) return true;
    if (is_ranked(input) && is_integer(input.type->element_type()) &&
        input.type->shape->dims.size() == 1 && is_named(input.type->shape->dims[0]))
      return true;
  }
  bool found = false;
  const auto look = [&](const ir::WalkPlace&, const ir::Node& node, size_t) {
    found |= node.op_type == "If" && node.domain.empty();
  };
  ir::walk(graph, {.node = look});
  return found;
}

// SizeNames of sizes in declarations inside nodes, which need not mean the graph's own of that
// name.
std::unordered_set<std::string> names_inside(const ir::Graph& graph) {
  std::unordered_set<std::string> names;
  const auto add = [&](const std::vector<ir::ValueInfo>& values) {
    for (const ir::ValueInfo& value : values) {
      const ir::TypeProto* type = value.type ? &*value.type : nullptr;
      for (; type != nullptr; type = type->nested.get()) {
        if (!type->shape) continue;
        for (const ir::Dimension& dim : type->shape->dims) {
          if (dim.param) names.insert(*dim.param);
        }
      }
    }
  };
  const auto enter = [&](const ir::WalkPlace& place) {
    if (place.depth > 0) add(place.graph->inputs), add(place.graph->outputs);
    return true;
  };
  ir::walk(graph, {.enter = enter});
  return names;
}

// Gives every size of the inputs a name that only sizes of inputs have.
class SizeNames {
 public:
  explicit SizeNames(const ir::Graph& graph) : taken_(names_inside(graph)) {
    for (const ir::ValueInfo& input : graph.inputs) {
      if (!is_ranked(input)) continue;
      for (const ir::Dimension& dim : input.type->shape->dims) {
        if (dim.param) own_.insert(*dim.param);
      }
    }
  }

  void give(ir::ValueInfo& input) {
    for (size_t d = 0; d < input.type->shape->dims.size(); ++d) {
      ir::Dimension& dim = input.type->shape->dims[d];
      if (!is_named(dim)) continue;
      dim.value.reset();
      const bool has_name = dim.param && !dim.param->empty();
      std::string name = has_name ? *dim.param : fmt::format("{}.{}", input.name, d);
      while (taken_.contains(name) || (!has_name && own_.contains(name))) name += '\'';
      dim.param = std::move(name);
    }
  }

 private:
  std::unordered_set<std::string> taken_, own_;
};

// Binds the sizes of inputs of these types; false where they are not of them. Types without a shape
// fit everything.
bool bind_sizes(std::span<const ir::ValueType> types, std::span<const Value> inputs,
                std::span<int64_t> sizes) {
  if (inputs.size() != types.size()) return false;
  for (size_t i = 0; i < types.size(); ++i) {
    if (!types[i].is_tensor() || !types[i].shape) continue;
    if (!inputs[i].is_tensor()) return false;
    const Shape& given = inputs[i].tensor().shape();
    const ir::Dims& wanted = *types[i].shape;
    if (given.size() != wanted.size()) return false;
    for (size_t d = 0; d < wanted.size(); ++d) {
      if (wanted[d].is_constant()) {
        if (wanted[d] != ir::Dim(given[d])) return false;
        continue;
      }
      int64_t& size = sizes[static_cast<size_t>(wanted[d].as_symbol()->id)];
      if (size < 0) size = given[d];
      if (size != given[d]) return false;
    }
  }
  return true;
}

void add_names(std::span<const ir::Dim> dims, const ir::SymbolTable& symbols,
               std::unordered_set<std::string>& names) {
  std::vector<int> ids;
  for (const ir::Dim& dim : dims) dim.collect_symbols(ids);
  for (const int id : ids) names.insert(symbols[id].name);
}

// Of the sizes of a graph's inputs as symbols.
std::vector<ir::ValueType> declare(const ir::Graph& graph, passes::Assumptions& assumptions) {
  std::vector<ir::ValueType> types;
  for (const ir::ValueInfo& input : graph.inputs) {
    types.push_back(is_ranked(input) ? ir::value_type(*input.type, assumptions.symbols)
                                     : ir::ValueType());
  }
  assumptions.begin();
  return types;
}

}  // namespace

struct SpecializedPlans::Entry {
  passes::Assumptions assumptions;
  size_t symbols = 0;                // of inputs
  std::vector<ir::ValueType> types;  // of inputs
  std::vector<std::string> guards;
  std::shared_ptr<const run::Plan> plan;  // null: none can be made; the symbolic one has to do
  std::atomic<int64_t> last_use{0};

  bool holds_for(std::span<const Value> inputs) const {
    SmallVector<int64_t, 16> sizes;
    sizes.resize(symbols, -1);
    return bind_sizes(types, inputs, sizes) &&
           std::ranges::all_of(assumptions.guards, [&](const passes::Guard& guard) {
             return guard.size.evaluate(sizes) == guard.value;
           });
  }
};

std::unique_ptr<SpecializedPlans> SpecializedPlans::of(
    ir::Graph& graph, const Settings& settings, ThreadPool& pool,
    const std::function<void(const ir::Node&, std::string_view, const ir::ValueType&)>& inferred) {
  if (!may_decide(graph)) return nullptr;
  std::vector<ir::ValueInfo> declared = graph.inputs;
  SizeNames names(graph);
  for (ir::ValueInfo& input : graph.inputs) {
    if (is_ranked(input)) names.give(input);
  }
  passes::Assumptions noted;
  declare(graph, noted);
  passes::fold_constants(graph, {.pool = &pool, .assumptions = &noted, .inferred = inferred});
  const bool decide = noted.decides_branches || !noted.lengths.empty() ||
                      std::ranges::any_of(graph.inputs, is_rankless);
  if (!decide) {
    graph.inputs = std::move(declared);
    return nullptr;
  }
  std::unique_ptr<SpecializedPlans> plans(
      new SpecializedPlans(std::move(graph), std::move(declared), settings));
  add_names(noted.lengths, noted.symbols, plans->lengths_);
  return plans;
}

std::shared_ptr<const SpecializedPlans::Entries> SpecializedPlans::entries() const {
  const std::lock_guard lock(mutex_);
  return entries_;
}

std::shared_ptr<SpecializedPlans::Entry> SpecializedPlans::find(const Entries& entries,
                                                                std::span<const Value> inputs) {
  const auto found =
      std::ranges::find_if(entries, [&](const auto& entry) { return entry->holds_for(inputs); });
  return found == entries.end() ? nullptr : *found;
}

std::shared_ptr<SpecializedPlans::Entry> SpecializedPlans::find(std::span<const Value> inputs) {
  SmallVector<int64_t, 32> shapes;
  for (const Value& input : inputs) {
    shapes.push_back(input.is_tensor() ? static_cast<int64_t>(input.tensor().rank()) : -1);
    if (!input.is_tensor()) continue;
    for (const int64_t size : input.tensor().shape()) shapes.push_back(size);
  }
  std::shared_ptr<const Entries> entries;
  {
    const std::lock_guard lock(mutex_);
    if (last_ && std::ranges::equal(shapes, last_shapes_)) return last_;
    entries = entries_;
  }
  std::shared_ptr<Entry> found = find(*entries, inputs);
  if (!found) return nullptr;
  const std::lock_guard lock(mutex_);
  last_ = found;
  last_shapes_.assign(shapes.begin(), shapes.end());
  return found;
}

SpecializedPlans::SpecializedPlan SpecializedPlans::plan_for(std::span<const Value> inputs,
                                                             ThreadPool& pool) {
  if (const auto entry = find(inputs)) {
    entry->last_use = ++clock_;
    if (entry->plan) return {entry->plan, {entry, &entry->guards}, false};
    return {symbolic(pool), nullptr, false};
  }
  {
    // Who comes meanwhile waits: what a run gives must not depend on who comes first.
    const std::lock_guard lock(making_);
    const std::shared_ptr<const Entries> now = entries();
    std::shared_ptr<Entry> entry = find(*now, inputs);
    const bool is_new = !entry;
    if (is_new && may_make(*now)) {
      entry = make(inputs, pool);
      if (entry) add(*now, entry);
    }
    if (entry && entry->plan) return {entry->plan, {entry, &entry->guards}, is_new};
  }
  return {symbolic(pool), nullptr, false};
}

bool SpecializedPlans::may_make(const Entries& entries) {
  if (entries.size() < max_plans) return true;
  if (++missed_ < first_patience << std::min(replaced_, max_doublings)) return false;
  ++replaced_;
  missed_ = 0;
  return true;
}

// The sizes that `constants` names become numbers. False, with more such names, where others turn
// out to be wanted.
bool SpecializedPlans::simplify_for(std::span<const Value> inputs, ThreadPool& pool,
                                    ir::Graph& graph, Entry& entry,
                                    std::unordered_set<std::string>& constants) const {
  SizeNames names(graph);
  for (size_t i = 0; i < inputs.size(); ++i) {
    ir::ValueInfo& input = graph.inputs[i];
    if (!input.type || !inputs[i].is_tensor()) continue;
    const Shape& given = inputs[i].tensor().shape();
    if (is_rankless(input)) {
      input.type->shape.emplace().dims.resize(given.size());
      names.give(input);
      entry.guards.push_back(fmt::format("input '{}' has {} dimensions", input.name, given.size()));
    }
    if (!is_ranked(input) || given.size() != input.type->shape->dims.size()) continue;
    for (size_t d = 0; d < given.size(); ++d) {
      ir::Dimension& dim = input.type->shape->dims[d];
      if (!dim.param || !constants.contains(*dim.param)) continue;
      entry.guards.push_back(fmt::format("size '{}' is {}", *dim.param, given[d]));
      ir::set_number(dim, given[d]);
    }
  }
  passes::Assumptions& assumptions = entry.assumptions;
  entry.types = declare(graph, assumptions);
  entry.symbols = static_cast<size_t>(assumptions.symbols.size());
  assumptions.sizes.assign(entry.symbols, -1);
  if (!bind_sizes(entry.types, inputs, assumptions.sizes))
    fail(ErrorCode::bad_input, "the inputs have other shapes than the model takes");
  passes::optimize(graph, {.pool = &pool, .fuse = settings_.fuse, .assumptions = &assumptions});
  for (const passes::Guard& guard : assumptions.guards) entry.guards.push_back(guard.text);
  const size_t before = constants.size();
  add_names(assumptions.lengths, assumptions.symbols, constants);
  return constants.size() == before;
}

// Null where the inputs are none that the model takes.
std::shared_ptr<SpecializedPlans::Entry> SpecializedPlans::make(std::span<const Value> inputs,
                                                                ThreadPool& pool) const {
  const FloatControlScope standard(FloatControl::standard());  // constants that others share
  const auto fits = [&] {
    passes::Assumptions declared;
    const auto types = declare(graph_, declared);
    std::vector<int64_t> sizes(static_cast<size_t>(declared.symbols.size()), -1);
    return bind_sizes(types, inputs, sizes);
  };
  if (!fits()) return nullptr;
  std::unordered_set<std::string> constants = lengths_;
  constexpr int max_rounds = 3;
  for (int round = 1;; ++round) {
    auto entry = std::make_shared<Entry>();
    try {
      ir::Graph graph = graph_;
      if (!simplify_for(inputs, pool, graph, *entry, constants) && round < max_rounds) continue;
      entry->plan = planned(std::move(graph));
    } catch (const Error&) {
      // It would be the same for all sizes of which the same holds. What is wrong the symbolic
      // plan says, if its run gets there.
    }
    return entry;
  }
}

std::shared_ptr<const run::Plan> SpecializedPlans::planned(ir::Graph graph) const {
  settings_.packs->release_pages_of_files();
  const run::PlanServices services{settings_.packs, settings_.exact};
  auto plan = std::make_shared<const run::Plan>(
      std::move(graph), std::span<const ops::ValueFacts>(),
      std::vector<std::pair<std::string, ops::ValueFacts>>(), services);
  settings_.packs->release_pages_of_files();
  return plan;
}

void SpecializedPlans::add(const Entries& before, std::shared_ptr<Entry> entry) {
  Entries now = before;
  if (now.size() >= max_plans) {
    now.erase(
        std::ranges::min_element(now, {}, [](const auto& one) { return one->last_use.load(); }));
  }
  entry->last_use = ++clock_;
  now.push_back(std::move(entry));
  auto made = std::make_shared<const Entries>(std::move(now));
  const std::lock_guard lock(mutex_);
  entries_ = std::move(made);
  last_ = nullptr;  // it may be the one that went
}

std::shared_ptr<const run::Plan> SpecializedPlans::symbolic(ThreadPool& pool) {
  {
    const std::lock_guard lock(mutex_);
    if (symbolic_) return symbolic_;
  }
  const std::lock_guard lock(making_);
  if (symbolic_) return symbolic_;
  ir::Graph graph = graph_;
  graph.inputs = declared_inputs_;
  passes::optimize(graph, {.pool = &pool, .fuse = settings_.fuse});
  auto plan = planned(std::move(graph));
  const std::lock_guard short_lock(mutex_);
  return symbolic_ = std::move(plan);
}

int64_t SpecializedPlans::arena_bytes() const {
  const std::lock_guard lock(mutex_);
  int64_t bytes = symbolic_ ? symbolic_->arena_bytes() : 0;
  for (const auto& entry : *entries_) bytes += entry->plan ? entry->plan->arena_bytes() : 0;
  return bytes;
}

}  // namespace sardonyx
