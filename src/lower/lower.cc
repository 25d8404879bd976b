#include "lower/lower.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "autodiff/gradient.h"
#include "base/fail.h"
#include "base/memory_account.h"
#include "ir/internal_domain.h"
#include "ir/origin.h"
#include "ir/walk.h"
#include "lower/callable_functions.h"
#include "lower/channel_blocks.h"
#include "lower/fresh_names.h"
#include "lower/lazy_types.h"
#include "lower/omitted_outputs.h"
#include "lower/resolved_operator.h"
#include "lower/spare.h"
#include "lower/upgrade_node.h"
#include "ops/custom.h"
#include "wire/footprint.h"

namespace sardonyx::lower {
namespace {

using Imports = std::vector<ir::OperatorSetId>;

// Nodes and calls that are not the file's own, whose number the size of the file bounds: nests of
// calls, which may be exponential, end here.
constexpr int64_t max_added_nodes = 250'000;

// The walk over a model's nodes: each is placed in the lowered graph, changed or taken apart.
class Lowering {
 public:
  Lowering(const ir::Model& model, const LowerOptions& options, ir::NodeSource* source = nullptr)
      : model_(model),
        options_(options),
        source_(source),
        functions_(model),
        names_(model, source != nullptr),
        resolver_(options),
        blocks_(model.graph ? &*model.graph : nullptr) {
    services_.fresh_name = [this](std::string_view hint) { return names_.make(hint); };
    services_.assume_inference = options.assume_inference;
    look_over();
  }

  ir::Graph run() {
    ir::Graph graph = ir::interface_of(*model_.graph);
    infer::Scope scope;
    types_.within(graph, scope, [&] { lower_nodes(*model_.graph, graph, imports(), scope, 0); });
    return graph;
  }

  std::vector<InlinedCall> run(ir::Graph& graph, const infer::InferenceContext& inference,
                               infer::Scope& scope) {
    types_.use_symbols(*inference.symbols);
    scope.reserve(graph.inputs.size() + graph.initializers.size() +
                  (source_ ? source_->size() : model_.graph->nodes.size()));
    infer::enter(graph, scope, inference);
    infer::Walk walk(graph, scope, inference);
    main_scope_ = &scope;
    main_walk_ = &walk;
    if (source_ != nullptr) {
      lower_source(graph, imports(), scope);
    } else {
      lower_nodes(*model_.graph, graph, imports(), scope, 0);
    }
    main_scope_ = nullptr;
    return std::move(calls_);
  }

 private:
  void look_over() {
    if (model_.graph) look_at(model_.graph->nodes);
    for (const ir::Function& function : model_.functions) look_at(function.nodes);
    for (const ir::TrainingInfo& training : model_.training_info) {
      for (const auto* graph : {&training.initialization, &training.algorithm}) {
        if (*graph) look_at((*graph)->nodes);
      }
    }
  }

  // How deep graphs nest is bounded by the readers.
  void look_at(const std::vector<ir::Node>& nodes) {
    for (const ir::Node& node : nodes) look_at(node);
  }
  void look_at(const ir::Node& node) {
    // Operators of our own trust their attributes: only bodies and rewriting make them.
    if (ir::is_internal(node) && functions_.own(node) == nullptr) {
      fail_at(ir::place_of(node), ErrorCode::unsupported,
              "the domain 'sardonyx' is kept for what a session makes of a model; a model may "
              "have functions of that domain, but no other operators");
    }
    if (ChannelBlocks::concerns(node)) blocks_.meet(node);
    if (node.op_type == "Gradient") {
      has_gradients_ = true;
      types_.infer_at_once();
    }
    if (!has_graphs(node)) return;
    ir::for_each_subgraph(
        node, [this](const ir::Graph& graph, const ir::Attribute&, int) { look_at(graph.nodes); });
  }

  Imports imports() const {
    Imports imports = model_.opset_imports;
    if (imports.empty() && model_.ir_version.value_or(0) < 3) imports.push_back({"", 1, {}});
    return imports;
  }

