// Shapes that models compute from shapes, with sizes left open.
#include "graph_support.h"

namespace sardonyx::ops_test {
namespace {

TEST(ShapeExpressions, AttentionReshapeOfAnExportedModel) {
  const Inferred g(R"(g (float[batch, seq, 768] x) => (float[a, b, c, d] y) {
    zero = Constant <value_int = 0> ()
    one = Constant <value_int = 1> ()
    axis = Constant <value_ints = [0]> ()
    shape = Shape (x)
    b = Gather (shape, zero)
    s = Gather (shape, one)
    bu = Unsqueeze (b, axis)
    su = Unsqueeze (s, axis)
    heads = Constant <value_ints = [12]> ()
    width = Constant <value_ints = [64]> ()
    target = Concat <axis = 0> (bu, su, heads, width)
    split = Reshape (x, target)
    y = Transpose <perm = [0, 2, 1, 3]> (split)
    back = Transpose <perm = [0, 2, 1, 3]> (y)
    minus = Constant <value_ints = [-1]> ()
    flat = Concat <axis = 0> (bu, su, minus)
    z = Reshape (back, flat)
  })");
  EXPECT_EQ(g.shape("shape"), "[3]");
  EXPECT_EQ(g.elements("target"), "[batch,seq,12,64]");
  EXPECT_EQ(g.shape("split"), "[batch,seq,12,64]");
  EXPECT_EQ(g.shape("y"), "[batch,12,seq,64]");
  EXPECT_EQ(g.shape("z"), "[batch,seq,768]");
}

// GPT-2 with a past that grows, as PyTorch writes it: the causal mask is cut out of a constant.
TEST(ShapeExpressions, CausalMaskWithGrowingPast) {
  const Inferred g(
      R"(g (float[batch, 12, seq, 64] q, float[batch, 12, seq, 64] k, float[batch, 12, past, 64] old,
                         bool[1, 1, 1024, 1024] bias) => (float[a] y) {
    all = Concat <axis = 2> (old, k)
    turned = Transpose <perm = [0, 1, 3, 2]> (all)
    w = MatMul (q, turned)
    ws = Shape (w)
    two = Constant <value_int = 2> ()
    three = Constant <value_int = 3> ()
    nd = Gather (ws, two)
    ns = Gather (ws, three)
    from = Sub (ns, nd)
    a0 = Constant <value_ints = [0]> ()
    a2 = Constant <value_ints = [2]> ()
    a3 = Constant <value_ints = [3]> ()
    one = Constant <value_ints = [1]> ()
    fromu = Unsqueeze (from, a0)
    nsu = Unsqueeze (ns, a0)
    rows = Slice (bias, fromu, nsu, a2, one)
    mask = Slice (rows, a0, nsu, a3, one)
  })");
  EXPECT_EQ(g.shape("all"), "[batch,12,past + seq,64]");
  EXPECT_EQ(g.shape("w"), "[batch,12,seq,past + seq]");
  EXPECT_EQ(g.elements("from"), "[past]");
  // The constant bounds the mask; that it fits the scores is for the run to see.
  EXPECT_EQ(g.shape("mask"), "[1,1,min(max(1024 - past, 0), seq),min(past + seq, 1024)]");
}

TEST(ShapeExpressions, RangeOfPositions) {
  const Inferred g(R"(g (float[past, 8] old, int64[batch, seq] ids) => (int64[a] y) {
    zero = Constant <value_int = 0> ()
    one = Constant <value_int = 1> ()
    os = Shape (old)
    is = Shape (ids)
    p = Gather (os, zero)
    s = Gather (is, one)
    total = Add (p, s)
    y = Range (p, total, one)
    axis = Constant <value_ints = [0]> ()
    row = Unsqueeze (y, axis)
    e = Expand (row, is)
  })");
  EXPECT_EQ(g.shape("y"), "[seq]");
  EXPECT_EQ(g.shape("row"), "[1,seq]");
  EXPECT_EQ(g.shape("e"), "[batch,seq]");
}

