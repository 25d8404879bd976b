// What inference says where it may learn from the graph and name what only the run knows.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "infer/infer.h"
#include "ir/dimension.h"
#include "wire/text_parse.h"

namespace sardonyx::infer {
namespace {

class Thorough {
 public:
  explicit Thorough(std::string_view text) : Thorough(wire::parse_graph(text)) {}
  explicit Thorough(ir::Graph graph) : graph_(std::move(graph)) {
    inference_.symbols = &symbols_;
    inference_.constraints = &constraints_;
    inference_.symbolic_values = true;
    inference_.unknowns = &unknowns;
    inference_.disagreement = [&](Disagreement found) {
      disagreements.push_back(std::move(found));
    };
    inference_.problem = [&](const ir::Node&, const Error& error) {
      problems.push_back(error.what());
    };
    ir::name_open_sizes(graph_);
    enter(graph_, scope_, inference_);
    infer_graph(graph_, scope_, inference_);
  }

  std::string shape(std::string_view name) const {
    const auto& shape = scope_.find(name)->type.shape;
    if (!shape) return "?";
    ir::Dims dims;
    for (const ir::Dim& dim : *shape) dims.push_back(symbols_.resolved(dim));
    return ir::to_string(dims);
  }
  // Of one of its sizes, which is an unknown.
  std::string bound(std::string_view name, size_t axis) const {
    const ir::Symbol* symbol = (*scope_.find(name)->type.shape)[axis].as_symbol();
    return symbol && symbol->upper ? symbols_.resolved(*symbol->upper).to_string() : "?";
  }
  std::string elements(std::string_view name) const {
    const auto& elements = scope_.find(name)->elements;
    return elements ? ir::to_string(*elements) : "?";
  }
  const ValueFacts& operator[](std::string_view name) const { return *scope_.find(name); }
  const Budget& budget() const { return *inference_.budget; }

  Unknowns unknowns;
  std::vector<Disagreement> disagreements;
  std::vector<std::string> problems;

 private:
  ir::Graph graph_;
  ir::SymbolTable symbols_;
  std::vector<Constraint> constraints_;
  InferenceContext inference_;
  Scope scope_;
};

TEST(SymbolicValues, SizesThatMustAgreeAreOne) {
  const Thorough g(R"(g (float[N, K] a, float[M, 64] b, float[L, 64] c) => (float[x, y] y) {
    y = MatMul (a, b)
    z = Concat <axis = 1> (y, c)
  })");
  EXPECT_EQ(g.shape("a"), "[N,K]");
  EXPECT_EQ(g.shape("y"), "[N,64]");
  EXPECT_EQ(g.shape("z"), "[N,128]");
}

// Files may say so, though the standard forbids it.
TEST(SymbolicValues, NodesWithoutOutputsLoseWhatTheyMake) {
  ir::Graph graph = wire::parse_graph(R"(g (float[n, 4] x) => (float[n, 4] y) {
    floats = Constant <value = float[2] {0.5, 2}> ()
    counts = Constant <value = int64[2] {1, 2}> ()
    a = Cast <to = 1> (counts)
    b = Cast <to = 11> (floats)
    c = CastLike (floats, counts)
    d = Add (floats, floats)
    e = Max (counts, counts)
    f = Neg (floats)
    g = Identity (counts)
    h = Squeeze (counts)
    i = Mul (counts, counts)
    j, k, l = LayerNormalization (x, x)
    y = Relu (x)
  })");
  for (ir::Node& node : graph.nodes) {
    if (node.op_type != "Constant" && node.op_type != "Relu") node.outputs.clear();
  }
  EXPECT_EQ(Thorough(std::move(graph)).shape("y"), "[n,4]");
}

TEST(SymbolicValues, UnknownElementsKeepTheirIdentity) {
  const Thorough g(R"(g (float[n, 4] x, int64[n] lengths) => (float[a] y) {
    longest = ReduceMax <keepdims = 0> (lengths)
    zero = Constant <value_int = 0> ()
    one = Constant <value_int = 1> ()
    first = Range (zero, longest, one)
    second = Range (zero, longest, one)
    both = Add (first, second)
    count = Unsqueeze (longest, axis)
    axis2 = Constant <value_ints = [0]> ()
  })");
  EXPECT_EQ(g.shape("first"), g.shape("second"));
  EXPECT_EQ(g.shape("both"), g.shape("first"));
  EXPECT_EQ(g.problems.size(), 1u);  // axis is not defined
}

TEST(SymbolicValues, OneUnknownElementDoesNotHideTheOthers) {
  const Thorough g(R"(g (float[batch, 6, 4] x, int64[1] groups) => (float[a] y) {
    shape = Shape (x)
    zero = Constant <value_ints = [0]> ()
    b = Gather (shape, zero)
    four = Constant <value_ints = [4]> ()
    target = Concat <axis = 0> (b, groups, four)
    y = Expand (x, target)
    z = ConstantOfShape (target)
  })");
  EXPECT_EQ(g.shape("z").substr(0, 7), "[batch,");
  EXPECT_EQ((*g["z"].type.shape)[2], ir::Dim(4));
}

TEST(SymbolicValues, ReshapeToAnUnknownElementIsNotTakenForASize) {
  // The element may be -1.
  const Thorough g(R"(g (float[8, 4] x, int64[1] rows) => (float[a, b] y) {
    four = Constant <value_ints = [4]> ()
    target = Concat <axis = 0> (rows, four)
    y = Reshape (x, target)
  })");
  ASSERT_EQ(g["y"].type.rank(), 2u);
  EXPECT_TRUE((*g["y"].type.shape)[0].lower().has_value());
  EXPECT_EQ((*g["y"].type.shape)[1], ir::Dim(4));
}

