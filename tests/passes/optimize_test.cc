// Folding, cleaning and fusing of graphs and of the bodies in them.
#include "passes/optimize.h"

#include <gtest/gtest.h>

#include "lower/lower.h"
#include "wire/text_parse.h"

namespace sardonyx {
namespace {

ir::Graph simplified(std::string_view graph, int64_t folding_memory = INT64_MAX) {
  const ir::Model model =
      wire::parse_model("<ir_version: 10, opset_import: [\"\" : 21]>\n" + std::string(graph));
  ir::Graph lowered = lower::lower(model);
  ThreadPool pool(1);
  passes::optimize(lowered, {.pool = &pool, .folding_memory = folding_memory});
  return lowered;
}

const ir::Node* node(const ir::Graph& graph, std::string_view op) {
  for (const ir::Node& n : graph.nodes) {
    if (n.op_type == op) return &n;
  }
  return nullptr;
}

TEST(Optimize, BodiesAreCleanedAndFused) {
  const ir::Graph graph = simplified(R"(g (bool c, float[N, 2] x) => (float[N, 2] y) {
    w = Constant<value = float[2, 2] {1, 2, 3, 4}>()
    b = Constant<value = float[2] {5, 6}>()
    dead = Exp(x)
    y = If(c) <then_branch = then () => (t) {
      unused = Log(x)
      m = MatMul(x, w)
      s = Add(m, b)
      t = Relu(s)
    }, else_branch = otherwise () => (e) {
      two = Constant<value = float {2.0}>()
      four = Mul(two, two)
      e = Mul(x, four)
    }>
  })");
  EXPECT_EQ(node(graph, "Exp"), nullptr);
  const ir::Node* branch = node(graph, "If");
  ASSERT_NE(branch, nullptr);
  const ir::Graph &then = *branch->find("then_branch")->g, &other = *branch->find("else_branch")->g;
  ASSERT_EQ(then.nodes.size(), 1u);  // the product with its bias and activation
  EXPECT_EQ(then.nodes[0].outputs[0], "t");
  EXPECT_EQ(then.outputs[0].name, "t");
  EXPECT_EQ(other.nodes.size(), 1u);
  ASSERT_EQ(other.initializers.size(), 1u);  // four; two was spent
  EXPECT_EQ(other.initializers[0].name, "four");
}

// The branch that an If always takes stands in its place, what it makes for itself by names of its
// own.
TEST(Optimize, AnIfOfAKnownConditionGivesWayToItsBranch) {
  const ir::Graph graph =
      simplified(R"(g (float[N, 2] x, bool c) => (float[N, 2] y, float[N, 2] z) {
    yes = Constant<value = bool {1}>()
    no = Constant<value = bool {0}>()
    a = If(yes) <then_branch = t1 () => (out) { inner = Cos(x)
      out = Sin(inner)
    }, else_branch = e1 () => (out) { out = MatMul(x, x) }>
    b = If(no) <then_branch = t2 () => (out) { out = Neg(x) },
      else_branch = e2 () => (out) { inner = Sin(a)
        out = If(yes) <then_branch = t3 () => (deep) { deep = Cos(inner) },
          else_branch = e3 () => (deep) { deep = Neg(inner) }>
      }>
    y = Tan(b)
    z = If(c) <then_branch = t4 () => (out) { out = Tan(x) },
      else_branch = e4 () => (out) { out = If(no) <then_branch = t5 () => (deep) { deep = Neg(a) },
        else_branch = e5 () => (deep) { deep = Cos(a) }> }>
  })");
  std::string ops;
  for (const ir::Node& n : graph.nodes) ops += n.op_type + " ";
  EXPECT_EQ(ops,
            "FusedElementwise FusedElementwise If ");  // the values that are used twice are seams
  const ir::Graph& other = *graph.nodes.back().find("else_branch")->g;
  ASSERT_EQ(other.nodes.size(), 1u);
  EXPECT_EQ(other.nodes[0].op_type, "Cos");
}

