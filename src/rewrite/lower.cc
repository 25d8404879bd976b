#include "rewrite/lower.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "base/fail.h"
#include "base/name_map.h"
#include "infer/infer.h"
#include "ir/origin.h"
#include "ir/tensor.h"
#include "ir/walk.h"
#include "ops/custom.h"
#include "ops/operator.h"
#include "rewrite/gradient.h"
#include "schema/signature_text.h"
#include "wire/text_parse.h"

namespace sardonyx::rewrite {
namespace {

using Imports = std::vector<ir::OperatorSetId>;
using FunctionKey = std::tuple<std::string_view, std::string_view, std::string_view>;

constexpr int max_call_depth = 64;
// Nodes and calls that are not the file's own, whose number the size of the file bounds: nests of
// calls, which may be exponential, end here.
constexpr int64_t max_added_nodes = 250'000;

class Lowering {
 public:
  Lowering(const ir::Model& model, const LowerOptions& options, ir::NodeSource* source = nullptr)
      : model_(model), options_(options), source_(source) {
    for (const ir::Function& function : model.functions) {
      functions_[{ir::canonical_domain(function.domain), function.name, function.overload}] =
          &function;
    }
    services_.fresh_name = [this](std::string_view hint) { return fresh_name(hint); };
    services_.assume_inference = options.assume_inference;
    constexpr size_t most_use = 12;  // kinds of nodes
    meaning_at_.reserve(most_use);
    meanings_.reserve(most_use);
    findings_.symbols = &symbols_;
    // Types serve the upgrade rules here; what is wrong is reported by the inference proper.
    findings_.problem = [](const ir::Node&, const Error&) {};
    look_over();
  }

  ir::Graph run() {
    ir::Graph graph = interface_of(*model_.graph);
    infer::Scope scope;
    within(graph, scope, [&] { lower_nodes(*model_.graph, graph, imports(), scope, 0); });
    return graph;
  }

  std::vector<InlinedCall> run(ir::Graph& graph, const infer::Findings& findings,
                               infer::Scope& scope) {
    findings_.symbols = findings.symbols;
    scope.reserve(graph.inputs.size() + graph.initializers.size() +
                  (source_ ? source_->size() : model_.graph->nodes.size()));
    infer::enter(graph, scope, findings);
    infer::Walk walk(graph, scope, findings);
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
    if (node.domain == "sardonyx" &&
        !functions_.contains({node.domain, node.op_type, node.overload})) {
      fail_at(ir::place_of(node), ErrorCode::unsupported,
              "the domain 'sardonyx' is kept for what a session makes of a model; a model may "
              "have functions of that domain, but no other operators");
    }
    has_gradients_ |= node.op_type == "Gradient";
    if (!has_graphs(node)) return;
    ir::for_each_subgraph(
        node, [this](const ir::Graph& graph, const ir::Attribute&, int) { look_at(graph.nodes); });
  }

  // Names that fresh_name could make, too: those that end with "__" and a number.
  void collect_names() {
    collect_names(*model_.graph);
    if (source_ == nullptr) return;
    source_->visit_with("__", [this](const ir::Node& node) { collect_names(node); });
  }

  void collect_names(const ir::Graph& graph) {
    for (const auto& input : graph.inputs) collect_name(input.name);
    for (const auto& initializer : graph.initializers) collect_name(initializer.name);
    for (const auto& sparse : graph.sparse_initializers) collect_name(sparse.values.name);
    for (const ir::Node& node : graph.nodes) collect_names(node);
  }

  void collect_names(const ir::Node& node) {
    for (const std::string& output : node.outputs) collect_name(output);
    ir::for_each_subgraph(
        node, [this](const ir::Graph& graph, const ir::Attribute&, int) { collect_names(graph); });
  }

  void collect_name(std::string_view name) {
    size_t end = name.size();
    while (end > 0 && name[end - 1] >= '0' && name[end - 1] <= '9') --end;
    if (end != name.size() && name.substr(0, end).ends_with("__")) names_.emplace(name);
  }