TEST(SymbolicValues, BelievesDeclarationsOnlyWhereItKnowsNothing) {
  const Thorough g(R"(g (float[n, 4] x) => (float[hits, 2] y)
      <float[n, 5] wrong, int64[2, found] indices, float[rows, 4] same, float[3, 4] fixed> {
    wrong = Relu (x)
    indices = NonZero (x)
    same = Relu (x)
    fixed = Relu (x)
    there = Transpose (indices)
    odd = Custom (x)
    y = Relu (odd)
  })");
  EXPECT_EQ(g.shape("wrong"), "[n,4]");
  EXPECT_EQ(g.shape("there"), "[found,2]");
  EXPECT_EQ(g.shape("fixed"), "[n,4]");
  EXPECT_EQ(g.shape("y"), "[hits,2]");
  ASSERT_EQ(g.disagreements.size(), 2u);
  EXPECT_EQ(g.disagreements[0].value, "wrong");
  EXPECT_TRUE(g.disagreements[0].contradiction);
  EXPECT_EQ(g.disagreements[0].declared, "float[n,5]");
  EXPECT_EQ(g.disagreements[0].inferred, "float[n,4]");
  EXPECT_EQ(g.disagreements[1].value, "fixed");
  EXPECT_FALSE(g.disagreements[1].contradiction);
}

TEST(SymbolicValues, SaysWhyASizeIsUnknown) {
  const Thorough g(R"(g (float[n] x, int64 k) => (float[a] y) {
    hits = NonZero (x)
  })");
  ASSERT_FALSE(g.unknowns.empty());
  const ir::Symbol* u = (*g["hits"].type.shape)[1].as_symbol();
  ASSERT_NE(u, nullptr);
  EXPECT_EQ(u->upper->to_string(), "n");
  EXPECT_EQ(g.unknowns.at(u->id)->node, "NonZero making 'hits'");
  EXPECT_EQ(g.unknowns.at(u->id)->reason, "its data decide");
}

TEST(SymbolicValues, SequencesKnowHowManyItemsTheyHold) {
  const Thorough g(R"(g (float[n, d] x, int64 at) => (float y) {
    empty = SequenceEmpty ()
    one = SequenceInsert (empty, x)
    two = SequenceInsert (one, x, at)
    length = SequenceLength (two)
    item = SequenceAt (two, at)
    stack = ConcatFromSequence <axis = 0, new_axis = 1> (two)
    rows = ConcatFromSequence <axis = 0> (two)
    less = SequenceErase (two, at)
    few = ConcatFromSequence <axis = 0> (less)
    parts = SplitToSequence <axis = 0> (x)
    whole = ConcatFromSequence <axis = 0> (parts)
    three = Constant <value = int64 {3}> ()
    thirds = SplitToSequence <axis = 1> (x, three)
    count = SequenceLength (thirds)
    y = Identity (x)
  })");
  EXPECT_EQ(g.shape("item"), "[n,d]");
  EXPECT_EQ(g.elements("length"), "[2]");
  EXPECT_EQ(g.shape("stack"), "[2,n,d]");
  EXPECT_EQ(g.shape("rows"), "[2*n,d]");
  EXPECT_EQ(g.shape("few"), "[n,d]");
  EXPECT_EQ(g.shape("whole"), "[n,d]");
  EXPECT_EQ(g.elements("count"), "[floor((d + 2)/3)]");
}

// Of what has an unknown rank, lists and other inputs may tell it.
TEST(SymbolicValues, RanksComeFromWhatMustAgreeWithThem) {
  const Thorough g(
      R"(g (float[a, b] x, int64[open] axes, int64[8] pads, float[4] scales, int64[3] sizes, float[n, h, w, 2] places, float[b0, s, d] key) => (float y) {
    u = Unsqueeze (x, axes)
    padded = Pad (u, pads)
    scaled = Resize (u, , scales)
    sized = Resize (u, , , sizes)
    pooled, at = MaxPool <kernel_shape = [2, 2]> (u)
    sampled = GridSample (u, places)
    contracted = Einsum <equation = "bij,bjk->bik"> (u, u)
    attended, keys, values = Attention <q_num_heads = 2, kv_num_heads = 2> (u, key, u)
  })");
  EXPECT_TRUE(g.problems.empty()) << g.problems[0];
  EXPECT_EQ(g.shape("u"), "?");
  EXPECT_EQ(g["padded"].type.rank(), 4);
  EXPECT_EQ(g["scaled"].type.rank(), 4);
  EXPECT_EQ(g["sized"].type.rank(), 3);
  EXPECT_EQ(g["pooled"].type.rank(), 4);
  EXPECT_EQ(g["at"].type.rank(), 4);
  EXPECT_EQ(g["sampled"].type.rank(), 4);
  EXPECT_EQ(g.shape("sampled").substr(0, 3), "[n,");
  EXPECT_EQ(g["contracted"].type.rank(), 3);
  EXPECT_EQ(g["attended"].type.rank(), 3);
  EXPECT_EQ(g["keys"].type.rank(), 4);
}