// The numbers of a random node are told by the name of its output.
TEST(Optimize, RandomNodesKeepTheirNamesInOpenedBranches) {
  const ir::Graph graph = simplified(R"(g (float[N, 2] x) => (y, z) {
    yes = Constant<value = bool {1}>()
    y = If(yes) <then_branch = t1 () => (noise) { noise = RandomNormalLike(x) },
      else_branch = e1 () => (e) { e = Neg(x) }>
    z = If(yes) <then_branch = t2 () => (noise) { noise = RandomNormalLike(x) },
      else_branch = e2 () => (e) { e = Neg(x) }>
  })");
  // Two of one name can't both stand in the graph.
  for (const ir::Node& n : graph.nodes) EXPECT_EQ(n.op_type, "If");
  const ir::Graph one = simplified(R"(g (float[N, 2] x) => (y) {
    yes = Constant<value = bool {1}>()
    y = If(yes) <then_branch = t1 () => (noise) { noise = RandomNormalLike(x) },
      else_branch = e1 () => (e) { e = Neg(x) }>
  })");
  ASSERT_EQ(one.nodes.size(), 2u);
  EXPECT_EQ(one.nodes[0].outputs[0], "noise");
}

TEST(Optimize, AnImpossibleBranchStaysForTheRunToRefuse) {
  const ir::Graph graph = simplified(R"(g (float[N, 2] x) => (y) {
    yes = Constant<value = bool {1}>()
    w = Constant<value = float[3] {1, 2, 3}>()
    y = If(yes) <then_branch = t1 () => (out) { out = Add(x, w) },
      else_branch = e1 () => (out) { out = Neg(x) }>
  })");
  EXPECT_NE(node(graph, "If"), nullptr);
}

TEST(Optimize, NodesThatDoNothingAreLeftOut) {
  const ir::Graph graph =
      simplified(R"(g (bool c, float[N, 2] x) => (float[N, 2] y, float[N, 2] z) {
    ratio = Constant<value = float {0.2}>()
    no = Constant<value = bool {0}>()
    a = Identity(x)
    b = Dropout(a, ratio)
    d = Dropout(b, ratio, no)
    e = Cast<to = 1>(d)
    y = If(c) <then_branch = then () => (t) { t = Exp(e) },
               else_branch = otherwise () => (o) { i = Identity(e) o = Log(i) }>
    z = Identity(e)
  })");
  ASSERT_EQ(graph.nodes.size(), 2u);
  const ir::Node* branch = node(graph, "If");
  ASSERT_NE(branch, nullptr);
  EXPECT_EQ(branch->find("then_branch")->g->nodes[0].inputs[0], "x");
  const ir::Graph& other = *branch->find("else_branch")->g;
  ASSERT_EQ(other.nodes.size(), 1u);
  EXPECT_EQ(other.nodes[0].inputs[0], "x");
  EXPECT_EQ(node(graph, "Identity")->inputs[0], "x");
}

// An Identity of a value without a rank would be evaluated plainly, and copy it.
TEST(Optimize, OutputsOfOpenRankAreMadeAtOnce) {
  const ir::Graph graph = simplified(R"(g (bool c, float[N, 2] x) => (y, z) {
    a, b = If(c) <then_branch = t () => (o, p) { o = Neg(x)
        p = Exp(x) },
      else_branch = e () => (o, p) { axis = Constant<value = int64[1] {0}>()
        o = Unsqueeze(x, axis)
        p = Log(x) }>
    u = Tan(a)
    y = Identity(a)
    z = If(c) <then_branch = t2 () => (o) { o = Add(a, b) }, else_branch = e2 () => (o) { o = Neg(u) }>
  })");
  ASSERT_EQ(graph.nodes.size(), 3u);
  EXPECT_EQ(graph.nodes[0].outputs, (std::vector<std::string>{"y", "b"}));
  EXPECT_EQ(graph.nodes[1].inputs[0], "y");
  EXPECT_EQ(graph.nodes[2].find("then_branch")->g->nodes[0].inputs[0], "y");
}

TEST(Optimize, DropoutStaysWhereItMayTrainOrGivesItsMask) {
  const ir::Graph graph =
      simplified(R"(g (bool train, float[N, 2] x) => (float[N, 2] y, bool[N, 2] mask) {
    ratio = Constant<value = float {0.2}>()
    yes = Constant<value = bool {1}>()
    a = Dropout(x, ratio, train)
    b = Dropout(a, ratio, yes)
    d, mask = Dropout(b)
    e = Cast<to = 7>(d)
    f = Cast<to = 1>(e)
    y = Exp(f)
  })");
  EXPECT_EQ(graph.nodes.size(), 6u);
}

