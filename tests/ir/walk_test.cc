#include "ir/walk.h"

#include <gtest/gtest.h>

namespace sardonyx::ir {
namespace {

Node node(std::string op_type, std::string name = {}) {
  Node result;
  result.op_type = std::move(op_type);
  result.name = std::move(name);
  return result;
}

Attribute holding(std::string name, Graph graph) {
  Attribute attribute;
  attribute.name = std::move(name);
  attribute.kind = AttributeKind::graph;
  attribute.g = std::make_shared<Graph>(std::move(graph));
  return attribute;
}

Graph graph_of(std::string name, std::vector<Node> nodes) {
  Graph graph;
  graph.name = std::move(name);
  graph.nodes = std::move(nodes);
  return graph;
}

// If { then: A [If { then: B }]  else: C } D, a function with E, a training graph with F.
Model sample() {
  Model model;
  Node inner = node("If", "inner");
  inner.attributes.push_back(holding("then_branch", graph_of("deep", {node("B")})));
  Node outer = node("If", "outer");
  outer.attributes.push_back(holding("then_branch", graph_of("yes", {node("A"), inner})));
  Attribute list;
  list.name = "more";
  list.graphs = {std::make_shared<Graph>(graph_of("no", {node("C")}))};
  outer.attributes.push_back(list);
  model.graph = graph_of("main", {outer, node("D")});
  Function function;
  function.domain = "custom";
  function.name = "F";
  function.nodes = {node("E")};
  model.functions = {function};
  model.training_info.resize(1);
  model.training_info[0].algorithm = graph_of("train", {node("G")});
  return model;
}

TEST(Walk, VisitsEverythingInOrder) {
  std::string trace;
  walk(
      sample(),
      {.enter =
           [&](const WalkPlace& place) { return trace += "(" + std::to_string(place.depth), true; },
       .leave = [&](const WalkPlace&) { trace += ")"; },
       .node = [&](const WalkPlace&, const Node& node,
                   size_t index) { trace += " " + node.op_type + std::to_string(index); }});
  EXPECT_EQ(trace, "(0 If0(1 A0 If1(2 B0))(1 C0) D1)(0 E0)(0 G0)");
}

TEST(Walk, PathsSayTheWay) {
  std::vector<std::string> paths;
  walk(sample(),
       {.enter = [&](const WalkPlace& place) { return paths.push_back(place.path()), true; }});
  EXPECT_EQ(paths, (std::vector<std::string>{
                       "graph 'main'", "graph 'main', node 0 If 'outer', then_branch 'yes'",
                       "graph 'main', node 0 If 'outer', then_branch 'yes', node 1 If 'inner', "
                       "then_branch 'deep'",
                       "graph 'main', node 0 If 'outer', more[0] 'no'", "function 'custom.F'",
                       "training_info[0].algorithm 'train'"}));
}

TEST(Walk, EnterMaySkip) {
  std::string trace;
  walk(sample(),
       {.enter = [](const WalkPlace& place) { return place.depth == 0; },
        .node = [&](const WalkPlace&, const Node& node, size_t) { trace += node.op_type + " "; }});
  EXPECT_EQ(trace, "If D E G ");
}

TEST(Walk, DeepNestingTakesNoStack) {
  constexpr int depth = 50000;
  auto graph = std::make_shared<Graph>(graph_of("g", {node("Leaf")}));
  for (int i = 0; i < depth; ++i) {
    auto outer = std::make_shared<Graph>(graph_of("g", {node("If")}));
    Attribute attribute;
    attribute.g = graph;
    outer->nodes[0].attributes.push_back(attribute);
    graph = outer;
  }
  int nodes = 0;
  walk(*graph, {.node = [&](const WalkPlace&, const Node&, size_t) { ++nodes; }});
  EXPECT_EQ(nodes, depth + 1);
  std::shared_ptr<const Graph> rest = std::move(graph);
  while (!rest->nodes[0].attributes.empty()) {  // a destructor would recurse
    std::shared_ptr<const Graph> inner = rest->nodes[0].attributes[0].g;
    rest = std::move(inner);
  }
}

TEST(Walk, MutableCopiesWhatIsShared) {
  Model model = sample();
  const Model before = model;  // shares the sub-graphs
  walk_mutable(model, [](std::vector<Node>& nodes) {
    for (Node& node : nodes) node.name = "seen";
  });
  int seen = 0, touched = 0;
  walk(model,
       {.node = [&](const WalkPlace&, const Node& node, size_t) { seen += node.name == "seen"; }});
  walk(before, {.node = [&](const WalkPlace&, const Node& node, size_t) {
         touched += node.name == "seen";
       }});
  EXPECT_EQ(seen, 8);
  EXPECT_EQ(touched, 0);
}

}  // namespace
}  // namespace sardonyx::ir