  // The nodes of `from` become those of `to`.
  void lower_nodes(const ir::Graph& from, ir::Graph& to, const Imports& imports,
                   infer::Scope& scope, int depth) {
    if (keeps_nodes(scope)) {
      memory_.add(static_cast<int64_t>(from.nodes.size() * sizeof(ir::Node)));
      to.nodes.reserve(from.nodes.size());
    }
    if (options_.expand_bodies) make_dense(to, scope, depth);
    for (const ir::Node& node : from.nodes)
      lower_node(node, nullptr, imports, scope, depth, to.nodes);
    if (has_gradients_) expand_gradients(to.nodes, scope, depth);
  }

  // The main graph's nodes, each taken apart where it came.
  void lower_source(ir::Graph& to, const Imports& imports, infer::Scope& scope) {
    if (options_.expand_bodies) make_dense(to, scope, 0);
    while (ir::Node* node = source_->next()) {
      look_at(*node);
      names_.meet(*node);
      if (has_gradients_)
        fail_at(ir::place_of(*node), ErrorCode::unsupported,
                "needs all nodes of the graph at once");
      lower_node(*node, node, imports, scope, 0, to.nodes);
    }
  }

  // Sparse initializers become nodes that make the dense tensors they stand for. Those whose
  // elements are not at hand, as where types alone are asked for, stay what they are.
  void make_dense(ir::Graph& graph, infer::Scope& scope, int depth) {
    std::vector<ir::SparseTensorProto> kept;
    for (ir::SparseTensorProto& sparse : graph.sparse_initializers) {
      if (sparse.values.is_external() || sparse.indices.is_external()) {
        kept.push_back(std::move(sparse));
        continue;
      }
      ir::Node node;
      node.op_type = "Constant";
      node.origin = "from a sparse initializer";
      node.outputs = {sparse.values.name};
      ir::Attribute& value = node.attributes.emplace_back();
      value.name = "sparse_value";
      value.kind = ir::AttributeKind::sparse_tensor;
      value.sparse_tensor = std::make_shared<const ir::SparseTensorProto>(std::move(sparse));
      emit(std::move(node), scope, depth, graph.nodes);
    }
    graph.sparse_initializers = std::move(kept);
  }

  void expand_gradients(std::vector<ir::Node>& nodes, infer::Scope& scope, int depth) {
    autodiff::expand_gradients(nodes, gradient_services(scope, depth));
  }

  autodiff::GradientServices gradient_services(infer::Scope& scope, int depth) {
    autodiff::GradientServices services;
    services.fresh_name = services_.fresh_name;
    services.recompute_iterations = options_.recompute_iterations;
    services.known = [&scope](std::string_view name) { return scope.find(name); };
    services.assume = [&scope](const std::string& name, infer::ValueFacts facts) {
      scope.set(name, std::move(facts));
    };
    services.lower = [this, &scope, depth](ir::Node node, const Imports& imports,
                                           std::vector<ir::Node>& out) {
      const Adding adding(*this);
      lower_node(node, &node, imports, scope, depth + 1, out);
    };
    services.within = [this, &scope, depth](const auto& values, const auto& make) {
      infer::Scope inside(&scope);
      for (const auto& [name, known] : values) inside.set(name, known);
      make(gradient_services(inside, depth + 1));
    };
    return services;
  }

  // While it lives, nodes are lowered that are not the file's own.
  class Adding {
   public:
    explicit Adding(Lowering& lowering) : lowering_(lowering) { ++lowering_.adding_; }
    ~Adding() { --lowering_.adding_; }
    Adding(const Adding&) = delete;
    Adding& operator=(const Adding&) = delete;

   private:
    Lowering& lowering_;
  };

  // Counts nodes that are not the file's own.
  void charge(size_t nodes, const ir::Node& at) {
    if (adding_ == 0) return;
    added_ += static_cast<int64_t>(nodes);
    if (added_ > max_added_nodes) {
      fail_at(ir::place_of(at), ErrorCode::invalid_model,
              "functions and gradients add more than {} nodes to the model's own", max_added_nodes);
    }
  }