// torch.Tensor.expand: sizes of -1 are replaced where they are.
TEST(ShapeExpressions, ExpandChoosesBetweenSizes) {
  const Inferred g(R"(g (float[batch, 1, 4] x, float[batch, seq] like) => (float[a] y) {
    shape = Shape (like)
    minus = Constant <value_ints = [-1]> ()
    target = Concat <axis = 0> (shape, minus)
    rank = Constant <value_ints = [3]> ()
    ones = ConstantOfShape <value = int64[1] {1}> (rank)
    wild = Constant <value_int = -1> ()
    minus_ones = Mul (ones, wild)
    open = Equal (target, minus_ones)
    sizes = Where (open, ones, target)
    y = Expand (x, sizes)
  })");
  EXPECT_EQ(g.elements("ones"), "[1,1,1]");
  EXPECT_EQ(g.elements("sizes"), "[batch,seq,1]");
  EXPECT_EQ(g.shape("y"), "[batch,seq,4]");
}

TEST(ShapeExpressions, ReshapeDividesSums) {
  const Inferred g(R"(g (float[b, past, 6] x, float[b, seq, 6] y, int64[3] asked) => (float[a] z) {
    xy = Concat <axis = 1> (x, y)
    s1 = Constant <value_ints = [0, 0, 2, -1]> ()
    z1 = Reshape (xy, s1)
    s2 = Constant <value_ints = [0, -1, 12]> ()
    z2 = Reshape (xy, s2)
    s3 = Constant <value_ints = [-1, 6]> ()
    z3 = Reshape (xy, s3)
    z4 = Reshape (xy, asked)
    f = Flatten <axis = 2> (xy)
  })");
  EXPECT_EQ(g.shape("z1"), "[b,past + seq,2,3]");
  // b cancels against b although past + seq does not divide by 2 for sure.
  EXPECT_EQ(g.shape("z2"), "[b,floor((past + seq)/2),12]");
  EXPECT_EQ(g.shape("z3"), "[b*past + b*seq,6]");
  EXPECT_EQ(g["z4"].type.shape->size(), 3u);
  EXPECT_EQ(g.shape("f"), "[b*past + b*seq,6]");
}

TEST(ShapeExpressions, SlicesOfOpenSizes) {
  const Inferred g(R"(g (float[n, m] x) => (float[a] y) {
    z = Constant <value_ints = [0]> ()
    one = Constant <value_ints = [1]> ()
    m1 = Constant <value_ints = [-1]> ()
    end = Constant <value_ints = [9223372036854775807]> ()
    end32 = Constant <value_ints = [2147483647]> ()
    least = Constant <value_ints = [-9223372036854775808]> ()
    all = Slice (x, z, end, z)
    all32 = Slice (x, z, end32, one)
    but_last = Slice (x, z, m1, z)
    last = Slice (x, m1, end, z)
    tail = Slice (x, one, end, z)
    reversed = Slice (x, m1, least, z, m1)
    two = Constant <value_ints = [2]> ()
    half = Slice (x, z, end, z, two)
  })");
  EXPECT_EQ(g.shape("all"), "[n,m]");
  EXPECT_EQ(g.shape("all32"), "[n,m]");
  EXPECT_EQ(g.shape("but_last"), "[max(n - 1, 0),m]");
  EXPECT_EQ(g.shape("last"), "[min(n, 1),m]");
  EXPECT_EQ(g.shape("reversed"), "[n,m]");
  EXPECT_EQ(g.shape("half"), "[floor((n + 1)/2),m]");
}

