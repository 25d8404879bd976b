// Lowering of subgraphs: what upgrades learn of values inside them, and which ones stay as they
// are.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lower/lower.h"
#include "schema/schema.h"
#include "wire/text_parse.h"

namespace sardonyx {
namespace {

const ir::Graph& branch(const ir::Graph& graph, std::string_view name) {
  const auto holder = std::ranges::find(graph.nodes, "If", &ir::Node::op_type);
  return *holder->find(name)->g;
}

bool has(const ir::Graph& graph, std::string_view op) {
  return std::ranges::find(graph.nodes, op, &ir::Node::op_type) != graph.nodes.end();
}

// Up to opset 6 a shape could be aligned to an axis: one Unsqueeze where the ranks are known, a
// computed shape where they are not. They follow from nodes of the graph and of the one around it.
TEST(Lowering, UpgradesKnowWhatValuesInsideAndAroundASubgraphAre) {
  const ir::Model model = wire::parse_model(R"(
      <ir_version: 4, opset_import: ["" : 6]>
      g (bool c, float[2, 3, 4] x, float[3] b) => (y) {
        y = If (c) <
          then_branch = outer () => (r) {
            h = Relu (x)
            r = If (c) <
              then_branch = inner () => (q) {
                k = Relu (h)
                q = Add <broadcast = 1, axis = 1> (k, b)
              },
              else_branch = other () => (p) { p = Relu (h) }
            >
          },
          else_branch = last () => (s) { s = Relu (x) }
        >
      })");
  const ir::Graph lowered = lower::lower(model);
  const ir::Graph& inner = branch(branch(lowered, "then_branch"), "then_branch");
  EXPECT_TRUE(has(inner, "Unsqueeze"));
  EXPECT_FALSE(has(inner, "Shape"));
}

ir::Model of_newest_opset(std::string_view body) {
  return wire::parse_model(fmt::format(
      R"(<ir_version: 13, opset_import: ["" : {}, "own" : 1]>
         g (bool c, float[2] x) => (y) {{
           y = If (c) <then_branch = t () => (r) {{ {} }}, else_branch = e () => (s) {{ s = Abs (x) }}>
         }}
         <domain: "own", opset_import: ["" : {}]> Twice (a) => (b) {{ b = Add (a, a) }})",
      schema::latest_opset(""), body, schema::latest_opset("")));
}

TEST(Lowering, SharesSubgraphsThatStayAsTheyAre) {
  const ir::Model model = of_newest_opset("r = Relu (x)");
  const ir::Graph lowered = lower::lower(model);
  EXPECT_EQ(&branch(lowered, "then_branch"), &branch(*model.graph, "then_branch"));
  EXPECT_EQ(&branch(lowered, "else_branch"), &branch(*model.graph, "else_branch"));
}

TEST(Lowering, InlinesCallsInsideSubgraphs) {
  const ir::Model model = of_newest_opset("r = own.Twice (x)");
  const ir::Graph lowered = lower::lower(model);
  EXPECT_FALSE(has(branch(lowered, "then_branch"), "Twice"));
  EXPECT_TRUE(has(branch(lowered, "then_branch"), "Add"));
}

// Of one name, in the standard's domain, in another that nobody knows and in functions with other
// imports.
TEST(Lowering, OperatorsOfOneNameAreToldApart) {
  const ir::Model model = wire::parse_model(R"(
      <ir_version: 10, opset_import: ["" : 11, "own" : 1, "other" : 1]>
      g (float[2, 3, 4] x) => (y) {
        a = Softmax (x)
        b = other.Softmax (a)
        c = Softmax (b)
        d = own.New (c)
        e = ai.onnx.Softmax (d)
        f = own.New (e)
        y = Softmax (f)
      }
      <domain: "own", opset_import: ["" : 13]> New (a) => (b) { b = Softmax (a) })");
  const ir::Graph lowered = lower::lower(model, {.keep_unknown = true});
  int softmax = 0, reshapes = 0, unknown = 0;
  for (const ir::Node& node : lowered.nodes) {
    softmax += node.op_type == "Softmax" && node.domain.empty();
    unknown += node.op_type == "Softmax" && node.domain == "other";
    reshapes += node.op_type == "Flatten" || node.op_type == "Reshape";
  }
  EXPECT_EQ(softmax, 6);
  EXPECT_EQ(unknown, 1);
  EXPECT_EQ(reshapes, 4 * 2);  // up to opset 12 Softmax was one of a matrix
}

std::vector<ir::Node> nodes_in_a_row(std::string_view op, std::string_view domain, int count) {
  std::vector<ir::Node> nodes(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    ir::Node& node = nodes[static_cast<size_t>(i)];
    node.op_type = op;
    node.domain = domain;
    node.inputs = {i == 0 ? "x" : fmt::format("v{}", i - 1)};
    node.outputs = {fmt::format("v{}", i)};
  }
  return nodes;
}

// What functions add has a bound; the nodes of a file have none but its size, wherever they are.
TEST(Lowering, NodesOfTheFileAreNotWhatFunctionsAdd) {
  constexpr int many = 300'000;
  ir::Model model = of_newest_opset("r = own.Twice (x)");
  auto inside = std::make_shared<ir::Graph>(branch(*model.graph, "else_branch"));
  for (ir::Node& node : nodes_in_a_row("Relu", "", many)) inside->nodes.push_back(std::move(node));
  inside->nodes.push_back(branch(*model.graph, "then_branch").nodes.front());
  inside->nodes.back().outputs = {"last"};
  std::vector<ir::Node>& nodes = model.graph->nodes;
  for (ir::Attribute& attribute : nodes.front().attributes) {
    if (attribute.name == "else_branch") attribute.g = inside;
  }
  for (ir::Node& node : nodes_in_a_row("Relu", "", many)) nodes.push_back(std::move(node));
  const ir::Graph lowered = lower::lower(model);
  EXPECT_EQ(lowered.nodes.size(), many + 1u);
  EXPECT_EQ(branch(lowered, "else_branch").nodes.size(), many + 2u);
}

TEST(Lowering, FunctionsMayNotAddTooMuch) {
  const auto refusal = [](const ir::Model& model) {
    try {
      lower::lower(model);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string_view reason = "functions and gradients add more than 250000 nodes";
  ir::Model model = of_newest_opset("r = own.Twice (x)");
  model.graph->nodes = nodes_in_a_row("Twice", "own", 200'000);
  EXPECT_EQ(refusal(model), "");
  model.graph->nodes = nodes_in_a_row("Twice", "own", 300'000);
  EXPECT_NE(refusal(model).find(reason), std::string::npos);
}

}  // namespace
}  // namespace sardonyx