TEST(SymbolicValues, ShapesComeFromInputsThatHaveThem) {
  const Thorough g(
      R"(g (float[a, b] x, int64[open] axes, int64[r] indices, float[n, c, h, w] image, float[b0, s, 8] q) => (float y) {
    u = Unsqueeze (x, axes)
    sloped = PRelu (x, u)
    pooled = RoiAlign (image, u, indices)
    attended = Attention <q_num_heads = 2, kv_num_heads = 2> (q, u, q)
  })");
  EXPECT_TRUE(g.problems.empty()) << g.problems[0];
  EXPECT_EQ(g.shape("sloped"), "[a,b]");
  EXPECT_EQ(g.shape("pooled"), "[r,c,1,1]");
  EXPECT_EQ(g.shape("attended"), "[b0,s,8]");
}

TEST(SymbolicValues, ListsHaveTheLengthThatTheRankAsks) {
  const Thorough g(
      R"(g (float[a, b, c] x, int64[p] pads, int64[q] some, int64[2] axes, float[n, m, l] columns, int64[i] image, int64[j] block) => (float y) {
    padded = Pad (x, pads)
    partly = Pad (x, some, , axes)
    images = Col2Im <dilations = [1, 1]> (columns, image, block)
  })");
  EXPECT_EQ(g.shape("pads"), "[6]");
  EXPECT_EQ(g.shape("some"), "[4]");
  EXPECT_EQ(g.shape("image"), "[2]");
  EXPECT_EQ(g.shape("block"), "[2]");
}

// A size that divides is not 0; an element of an input may be.
TEST(SymbolicValues, FloatsDividedByAnElementAreUnknown) {
  const Thorough g(R"(g (int64 k, float[n] x) => (float y) {
    element = Cast <to = 1> (k)
    positive = Relu (element)
    ratio = Div (positive, positive)
    shape = Shape (x)
    size = Cast <to = 1> (shape)
    one = Div (size, size)
  })");
  EXPECT_EQ(g.elements("ratio"), "?");
  EXPECT_EQ(g.elements("one"), "[65536]");
}

// A 0 that means itself leaves nothing for -1 to stand for.
TEST(SymbolicValues, ElementsBesideAZeroAreSizes) {
  const Thorough g(R"(g (float[0] x, int64[1] k, float[n] z) => (float y) {
    zero = Constant <value_ints = [0]> ()
    rows = Shape (z)
    one = Concat <axis = 0> (zero, k, rows)
    y = Reshape <allowzero = 1> (x, one)
    two = Concat <axis = 0> (k, zero, k)
    w = Reshape <allowzero = 1> (x, two)
  })");
  EXPECT_TRUE(g.problems.empty()) << g.problems[0];
  EXPECT_EQ(g.shape("y"), "[0,max(v0, 0),n]");
  EXPECT_EQ(g.shape("w"), "[max(v0, 0),0,max(v0, 0)]");
}

TEST(SymbolicValues, ItemsOfDifferentSizesAreNotAddedUp) {
  const Thorough g(R"(g (float[n, 4] x, float[m, 4] z) => (float y) {
    both = SequenceConstruct (x, z)
    y = ConcatFromSequence <axis = 0> (both)
  })");
  const ir::Dim& rows = g["y"].type.shape->front();
  ASSERT_NE(rows.as_symbol(), nullptr);
  EXPECT_TRUE(rows.depends_on_run());
  ASSERT_NE(rows.as_symbol()->upper, nullptr);
  EXPECT_EQ(rows.as_symbol()->upper->to_string(), "2*max(m, n)");
}

TEST(SymbolicValues, OptionalsKnowWhatTheyHold) {
  const Thorough g(R"(g (float[n, d] x, bool c) => (float y) {
    held = Optional (x)
    y = OptionalGetElement (held)
    has = OptionalHasElement (held)
    nothing = Optional <type = float[7]> ()
    not = OptionalHasElement (nothing)
    perhaps = If (c) <then_branch = t () => (optional(float[]) a) { a = Optional (x) },
                      else_branch = e () => (optional(float[]) b) { b = Optional <type = float[]> () }>
    z = OptionalGetElement (perhaps)
  })");
  EXPECT_EQ(g.shape("y"), "[n,d]");
  EXPECT_EQ(g.elements("has"), "[1]");
  EXPECT_EQ(g.elements("not"), "[0]");
  EXPECT_EQ(g.shape("z"), "[n,d]");
}

TEST(SymbolicValues, WhatAnOptionalHoldsIsCounted) {
  const Thorough g(R"(g (float[n, d] x, bool c) => (float y) {
    two = SequenceConstruct (x, x)
    held = Optional (two)
    items = OptionalGetElement (held)
    y = ConcatFromSequence <axis = 0> (items)
    empty = Optional <type = seq(float[])> ()
    not = OptionalHasElement (empty)
    perhaps = If (c) <then_branch = t () => (optional(seq(float[])) a) { a = Optional (two) },
                      else_branch = e () => (optional(seq(float[])) b) { b = Optional <type = seq(float[])> () }>
    z = OptionalGetElement (perhaps)
    length = SequenceLength (z)
    one = SequenceConstruct (x)
    either = If (c) <then_branch = t () => (optional(seq(float[])) a) { a = Optional (two) },
                     else_branch = e () => (optional(seq(float[])) b) { b = Optional (one) }>
    some = OptionalGetElement (either)
    rows = ConcatFromSequence <axis = 0> (some)
  })");
  EXPECT_TRUE(g.problems.empty());
  EXPECT_EQ(g.shape("y"), "[2*n,d]");
  EXPECT_EQ(g.elements("not"), "[0]");
  EXPECT_EQ(g.elements("length"), "[2]");
  const ir::Dim& rows = g["rows"].type.shape->front();
  EXPECT_TRUE(rows.depends_on_run());  // n or 2*n
}