// Whatever a slice's bounds are, its open size and its size for numbers must be one.
TEST(ShapeExpressions, OpenSliceSizesHoldForEverySize) {
  for (int64_t step : {-3, -2, -1, 1, 2, 3}) {
    for (int64_t start = -5; start <= 5; ++start) {
      for (int64_t end = -5; end <= 5; ++end) {
        const auto graph = [&](std::string_view size) {
          return fmt::format(R"(g (float[{}] x) => (float[a] y) {{
            s = Constant <value_ints = [{}]> ()
            e = Constant <value_ints = [{}]> ()
            ax = Constant <value_ints = [0]> ()
            st = Constant <value_ints = [{}]> ()
            y = Slice (x, s, e, ax, st)
          }})",
                             size, start, end, step);
        };
        Inferred open(graph("n"));
        const ir::Dim size = (*open["y"].type.shape)[0];
        for (int64_t n = 1; n <= 6; ++n) {  // a declared 0 says nothing
          const Inferred closed(graph(std::to_string(n)));
          const auto expected = (*closed["y"].type.shape)[0].value();
          std::vector<int64_t> sizes(static_cast<size_t>(open.symbols().size()), -1);
          sizes[static_cast<size_t>(open.symbols().find("n")->id)] = n;
          ASSERT_EQ(size.evaluate(sizes), expected)
              << start << ":" << end << ":" << step << " of " << n << " is " << size.to_string();
        }
      }
    }
  }
}

TEST(ShapeExpressions, SplitsAndTiles) {
  const Inferred g(R"(g (float[n, 6] x) => (float[a] y) {
    a, b, c = Split <axis = 1, num_outputs = 3> (x)
    d, e = Split <axis = 0, num_outputs = 2> (x)
    sizes = Constant <value_ints = [1, 5]> ()
    f, h = Split <axis = -1> (x, sizes)
    r = Constant <value_ints = [2, 3]> ()
    t = Tile (x, r)
    p = Constant <value_ints = [1, 0, 2, -1]> ()
    q = Pad (x, p)
  })");
  EXPECT_EQ(g.shape("b"), "[n,2]");
  EXPECT_EQ(g.shape("d"), "[floor((n + 1)/2),6]");
  EXPECT_EQ(g.shape("h"), "[n,5]");
  EXPECT_EQ(g.shape("t"), "[2*n,18]");
  EXPECT_EQ(g.shape("q"), "[n + 3,5]");
}

TEST(ShapeExpressions, ElementsPassThroughMovement) {
  const Inferred g(R"(g (float[n, m, 4] x) => (int64[a] y) {
    s = Shape (x)
    part = Shape <start = 1> (x)
    last = Shape <start = -1> (x)
    count = Size (x)
    cast = Cast <to = 6> (s)
    wide = Cast <to = 7> (cast)
    m1 = Constant <value_ints = [-1]> ()
    z = Constant <value_ints = [0]> ()
    least = Constant <value_ints = [-9223372036854775808]> ()
    reversed = Slice (s, m1, least, z, m1)
    i = Constant <value_ints = [2, 0]> ()
    picked = Gather (s, i)
    column = Unsqueeze (s, m1)
    row = Transpose (column)
    flat = Reshape (row, m1)
    first, rest = Split <num_outputs = 2> (s)
    two = Constant <value_ints = [2]> ()
    twice = Tile (s, two)
    last_index = Constant <value_ints = [2]> ()
    nine = Constant <value_ints = [9]> ()
    changed = ScatterElements (s, last_index, nine)
  })");
  EXPECT_EQ(g.elements("part"), "[m,4]");
  EXPECT_EQ(g.elements("last"), "[4]");
  EXPECT_EQ(g.elements("count"), "[4*m*n]");
  EXPECT_EQ(g.elements("wide"), "[n,m,4]");
  EXPECT_EQ(g.elements("reversed"), "[4,m,n]");
  EXPECT_EQ(g.elements("picked"), "[4,n]");
  EXPECT_EQ(g.shape("row"), "[1,3]");
  EXPECT_EQ(g.elements("flat"), "[n,m,4]");
  EXPECT_EQ(g.elements("first"), "[n,m]");
  EXPECT_EQ(g.elements("rest"), "[4]");
  EXPECT_EQ(g.elements("twice"), "[n,m,4,n,m,4]");
  EXPECT_EQ(g.elements("changed"), "[n,m,9]");
}