  // Made names differ by their numbers.
  std::string fresh_name(std::string_view hint) {
    if (counter_ == 0) collect_names();
    std::string name;
    std::array<char, 20> number{};
    do {
      const auto written = std::to_chars(number.begin(), number.end(), counter_++);
      name.assign(hint).append("__").append(number.begin(), written.ptr);
    } while (names_.contains(name));
    return name;
  }

  Imports imports() const {
    Imports imports = model_.opset_imports;
    if (imports.empty() && model_.ir_version.value_or(0) < 3) imports.push_back({"", 1, {}});
    return imports;
  }

  void enter(const ir::Graph& graph, infer::Scope& scope) {
    for (const auto* declared : {&graph.value_info, &graph.outputs}) {
      for (const ir::ValueInfo& info : *declared) {
        if (info.type) scope.set(info.name, infer::Known::of(ir::value_type(*info.type, symbols_)));
      }
    }
    infer::enter(graph, scope, findings_);
  }

  // A graph that is being lowered. What is known of its values serves upgrade rules alone, few of
  // which ask: its nodes are inferred when one does.
  struct Pending {
    ir::Graph& graph;
    infer::Scope& scope;
    Pending* around;
    bool entered = false;
    size_t inferred = 0;  // so many of its nodes
  };

  template <class Lower>
  void within(ir::Graph& graph, infer::Scope& scope, const Lower& lower) {
    Pending pending{graph, scope, pending_};
    pending_ = &pending;
    if (has_gradients_) enter(graph, scope);  // those ask for everything
    lower();
    pending_ = pending.around;
  }

  void catch_up(Pending* pending) {
    if (pending == nullptr || has_gradients_) return;
    catch_up(pending->around);
    if (!std::exchange(pending->entered, true)) enter(pending->graph, pending->scope);
    const std::vector<ir::Node>& nodes = pending->graph.nodes;
    for (; pending->inferred < nodes.size(); ++pending->inferred)
      infer_into(nodes[pending->inferred], pending->scope);
  }

  // The nodes of `from` become those of `to`.
  void lower_nodes(const ir::Graph& from, ir::Graph& to, const Imports& imports,
                   infer::Scope& scope, int depth) {
    if (keeps_nodes(scope)) to.nodes.reserve(from.nodes.size());
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
    rewrite::expand_gradients(nodes, gradient_services(scope, depth));
  }

  GradientServices gradient_services(infer::Scope& scope, int depth) {
    GradientServices services;
    services.fresh_name = services_.fresh_name;
    services.known = [&scope](std::string_view name) { return scope.find(name); };
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
    if (depth > max_call_depth) {
      fail_at(ir::place_of(node), ErrorCode::invalid_model,
              "functions and subgraphs nest deeper than {}; functions must not call themselves",
              max_call_depth);
    }
    charge(1, node);
    if (const ir::Function* called = called_by(node)) {
      Renamed names;
      inline_call(*called, node, scope, depth, out, main_walk_ ? &names : nullptr);
      if (main_walk_) calls_.push_back({called, inside_, std::move(names)});
      return;
    }
    const Meaning meaning = meaning_of(node, imports);
    if (meaning.as_is != nullptr && graphs_stay(node, imports, depth)) {
      const infer::Binding binding{meaning.newest, meaning.as_is};
      return place(node, ours, &binding, scope, out);
    }
    const auto [version, bound] = std::pair(meaning.version, meaning.bound);
    const infer::Binding newest{meaning.newest, meaning.op};
    if (options_.keep_unknown && !is_known(node, version, bound)) {
      if (&scope == main_scope_) main_walk_->step(node);
      return keep(node, ours, scope, out);
    }
    const int64_t opset = opset_of(node, version);
    if (bound == nullptr && schema::is_standard_domain(node.domain)) unknown_operator(node, opset);
    if (ours != nullptr) return change(*ours, bound, newest, opset, imports, scope, depth, out);
    const Spare copy(spare_nodes_);
    *copy = node;
    change(*copy, bound, newest, opset, imports, scope, depth, out);
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
    if (has_gradients_ || depth > max_call_depth || model_.ir_version.value_or(4) < 4 ||
        !graph.sparse_initializers.empty())
      return false;
    for (const ir::Node& node : graph.nodes) {
      charge(1, node);
      if (called_by(node) != nullptr || meaning_of(node, imports).as_is == nullptr ||
          !graphs_stay(node, imports, depth))
        return false;
    }
    return true;
  }