  // `ours` is the same node where it may be taken apart; null: it is copied where it must change.
  void lower_node(const ir::Node& node, ir::Node* ours, const Imports& imports, infer::Scope& scope,
                  int depth, std::vector<ir::Node>& out) {
    if (depth > ir::max_call_depth) {
      fail_at(ir::place_of(node), ErrorCode::invalid_model,
              "functions and subgraphs nest deeper than {}; functions must not call themselves",
              ir::max_call_depth);
    }
    charge(1, node);
    try {
      take_node(node, ours, imports, scope, depth, out);
    } catch (MemoryLimitReached& reached) {
      reached.locate(ir::place_of(node));
      throw;
    }
  }

  void take_node(const ir::Node& node, ir::Node* ours, const Imports& imports, infer::Scope& scope,
                 int depth, std::vector<ir::Node>& out) {
    if (const ir::Function* called = functions_.own(node)) {
      ir::Renamed names;
      inline_call(*called, node, scope, depth, out, main_walk_ ? &names : nullptr);
      if (main_walk_) calls_.push_back({called, inside_, std::move(names)});
      return;
    }
    const ResolvedOperator resolved = resolver_.of(node, imports);
    if (resolved.as_is != nullptr && graphs_stay(node, imports, depth)) {
      const infer::Binding binding{resolved.newest, resolved.as_is};
      return place(node, ours, &binding, scope, out);
    }
    if (options_.keep_unknown && !is_known(node, resolved)) {
      if (&scope == main_scope_) main_walk_->step(node);
      return keep(node, ours, scope, out);
    }
    require_known(node, resolved);
    if (ours != nullptr) return change(*ours, resolved, imports, scope, depth, out);
    const Spare copy(spare_nodes_);
    *copy = node;
    change(*copy, resolved, imports, scope, depth, out);
  }

  // Whether the subgraphs of a node are what lowering would make of them: shared then, not copied.
  bool graphs_stay(const ir::Node& node, const Imports& imports, int depth) {
    return std::ranges::all_of(node.attributes, [&](const ir::Attribute& attribute) {
      return (!attribute.g || stays(*attribute.g, imports, depth + 1)) &&
             std::ranges::all_of(attribute.graphs, [&](const auto& graph) {
               return stays(*graph, imports, depth + 1);
             });
    });
  }

  bool stays(const ir::Graph& graph, const Imports& imports, int depth) {
    if (has_gradients_ || depth > ir::max_call_depth || model_.ir_version.value_or(4) < 4 ||
        !graph.sparse_initializers.empty())
      return false;
    for (const ir::Node& node : graph.nodes) {
      charge(1, node);
      if (functions_.own(node) != nullptr || resolver_.of(node, imports).as_is == nullptr ||
          omits_outputs(node) || !graphs_stay(node, imports, depth))
        return false;
    }
    return true;
  }

  // The node becomes one of the newest version, or what that stands for.
  void change(ir::Node& node, const ResolvedOperator& resolved, const Imports& imports,
              infer::Scope& scope, int depth, std::vector<ir::Node>& out) {
    if (node.domain == "ai.onnx") node.domain.clear();
    node.opset = 0;
    for (ir::Attribute& attribute : node.attributes) {
      if (attribute.g) attribute.g = lower_subgraph(*attribute.g, imports, scope, depth);
      for (auto& graph : attribute.graphs) graph = lower_subgraph(*graph, imports, scope, depth);
    }
    if (resolved.bound == nullptr && options_.custom != nullptr)
      node.custom = options_.custom->bind(node.domain, node.op_type, resolved.version);
    upgrade(std::move(node), resolved, scope, depth, out);
  }

  // Where inference alone is wanted, only nodes with graphs are: those are inferred by their
  // lowered forms.
  bool keeps_nodes(const infer::Scope& scope) const {
    return options_.keep_nodes || has_gradients_ || &scope != main_scope_;
  }
  bool keeps(const ir::Node& node, const infer::Scope& scope) const {
    return keeps_nodes(scope) || has_graphs(node);
  }

