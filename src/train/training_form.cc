// BatchNormalization and Dropout in their training form, and products of half precision, beside the
// main graph's own.
#include <algorithm>
#include <optional>
#include <utility>

#include "ir/tensor.h"
#include "ir/walk.h"
#include "ops/upgrade_context.h"
#include "train/draft.h"

namespace sardonyx::train {
namespace {

using Copies = std::map<std::string, std::string>;

bool is_standard(const ir::Node& node, std::string_view op) {
  return node.op_type == op && ir::canonical_domain(node.domain).empty();
}

bool normalizes_for_inference(const ir::Node& node) {
  const ir::Attribute* mode = node.find("training_mode");
  return is_standard(node, "BatchNormalization") && (mode == nullptr || mode->i.value_or(0) == 0);
}

// Whether the node normalises with statistics that training should gather. Where its scale and
// shift are frozen, so are they.
bool trains_statistics(const ir::Node& node, const ir::Graph& main,
                       const std::set<std::string>& trained, const TrainableOptions& options) {
  if (!normalizes_for_inference(node) || node.inputs.size() != 5) return false;
  if (!trained.contains(node.inputs[1]) && !trained.contains(node.inputs[2])) return false;
  const auto is_initializer = [&](const std::string& name) {
    return !fits_any(options.freeze, name) &&
           std::ranges::find(main.initializers, name, &ir::TensorProto::name) !=
               main.initializers.end();
  };
  return is_initializer(node.inputs[3]) && is_initializer(node.inputs[4]);
}

bool is_idle_dropout(const ir::Node& node) {
  return is_standard(node, "Dropout") && (node.inputs.size() < 3 || node.inputs[2].empty());
}

void replace(std::vector<std::string>& names, const Copies& copies) {
  for (std::string& name : names) {
    const auto copy = copies.find(name);
    if (copy != copies.end()) name = copy->second;
  }
}

// Products, whose operands may be of half precision.
bool is_product(const ir::Node& node) {
  return is_standard(node, "MatMul") || is_standard(node, "Gemm") || is_standard(node, "Conv") ||
         is_standard(node, "ConvTranspose");
}

// Outputs that nobody reads may be missing before it.
template <class T>
void insert(std::vector<T>& list, size_t at, T item) {
  if (list.size() < at) list.resize(at);
  list.insert(list.begin() + static_cast<ptrdiff_t>(at), std::move(item));
}

bool reads_copies(const ir::Node& node, const Copies& copies) {
  const auto is_copied = [&](const std::string& name) { return copies.contains(name); };
  bool reads = std::ranges::any_of(node.inputs, is_copied);
  for_each_inner(node, [&](const ir::Node& inner) {
    reads = reads || std::ranges::any_of(inner.inputs, is_copied);
  });
  return reads;
}

}  // namespace

bool has_training_form(const ir::Node& node, const TrainableOptions& options) {
  return normalizes_for_inference(node) || is_idle_dropout(node) ||
         (options.precision != Precision::float32 && is_product(node));
}

namespace {

// Casts to half precision of what products of a graph read; one for each value. What a graph
// around it makes is cast there: once, not in each iteration.
class HalfOperands {
 public:
  HalfOperands(ir::Graph& to, HalfOperands* outer, NamePool& names, const TrainableOptions& options)
      : to_(to),
        outer_(outer),
        names_(names),
        type_(options.precision == Precision::bfloat16  ? ElementType::bfloat16
              : options.precision == Precision::float16 ? ElementType::float16
                                                        : ElementType::undefined) {
    for (const ir::ValueInfo& input : to.inputs) defined_.insert(input.name);
    for (const ir::TensorProto& tensor : to.initializers) defined_.insert(tensor.name);
    for (const ir::SparseTensorProto& one : to.sparse_initializers)
      defined_.insert(one.values.name);
  }

  bool wants(const ir::Node& node) const {
    return type_ != ElementType::undefined && is_product(node);
  }
  void add(ir::Node node, bool multiplies) {
    defined_.insert(node.outputs.begin(), node.outputs.end());
    if (!multiplies) {
      to_.nodes.push_back(std::move(node));
      return;
    }
    for (std::string& input : node.inputs) {
      if (!input.empty()) input = half_of(input);
    }
    const std::string output = node.outputs[0];
    node.outputs[0] = names_.make(output + "_half");
    const std::string made = node.outputs[0];
    to_.nodes.push_back(std::move(node));
    cast(made, output, ElementType::float32);
  }

 private:
  std::string half_of(const std::string& value) {
    if (outer_ != nullptr && !defined_.contains(value)) return outer_->half_of(value);
    std::string& half = made_[value];
    if (half.empty()) {
      half = names_.make(value + "_half");
      cast(value, half, type_);
    }
    return half;
  }
  void cast(const std::string& from, const std::string& to, ElementType type) {
    ir::Node& node = to_.nodes.emplace_back();
    node.op_type = "Cast";
    node.inputs = {from}, node.outputs = {to};
    node.attributes = {ops::int_attribute("to", static_cast<int64_t>(type))};
  }

