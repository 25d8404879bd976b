#include "ir/walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace sardonyx::ir {
namespace {

struct Subgraph {
  const Graph* graph;
  const Attribute* attribute;
  int list_index;
};

std::vector<Subgraph> subgraphs(const Node& node) {
  std::vector<Subgraph> found;
  for_each_subgraph(node, [&](const Graph& graph, const Attribute& attribute, int list_index) {
    found.push_back({&graph, &attribute, list_index});
  });
  return found;
}

// One graph or function body that the walk is in.
struct Frame {
  std::unique_ptr<WalkPlace> place;  // does not move when the stack grows
  const std::vector<Node>* nodes;
  size_t next_node = 0;
  std::vector<Subgraph> pending;  // of the node before next_node, last first
};

class Walk {
 public:
  explicit Walk(const WalkCallbacks& callbacks) : callbacks_(callbacks) {}

  void run(WalkPlace outermost) {
    push(std::make_unique<WalkPlace>(std::move(outermost)));
    while (!stack_.empty()) step();
  }

 private:
  void push(std::unique_ptr<WalkPlace> place) {
    if (callbacks_.enter && !callbacks_.enter(*place)) return;
    const std::vector<Node>& nodes = place->graph ? place->graph->nodes : place->function->nodes;
    stack_.push_back({std::move(place), &nodes, 0, {}});
  }

  void step() {
    Frame& top = stack_.back();
    if (!top.pending.empty()) {
      const Subgraph inner = top.pending.back();
      top.pending.pop_back();
      auto place = std::make_unique<WalkPlace>();
      place->outer = top.place.get();
      place->graph = inner.graph;
      place->function = top.place->function;
      place->holder_index = top.next_node - 1;
      place->holder = &(*top.nodes)[place->holder_index];
      place->attribute = inner.attribute;
      place->list_index = inner.list_index;
      place->depth = top.place->depth + 1;
      push(std::move(place));
    } else if (top.next_node < top.nodes->size()) {
      const size_t index = top.next_node++;
      const Node& node = (*top.nodes)[index];
      if (callbacks_.node) callbacks_.node(*top.place, node, index);
      if (!has_graphs(node)) return;
      top.pending = subgraphs(node);
      std::reverse(top.pending.begin(), top.pending.end());
    } else {
      if (callbacks_.leave) callbacks_.leave(*top.place);
      stack_.pop_back();
    }
  }

  const WalkCallbacks& callbacks_;
  std::vector<Frame> stack_;
};

WalkPlace outermost(const Graph& graph, std::string root) {
  WalkPlace place;
  place.graph = &graph;
  place.root = std::move(root);
  return place;
}

WalkPlace outermost(const Function& function) {
  WalkPlace place;
  place.function = &function;
  place.root = "function";
  return place;
}

// A copy of the graph for the attribute alone, to be changed.
Graph* own(std::shared_ptr<const Graph>& graph) {
  auto copy = std::make_shared<Graph>(*graph);
  Graph* result = copy.get();
  graph = std::move(copy);
  return result;
}

void change_all(std::vector<std::vector<Node>*> stack,
                const std::function<void(std::vector<Node>&)>& change) {
  while (!stack.empty()) {
    std::vector<Node>& nodes = *stack.back();
    stack.pop_back();
    change(nodes);
    for (Node& node : nodes) {
      for (Attribute& attribute : node.attributes) {
        if (attribute.g) stack.push_back(&own(attribute.g)->nodes);
        for (std::shared_ptr<const Graph>& graph : attribute.graphs) {
          if (graph) stack.push_back(&own(graph)->nodes);
        }
      }
    }
  }
}

}  // namespace

std::string WalkPlace::path() const {
  std::vector<const WalkPlace*> chain;
  for (const WalkPlace* place = this; place; place = place->outer) chain.push_back(place);
  std::string text;
  for (auto it = chain.rbegin(); it != chain.rend(); ++it) {
    const WalkPlace& place = **it;
    if (!place.outer) {
      text = place.root;
      if (place.graph) {
        text += fmt::format(" '{}'", place.graph->name);
      } else if (place.function) {
        const std::string_view domain = canonical_domain(place.function->domain);
        text += fmt::format(" '{}{}{}'", domain, domain.empty() ? "" : ".", place.function->name);
      }
    } else {
      text += fmt::format(", node {} {}, {}", place.holder_index, describe(*place.holder),
                          place.attribute->name);
      if (place.list_index >= 0) text += fmt::format("[{}]", place.list_index);
      text += fmt::format(" '{}'", place.graph->name);
    }
  }
  return text;
}

bool has_graphs(const Node& node) {
  return std::ranges::any_of(node.attributes, [](const Attribute& a) { return has_graphs(a); });
}

void for_each_subgraph(
    const Node& node,
    const std::function<void(const Graph&, const Attribute&, int list_index)>& visit) {
  for (const Attribute& attribute : node.attributes) {
    if (attribute.g) visit(*attribute.g, attribute, -1);
    for (size_t i = 0; i < attribute.graphs.size(); ++i) {
      if (attribute.graphs[i]) visit(*attribute.graphs[i], attribute, static_cast<int>(i));
    }
  }
}

void walk(const Model& model, const WalkCallbacks& callbacks) {
  if (model.graph) walk(*model.graph, callbacks);
  for (const Function& function : model.functions) walk(function, callbacks);
  for (size_t i = 0; i < model.training_info.size(); ++i) {
    const TrainingInfo& info = model.training_info[i];
    const auto training = [&](const std::optional<Graph>& graph, std::string_view name) {
      if (!graph) return;
      walk(*graph, fmt::format("training_info[{}].{}", i, name), callbacks);
    };
    training(info.initialization, "initialization");
    training(info.algorithm, "algorithm");
  }
}

void walk(const Graph& graph, const WalkCallbacks& callbacks) { walk(graph, "graph", callbacks); }

void walk(const Graph& graph, std::string_view root, const WalkCallbacks& callbacks) {
  Walk(callbacks).run(outermost(graph, std::string(root)));
}

void walk(const Function& function, const WalkCallbacks& callbacks) {
  Walk(callbacks).run(outermost(function));
}

void walk_mutable(Model& model, const std::function<void(std::vector<Node>&)>& change) {
  std::vector<std::vector<Node>*> stack;
  if (model.graph) stack.push_back(&model.graph->nodes);
  for (Function& function : model.functions) stack.push_back(&function.nodes);
  for (TrainingInfo& info : model.training_info) {
    if (info.initialization) stack.push_back(&info.initialization->nodes);
    if (info.algorithm) stack.push_back(&info.algorithm->nodes);
  }
  change_all(std::move(stack), change);
}

void walk_mutable(Graph& graph, const std::function<void(std::vector<Node>&)>& change) {
  change_all({&graph.nodes}, change);
}

}  // namespace sardonyx::ir
