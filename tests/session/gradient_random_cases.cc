// Element-wise operators, reductions, products and movement over random shapes and attributes.
#include "gradient_draw.h"

namespace sardonyx::test {
namespace {

void unary(const Check& check) {
  struct Function {
    const char* op;
    double low, high;
    std::vector<std::string> attributes = {};
  };
  const Function functions[] = {
      {"Abs", -2, 2},
      {"Acos", -0.9, 0.9},
      {"Acosh", 1.2, 4},
      {"Asin", -0.9, 0.9},
      {"Asinh", -3, 3},
      {"Atan", -3, 3},
      {"Atanh", -0.9, 0.9},
      {"Celu", -3, 3, {"<alpha = 0.7>"}},
      {"Cos", -3, 3},
      {"Cosh", -2, 2},
      {"Elu", -3, 3, {"<alpha = 0.6>"}},
      {"Erf", -2, 2},
      {"Exp", -2, 2},
      {"Gelu", -3, 3, {"<approximate = \"tanh\">", "<approximate = \"none\">"}},
      {"HardSigmoid", -4, 4, {"<alpha = 0.3, beta = 0.4>"}},
      {"HardSwish", -4, 4},
      {"Identity", -2, 2},
      {"LeakyRelu", -2, 2, {"<alpha = 0.3>", "<alpha = -0.2>"}},
      {"Log", 0.3, 4},
      {"Mish", -3, 3},
      {"Neg", -2, 2},
      {"Reciprocal", 0.4, 3},
      {"Relu", -2, 2},
      {"Selu", -3, 3, {"<alpha = 1.2, gamma = 0.9>"}},
      {"Shrink", -2, 2, {"<lambd = 0.7, bias = 0.3>"}},
      {"Sigmoid", -4, 4},
      {"Sin", -3, 3},
      {"Sinh", -2, 2},
      {"Softplus", -4, 4},
      {"Softsign", -3, 3},
      {"Sqrt", 0.3, 4},
      {"Swish", -3, 3, {"<alpha = 1.6>", "<alpha = -0.5>"}},
      {"Tan", -1.2, 1.2},
      {"Tanh", -3, 3},
      {"ThresholdedRelu", -3, 3, {"<alpha = 0.6>"}},
  };
  Draw draw(1);
  for (const Function& f : functions) {
    std::vector<std::string> forms = f.attributes;
    forms.push_back("");
    for (const std::string& form : forms) {
      for (const int64_t rank : {0, 1, 4})
        check(fmt::format("y = {}{}(x)", f.op, form),
              {draw.input("x", draw.shape(rank, rank), f.low, f.high)});
    }
    // Of all but one element taken twice, and of nothing.
    check(fmt::format("a = {0}(x)\n b = {0}(x)\n y = Mul(a, b)", f.op),
          {draw.input("x", draw.shape(1, 3), f.low, f.high)});
    check(fmt::format("y = {}(x)", f.op), {draw.input("x", {2, 0, 3}, f.low, f.high)});
  }
}

// Two shapes that broadcast to one, which may be that of neither.
std::pair<Shape, Shape> broadcast(Draw& draw) {
  const Shape whole = draw.shape(0, 4);
  return {draw.one_in(2) ? whole : draw.narrower(whole),
          draw.one_in(2) ? whole : draw.narrower(whole)};
}

void binary(const Check& check) {
  Draw draw(2);
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Pow", "SwiGLU", "SwiGLU<alpha = 1.7>"}) {
    for (int round = 0; round < 10; ++round) {
      const auto [a, b] = broadcast(draw);
      check(fmt::format("y = {}(a, b)", op),
            {draw.input("a", a, 0.4, 2), draw.input("b", b, 0.5, 1.8)});
    }
    check(fmt::format("y = {}(a, a)", op), {draw.input("a", draw.shape(0, 3), 0.4, 2)});
  }
  for (int round = 0; round < 8; ++round) {
    const Shape whole = draw.shape(1, 4);
    check("y = PRelu(x, s)", {draw.input("x", whole), draw.input("s", draw.narrower(whole))});
    Input divisor = draw.input("m", draw.narrower(whole), 0.31, 0.57);
    divisor.differentiated = false;
    check("y = Mod<fmod = 1>(x, m)", {draw.input("x", whole), divisor});
  }
  for (int round = 0; round < 8; ++round) {
    const Shape whole = draw.shape(0, 3);
    const auto n = static_cast<size_t>(elements_of(whole));
    check(integers("c", whole, draw.integers(n, 0, 1), "bool") + "y = Where(c, a, b)",
          {draw.input("a", draw.narrower(whole)), draw.input("b", draw.narrower(whole))});
  }
}

void many_operands(const Check& check) {
  Draw draw(3);
  for (const char* op : {"Max", "Min", "Sum", "Mean"}) {
    for (int64_t count = 1; count <= 4; ++count) {
      for (int round = 0; round < 3; ++round) {
        const Shape whole = draw.shape(0, 3);
        std::vector<Input> inputs;
        std::vector<std::string> names;
        for (int64_t i = 0; i < count; ++i) {
          // Of a value twice, two share what flows.
          if (i > 0 && draw.one_in(4)) {
            names.push_back(names[0]);
            continue;
          }
          names.push_back(fmt::format("x{}", i));
          // No two values are the same, whichever input they are of.
          inputs.push_back(draw.input(names.back(), draw.narrower(whole)));
        }
        check(fmt::format("y = {}({})", op, fmt::join(names, ", ")), inputs);
      }
    }
  }
  for (const char* bounds : {"", ", low", ", low, high", ", , high"})
    check(
        "low = Constant<value = double {-0.4}>()\n high = Constant<value = double {0.3}>()\n y = "
        "Clip(x" +
            std::string(bounds) + ")",
        {draw.input("x", draw.shape(0, 3))});
}

void reductions(const Check& check) {
  Draw draw(4);
  for (const char* op :
       {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
        "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"}) {
    for (int round = 0; round < 10; ++round) {
      const Shape shape = draw.shape(round == 0 ? 0 : 1, round == 0 ? 0 : 4, false);
      const std::string keep = fmt::format("keepdims = {}", draw.below(2));
      const Input x = draw.input("x", shape, 0.4, 2);
      const std::vector<int64_t> axes = draw.axes(shape.size(), 0);
      if (round % 3 == 0) {
        check(fmt::format("y = {}<{}>(x)", op, keep), {x});
      } else if (axes.empty()) {
        const std::string line = integers("axes", {0}, {});
        check(line + fmt::format("y = {}<{}, noop_with_empty_axes = {}>(x, axes)", op, keep,
                                 draw.below(2)),
              {x});
      } else {
        check(integers("axes", axes) + fmt::format("y = {}<{}>(x, axes)", op, keep), {x});
      }
    }
    // Nothing along an axis that stays; and for sums along one that goes.
    check(integers("axes", {1}) + fmt::format("y = {}(x, axes)", op),
          {draw.input("x", {0, 3}, 0.4, 2)});
  }
  for (const char* op : {"ReduceSum", "ReduceSumSquare", "ReduceL1", "ReduceL2"})
    check(integers("axes", {1}) + fmt::format("y = {}(x, axes)", op), {draw.input("x", {2, 0})});
  for (const char* op :
       {"Softmax", "LogSoftmax", "LpNormalization<p = 1, ", "LpNormalization<p = 2, "}) {
    for (int round = 0; round < 6; ++round) {
      const Shape shape = draw.shape(1, 4, round != 0);
      const std::string name = op;
      check(fmt::format("y = {}{}axis = {}>(x)", name, name.back() == ' ' ? "" : "<",
                        draw.axis(static_cast<int64_t>(shape.size()))),
            {draw.input("x", shape, -2, 2)});
    }
  }
}

void products(const Check& check) {
  Draw draw(5);
  for (int round = 0; round < 24; ++round) {
    const int64_t m = draw.between(1, 3), k = draw.between(round % 6 == 5 ? 0 : 1, 3),
                  n = draw.between(1, 3);
    const Shape batch = draw.shape(0, 2);
    Shape a = draw.narrower(batch), b = draw.narrower(batch);
    if (round % 4 == 1)
      a = {};
    else
      a.push_back(m);
    if (round % 4 == 2) b = {};
    a.push_back(k), b.push_back(k);
    if (round % 4 != 2) b.push_back(n);
    check("y = MatMul(a, b)", {draw.input("a", a), draw.input("b", b)});
  }
  check("y = MatMul(a, a)", {draw.input("a", {2, 3, 3})});
  check("y = MatMul(a, a)", {draw.input("a", {4})});
  for (int round = 0; round < 12; ++round) {
    const bool ta = draw.one_in(2), tb = draw.one_in(2);
    const int64_t m = draw.between(1, 3), k = draw.between(0, 3), n = draw.between(1, 3);
    std::vector<Input> inputs{draw.input("a", ta ? Shape{k, m} : Shape{m, k}),
                              draw.input("b", tb ? Shape{n, k} : Shape{k, n})};
    if (!draw.one_in(4)) inputs.push_back(draw.input("c", draw.narrower({m, n})));
    check(fmt::format("y = Gemm<transA = {}, transB = {}, alpha = {:.1f}, beta = {:.1f}>(a, b{})",
                      int{ta}, int{tb}, draw.any_of<double>({1.0, 0.5, -1.5}),
                      draw.any_of<double>({1.0, 2.0, -0.5}), inputs.size() > 2 ? ", c" : ""),
          inputs);
  }
  for (const int64_t n : {1, 2, 4}) {
    Shape shape = draw.shape(0, 2);
    shape.push_back(n), shape.push_back(n);
    check("y = Det(x)", {draw.input("x", shape)});
  }
  for (int round = 0; round < 12; ++round) {
    // Each label is in one operand or both, in the output or summed away.
    std::string left, right, out;
    Shape a, b;
    for (const char label : std::string("ijkl")) {
      const int64_t size = draw.between(1, 3), where = draw.below(3);
      if (where != 1) left += label, a.push_back(size);
      if (where != 0) right += label, b.push_back(size);
      if (draw.one_in(2)) out += label;
    }
    std::string dots = round % 3 == 0 ? "..." : "";
    if (!dots.empty()) a.insert(a.begin(), 2), b.insert(b.begin(), draw.between(1, 2));
    check(fmt::format("y = Einsum<equation = \"{0}{1},{0}{2}->{0}{3}\">(a, b)", dots, left, right,
                      out),
          {draw.input("a", a), draw.input("b", b)});
  }
}

void shapes(const Check& check) {
  Draw draw(6);
  for (int round = 0; round < 8; ++round) {
    const Shape shape = draw.shape(0, 4);
    const Input x = draw.input("x", shape);
    const auto rank = static_cast<int64_t>(shape.size());
    check("y = Transpose(x)", {x});
    if (rank > 0)
      check(fmt::format("y = Transpose<perm = {}>(x)", listed(draw.order(shape.size()))), {x});
    check(fmt::format("y = Flatten<axis = {}>(x)", draw.between(-rank, rank)), {x});
    check(integers("s", {-1}) + "y = Reshape(x, s)", {draw.input("x", draw.shape(0, 3, false))});
    check(integers("s", {elements_of(shape), 1}) + "y = Reshape<allowzero = 1>(x, s)", {x});
    const int64_t at = draw.between(-rank - 1, rank);
    check(integers("a", {at}) + "w = Unsqueeze(x, a)\n v = Sin(w)\n y = Squeeze(v, a)", {x});
    check("y = Squeeze(x)", {draw.input("x", {1, draw.between(0, 3), 1})});
    const std::vector<int64_t> wide(shape.begin(), shape.end());
    if (rank > 0)
      check(integers("s", wide) + "y = Expand(x, s)", {draw.input("x", draw.narrower(shape))});
    check(integers("r", {rank}, draw.integers(shape.size(), 0, 2)) + "y = Tile(x, r)", {x});
    check("f = Cast<to = 11>(x)\n y = CastLike(f, x)", {x});
  }
}

void pieces(const Check& check) {
  Draw draw(7);
  for (int round = 0; round < 12; ++round) {
    Shape shape = draw.shape(1, 4, round % 4 == 0);
    const auto rank = static_cast<int64_t>(shape.size());
    const int64_t axis = draw.axis(rank);
    const auto at = static_cast<size_t>(axis < 0 ? axis + rank : axis);
    Shape other = shape;
    other[at] = draw.between(0, 3);
    check(fmt::format("y = Concat<axis = {}>(a, b, a)", axis),
          {draw.input("a", shape), draw.input("b", other)});
    shape[at] = draw.between(3, 5);
    const Input x = draw.input("x", shape);
    const std::string used =
        draw.one_in(2) ? "y = Sin(b)" : "y = Concat<axis = " + std::to_string(axis) + ">(c, a)";
    check(fmt::format("a, b, c = Split<axis = {}, num_outputs = 3>(x)\n {}", axis, used), {x});
    check(integers("n", {1, shape[at] - 1, 0}) +
              fmt::format("a, b, c = Split<axis = {}>(x, n)\n {}", axis, used),
          {x});
    const std::vector<int64_t> axes = draw.axes(shape.size(), 1);
    std::vector<int64_t> starts, ends, steps;
    for (size_t i = 0; i < axes.size(); ++i) {
      starts.push_back(draw.between(-6, 6)), ends.push_back(draw.between(-6, 6));
      steps.push_back(draw.any_of<int64_t>({-2, -1, 1, 2}));
    }
    check(integers("s", starts) + integers("e", ends) + integers("a", axes) + integers("t", steps) +
              "y = Slice(x, s, e, a, t)",
          {x});
    std::vector<int64_t> pads;
    for (size_t i = 0; i < 2 * axes.size(); ++i) pads.push_back(draw.between(-1, 2));
    const Shape whole(shape.size(), 3);
    check(integers("p", pads) + integers("a", axes) +
              "v = Constant<value = double {0.7}>()\n y = Pad(x, p, v, a)",
          {draw.input("x", whole)});
    for (int64_t& pad : pads) pad = std::max<int64_t>(0, pad);
    for (const char* mode : {"reflect", "edge", "wrap"})
      check(integers("p", pads) + integers("a", axes) +
                fmt::format("y = Pad<mode = \"{}\">(x, p, , a)", mode),
            {draw.input("x", whole)});
    for (const char* op : {"CumSum", "CumProd"})
      check(integers("a", {}, {axis}) + fmt::format("y = {}<exclusive = {}, reverse = {}>(x, a)",
                                                    op, draw.below(2), draw.below(2)),
            {draw.input("x", shape, 0.5, 1.5)});
    check(integers("k", {draw.between(1, shape[at])}) +
              fmt::format("y, i = TopK<axis = {}, largest = {}, sorted = {}>(x, k)", axis,
                          draw.below(2), draw.below(2)),
          {x});
  }
}

void indexed(const Check& check) {
  Draw draw(8);
  for (int round = 0; round < 10; ++round) {
    Shape shape = draw.shape(1, 3, false);
    const auto rank = static_cast<int64_t>(shape.size());
    const int64_t axis = draw.axis(rank);
    const auto at = static_cast<size_t>(axis < 0 ? axis + rank : axis);
    const int64_t size = shape[at];
    const auto places = [&](const Shape& of) {
      const auto n = static_cast<size_t>(elements_of(of));
      return integers("i", of, n == 0 ? std::vector<int64_t>{} : draw.integers(n, -size, size - 1));
    };
    const Input x = draw.input("x", shape);
    check(places(draw.shape(0, 2)) + fmt::format("y = Gather<axis = {}>(x, i)", axis), {x});
    Shape some = shape;
    some[at] = draw.between(1, 3);
    check(places(some) + fmt::format("y = GatherElements<axis = {}>(x, i)", axis), {x});
    // Each place once where the last one would win, any number of times where they add up.
    std::vector<int64_t> once;
    Shape column(shape.size(), 1);
    column[at] = draw.between(1, size);
    once = draw.order(static_cast<size_t>(size));
    once.resize(static_cast<size_t>(column[at]));
    const Input u = draw.input("u", column, 0.4, 2.1);
    check(
        integers("i", column, once) + fmt::format("y = ScatterElements<axis = {}>(x, i, u)", axis),
        {x, u});
    const Input up = draw.input("x", shape, 0.45, 2);
    for (const char* how : {"add", "mul", "max", "min"})
      check(
          places(some) +
              fmt::format("y = ScatterElements<axis = {}, reduction = \"{}\">(x, i, v)", axis, how),
          {up, draw.input("v", some, 0.4, 2.1)});
  }
  for (int round = 0; round < 8; ++round) {
    const Shape shape{2, 3, draw.between(1, 3)};
    const Input x = draw.input("x", shape, 0.45, 2);
    const std::string pairs =
        integers("i", {2, 2}, {draw.below(2), draw.below(3), draw.below(2) - 2, draw.below(3) - 3});
    check(pairs + "y = GatherND(x, i)", {x});
    check(integers("i", {2, 2, 1}, draw.integers(4, -3, 2)) + "y = GatherND<batch_dims = 1>(x, i)",
          {x});
    check(integers("i", {2, 2}, {0, draw.below(3), 1, draw.below(3)}) + "y = ScatterND(x, i, u)",
          {x, draw.input("u", {2, shape[2]})});
    for (const char* how : {"add", "mul", "max", "min"})
      check(integers("i", {3, 1}, draw.integers(3, 0, 1)) +
                fmt::format("y = ScatterND<reduction = \"{}\">(x, i, u)", how),
            {x, draw.input("u", {3, 3, shape[2]}, 0.4, 2.1)});
    check(integers("c", {3}, draw.integers(3, 0, 1), "bool") + "y = Compress<axis = 1>(x, c)", {x});
    check(integers("c", {4}, draw.integers(4, 0, 1), "bool") + "y = Compress(x, c)", {x});
    check(integers("n", draw.integers(3, 1, 2)) +
              "y = ReverseSequence<batch_axis = 1, time_axis = 0>(x, n)",
          {x});
    check(integers("k", {}, {draw.between(-2, 2)}) +
              fmt::format("y = Trilu<upper = {}>(x, k)", draw.below(2)),
          {x});
    check(integers("s", {draw.between(0, 5), draw.between(1, 5)}) +
              fmt::format("y = CenterCropPad<axes = {}>(x, s)",
                          draw.one_in(2) ? "[0, 2]" : "[-1, 1]"),
          {x});
    for (const char* mode : {"linear", "circular"})
      check(integers("w", {2}, draw.integers(2, 0, 1)) +
                fmt::format("y = TensorScatter<mode = \"{}\">(x, u, w)", mode),
            {x, draw.input("u", {2, 2, shape[2]})});
  }
  for (const char* mode : {"DCR", "CRD"})
    check(fmt::format("y = DepthToSpace<blocksize = 2, mode = \"{}\">(x)", mode),
          {draw.input("x", {2, 8, 2, 1})});
  check("y = SpaceToDepth<blocksize = 2>(x)", {draw.input("x", {2, 1, 4, 2})});
}

// What comes from numbers without fractions has no slope; the rest keeps its own.
void whole_numbers(const Check& check) {
  Draw draw(9);
  for (const char* body :
       {"i = Cast<to = 7>(x)\n f = CastLike(i, x)\n y = Mul(f, x)",
        "f = Floor(x)\n c = Ceil(x)\n r = Round(x)\n s = Sign(x)\n fc = Add(f, c)\n rs = Add(r, "
        "s)\n "
        "t = Add(fc, rs)\n y = Mul(t, x)",
        "s = Shape(x)\n n = Size(x)\n f = CastLike(n, x)\n g = Mul(x, f)\n y = Reshape(g, s)",
        "z = Constant<value = double {0.1}>()\n c = Less(x, z)\n n = Not(c)\n f = CastLike(n, x)\n "
        "y = "
        "Mul(f, x)",
        "a = ArgMax<keepdims = 0>(x)\n y = Gather(x, a)", "h = Hardmax(x)\n y = Mul(h, x)"})
    check(body, {draw.input("x", {4, 3}, -2.4, 2.4)});
  const Input a{"a", Tensor::scalar<double>(0.3)}, d{"d", Tensor::scalar<double>(0.4)};
  check("l = Constant<value = double {1.7}>()\n y = Range(a, l, d)", {a, d});
  check("n = Constant<value_ints = [2, 3, 4, 3]>()\n g = AffineGrid(t, n)\n y = GridSample(x, g)",
        {draw.input("t", {2, 2, 3}, -0.9, 0.9), draw.input("x", {2, 3, 3, 4})});
}

constexpr GradientCases random_element_groups[] = {
    {"RandomUnary", unary},
    {"RandomBinary", binary},
    {"RandomManyOperands", many_operands},
    {"RandomReductions", reductions},
    {"RandomProducts", products},
    {"RandomShapes", shapes},
    {"RandomPieces", pieces},
    {"RandomIndexed", indexed},
    {"WholeNumbers", whole_numbers},
};

}  // namespace

std::span<const GradientCases> random_element_cases() { return random_element_groups; }

}  // namespace sardonyx::test