  std::shared_ptr<const ir::Graph> lower_subgraph(const ir::Graph& graph, const Imports& imports,
                                                  const infer::Scope& outer, int depth) {
    auto lowered = std::make_shared<ir::Graph>(ir::interface_of(graph));
    // Up to IR version 3 constants stand among the inputs, too, after those the operator gives.
    if (model_.ir_version.value_or(4) < 4) {
      std::erase_if(lowered->inputs, [&](const ir::ValueInfo& input) {
        return std::ranges::find(graph.initializers, input.name, &ir::TensorProto::name) !=
               graph.initializers.end();
      });
    }
    infer::Scope scope(&outer);
    ir::Graph* around = std::exchange(inside_, lowered.get());
    types_.within(*lowered, scope,
                  [&] { lower_nodes(graph, *lowered, imports, scope, depth + 1); });
    inside_ = around;
    return lowered;
  }

  // To the newest version; then to the body where there is no kernel.
  void upgrade(ir::Node&& node, const ResolvedOperator& resolved, infer::Scope& scope, int depth,
               std::vector<ir::Node>& out) {
    const ops::Operator* op = resolved.op;
    const infer::Binding newest{resolved.newest, op};
    if (resolved.newest == nullptr || !must_upgrade(resolved.bound, *resolved.newest, op))
      return emit(std::move(node), newest, scope, depth, out);
    services_.known = [&](std::string_view name) {
      types_.catch_up();
      return scope.find(name);
    };
    if (ChannelBlocks::concerns(node) && node.find("block_size") == nullptr)
      node.attributes.push_back(ops::int_attribute("block_size", blocks_.size()));
    // Where no nodes are kept, a constant that an upgrade makes is as good as an initializer.
    Upgraded upgraded = upgrade_node(node, *resolved.bound, *op, services_, !keeps_nodes(scope));
    for (auto& constant : upgraded.constants) scope.set(constant.name, std::move(constant.value));
    for (ir::Node& helper : upgraded.before) emit(std::move(helper), scope, depth, out);
    if (!upgraded.dropped) {
      const bool same = node.op_type == op->name && node.domain == op->domain;
      emit(std::move(node), same ? newest : newest_of(node), scope, depth, out);
    }
    for (ir::Node& helper : upgraded.after) emit(std::move(helper), scope, depth, out);
    if (&scope != main_scope_) return;
    for (auto& [name, shape] : upgraded.shapes) main_walk_->complete(name, std::move(shape));
  }

  static infer::Binding newest_of(const ir::Node& node) {
    return {schema::newest(node.domain, node.op_type),
            ops::find_operator(node.domain, node.op_type)};
  }

  // A node of the newest version.
  void emit(ir::Node&& node, infer::Scope& scope, int depth, std::vector<ir::Node>& out) {
    const infer::Binding newest = newest_of(node);
    emit(std::move(node), newest, scope, depth, out);
  }
  void emit(ir::Node&& node, const infer::Binding& newest, infer::Scope& scope, int depth,
            std::vector<ir::Node>& out) {
    if (node.custom) return place(node, &node, nullptr, scope, out);
    const ops::Operator* op = newest.op;
    // Internal operators have no signature to be found by.
    if (op == nullptr) op = ops::find_operator(node.domain, node.op_type);
    if (resolver_.wants_body(op)) {
      if (const ir::Function* body = functions_.standard(node))
        return inline_call(*body, node, scope, depth, out);
    }
    place(node, &node, newest.op != nullptr ? &newest : nullptr, scope, out);
  }

  // `ours`: as for lower_node; `binding`: null where it has not been looked up.
  void place(const ir::Node& node, ir::Node* ours, const infer::Binding* binding,
             infer::Scope& scope, std::vector<ir::Node>& out) {
    if (main_walk_ == nullptr && options_.expand_bodies && omits_outputs(node)) {
      ir::Node named = ours != nullptr ? std::move(*ours) : node;
      name_outputs(named, services_.fresh_name);
      return place(named, &named, binding, scope, out);
    }
    if (&scope != main_scope_) {
      types_.placed(node, scope);
    } else if (binding != nullptr) {
      main_walk_->step(node, *binding);
    } else {
      main_walk_->step(node);
    }
    keep(node, ours, scope, out);
  }