TEST(SymbolicValues, TypesDoNotNestWithoutEnd) {
  std::string text = "g (float[n] x, seq(float[]) s0) => (float y) {\n  o0 = Optional(x)\n";
  constexpr int count = 200;
  for (int i = 0; i < count; ++i) {
    text += fmt::format("  o{1} = Optional(o{0})\n", i, i + 1);
    text += fmt::format(
        "  s{1} = SequenceMap(s0) <body = b (float[] e) => (seq(float[]) o) {{ o = Identity(s{0}) "
        "}}>\n",
        i, i + 1);
  }
  const Thorough g(text + "}");
  EXPECT_FALSE(g.problems.empty());
  const std::string last = g[fmt::format("s{}", count)].type.to_string();
  EXPECT_LT(last.size(), 60u) << last;
  EXPECT_LT(g[fmt::format("o{}", count)].type.to_string().size(), 60u);
}

TEST(SymbolicValues, CarriedValuesAreExpressionsOfTheNumberOfIterations) {
  const Thorough g(
      R"(g (float[past, d] cache, float[n, d] x, float[m] lengths, int64 limit, bool go) => (float y) {
    yes = Constant <value = bool {1}> ()
    zeros = Constant <value = int64[1] {0}> ()
    zero = Constant <value = int64 {0}> ()
    shape = Shape (lengths)
    trips = Squeeze (shape)
    grown, count, each = Loop (trips, yes, cache, zero) <body = b (int64 i, bool c, float[p, d] now, int64 k) => (bool c2, float[q, d] next, int64 k2, float[r, d] out) {
      c2 = Identity (c)
      next = Concat <axis = 0> (now, x)
      two = Constant <value = int64 {2}> ()
      k2 = Add (k, two)
      out = Identity (now)
    }>
    perhaps, ends = Loop (limit, go, cache) <body = b2 (int64 i, bool c, float[p, d] now) => (bool c2, float[q, d] next, float[d] out) {
      c2 = Identity (c)
      next = Concat <axis = 0> (now, x)
      out = ReduceSum <keepdims = 0> (next, zeros)
    }>
    empty = SequenceEmpty ()
    parts = Loop (trips, yes, empty) <body = b3 (int64 i, bool c, seq(float[]) s) => (bool c2, seq(float[]) s2) {
      c2 = Identity (c)
      s2 = SequenceInsert (s, x)
    }>
    y = ConcatFromSequence <axis = 0> (parts)
    doubled = Loop (trips, yes, cache) <body = b4 (int64 i, bool c, float[p, d] now) => (bool c2, float[q, d] next) {
      c2 = Identity (c)
      next = Concat <axis = 0> (now, now)
    }>
    shrunk = Loop (trips, yes, cache) <body = b5 (int64 i, bool c, float[p, d] now) => (bool c2, float[q, d] next) {
      c2 = Identity (c)
      one = Constant <value = int64[1] {1}> ()
      many = Constant <value = int64[1] {1000000}> ()
      next = Slice (now, one, many)
    }>
  })");
  EXPECT_EQ(g.shape("grown"), "[m*n + past,d]");
  EXPECT_EQ(g.elements("count"), "[2*m]");
  EXPECT_EQ(g.shape("each"), "[m,past,d]");  // all must be of one shape: that of the first
  EXPECT_EQ(g.shape("y"), "[m*n,d]");
  // Of a loop that may end early the number of iterations is one unknown, with a bound.
  const ir::Symbol* trips = g["ends"].type.shape->front().as_symbol();
  ASSERT_NE(trips, nullptr);
  ASSERT_NE(trips->upper, nullptr);
  EXPECT_EQ(g["perhaps"].type.shape->front(),
            ir::Dim(trips) * g["x"].type.shape->front() + g["cache"].type.shape->front());
  // What doubles is unknown; what shrinks stays below what it was.
  EXPECT_TRUE(g["doubled"].type.shape->front().depends_on_run());
  const ir::Symbol* rest = g["shrunk"].type.shape->front().as_symbol();
  ASSERT_NE(rest, nullptr);
  ASSERT_NE(rest->upper, nullptr);
  EXPECT_EQ(rest->upper->to_string(), "past");
}

TEST(SymbolicValues, ElementsOfTheOneOrTheOther) {
  const Thorough g(R"(g (float[n, s] x, bool[2] c, bool d) => (float y) {
    shape = Shape (x)
    zero = Constant <value = int64 {0}> ()
    seven = Constant <value = int64[1] {7}> ()
    ten = Constant <value = int64 {10}> ()
    chosen = Where (c, shape, ten)
    y = ConstantOfShape (chosen)
    sums = CumSum (shape, zero)
    before = CumSum <exclusive = 1, reverse = 1> (shape, zero)
    less = Sub (zero, shape)
    sizes = Abs (less)
    either = If (d) <then_branch = t () => (int64[2] a) { a = Identity (shape) },
                     else_branch = e () => (int64[2] b) { s = Shape <start = 0, end = 1> (x)  b = Concat <axis = 0> (s, seven) }>
    z = ConstantOfShape (either)
  })");
  EXPECT_EQ(g.elements("sums"), "[n,n + s]");
  EXPECT_EQ(g.elements("before"), "[s,0]");
  EXPECT_EQ(g.elements("sizes"), "[n,s]");
  const auto bound = [&](const ir::Dim& size) {
    const ir::Symbol* symbol = size.as_symbol();
    return symbol && symbol->decided_by_run && symbol->upper ? symbol->upper->to_string() : "";
  };
  EXPECT_EQ(bound((*g["y"].type.shape)[0]), "max(n, 10)");
  EXPECT_EQ(bound((*g["y"].type.shape)[1]), "max(s, 10)");
  EXPECT_EQ((*g["z"].type.shape)[0].to_string(), "n");
  EXPECT_EQ(bound((*g["z"].type.shape)[1]), "max(s, 7)");
}