  ir::Graph& to_;
  HalfOperands* outer_;  // of the graph around it; null: there is none
  NamePool& names_;
  const ElementType type_;
  std::set<std::string> defined_;
  std::map<std::string, std::string> made_;
};

// Running statistics by the name of their state, and the value that each has in a graph so far.
using Newest = std::map<std::string, std::string>;

// Nodes once more, in the form that training has for them. Graphs within a node are copied as a
// whole; their values keep their names, which no other graph around them has.
class TrainingForm {
 public:
  TrainingForm(const ir::Graph& main, ir::Graph& to, GraphBuilder& builder, NamePool& names,
               const std::set<std::string>& trained, const TrainableOptions& options)
      : main_(main),
        builder_(builder),
        names_(names),
        trained_(trained),
        options_(options),
        halves_(to, nullptr, names, options) {}

  void add(const ir::Node& node) {
    const Change change = change_of(node, true);
    if (!change.any() && !changes_within(node) && !reads_copies(node, copies_)) return;
    ir::Node copy = node;
    if (!copy.name.empty()) copy.name += "_training";
    replace(copy.inputs, copies_);
    for (std::string& output : copy.outputs) {
      if (output.empty()) continue;
      const std::string made = names_.make(output + "_training");
      copies_[output] = made;
      output = made;
    }
    finish(std::move(copy), change, halves_, newest_, true);
  }

  Copies take_copies() { return std::move(copies_); }
  // In the order of the states.
  std::vector<RunningStatistics> statistics() const {
    std::vector<RunningStatistics> all;
    for (const std::string& state : states_) all.push_back({state, newest_.at(state)});
    return all;
  }

 private:
  struct Change {
    bool normalizes = false, drops = false, multiplies = false;
    bool any() const { return normalizes || drops || multiplies; }
  };

  // `gathers`: statistics can leave the graph.
  Change change_of(const ir::Node& node, bool gathers) const {
    return {gathers && trains_statistics(node, main_, trained_, options_), is_idle_dropout(node),
            halves_.wants(node)};
  }
  bool changes_within(const ir::Node& node) const {
    bool changes = false;
    for_each_inner(
        node, [&](const ir::Node& inner) { changes = changes || change_of(inner, true).any(); });
    return changes;
  }

  void finish(ir::Node node, const Change& change, HalfOperands& to, Newest& newest, bool gathers) {
    if (ir::has_graphs(node)) change_graphs(node, to, newest, gathers);
    if (change.normalizes) {
      std::erase_if(node.attributes,
                    [](const ir::Attribute& one) { return one.name == "training_mode"; });
      node.attributes.push_back(ops::int_attribute("training_mode", 1));
      node.outputs.resize(1);
      for (const size_t input : {size_t{3}, size_t{4}})
        node.outputs.push_back(renew(newest, node.inputs[input]));
    }
    if (change.drops) {
      if (yes_.empty()) yes_ = builder_.truth(true);
      node.inputs.resize(3);
      node.inputs[2] = yes_;
      // The derivative needs to know what was kept.
      if (node.outputs.size() < 2) node.outputs.push_back(names_.make(node.outputs[0] + "_kept"));
    }
    to.add(std::move(node), change.multiplies);
  }

  // A name for the next value of a state; `read` becomes the one that it has.
  std::string renew(Newest& newest, std::string& read) {
    const std::string state = read;
    if (std::ranges::find(states_, state) == states_.end()) states_.push_back(state);
    const auto found = newest.find(state);
    if (found != newest.end()) read = found->second;
    return newest[state] = names_.make(state + "_next");
  }
  // The value of a state where it has not changed: the state itself.
  static std::string value_of(const Newest& newest, const std::string& state) {
    const auto found = newest.find(state);
    return found != newest.end() ? found->second : state;
  }

  // The states whose statistics nodes within `node` gather, in order.
  std::vector<std::string> gathered_within(const ir::Node& node) const {
    std::vector<std::string> states;
    for_each_inner(node, [&](const ir::Node& inner) {
      if (!trains_statistics(inner, main_, trained_, options_)) return;
      for (const size_t input : {size_t{3}, size_t{4}}) {
        if (std::ranges::find(states, inner.inputs[input]) == states.end())
          states.push_back(inner.inputs[input]);
      }
    });
    return states;
  }