  // Something that has served before, with the memory that it took then: nodes are made within
  // nodes, so that each level needs its own.
  template <class T>
  class Spare {
   public:
    explicit Spare(std::vector<std::unique_ptr<T>>& unused) : unused_(unused) {
      if (unused.empty()) {
        taken_ = std::make_unique<T>();
      } else {
        taken_ = std::move(unused.back());
        unused.pop_back();
      }
    }
    Spare(const Spare&) = delete;
    Spare& operator=(const Spare&) = delete;
    ~Spare() { unused_.push_back(std::move(taken_)); }
    T& operator*() const { return *taken_; }

   private:
    std::vector<std::unique_ptr<T>>& unused_;
    std::unique_ptr<T> taken_;
  };

  // The node becomes one of the newest version, or what that stands for.
  void change(ir::Node& node, const schema::Signature* bound, const infer::Binding& newest,
              int64_t opset, const Imports& imports, infer::Scope& scope, int depth,
              std::vector<ir::Node>& out) {
    if (node.domain == "ai.onnx") node.domain.clear();
    for (ir::Attribute& attribute : node.attributes) {
      if (attribute.g) attribute.g = lower_subgraph(*attribute.g, imports, scope, depth);
      for (auto& graph : attribute.graphs) graph = lower_subgraph(*graph, imports, scope, depth);
    }
    if (bound == nullptr && options_.custom != nullptr)
      node.custom = options_.custom->bind(node.domain, node.op_type, opset);
    upgrade(std::move(node), bound, newest, scope, depth, out);
  }

  // What the nodes of one operator mean in one version of its domain.
  struct Meaning {
    int64_t version;                  // of the domain; 0: it is not imported
    const schema::Signature* bound;   // null where the version has no such operator
    const schema::Signature* newest;  // null where nobody knows it
    const ops::Operator* op;          // null where there is no code for it
    // Of nodes that mean what the newest version does and is what there is a kernel for, as long as
    // they have no graphs; null: they have to change.
    const ops::Operator* as_is;
  };

  Meaning meaning_of(const ir::Node& node, const Imports& imports) {
    const int64_t version = ir::imported_version(imports, node.domain);
    const uint32_t* at = meaning_at_.find(node.op_type);
    if (at != nullptr && meanings_[*at].version == version &&
        meanings_[*at].newest->domain == node.domain)
      return meanings_[*at];
    const Meaning meaning = find_meaning(node, version);
    // Kept by a name that outlives the node. Operators of one name in several domains are rare.
    if (meaning.newest == nullptr || meaning.newest->domain != node.domain) return meaning;
    if (at != nullptr) return meanings_[*at] = meaning;
    meaning_at_.emplace(meaning.newest->name, static_cast<uint32_t>(meanings_.size()));
    meanings_.push_back(meaning);
    return meaning;
  }

  Meaning find_meaning(const ir::Node& node, int64_t version) const {
    const auto versions = schema::versions(node.domain, node.op_type);
    Meaning meaning{};
    meaning.version = version;
    meaning.bound = schema::bound_version(versions, version);
    if (versions.empty()) return meaning;
    meaning.newest = &versions.back();
    meaning.op = ops::find_operator(node.domain, node.op_type);
    if (node.domain == "ai.onnx") return meaning;
    const int32_t latest = schema::latest_opset(node.domain);
    if (meaning.bound != nullptr && (latest == 0 || version <= latest))
      meaning.as_is = operator_as_is(meaning.op, meaning.bound, *meaning.newest);
    return meaning;
  }

  const ir::Function* called_by(const ir::Node& node) const {
    if (functions_.empty()) return nullptr;
    const auto called =
        functions_.find({ir::canonical_domain(node.domain), node.op_type, node.overload});
    return called == functions_.end() ? nullptr : called->second;
  }