TEST(Optimize, BodiesOfLoopsKeepTheirInputs) {
  const ir::Graph graph = simplified(R"(g (int64 n, float[2] x) => (float[2] y) {
    keep = Constant<value = bool {1}>()
    y = Loop(n, keep, x) <body = body (int64 i, bool go, state) => (go_on, next) {
      go_on = Identity(go)
      unused = Neg(state)
      next = Add(state, x)
    }>
  })");
  const ir::Graph& body = *node(graph, "Loop")->find("body")->g;
  EXPECT_EQ(body.inputs.size(), 3u);
  EXPECT_EQ(body.outputs.size(), 2u);
  EXPECT_EQ(node(body, "Neg"), nullptr);
  EXPECT_NE(node(body, "Add"), nullptr);
}

// x / root * (one + erf) * half of four elements, the numbers as constants "float[1] {0.5}".
bool is_gelu(const std::string& root, const std::string& one, const std::string& half) {
  const ir::Graph graph =
      simplified("g (float[4] x) => (y) {\n  root = Constant<value = " + root +
                 ">()\n  one = Constant<value = " + one + ">()\n  half = Constant<value = " + half +
                 ">()\n  d = Div(x, root)\n  e = Erf(d)\n  s = Add(e, one)\n"
                 "  p = Mul(x, s)\n  y = Mul(half, p)\n}");
  return node(graph, "Gelu") != nullptr;
}

// A number of more dimensions gives them to the result.
TEST(Optimize, GeluKeepsItsRank) {
  EXPECT_TRUE(is_gelu("float {1.4142135}", "float {1}", "float {0.5}"));
  EXPECT_TRUE(is_gelu("float[1] {1.4142135}", "float[1] {1}", "float[1] {0.5}"));
  EXPECT_FALSE(is_gelu("float[1, 1] {1.4142135}", "float {1}", "float {0.5}"));
  EXPECT_FALSE(is_gelu("float {1.4142135}", "float[1, 1] {1}", "float {0.5}"));
  EXPECT_FALSE(is_gelu("float {1.4142135}", "float {1}", "float[1, 1] {0.5}"));
}

// Every type of floats has 1 and 0.5; the root may have been rounded.
TEST(Optimize, GeluHasItsOwnNumbers) {
  EXPECT_TRUE(is_gelu("float {1.414}", "float {1}", "float {0.5}"));
  EXPECT_FALSE(is_gelu("float {1.4155}", "float {1}", "float {0.5}"));
  EXPECT_FALSE(is_gelu("float {1.4142135}", "float {1.0005}", "float {0.5}"));
  EXPECT_FALSE(is_gelu("float {1.4142135}", "float {1}", "float {0.4998}"));
}

TEST(Optimize, PartsOfASplitStayCounted) {
  for (const char* attributes : {"<num_outputs = 3>", ""}) {
    const ir::Graph graph = simplified("g (float[6] x) => (float[2] y) { y, b, c = Split " +
                                       std::string(attributes) + "(x) }");
    const ir::Node* split = node(graph, "Split");
    ASSERT_NE(split, nullptr);
    EXPECT_EQ(split->outputs, (std::vector<std::string>{"y", "", ""}));
  }
}

TEST(Optimize, ManyLargeFoldsDoNotStopIt) {
  // Each fold makes a quarter of what one node may take.
  std::string text =
      "g (float[1] x) => (float[1] y) {\n"
      "  big = Constant<value = int64[1] {65536}>()\n";
  std::string sum = "x";
  for (int i = 0; i < 80; ++i) {
    const std::string k = std::to_string(i);
    text += "  one" + k + " = Constant<value = float {1.0}>() e" + k + " = Expand(one" + k +
            ", big) s" + k + " = ReduceSum<keepdims = 0>(e" + k + ") y" + k + " = Add(" + sum +
            ", s" + k + ")\n";
    sum = "y" + k;
  }
  text += "  y = Identity(" + sum + ")\n}";
  const ir::Graph graph = simplified(text, 1 << 20);
  EXPECT_EQ(node(graph, "ReduceSum"), nullptr);
}

}  // namespace
}  // namespace sardonyx
