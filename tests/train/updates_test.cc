// Updates of the state stand right behind their gradients.
#include "train/updates.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "wire/text_parse.h"

namespace sardonyx::test {
namespace {

ir::Graph graph_of(const std::string& nodes) {
  const std::string text =
      "<ir_version: 10, opset_import: [\"\": 21, \"ai.onnx.preview.training\": 1]>\n"
      "g (float[4] x, float r, float t, float[4] a, float[4] b, float[4] va, float[4] vb) => "
      "(float[4] a_new, float[4] b_new, float[4] va_new, float[4] vb_new, float y) {\n" +
      nodes + "}\n";
  return *wire::parse_model(text).graph;
}

// What nodes make first, in their order.
std::vector<std::string> order(const ir::Graph& graph) {
  std::vector<std::string> names;
  for (const ir::Node& node : graph.nodes) names.push_back(node.outputs.at(0));
  return names;
}

constexpr const char* momentum =
    "ai.onnx.preview.training.Momentum <alpha = 0.9, beta = 1.0, mode = \"standard\", "
    "norm_coefficient = 0.0>";

TEST(Updates, AreSplitByTensor) {
  ir::Graph graph = graph_of(
      "  ga = Neg (x)\n  gb = Exp (x)\n  a_new, b_new, va_new, vb_new = " + std::string(momentum) +
      " (r, t, a, b, ga, gb, va, vb)\n  y = ReduceSum (gb)\n");
  train::split_updates(graph);
  ASSERT_EQ(graph.nodes.size(), 5u);
  EXPECT_EQ(graph.nodes[2].inputs, (std::vector<std::string>{"r", "t", "a", "ga", "va"}));
  EXPECT_EQ(graph.nodes[2].outputs, (std::vector<std::string>{"a_new", "va_new"}));
  EXPECT_EQ(graph.nodes[3].inputs, (std::vector<std::string>{"r", "t", "b", "gb", "vb"}));
  EXPECT_EQ(graph.nodes[3].outputs, (std::vector<std::string>{"b_new", "vb_new"}));
  EXPECT_EQ(graph.nodes[3].attributes.size(), graph.nodes[2].attributes.size());
}

TEST(Updates, ListsThatDoNotFitStayTogether) {
  ir::Graph graph = graph_of("  ga = Neg (x)\n  a_new, va_new, b_new = " + std::string(momentum) +
                             " (r, t, a, b, ga, va, vb)\n");
  train::split_updates(graph);
  EXPECT_EQ(graph.nodes.size(), 2u);
}

// With the number of updates that they need, which nothing else needs so early; not before the last
// reader of a gradient, and not what frees nothing.
TEST(Updates, StandBehindTheirGradients) {
  ir::Graph graph = graph_of(
      "  ga = Neg (x)\n  gb = Exp (ga)\n  h = Tanh (gb)\n"
      "  y = ReduceSum (h)\n  u = Add (t, t)\n"
      "  a_new, va_new = " +
      std::string(momentum) +
      " (r, u, a, ga, va)\n"
      "  b_new, vb_new = " +
      std::string(momentum) + " (r, u, b, gb, vb)\n");
  train::hoist_updates(graph);
  EXPECT_EQ(order(graph), (std::vector<std::string>{"ga", "u", "a_new", "gb", "b_new", "h", "y"}));
}

// What one update has taken with it another one, whose gradient comes earlier, takes on.
TEST(Updates, WhatTwoNeedStandsBehindTheFirstGradient) {
  ir::Graph graph = graph_of(
      "  ga = Neg (x)\n  gb = Exp (x)\n  c = Greater (r, t)\n"
      "  p = If (c) <then_branch = tb () => (float v) { v = Neg (t) }, else_branch = eb () => "
      "(float w) { w = Identity (t) }>\n"
      "  u = Add (t, t)\n  a_new = Sum (ga, p, u)\n  b_new = Sum (gb, u)\n");
  train::hoist_updates(graph);
  EXPECT_EQ(order(graph), (std::vector<std::string>{"ga", "gb", "u", "b_new", "c", "p", "a_new"}));
}

// Graphs inside nodes read, too.
TEST(Updates, CapturedGradients) {
  const std::string gradient = "the_gradient_of_the_first_weight";
  ir::Graph graph =
      graph_of("  " + gradient +
               " = Neg (x)\n  c = Greater (r, t)\n"
               "  y = If (c) <then_branch = tb () => (float p) { p = ReduceSum <keepdims = 0> (" +
               gradient +
               ") }, else_branch = eb () => (float q) { q = Identity (t) }>\n"
               "  a_new, va_new = " +
               std::string(momentum) + " (r, t, a, " + gradient + ", va)\n");
  train::hoist_updates(graph);
  EXPECT_EQ(order(graph), (std::vector<std::string>{gradient, "a_new", "c", "y"}));
}

TEST(Updates, WhatDependsOnMuchStays) {
  std::string nodes = "  ga = Neg (x)\n  n0 = ReduceSum (ga)\n";
  for (int i = 0; i < 20; ++i)
    nodes += "  n" + std::to_string(i + 1) + " = Exp (n" + std::to_string(i) + ")\n";
  nodes += "  a_new, va_new = " + std::string(momentum) + " (n20, t, a, ga, va)\n";
  ir::Graph graph = graph_of(nodes);
  const std::vector<std::string> before = order(graph);
  train::hoist_updates(graph);
  EXPECT_EQ(order(graph), before);
}

TEST(Updates, DrawsKeepTheirOrder) {
  ir::Graph graph = graph_of(
      "  ga = Neg (x)\n  e = Exp (x)\n  n = RandomNormalLike (t)\n"
      "  a_new, va_new = " +
      std::string(momentum) + " (n, t, a, ga, va)\n");
  const std::vector<std::string> before = order(graph);
  train::hoist_updates(graph);
  EXPECT_EQ(order(graph), before);
}

}  // namespace
}  // namespace sardonyx::test