  // Where inference alone is wanted, only nodes with graphs are: those are inferred by their
  // lowered forms.
  bool keeps_nodes(const infer::Scope& scope) const {
    return options_.keep_nodes || has_gradients_ || &scope != main_scope_;
  }
  bool keeps(const ir::Node& node, const infer::Scope& scope) const {
    return keeps_nodes(scope) || has_graphs(node);
  }

  const ops::Operator* operator_as_is(const ops::Operator* op, const schema::Signature* bound,
                                      const schema::Signature& newest) const {
    const bool as_is =
        op != nullptr && !must_upgrade(bound, newest, op) &&
        (!options_.expand_bodies || (op->prepare != nullptr && !options_.prefer_function_bodies));
    return as_is ? op : nullptr;
  }

  static bool must_upgrade(const schema::Signature* bound, const schema::Signature& newest,
                           const ops::Operator* op) {
    if (bound == nullptr || op == nullptr || op->upgrade == nullptr) return false;
    const bool older = bound->since < std::min(newest.since, op->same_since) || newest.deprecated ||
                       newest.until > 0;
    return older || (bound->extra && op->prepare == nullptr &&
                     bound->function == schema::FunctionKind::contextual);
  }

  std::shared_ptr<const ir::Graph> lower_subgraph(const ir::Graph& graph, const Imports& imports,
                                                  const infer::Scope& outer, int depth) {
    auto lowered = std::make_shared<ir::Graph>(interface_of(graph));
    // Up to IR version 3 constants stand among the inputs, too, after those the operator gives.
    if (model_.ir_version.value_or(4) < 4) {
      std::erase_if(lowered->inputs, [&](const ir::ValueInfo& input) {
        return std::ranges::find(graph.initializers, input.name, &ir::TensorProto::name) !=
               graph.initializers.end();
      });
    }
    infer::Scope scope(&outer);
    ir::Graph* around = std::exchange(inside_, lowered.get());
    within(*lowered, scope, [&] { lower_nodes(graph, *lowered, imports, scope, depth + 1); });
    inside_ = around;
    return lowered;
  }

  static bool is_known(const ir::Node& node, int64_t version, const schema::Signature* bound) {
    const std::string_view domain = ir::canonical_domain(node.domain);
    if (version <= 0 || !schema::is_standard_domain(domain)) return version > 0;
    return bound != nullptr && version <= schema::latest_opset(domain);
  }

  int64_t opset_of(const ir::Node& node, int64_t version) const {
    const int32_t newest = schema::latest_opset(node.domain);
    if (newest > 0 && version > newest) {
      fail_at(
          ir::place_of(node), ErrorCode::unsupported,
          "the model imports opset {} of {}; the newest that this version of Sardonyx knows is {}",
          version, node.domain.empty() ? "ai.onnx" : node.domain, newest);
    }
    if (version > 0) return version;
    fail_at(ir::place_of(node), ErrorCode::invalid_model,
            "the node's domain '{}' is not imported; add it to opset_import with the version the "
            "node was written for",
            node.domain.empty() ? "ai.onnx" : node.domain);
  }

  [[noreturn]] void unknown_operator(const ir::Node& node, int64_t opset) const {
    const auto versions = schema::versions(node.domain, node.op_type);
    if (!versions.empty() && versions.front().since > opset) {
      fail_at(ir::place_of(node), ErrorCode::invalid_model,
              "operator {} exists from opset {} on; the model imports opset {} of its domain",
              node.op_type, versions.front().since, opset);
    }
    if (!versions.empty()) {
      fail_at(ir::place_of(node), ErrorCode::unsupported,
              "operator {} is not in opset {}, which the model imports", node.op_type, opset);
    }
    const std::string_view close = schema::closest_name(node.domain, node.op_type);
    fail_at(ir::place_of(node), ErrorCode::unsupported, "no operator or function has this name{}",
            close.empty() ? std::string() : fmt::format("; did you mean {}?", close));
  }