// Loop in Loop in Loop …, each with a carried value that grows.
std::string nested_loops(int depth) {
  std::string body = "w = Concat <axis = 0> (c, c)\n";
  for (int i = 0; i < depth; ++i) {
    const std::string level = std::to_string(i);
    body = "trips" + level + " = Constant <value_int = 2> ()\n" + "w" + level + " = Loop (trips" +
           level + ", , c) <body = b" + level + " (int64 i" + level + ", bool t" + level +
           ", float[m] c" + level + ") => (bool o" + level + ", float[m] w" +
           (i == 0 ? std::string("_in") : std::to_string(i - 1)) + ") {\n o" + level +
           " = Identity (t" + level + ")\n" +
           (i == 0 ? "w_in = Concat <axis = 0> (c0, c0)\n" : body) + "}>\n";
    // Each body reads its own carried value.
    const std::string reads = "(trips" + level + ", , c)";
    body.replace(
        body.find(reads), reads.size(),
        "(trips" + level + ", , " + (i + 1 == depth ? "c" : "c" + std::to_string(i + 1)) + ")");
  }
  return "g (float[n] c) => (float[k] w" + std::to_string(depth - 1) + ") {\n" + body + "}";
}

TEST(SymbolicValues, AttributesThatHoldNothingAreFindings) {
  ir::Graph graph;
  ir::Node& node = graph.nodes.emplace_back();
  node.op_type = "Constant";
  node.outputs = {"y"};
  for (const auto& [name, kind] : {std::pair("value", ir::AttributeKind::tensor),
                                   std::pair("sparse_value", ir::AttributeKind::sparse_tensor)}) {
    node.attributes.resize(1);
    node.attributes[0].name = name;
    node.attributes[0].kind = kind;
    const Thorough g(graph);
    ASSERT_EQ(g.problems.size(), 1u) << name;
    EXPECT_NE(g.problems[0].find(name), std::string::npos) << g.problems[0];
  }
}

// Loop in Loop …, each with a sequence that begins empty and a cache that grows by a bounded number
// of rows, which both take rounds of their own.
std::string nested_gathering_loops(int depth) {
  std::string body;
  for (int i = 0; i < depth; ++i) {
    const std::string n = std::to_string(i);
    body = "e" + n + " = SequenceEmpty <dtype = 7> ()\n trips" + n +
           " = Constant <value_int = 3> ()\n h" + n + " = NonZero (x)\n r" + n +
           " = Transpose <perm = [1, 0]> (h" + n + ")\n s" + n + ", w" + n + " = Loop (trips" + n +
           ", , e" + n + ", r" + n + ") <body = b" + n + " (int64 i" + n + ", bool t" + n +
           ", seq(int64[]) l" + n + ", int64[k, 1] c" + n + ") => (bool o" + n +
           ", seq(int64[]) m" + n + ", int64[j, 1] d" + n + ") {\n" + body + " o" + n +
           " = Identity (t" + n + ")\n m" + n + " = SequenceInsert (l" + n + ", c" + n + ")\n q" +
           n + " = Compress <axis = 0> (c" + n + ", yes)\n d" + n + " = Concat <axis = 0> (c" + n +
           ", q" + n + ")\n}>\n";
  }
  return "g (float[n] x, bool[m] yes) => (float[k] z) {\n" + body + " z = Identity (x)\n}";
}

// More than two rounds at each level would be 3^25 inferences.
TEST(SymbolicValues, NestedLoopsThatGatherTakeBoundedTime) {
  const Thorough shallow(nested_gathering_loops(1));
  EXPECT_TRUE(shallow.problems.empty()) << shallow.problems[0];
  EXPECT_EQ(shallow["s0"].type.nested->rank(), 2u);
  const Thorough g(nested_gathering_loops(25));
  EXPECT_TRUE(g.problems.empty()) << g.problems[0];
  EXPECT_LE(g.budget().nodes, 0);
  EXPECT_GT(g.budget().nodes, -100'000);
  EXPECT_GT(g.budget().symbols, -1'000'000);
}

TEST(SymbolicValues, InputsOfOneNameMayDifferInRank) {
  const Thorough g(
      wire::parse_graph("g (float[?] x, float[?, 3, ?] x) => (float y) { y = Neg (x) }"));
  EXPECT_EQ(g.shape("x"), "[x.0_,3,x.2]");
  EXPECT_EQ(g.shape("y"), g.shape("x"));
}

TEST(SymbolicValues, CyclesAreFindings) {
  const Thorough g(R"(g (float[n] x) => (float[n] y) {
    a = Add (x, b)
    b = Relu (a)
    y = Add (b, y)
  })");
  EXPECT_EQ(g.problems.size(), 2u);  // each node that reads what only a later one makes
  EXPECT_NE(g.problems[0].find("'b' is not defined before the node"), std::string::npos);
  EXPECT_FALSE(g["a"].type.is_known());
}