  // The nodes of a graph within a node in their training form.
  void change(ir::Graph& graph, HalfOperands& outer, Newest& newest, bool gathers) {
    const std::vector<ir::Node> nodes = std::exchange(graph.nodes, {});
    HalfOperands to(graph, &outer, names_, options_);
    for (const ir::Node& node : nodes) {
      ir::Node copy = node;
      replace(copy.inputs, copies_);
      finish(std::move(copy), change_of(node, gathers), to, newest, gathers);
    }
  }

  // An output of a graph within a node: the value of a state at its end.
  ir::ValueInfo output_of(ir::Graph& graph, const Newest& newest, const std::string& state) {
    const std::string name = names_.make(state + "_next");
    ir::Node& node = graph.nodes.emplace_back();
    node.op_type = "Identity";
    node.inputs = {value_of(newest, state)}, node.outputs = {name};
    return described(state, name);
  }
  ir::ValueInfo described(const std::string& state, const std::string& name) const {
    const auto tensor = std::ranges::find(main_.initializers, state, &ir::TensorProto::name);
    return value_info(name, tensor->element_type(), tensor->dims);
  }

  // Statistics that are gathered within become outputs: of both branches of an If, and states of a
  // Loop or Scan. In graphs of other operators BatchNormalization keeps its form for inference.
  void change_graphs(ir::Node& node, HalfOperands& to, Newest& newest, bool gathers) {
    const std::optional<Iteration> iteration = iteration_of(node);
    gathers = gathers && (is_standard(node, "If") || iteration);
    std::vector<std::string> states;
    if (gathers) states = gathered_within(node);
    size_t results = iteration ? iteration->states : 0;
    ir::for_each_subgraph(node, [&](const ir::Graph& graph, const ir::Attribute&, int) {
      if (!iteration) results = graph.outputs.size();
    });
    const auto changed = [&](const ir::Graph& graph) {
      auto made = std::make_shared<ir::Graph>(graph);
      Newest inner = newest;
      for (size_t i = 0; iteration && i < states.size(); ++i) {
        const std::string name = inner[states[i]] = names_.make(states[i] + "_before");
        insert(made->inputs, iteration->inputs + iteration->states + i, described(states[i], name));
      }
      change(*made, to, inner, gathers);
      for (size_t i = 0; i < states.size(); ++i) {
        insert(made->outputs, (iteration ? iteration->outputs : 0) + results + i,
               output_of(*made, inner, states[i]));
      }
      return made;
    };
    for (ir::Attribute& attribute : node.attributes) {
      if (attribute.g) attribute.g = changed(*attribute.g);
      for (auto& graph : attribute.graphs)
        if (graph) graph = changed(*graph);
    }
    for (size_t i = 0; i < states.size(); ++i) {
      if (iteration)
        insert(node.inputs, iteration->inputs + iteration->states + i, value_of(newest, states[i]));
      newest[states[i]] = names_.make(states[i] + "_next");
      insert(node.outputs, results + i, newest[states[i]]);
    }
  }

  // Where the states of a Loop or Scan stand.
  struct Iteration {
    size_t inputs, outputs;  // of the body before the states
    size_t states;
  };
  static std::optional<Iteration> iteration_of(const ir::Node& node) {
    const ir::Attribute* body = node.find("body");
    if (body == nullptr || !body->g) return std::nullopt;
    const size_t inputs = body->g->inputs.size(), outputs = body->g->outputs.size();
    if (is_standard(node, "Loop") && inputs >= 2 && outputs >= inputs - 1)
      return Iteration{2, 1, inputs - 2};
    const ir::Attribute* scanned = node.find("num_scan_inputs");
    if (!is_standard(node, "Scan") || scanned == nullptr) return std::nullopt;
    const int64_t rows = scanned->i.value_or(0);
    if (rows < 1 || rows > static_cast<int64_t>(inputs)) return std::nullopt;
    const size_t states = inputs - static_cast<size_t>(rows);
    if (outputs < states) return std::nullopt;
    return Iteration{0, 0, states};
  }

  const ir::Graph& main_;
  GraphBuilder& builder_;
  NamePool& names_;
  const std::set<std::string>& trained_;
  const TrainableOptions& options_;
  HalfOperands halves_;
  Copies copies_;
  Newest newest_;
  std::vector<std::string> states_;  // that change, in order
  std::string yes_;                  // the constant true
};

}  // namespace

std::map<std::string, std::string> add_training_form(const ir::Graph& main,
                                                     const std::string& scores, ir::Graph& to,
                                                     GraphBuilder& builder, NamePool& names,
                                                     const std::set<std::string>& trained,
                                                     const TrainableOptions& options,
                                                     std::vector<RunningStatistics>& statistics) {
  TrainingForm form(main, to, builder, names, trained, options);
  for (const size_t index : nodes_behind(main, scores)) form.add(main.nodes[index]);
  statistics = form.statistics();
  return form.take_copies();
}

}  // namespace sardonyx::train