  // Upgrade rules rely on the inputs and outputs that a node of its version must have.
  static void require_signature(const ir::Node& node, const schema::Signature& bound) {
    const auto check = [&](const std::vector<std::string>& names, int32_t least, int32_t most,
                           std::string_view what) {
      size_t count = names.size();
      while (count > 0 && names[count - 1].empty()) --count;
      if (count >= static_cast<size_t>(least) && count <= static_cast<size_t>(most)) return;
      fail_at(ir::place_of(node), ErrorCode::invalid_model,
              "version {} of {} has {} to {} {}s; the node has {}", bound.since, node.op_type,
              least, most, what, count);
    };
    check(node.inputs, bound.min_inputs, bound.max_inputs, "input");
    check(node.outputs, bound.min_outputs, bound.max_outputs, "output");
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const schema::Formal* formal = bound.input(i);
      if (!node.inputs[i].empty() || !formal || formal->option == schema::FormalOption::optional)
        continue;
      fail_at(ir::place_of(node), ErrorCode::invalid_model, "input {} '{}' is required and absent",
              i, formal->name);
    }
  }

  // To the newest version; then to the body where there is no kernel.
  void upgrade(ir::Node&& node, const schema::Signature* bound, const infer::Binding& newest,
               infer::Scope& scope, int depth, std::vector<ir::Node>& out) {
    const ops::Operator* op = newest.op;
    if (newest.signature == nullptr || !must_upgrade(bound, *newest.signature, op))
      return emit(std::move(node), newest, scope, depth, out);
    require_signature(node, *bound);
    services_.known = [&](std::string_view name) {
      catch_up(pending_);
      return scope.find(name);
    };
    const std::string made = node.name.empty() && !node.outputs.empty() ? node.outputs[0] : "";
    ops::UpgradeContext context(node, bound->since, bound, services_);
    op->upgrade(context);
    // Where no nodes are kept, a constant that an upgrade makes is as good as an initializer.
    if (!keeps_nodes(scope)) {
      for (auto& constant : context.take_constants())
        scope.set(constant.name, std::move(constant.value));
    }
    // The node as the model has it.
    const auto source = [&] {
      ir::Node old;
      old.domain = bound->domain, old.op_type = bound->name;
      old.name = node.name, old.outputs = {made}, old.origin = node.origin;
      ir::keep_source(old);
      return old.sources;
    };
    std::vector<ir::Node> before = context.take_before(), after = context.take_after();
    for (auto* helpers : {&before, &after}) {
      for (ir::Node& helper : *helpers) {
        helper.origin = fmt::format("from {}-{}{}{}", bound->name, bound->since,
                                    node.origin.empty() ? "" : " ", node.origin);
        if (helper.name.empty()) helper.name = node.name;
        if (helper.op_type != "Constant") helper.sources = source();
      }
    }
    if (node.op_type != bound->name || ir::canonical_domain(node.domain) != bound->domain)
      node.sources = source();
    for (ir::Node& helper : before) emit(std::move(helper), scope, depth, out);
    if (!context.dropped()) {
      const bool same = node.op_type == op->name && node.domain == op->domain;
      emit(std::move(node), same ? newest : newest_of(node), scope, depth, out);
    }
    for (ir::Node& helper : after) emit(std::move(helper), scope, depth, out);
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
    const bool has_kernel = op != nullptr && op->prepare != nullptr;
    if (options_.expand_bodies && (!has_kernel || options_.prefer_function_bodies)) {
      if (const ir::Function* body = standard_body(node))
        return inline_call(*body, node, scope, depth, out);
    }
    place(node, &node, op != nullptr ? &newest : nullptr, scope, out);
  }

  // `ours`: as for lower_node; `binding`: null where it has not been looked up.
  void place(const ir::Node& node, ir::Node* ours, const infer::Binding* binding,
             infer::Scope& scope, std::vector<ir::Node>& out) {
    if (&scope != main_scope_) {
      if (has_gradients_) infer_into(node, scope);
    } else if (binding != nullptr) {
      main_walk_->step(node, *binding);
    } else {
      main_walk_->step(node);
    }
    keep(node, ours, scope, out);
  }

  void keep(const ir::Node& node, ir::Node* ours, const infer::Scope& scope,
            std::vector<ir::Node>& out) const {
    if (!keeps(node, scope)) return;
    if (ours != nullptr) {
      out.push_back(std::move(*ours));
    } else {
      out.push_back(node);
    }
  }

