// States that loops hand on as they came, and others that look so.
#include "passes/canonicalize/loop_invariants.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lower/lower.h"
#include "sardonyx/session.h"
#include "wire/text_parse.h"

namespace sardonyx {
namespace {

const std::string header = "<ir_version: 10, opset_import: [\"\" : 21]>\n";

struct Loop {
  size_t inputs = 0, body_inputs = 0, body_outputs = 0;
};

// The loop of a graph once its invariant states are gone.
Loop freed(const std::string& text) {
  ir::Graph graph = lower::lower(wire::parse_model(header + text));
  passes::hoist_loop_invariants(graph);
  for (const ir::Node& node : graph.nodes) {
    if (node.op_type != "Loop" && node.op_type != "Scan") continue;
    const ir::Graph& body = *node.find("body")->g;
    return {node.inputs.size(), body.inputs.size(), body.outputs.size()};
  }
  ADD_FAILURE() << "no loop";
  return {};
}

// Runs with a plan and without one; the outputs must be the same.
std::vector<std::vector<float>> outputs(const std::string& text, int64_t n) {
  const Model model = Model::from_text(header + text);
  const std::vector<NamedValue> inputs{{"n", Tensor::scalar<int64_t>(n)},
                                       {"x", Tensor::of<float>({1, 2}, {2})}};
  std::vector<std::vector<float>> made[2];
  for (const bool plain : {false, true}) {
    for (const Value& value : Session(model, {.threads = 1, .reference = plain}).run(inputs)) {
      const auto elements = value.tensor().elements<float>();
      made[plain].emplace_back(elements.begin(), elements.end());
    }
  }
  EXPECT_EQ(made[0], made[1]) << text;
  return made[0];
}

TEST(LoopInvariants, OfLoopsAreReadFromAround) {
  const std::string text =
      R"(g (int64 n, float[2] x) => (float[2] y, float[2] doubled, float[m] all) {
    keep = Constant<value = bool {1}>()
    w = Constant<value = float[2] {3, 4}>()
    y, after, all = Loop(n, keep, x, w) <body = body (int64 i, bool go, state, weight) => (go, next, handed, item) {
      next = Mul(state, weight)
      handed = Identity(weight)
      item = ReduceSum<keepdims = 0>(state)
    }>
    doubled = Add(after, after)
  })";
  const Loop loop = freed(text);
  EXPECT_EQ(loop.inputs, 3u);
  EXPECT_EQ(loop.body_inputs, 3u);
  EXPECT_EQ(loop.body_outputs, 3u);
  EXPECT_EQ(outputs(text, 2), (std::vector<std::vector<float>>{{9, 32}, {6, 8}, {3, 11}}));
  EXPECT_EQ(outputs(text, 0), (std::vector<std::vector<float>>{{1, 2}, {6, 8}, {}}));
}

TEST(LoopInvariants, OfScansAreReadFromAround) {
  const std::string text =
      R"(g (int64 n, float[2] x) => (float[2] y, float[2] doubled, float[3, 2] all) {
    slices = Constant<value = float[3, 2] {1, 2, 3, 4, 5, 6}>()
    w = Constant<value = float[2] {3, 4}>()
    after, y, all = Scan(w, x, slices) <num_scan_inputs = 1, body = body (weight, state, slice) => (weight, next, item) {
      scaled = Mul(slice, weight)
      next = Add(state, scaled)
      item = Identity(next)
    }>
    doubled = Add(after, after)
  })";
  const Loop loop = freed(text);
  EXPECT_EQ(loop.inputs, 2u);
  EXPECT_EQ(loop.body_inputs, 2u);
  EXPECT_EQ(loop.body_outputs, 2u);
  EXPECT_EQ(outputs(text, 0)[0], (std::vector<float>{1 + 27, 2 + 48}));
}

TEST(LoopInvariants, AreFoundInGraphsInsideTheBody) {
  const std::string text = R"(g (int64 n, float[2] x) => (float[2] y) {
    keep = Constant<value = bool {1}>()
    z, y = Loop(n, keep, x, x) <body = body (int64 i, bool go, fixed, state) => (go, fixed, next) {
      two = Constant<value = int64 {2}>()
      early = Less(i, two)
      next = If(early) <then_branch = then () => (t) { t = Add(state, fixed) },
                        else_branch = other () => (o) {
                          o = If(early) <then_branch = a () => (p) { p = Identity(state) },
                                         else_branch = b () => (q) { q = Mul(state, fixed) }>
                        }>
    }>
  })";
  EXPECT_EQ(freed(text).inputs, 3u);
  EXPECT_EQ(outputs(text, 3)[0], (std::vector<float>{3, 12}));
}

TEST(LoopInvariants, MayBeAllThereIs) {
  const std::string text = R"(g (int64 n, float[2] x) => (float[2] y) {
    keep = Constant<value = bool {1}>()
    z = Loop(n, keep, x) <body = body (int64 i, bool go, state) => (go, same) {
      same = Identity(state)
    }>
    y = Add(z, z)
  })";
  ir::Graph graph = lower::lower(wire::parse_model(header + text));
  passes::hoist_loop_invariants(graph);
  EXPECT_EQ(graph.nodes.size(), 2u);
  EXPECT_EQ(outputs(text, 2)[0], (std::vector<float>{2, 4}));
}

TEST(LoopInvariants, StayWhereTheyAreOutputs) {
  const std::string text = R"(g (int64 n, float[2] x) => (float[2] y) {
    keep = Constant<value = bool {1}>()
    y = Loop(n, keep, x) <body = body (int64 i, bool go, state) => (go, same) {
      same = Identity(state)
    }>
  })";
  EXPECT_EQ(freed(text).inputs, 3u);
  EXPECT_EQ(outputs(text, 2)[0], (std::vector<float>{1, 2}));
}

TEST(LoopInvariants, AreNotThoseThatTakeTurns) {
  const std::string text = R"(g (int64 n, float[2] x) => (float[2] a, float[2] b) {
    keep = Constant<value = bool {1}>()
    w = Constant<value = float[2] {3, 4}>()
    a, b = Loop(n, keep, x, w) <body = body (int64 i, bool go, p, q) => (go, q1, p1) {
      q1 = Identity(q)
      p1 = Identity(p)
    }>
  })";
  EXPECT_EQ(freed(text).inputs, 4u);
  EXPECT_EQ(outputs(text, 3), (std::vector<std::vector<float>>{{3, 4}, {1, 2}}));
}

TEST(LoopInvariants, StayWhereTheBodyUsesTheName) {
  const std::string text = R"(g (int64 n, float[2] x) => (float[2] y, float[2] z) {
    keep = Constant<value = bool {1}>()
    z, y = Loop(n, keep, x, x) <body = body (int64 i, bool go, fixed, state) => (go, fixed, next) {
      x = Add(state, fixed)
      next = Add(x, x)
    }>
  })";
  ir::Graph graph = *wire::parse_model(header + text).graph;  // a checked model has no such names
  passes::hoist_loop_invariants(graph);
  EXPECT_EQ(graph.nodes[1].inputs.size(), 4u);
}

}  // namespace
}  // namespace sardonyx