TEST(ShapeExpressions, ResizeByFractions) {
  const Inferred g(R"(g (float[n, 3, h, w] x, float[n, 4, h, w] x4) => (float[a] y) {
    s = Constant <value_floats = [1.0, 1.0, 2.0, 0.5]> ()
    y = Resize <mode = "nearest"> (x, , s)
    third = Constant <value_floats = [1.0, 1.0, 0.33, 1.3]> ()
    z = Resize <mode = "nearest"> (x, , third)
    d = DepthToSpace <blocksize = 2> (x4)
  })");
  EXPECT_EQ(g.shape("y"), "[n,3,2*h,floor(w/2)]");
  // The float next to 1.3 is so much less that its products may fall below a whole number.
  ASSERT_EQ(g["z"].type.shape->size(), 4u);
  EXPECT_EQ((*g["z"].type.shape)[2].to_string(), "floor(33*h/100)");
  const ir::Symbol* width = (*g["z"].type.shape)[3].as_symbol();
  ASSERT_TRUE(width != nullptr && width->upper != nullptr);
  EXPECT_EQ(width->upper->to_string(), "2*w");
  EXPECT_EQ(g.shape("d"), "[n,1,2*h,2*w]");
}

// The float32 product that the standard rounds down, of all sizes up to where it promises nothing.
TEST(ShapeExpressions, ResizeByFractionsHoldsForEverySize) {
  int expressions = 0;
  for (const int under : {2, 3, 5, 7, 10, 12, 24, 60, 100, 1000}) {
    for (const int over : {1, 3, 7, 11, 13, 37, 99}) {
      const float scale = static_cast<float>(over) / static_cast<float>(under);
      Inferred g(fmt::format(R"(g (float[h] x) => (float[a] y) {{
        s = Constant <value_floats = [{:#.9g}]> ()
        y = Resize <mode = "nearest"> (x, , s)
      }})",
                             scale));
      const ir::Dim size = (*g["y"].type.shape)[0];
      if (size.depends_on_run()) continue;
      ++expressions;
      std::vector<int64_t> sizes(static_cast<size_t>(g.symbols().size()), -1);
      int64_t& h = sizes[static_cast<size_t>(g.symbols().find("h")->id)];
      const int64_t last = (1 << 23) / over;
      for (h = 1; h < last;
           h = h < 2000 || last - h < 2000 ? h + 1 : std::min(h + 997, last - 1999)) {
        const auto made = static_cast<int64_t>(std::floor(static_cast<float>(h) * scale));
        ASSERT_EQ(size.evaluate(sizes), made) << h << " by " << scale << ": " << size.to_string();
      }
    }
  }
  EXPECT_GT(expressions, 40);
}

TEST(ShapeExpressions, ResizeOfAScalarNeedsNoSizes) {
  const auto made = run(R"(g (float x, int64[n] sizes) => (float y) {
    y = Resize (x, , , sizes)
  })",
                        {Tensor::scalar<float>(2.5f), Tensor::of<int64_t>({}, {0})});
  EXPECT_EQ(elements<float>(made[0]), std::vector<float>{2.5f});
}

TEST(ShapeExpressions, SqueezeWithoutAxesWaitsForSizes) {
  const Inferred g(R"(g (float[n, 1, 4] x, float[2, 1, 4] known) => (float[a] y) {
    y = Squeeze (x)
    z = Squeeze (known)
    one = Constant <value_ints = [1]> ()
    w = Squeeze (x, one)
  })");
  EXPECT_EQ(g.shape("y"), "?");
  EXPECT_EQ(g.shape("z"), "[2,4]");
  EXPECT_EQ(g.shape("w"), "[n,4]");
}

}  // namespace
}  // namespace sardonyx::ops_test