  void keep(const ir::Node& node, ir::Node* ours, const infer::Scope& scope,
            std::vector<ir::Node>& out) {
    if (!keeps(node, scope)) return;
    size_t room = 0;
    if (out.size() == out.capacity()) room = std::max<size_t>(out.capacity(), 1);
    memory_.add(wire::memory_of(node) + static_cast<int64_t>(room * sizeof(ir::Node)) -
                static_cast<int64_t>(sizeof(ir::Node)));
    if (ours != nullptr) {
      out.push_back(std::move(*ours));
    } else {
      out.push_back(node);
    }
  }

  void inline_call(const ir::Function& function, const ir::Node& call, infer::Scope& scope,
                   int depth, std::vector<ir::Node>& out, ir::Renamed* names = nullptr) {
    const Adding adding(*this);
    // What every call walks over besides nodes costs, too.
    charge((function.inputs.size() + function.outputs.size() + function.value_info.size()) / 8 +
               functions_.copied_bytes(function) / 1024,
           call);
    const Spare nodes(spare_lists_);
    ir::instantiate(function, call, services_.fresh_name, names, *nodes);
    if (names) declare(function, *names, &scope == main_scope_);
    for (ir::Node& node : *nodes)
      lower_node(node, &node, function.opset_imports, scope, depth + 1, out);
  }

  // What a function declares of its values holds for all calls, so that the names of sizes in it
  // say nothing.
  void declare(const ir::Function& function, const ir::Renamed& names, bool in_main) {
    for (const ir::ValueInfo& declared : function.value_info) {
      const std::string* name = names.find(declared.name);
      if (name == nullptr || name->empty() || !declared.type) continue;
      ir::ValueInfo info = declared;
      info.name = *name;
      if (info.type->shape) {
        for (ir::Dimension& dim : info.type->shape->dims) dim.param.reset();
      }
      if (in_main) {
        main_walk_->declare(std::move(info), describe(function), declared.name);
      } else if (inside_ != nullptr) {
        inside_->value_info.push_back(std::move(info));
      }
    }
  }

  static std::string describe(const ir::Function& function) {
    const std::string_view domain = ir::canonical_domain(function.domain);
    return fmt::format("{}{}{}", domain, domain.empty() ? "" : ".", function.name);
  }

  const ir::Model& model_;
  const LowerOptions& options_;
  ir::NodeSource* const source_;  // of the main graph's nodes; null: the model has them
  CallableFunctions functions_;
  FreshNames names_;
  OperatorResolver resolver_;
  ChannelBlocks blocks_;
  LazyTypes types_;
  bool has_gradients_ = false;
  MemoryCharge memory_;  // of the nodes that were made
  int adding_ = 0;       // calls and gradients under way
  int64_t added_ = 0;
  // Where the main graph's values are inferred for good; null: types only serve the upgrade rules.
  infer::Scope* main_scope_ = nullptr;
  infer::Walk* main_walk_ = nullptr;
  ir::Graph* inside_ = nullptr;  // the lowered subgraph at hand; null: the main graph
  std::vector<std::unique_ptr<ir::Node>> spare_nodes_;
  std::vector<std::unique_ptr<std::vector<ir::Node>>> spare_lists_;
  std::vector<InlinedCall> calls_;
  ops::UpgradeContext::Services services_;
};

}  // namespace

ir::Graph lower(const ir::Model& model, const LowerOptions& options) {
  if (!model.graph) fail_at(model.path, ErrorCode::invalid_model, "the model has no graph");
  return Lowering(model, options).run();
}

std::vector<InlinedCall> lower_and_infer(const ir::Model& model, ir::NodeSource* nodes,
                                         ir::Graph& graph, const LowerOptions& options,
                                         const infer::InferenceContext& inference,
                                         infer::Scope& scope) {
  if (!model.graph) fail_at(model.path, ErrorCode::invalid_model, "the model has no graph");
  return Lowering(model, options, nodes).run(graph, inference, scope);
}

}  // namespace sardonyx::lower