// Two rounds at each level would be 2^30 inferences.
TEST(SymbolicValues, NestedLoopsTakeBoundedTime) {
  const Thorough g(nested_loops(30));
  EXPECT_TRUE(g.problems.empty()) << g.problems[0];
  EXPECT_LE(g.budget().nodes, 0);
  EXPECT_GT(g.budget().nodes, -100'000);
  EXPECT_EQ(g["w29"].type.element, ElementType::float32);
  const Thorough shallow(nested_loops(2));
  EXPECT_EQ(shallow["w1"].type.rank(), 1u);
}

TEST(SymbolicValues, ChainsOfSizeArithmeticTakeBoundedTime) {
  std::string text =
      "g (float[n] x, float[m] y) => (float[k] z) {\n s = Shape (x)\n m = Shape (y)\n";
  std::string last = "s";
  for (int i = 0; i < 3000; ++i) {
    const std::string made = "a" + std::to_string(i);
    text += " p" + made + " = Mul (" + last + ", " + last + ")\n q" + made + " = Div (" + last +
            ", m)\n " + made + " = Max (p" + made + ", q" + made + ")\n";
    last = made;
  }
  text += " z = ConstantOfShape (" + last + ")\n}";
  const Thorough g(text);
  EXPECT_TRUE(g.problems.empty());
  EXPECT_EQ(g["z"].type.rank(), 1u);
  EXPECT_GT(g.budget().symbols, -1'000'000);  // expressions are cut, and so is their number
}

// What a PyTorch export computes for `size=(int(h * 0.5), int(w * 1.5))`.
TEST(SymbolicValues, SizesComputedAsFloatsAreExpressions) {
  const Thorough g(R"(g (float[n, 3, h, w] x) => (float[a, b, c, d] y) {
    s = Shape(x)
    i = Constant<value_ints = [2, 3]>()
    hw = Gather(s, i)
    f = Cast<to = 1>(hw)
    by = Constant<value_floats = [0.5, 1.5]>()
    scaled = Mul(f, by)
    down = Floor(scaled)
    whole = Cast<to = 7>(down)
  })");
  EXPECT_EQ(g.elements("whole"), "[floor(h/2),floor(w/2) + w]");
}

TEST(SymbolicValues, FloatsOfSizesAreFollowedThroughArithmetic) {
  const Thorough g(R"(g (float[h, 8] x, float[h, 6] z) => (int64[1] y) {
    h = Shape<end = 1>(x)
    f = Cast<to = 11>(h)
    half = Constant<value = double {0.5}>()
    two = Constant<value = double {2.0}>()
    three = Constant<value = double {3.0}>()
    a = Add(f, half)
    b = Mul(a, two)
    up = Cast<to = 7>(b)
    c = Div(f, two)
    d = Ceil(c)
    ceiled = Cast<to = 6>(d)
    e = Div(f, three)
    third = Cast<to = 7>(e)
    back = Mul(e, three)
    n = Neg(f)
    m = Sub(n, half)
    cut = Cast<to = 7>(m)
    q = Div(b, a)
    ratio = Cast<to = 7>(q)
    doubled = Mul(f, two)
    is_less = Less(doubled, f)
    one = Max(doubled, f)
    larger = Cast<to = 7>(one)
    whole = Round(doubled)
    rounded = Cast<to = 7>(whole)
  })");
  EXPECT_EQ(g.elements("up"), "[2*h + 1]");
  EXPECT_EQ(g.elements("ceiled"), "[floor((h + 1)/2)]");
  EXPECT_EQ(g.elements("cut"), "[-h]");
  EXPECT_EQ(g.elements("ratio"), "[2]");
  EXPECT_EQ(g.elements("is_less"), "[0]");
  EXPECT_EQ(g.elements("larger"), "[2*h]");
  EXPECT_EQ(g.elements("rounded"), "[2*h]");
  // A third of h is rounded: only the run knows it.
  EXPECT_EQ(g.elements("e"), "?");
  EXPECT_EQ(g.elements("third").substr(0, 2), "[v");
}

TEST(SymbolicValues, FloatsOfNumbersAreThoseThatTheTypeComputes) {
  const Thorough g(R"(g (float[224] x) => (int64[1] y) {
    n = Shape(x)
    f = Cast<to = 1>(n)
    by = Constant<value_float = 0.6>()
    scaled = Mul(f, by)
    down = Floor(scaled)
    whole = Cast<to = 7>(down)
    tenth = Constant<value_float = 0.1>()
    ten = Constant<value_float = 10.0>()
    product = Mul(tenth, ten)
    one = Cast<to = 7>(product)
    wide = Cast<to = 11>(tenth)
    ten_wide = Cast<to = 11>(ten)
    near = Mul(wide, ten_wide)
    up = Ceil(near)
    two = Cast<to = 7>(up)
  })");
  EXPECT_EQ(g.elements("whole"), "[134]");
  EXPECT_EQ(g.elements("one"), "[1]");
  EXPECT_EQ(g.elements("two"), "[2]");  // the double nearest to float32's 0.1 is a little more
}

TEST(SymbolicValues, WhatDividesMayBeZeroUnlessItIsASize) {
  const Thorough g(R"(g (float[h] x, int64 k) => (float y) {
    f = Cast<to = 1>(k)
    y = Div(f, f)
    n = Shape(x)
    s = Cast<to = 1>(n)
    one = Div(s, s)
    whole = Cast<to = 7>(one)
  })");
  EXPECT_EQ(g.elements("y"), "?");  // no number where k is 0
  EXPECT_EQ(g.elements("whole"), "[1]");
}