  const ir::Function* standard_body(const ir::Node& node) {
    const schema::FunctionText* text = schema::function_text(node.domain, node.op_type);
    if (text == nullptr) return nullptr;
    auto& parsed = bodies_[{text->domain, text->name}];
    if (!parsed) parsed = std::make_unique<ir::Function>(wire::parse_function(text->text));
    return parsed.get();
  }

  void inline_call(const ir::Function& function, const ir::Node& call, infer::Scope& scope,
                   int depth, std::vector<ir::Node>& out, Renamed* names = nullptr) {
    const Adding adding(*this);
    // What every call walks over besides nodes costs, too.
    charge((function.inputs.size() + function.outputs.size() + function.value_info.size()) / 8,
           call);
    const Spare nodes(spare_lists_);
    instantiate(function, call, services_.fresh_name, names, *nodes);
    if (names) declare(function, *names, &scope == main_scope_);
    for (ir::Node& node : *nodes)
      lower_node(node, &node, function.opset_imports, scope, depth + 1, out);
  }

  // What a function declares of its values holds for all calls, so that the names of sizes in it
  // say nothing.
  void declare(const ir::Function& function, const Renamed& names, bool in_main) {
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

  void infer_into(const ir::Node& node, infer::Scope& scope) {
    std::vector<infer::Known> outputs;
    try {
      std::vector<const infer::Known*> inputs;
      for (const std::string& name : node.inputs)
        inputs.push_back(name.empty() ? nullptr : scope.find(name));
      const ops::InferSubgraph subgraph =
          has_graphs(node) ? infer::subgraphs_of(scope, findings_) : ops::InferSubgraph();
      outputs = infer::infer_node(node, infer::bind_node(node), inputs, findings_, &subgraph);
    } catch (const Error&) {
      return;  // unknown here; reported later with all that is known then
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (!node.outputs[i].empty()) scope.set(node.outputs[i], std::move(outputs[i]));
    }
  }

  const ir::Model& model_;
  const LowerOptions& options_;
  ir::NodeSource* const source_;  // of the main graph's nodes; null: the model has them
  std::map<FunctionKey, const ir::Function*> functions_;
  std::map<std::pair<std::string_view, std::string_view>, std::unique_ptr<ir::Function>> bodies_;
  std::unordered_set<std::string> names_;  // the model's, see collect_names
  bool has_gradients_ = false;
  uint64_t counter_ = 0;
  int adding_ = 0;  // calls and gradients under way
  int64_t added_ = 0;
  ir::SymbolTable symbols_;
  infer::Findings findings_;
  // Where the main graph's values are inferred for good; null: types only serve the upgrade rules.
  infer::Scope* main_scope_ = nullptr;
  infer::Walk* main_walk_ = nullptr;
  ir::Graph* inside_ = nullptr;   // the lowered subgraph at hand; null: the main graph
  Pending* pending_ = nullptr;    // what is inferred later, innermost; null: nothing
  NameMap<uint32_t> meaning_at_;  // by the operator's name, in meanings_
  std::vector<Meaning> meanings_;
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

ir::Graph interface_of(const ir::Graph& graph) {
  ir::Graph made;
  made.name = graph.name;
  made.inputs = graph.inputs;
  made.outputs = graph.outputs;
  made.value_info = graph.value_info;
  made.initializers = graph.initializers;
  made.sparse_initializers = graph.sparse_initializers;
  made.doc_string = graph.doc_string;
  made.quantization_annotation = graph.quantization_annotation;
  made.metadata_props = graph.metadata_props;
  made.unknown = graph.unknown;
  return made;
}

std::vector<InlinedCall> lower_and_infer(const ir::Model& model, ir::NodeSource* nodes,
                                         ir::Graph& graph, const LowerOptions& options,
                                         const infer::Findings& findings, infer::Scope& scope) {
  if (!model.graph) fail_at(model.path, ErrorCode::invalid_model, "the model has no graph");
  return Lowering(model, options, nodes).run(graph, findings, scope);
}

}  // namespace sardonyx::rewrite