TEST(SymbolicValues, FloatsOfEitherBranchOrEachTripAreNotNamed) {
  const Thorough g(R"(g (float[h] x, bool c, int64 trips) => (int64[1] y) {
    n = Shape(x)
    f = Cast<to = 1>(n)
    half = Constant<value_floats = [0.5]>()
    other = Mul(f, half)
    chosen = Where(c, f, other)
    of_chosen = Cast<to = 7>(chosen)
    branch = If(c) <then_branch = t () => (float[1] a) { a = Identity(f) },
                    else_branch = e () => (float[1] b) { b = Identity(other) }>
    of_branch = Floor(branch)
    last = Loop(trips, , f) <body = l (int64 i, bool go, float[1] v) => (bool on, float[1] next) {
      on = Identity(go)
      next = Mul(v, half)
    }>
    of_last = Floor(last)
  })");
  for (const char* name : {"chosen", "branch", "of_branch", "last", "of_last"})
    EXPECT_EQ(g.elements(name), "?") << name;
}

TEST(SymbolicValues, ResizeByScalesThatAreComputed) {
  const Thorough g(R"(g (float[1, 3, h, w] x) => (float[a, b, c, d] y) {
    s = Shape(x)
    f = Cast<to = 1>(s)
    by = Constant<value_floats = [1.0, 1.0, 2.0, 0.5]>()
    asked = Mul(f, by)
    scales = Div(asked, f)
    y = Resize(x, , scales)
  })");
  EXPECT_EQ(g.shape("y"), "[1,3,2*h,floor(w/2)]");
}

TEST(SymbolicValues, PartsAreNoLargerThanTheSplitSays) {
  const Thorough g(R"(g (float[rows, 16] x, int64 part, int64 at) => (float[a, 16] y) {
    parts = SplitToSequence(x, part)
    item = SequenceAt(parts, at)
    sizes = Constant<value_ints = [2, 5, 1]>()
    uneven = SplitToSequence(x, sizes)
    one = SequenceAt(uneven, at)
  })");
  EXPECT_EQ(g.bound("item", 0), "rows");
  EXPECT_EQ(g.bound("one", 0), "min(rows, 5)");
}

TEST(SymbolicValues, ChainsOfFloatsEnd) {
  std::string text = R"(g (float[h, w] x) => (float[a] y) {
    s = Shape(x)
    i = Constant<value_int = 0>()
    h = Gather(s, i)
    f0 = Cast<to = 1>(h)
    half = Constant<value_float = 0.5>()
)";
  constexpr int count = 300;
  for (int i = 0; i < count; ++i) {
    text += fmt::format("    d{0} = Mul(f{0}, f{0})\n    e{0} = Mul(d{0}, half)\n", i);
    text += fmt::format("    g{0} = Floor(e{0})\n    f{1} = Add(g{0}, f{0})\n", i, i + 1);
  }
  const Thorough g(text + "  }");
  EXPECT_EQ(g.elements("g0"), "[65536*floor(h*h/2)]");
  EXPECT_EQ(g.elements(fmt::format("f{}", count)), "?");
  EXPECT_GT(g.budget().symbols, 3'000'000);
  EXPECT_TRUE(g.problems.empty());
}

ir::Graph with_floats(int64_t count, size_t bytes) {
  ir::Graph graph;
  ir::TensorProto& tensor = graph.initializers.emplace_back();
  tensor.name = "w";
  tensor.dims = {count};
  tensor.data_type = static_cast<int32_t>(ElementType::float32);
  tensor.has_raw_data = true;
  tensor.raw_data = Bytes::allocate(bytes);
  return graph;
}

// Weights are not looked at, but only where there is nothing wrong with them.
TEST(SymbolicValues, WeightsAreTakenForWhatTheySay) {
  EXPECT_TRUE(Thorough(with_floats(1024, 4096))["w"].constant);
  const Thorough weights(with_floats(1025, 4100));
  EXPECT_FALSE(weights["w"].constant);
  EXPECT_EQ(weights.shape("w"), "[1025]");
  EXPECT_THROW(Thorough(with_floats(1025, 4104)), Error);
  ir::Graph twice = with_floats(1025, 4100);
  twice.initializers[0].int32_data = {1};
  EXPECT_THROW(Thorough(std::move(twice)), Error);
}

ir::Graph with_list(int64_t count, size_t bytes) {
  ir::Graph graph = with_floats(count, bytes);
  ir::TensorProto& tensor = graph.initializers[0];
  tensor.data_type = static_cast<int32_t>(ElementType::int64);
  for (size_t i = 0; i < bytes; ++i)
    tensor.raw_data.mutable_data()[i] = i % 8 == 0 ? static_cast<std::byte>(i / 8) : std::byte{0};
  return graph;
}

TEST(SymbolicValues, ListsThatShapesAreMadeOf) {
  EXPECT_EQ(Thorough(with_list(0, 0)).elements("w"), "[]");
  const Thorough few(with_list(3, 24));
  EXPECT_EQ(few.shape("w"), "[3]");
  EXPECT_EQ(few.elements("w"), "[0,1,2]");
  EXPECT_EQ(Thorough(with_list(1024, 8192))["w"].elements->size(), 1024u);
  const Thorough many(with_list(1025, 8200));
  EXPECT_EQ(many.shape("w"), "[1025]");
  EXPECT_FALSE(many["w"].elements);
  EXPECT_THROW(Thorough(with_list(3, 16)), Error);
  EXPECT_THROW(Thorough(with_list(3, 32)), Error);
  EXPECT_THROW(Thorough(with_list(-1, 8)), Error);
  ir::Graph twice = with_list(3, 24);
  twice.initializers[0].int64_data = {1, 2, 3};
  EXPECT_THROW(Thorough(std::move(twice)), Error);
}

// Formulas ask for tensors of values of which only the elements are kept.
TEST(SymbolicValues, KnownElementsAreConstantsForThoseWhoAsk) {
  const Thorough g(R"(g (float[n,4] x) => (float[n,4] y) {
    two = Constant <value_ints = [2]> ()
    depth = Add (two, two)
    values = Constant <value_floats = [0.0, 1.0]> ()
    indices = Constant <value_ints = [0, 3]> ()
    coded = OneHot (indices, depth, values)
    axis = Constant <value_int = 1> ()
    sums = CumSum (x, axis)
    y = Identity (sums)
  })");
  EXPECT_TRUE(g.problems.empty());
  EXPECT_FALSE(g["depth"].constant);
  EXPECT_EQ(g.elements("depth"), "[4]");
  EXPECT_EQ(g.shape("coded"), "[2,4]");
}

// The element that stands for all is copied, also where the list of the others is a long one.
TEST(SymbolicValues, OneElementAgainstMoreThanAListHoldsInItself) {
  const Thorough g(R"(g (float[a, b] x, int64 k) => (float[c, d] y) {
    sizes = Shape (x)
    five = Constant <value_ints = [2, 2, 2, 2, 2]> ()
    most = Max (k, five)
    more = Max (k, sizes)
    y = Identity (x)
  })");
  EXPECT_EQ(g.elements("most"), "[max(v0, 2),max(v0, 2),max(v0, 2),max(v0, 2),max(v0, 2)]");
  EXPECT_EQ(g.elements("more"), "[max(a, v0),max(b, v0)]");
}

// An element may be the least int64, of which less is more: ReduceMax of nothing makes it.
TEST(SymbolicValues, ElementsThatMayWrapAreNotCompared) {
  const Thorough g(R"(g (int64[n] m) => (bool[1] y) {
    axis = Constant <value_ints = [0]> ()
    two = Constant <value_int = 2> ()
    zero = Constant <value_int = 0> ()
    most = ReduceMax <keepdims = 1> (m, axis)
    less = Sub (most, two)
    y = Greater (less, most)
    larger = Max (less, most)
    differ = Equal (less, most)
    size = Max (most, zero)
    smaller = Sub (size, two)
    of_sizes = Greater (smaller, size)
    back = Add (less, two)
    same = Equal (back, most)
  })");
  EXPECT_EQ(g.elements("less"), "[v0 - 2]");
  EXPECT_FALSE((*g["y"].elements)[0].is_constant());
  EXPECT_EQ(g.elements("larger"), "[max(v0, v0 - 2)]");
  EXPECT_EQ(g.elements("differ"), "[0]");
  EXPECT_EQ(g.elements("of_sizes"), "[0]");
  EXPECT_EQ(g.elements("same"), "[1]");
}

// Operators whose inputs share sizes: what one of them says holds where another has no rank.
TEST(SymbolicValues, InputsTellSizesOfThoseWithoutARank) {
  const Thorough g(
      R"(g (float[b, 4, l, 8] q, float[] k, float[b, 2, s, 16] v, float[b, 2, p, 8] old_k, float[] old_v, float[b, l, 32] x, float[c, 1, 4] w, float[] image, float[] past, float[b, l, 64] values) => (float y) {
    y, new_k, new_v = Attention (q, k, v, , old_k, old_v)
    packed = Attention <q_num_heads = 4, kv_num_heads = 2> (x, k, past)
    unranked, none, of, scores = Attention (k, q, past)
    linear, state = LinearAttention <q_num_heads = 4, kv_num_heads = 4, update_rule = "linear"> (k, x, values)
    conv, kept = CausalConvWithState (image, w)
    from_past, again = CausalConvWithState (image, past, , kept)
  })");
  EXPECT_TRUE(g.problems.empty()) << g.problems[0];
  EXPECT_EQ(g.shape("y"), "[b,4,l,16]");
  EXPECT_EQ(g.shape("new_k"), "[b,2,p + s,8]");
  EXPECT_EQ(g.shape("new_v"), "[b,2,p + s,16]");
  EXPECT_EQ(g.shape("packed").substr(0, 5), "[b,l,");
  EXPECT_EQ(g.shape("none"), "[b,4,l,8]");
  EXPECT_EQ(g.shape("linear"), "[b,l,64]");
  EXPECT_EQ(g.shape("state"), "[b,4,8,16]");
  EXPECT_NE(g.shape("conv").find(",c,"), std::string::npos) << g.shape("conv");
  EXPECT_NE(g.shape("kept").find(",c,3]"), std::string::npos) << g.shape("kept");
  EXPECT_EQ(g.shape("again"), g.shape("kept"));
}

// Ranks of Q, K and V that differ are a mistake, whichever of them is known.
TEST(SymbolicValues, RanksOfAttentionMustAgree) {
  const Thorough g(R"(g (float[b, 4, l, 8] q, float[b, l, 32] k, float[] v) => (float y) {
    y = Attention <q_num_heads = 4, kv_num_heads = 4> (q, k, v)
  })");
  ASSERT_EQ(g.problems.size(), 1U);
  EXPECT_NE(g.problems[0].find("all have three or all have four"), std::string::npos);
}

}  // namespace
}  // namespace sardonyx::infer
