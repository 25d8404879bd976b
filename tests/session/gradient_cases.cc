#include "gradient_draw.h"

#include <fmt/format.h>

#include <cmath>

namespace sardonyx::test {
namespace {

Tensor spread(Shape shape, double low, double high) {
  Tensor tensor(ElementType::float64, std::move(shape));
  const auto n = static_cast<double>(tensor.size());
  double i = 0;
  // Steps of an irrational number visit the interval evenly, without ties.
  for (double& v : tensor.mutable_elements<double>()) {
    i += 1;
    v = low + (high - low) * std::fmod(i * 0.6180339887498949 + 0.013 * n, 1.0);
  }
  return tensor;
}

void unary_operators(const Check& check) {
  const Input x{"x", spread({2, 5}, -0.9, 0.9)};
  for (const char* op :
       {"Neg",  "Exp",   "Tanh",     "Sigmoid",   "Softplus",    "Softsign",  "Erf",
        "Sin",  "Cos",   "Tan",      "Asin",      "Acos",        "Atan",      "Sinh",
        "Cosh", "Asinh", "Atanh",    "Abs",       "Relu",        "LeakyRelu", "Elu",
        "Selu", "Celu",  "Identity", "HardSwish", "HardSigmoid", "Mish",      "Gelu"})
    check("y = " + std::string(op) + "(x)", {x});
  check("y = Gelu<approximate = \"tanh\">(x)", {x});
  const Input positive{"x", spread({2, 5}, 1.2, 3)};
  for (const char* op : {"Sqrt", "Log", "Reciprocal", "Acosh"})
    check("y = " + std::string(op) + "(x)", {positive});
}

void broadcast_operators(const Check& check) {
  const Input a{"a", spread({2, 1, 4}, 0.5, 2)}, b{"b", spread({3, 1}, 0.7, 1.5)};
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Pow"})
    check("y = " + std::string(op) + "(a, b)", {a, b});
  for (const char* op : {"Max", "Min", "Sum", "Mean"})
    check("y = " + std::string(op) + "(a, b, a)", {a, b});
  check("y = PRelu(a, b)", {{"a", spread({2, 3, 4}, -1, 1)}, b});
  check("half = Constant<value = double {1.0}>()\n c = Less(a, half)\n y = Where(c, a, b)", {a, b});
  check("low = Constant<value = double {0.8}>()\n y = Clip(a, low)", {a});
}

void products(const Check& check) {
  check("y = MatMul(a, b)", {{"a", spread({2, 3, 4}, -1, 1)}, {"b", spread({4, 2}, -1, 1)}});
  check("y = MatMul(a, b)", {{"a", spread({4}, -1, 1)}, {"b", spread({2, 4, 3}, -1, 1)}});
  check("y = MatMul(a, b)", {{"a", spread({2, 3, 4}, -1, 1)}, {"b", spread({4}, -1, 1)}});
  for (const char* turned :
       {"transA = 0", "transA = 1", "transA = 0, transB = 1", "transA = 1, transB = 1"}) {
    const bool ta = std::string(turned).find("transA = 1") != std::string::npos,
               tb = std::string(turned).find("transB = 1") != std::string::npos;
    check("y = Gemm<alpha = 0.5, beta = 2.0, " + std::string(turned) + ">(a, b, c)",
          {{"a", spread(ta ? Shape{4, 3} : Shape{3, 4}, -1, 1)},
           {"b", spread(tb ? Shape{2, 4} : Shape{4, 2}, -1, 1)},
           {"c", spread({2}, -1, 1)}});
  }
}

void reductions(const Check& check) {
  const Input x{"x", spread({2, 3, 4}, 0.5, 2)};
  for (const char* op :
       {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
        "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"}) {
    for (const char* keep : {"0", "1"})
      check("axes = Constant<value_ints = [0, -1]>()\n y = " + std::string(op) +
                "<keepdims = " + keep + ">(x, axes)",
            {x});
    check("y = " + std::string(op) + "(x)", {x});
  }
  for (const char* op : {"Softmax", "LogSoftmax"})
    check("y = " + std::string(op) + "<axis = 1>(x)", {x});
}

void movement(const Check& check) {
  const Input x{"x", spread({2, 3, 4}, -1, 1)};
  const std::string one = "one = Constant<value_ints = [1]>()\n ";
  for (const char* body :
       {"s = Constant<value_ints = [4, 6]>()\n y = Reshape(x, s)", "y = Transpose(x)",
        "y = Transpose<perm = [1, 2, 0]>(x)", "y = Flatten(x)",
        "a = Constant<value_ints = [0]>()\n y = Unsqueeze(x, a)",
        "s = Constant<value_ints = [5, 2, 3, 4]>()\n y = Expand(x, s)",
        "y = Concat<axis = 1>(x, x)",
        "a, b, c = Split<axis = 1, num_outputs = 3>(x)\n y = Mul(a, c)",
        "a, , c = Split<axis = 1, num_outputs = 3>(x)\n y = Mul(a, c)",
        "s = Constant<value_ints = [3, 0]>()\n e = Constant<value_ints = [0, 2]>()\n"
        " a = Constant<value_ints = [2, 1]>()\n t = Constant<value_ints = [-2, 1]>()\n"
        " y = Slice(x, s, e, a, t)",
        "i = Constant<value_ints = [2, 0, 2, -1]>()\n y = Gather<axis = 1>(x, i)",
        "i = Constant<value = int64[2, 1, 4] {0, 1, 2, 0, 2, 2, 1, 0}>()\n"
        " y = GatherElements<axis = 1>(x, i)",
        "i = Constant<value = int64[2, 2] {0, 1, 1, 2}>()\n y = GatherND(x, i)",
        "r = Constant<value_ints = [2, 1, 3]>()\n y = Tile(x, r)",
        "p = Constant<value_ints = [0, 1, 0, 1, 0, 2]>()\n y = Pad(x, p)",
        "p = Constant<value_ints = [0, 1, 0, 0, 0, 2]>()\n y = Pad<mode = \"reflect\">(x, p)",
        "a = Constant<value_int = 2>()\n y = CumSum<exclusive = 1>(x, a)"})
    check(body, {x});
  check(
      "i = Constant<value = int64[1, 3, 4] {1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0}>()\n"
      " y = ScatterElements(x, i, u)",
      {x, {"u", spread({1, 3, 4}, -1, 1)}});
}

void layers(const Check& check) {
  const Input x{"x", spread({2, 3, 5, 4}, -1, 1)}, scale{"s", spread({3}, 0.5, 2)},
      bias{"b", spread({3}, -1, 1)};
  check(
      "m = Constant<value = double[3] {0.1, 0.2, -0.3}>()\n"
      " v = Constant<value = double[3] {1.0, 2.0, 0.5}>()\n"
      " y = BatchNormalization(x, s, b, m, v)",
      {x, scale, bias});
  check("y = GlobalAveragePool(x)", {x});
  check("y = LayerNormalization<axis = -2>(x, s, b)",
        {x, {"s", spread({5, 4}, 0.5, 2)}, {"b", spread({5, 4}, -1, 1)}});
  for (const char* form : {"", "<strides = [2, 1], pads = [1, 0, 0, 1]>",
                           "<dilations = [2, 1], auto_pad = \"SAME_UPPER\">"})
    check("y = Conv" + std::string(form) + "(x, w, c)",
          {x, {"w", spread({4, 3, 2, 3}, -1, 1)}, {"c", spread({4}, -1, 1)}});
  check("y = Conv<group = 3, strides = [2, 2]>(x, w)", {x, {"w", spread({6, 1, 2, 2}, -1, 1)}});
}

void windows(const Check& check) {
  const Input x{"x", spread({2, 3, 5, 4}, -1, 1)};
  for (const char* form :
       {"kernel_shape = [2, 2]", "kernel_shape = [2, 3], strides = [2, 1], pads = [1, 0, 0, 2]",
        "kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1",
        "kernel_shape = [3, 2], dilations = [2, 1], auto_pad = \"SAME_LOWER\""}) {
    check("y = MaxPool<" + std::string(form) + ">(x)", {x});
    check("y = AveragePool<" + std::string(form) + ">(x)", {x});
  }
  check("y = AveragePool<kernel_shape = [2, 2], pads = [1, 1, 0, 1], count_include_pad = 1>(x)",
        {x});
  const Input blocks{"x", spread({1, 8, 2, 3}, -1, 1)};
  check("y = DepthToSpace<blocksize = 2, mode = \"CRD\">(x)", {blocks});
  check("y = SpaceToDepth<blocksize = 2>(x)", {{"x", spread({1, 2, 4, 2}, -1, 1)}});
}

void losses(const Check& check) {
  const Input x{"x", spread({3, 4, 2}, -2, 2)};
  const std::string labels =
      "t = Constant<value = int64[3, 2] {0, 3, 1, 1, 2, 0}>()\n"
      " w = Constant<value = double[4] {0.5, 2.0, 1.0, 3.0}>()\n ";
  for (const char* form : {"", "<reduction = \"none\">", "<reduction = \"sum\">",
                           "<ignore_index = 1>", "<ignore_index = 1, reduction = \"sum\">"}) {
    for (const char* weights : {"", ", w"}) {
      const std::string call = std::string(form) + "(x, t" + weights + ")";
      check(labels + "y = SoftmaxCrossEntropyLoss" + call, {x});
      check(labels + "y = NegativeLogLikelihoodLoss" + call, {x});
    }
  }
  check(labels + "l, p = SoftmaxCrossEntropyLoss(x, t, w)\n y = Mul(l, p)", {x});
}

void normalizations(const Check& check) {
  const Input x{"x", spread({2, 4, 3, 2}, -1, 1)}, s{"s", spread({4}, 0.5, 2)},
      b{"b", spread({4}, -1, 1)};
  check("y = InstanceNormalization<epsilon = 0.01>(x, s, b)", {x, s, b});
  for (const char* groups : {"1", "2", "4"})
    check("y = GroupNormalization<num_groups = " + std::string(groups) + ">(x, s, b)", {x, s, b});
  check("y = RMSNormalization<axis = 2>(x, s)", {x, {"s", spread({3, 2}, 0.5, 2)}});
  for (const char* form : {"p = 1, axis = 1", "p = 2", "axis = 0"})
    check("y = LpNormalization<" + std::string(form) + ">(x)", {x});
  check("y = MeanVarianceNormalization(x)", {x});
  check(
      "m = Constant<value = double[4] {0.1, 0.2, -0.3, 0}>()\n v = Constant<value = double[4] {1, "
      "1, 1, 1}>()\n"
      " y, rm, rv = BatchNormalization<training_mode = 1>(x, s, b, m, v)",
      {x, s, b});
}

void choices(const Check& check) {
  const Input x{"x", spread({2, 3, 4}, -1, 1)};
  for (const char* form : {"axis = 1", "largest = 0", "axis = 0, sorted = 0"})
    check("k = Constant<value_ints = [2]>()\n y, i = TopK<" + std::string(form) + ">(x, k)", {x});
  for (const char* form : {"upper = 1", "upper = 0"})
    check("k = Constant<value_int = 1>()\n y = Trilu<" + std::string(form) + ">(x, k)", {x});
  check(
      "n = Constant<value_ints = [2, 1, 2]>()\n y = ReverseSequence<batch_axis = 1, time_axis = "
      "0>(x, n)",
      {x});
  for (const char* form : {"", "<exclusive = 1>", "<reverse = 1>", "<exclusive = 1, reverse = 1>"})
    check("a = Constant<value_int = 1>()\n y = CumProd" + std::string(form) + "(x, a)", {x});
  const Input plane{"x", spread({2, 3, 4, 3}, -1, 1)};
  check("y = GlobalMaxPool(x)", {plane});
  for (const char* p : {"1", "2", "3"})
    check("y = GlobalLpPool<p = " + std::string(p) + ">(x)", {plane});
  check(
      "v, i = MaxPool<kernel_shape = [2, 2], strides = [2, 1]>(x)\n"
      " y = MaxUnpool<kernel_shape = [2, 2], strides = [2, 1]>(v, i)",
      {plane});
  check(
      "c = Constant<value = double[2, 4, 1] {0.9, 0.1, 0.5, 0.3, 0.2, 0.7, 0.6, 0.4}>()\n"
      " f = Cast<to = 1>(x)\n g = Cast<to = 1>(c)\n r = RotaryEmbedding(f, g, g)\n"
      " y = Cast<to = 11>(r)",
      {{"x", spread({2, 3, 4, 2}, -1, 1)}}, Precision::float32);
  check(
      "f = Constant<value = double[2, 4, 1] {0.9, 0.1, 0.5, 0.3, 0.2, 0.7, 0.6, 0.4}>()\n"
      " c = Concat<axis = -1>(f, f)\n g = Cast<to = 1>(c)\n h = Cast<to = 1>(x)\n"
      " r = RotaryEmbedding<interleaved = 1, num_heads = 2, rotary_embedding_dim = 4>(h, g, g)\n"
      " y = Cast<to = 11>(r)",
      {{"x", spread({2, 4, 12}, -1, 1)}}, Precision::float32);
}

void more_movement(const Check& check) {
  const Input x{"x", spread({2, 3, 4}, -1, 1)}, u{"u", spread({2, 4}, -1, 1)};
  check("y = Mod<fmod = 1>(x, m)", {x, {"m", spread({4}, 0.35, 0.6), false}});
  check("a = Constant<value_ints = [1]>()\n w = Unsqueeze(x, a)\n y = Squeeze(w, a)", {x});
  check("y = Squeeze(x)", {{"x", spread({1, 3, 1}, -1, 1)}});
  const std::string nd = "i = Constant<value = int64[2, 2] {0, 2, 1, 0}>()\n ";
  check(nd + "y = ScatterND(x, i, u)", {x, u});
  check(
      "i = Constant<value = int64[2, 2] {0, 2, 0, 2}>()\n y = ScatterND<reduction = \"add\">(x, i, "
      "u)",
      {x, u});
  check(
      "i = Constant<value = int64[1, 3, 4] {1, 0, 1, 0, 1, 1, 1, 0, 1, 0, 0, 0}>()\n"
      " y = ScatterElements<reduction = \"add\">(x, i, v)",
      {x, {"v", spread({1, 3, 4}, -1, 1)}});
  // Without training everything is kept; with a ratio of 0 the mask keeps everything, too.
  check("y = Dropout(x)", {x});
  check(
      "r = Constant<value_float = 0.0>()\n t = Constant<value = bool {1}>()\n"
      " y, kept = Dropout<seed = 3>(x, r, t)",
      {x});
  // The gradient of a gradient, in which sums over what was broadcast stand.
  check(
      "h = Mul(x, m)\n k = Mul(h, m)\n s = ReduceSum<keepdims = 0>(k)\n"
      " y = ai.onnx.preview.training.Gradient<xs = [\"m\"], zs = [\"x\"], y = \"s\">(m, x)",
      {x, {"m", spread({3, 1}, 0.5, 2)}});
}

void branches(const Check& check) {
  const Input x{"x", spread({3}, 0.2, 1)}, w{"w", spread({3}, 0.5, 2)};
  for (const char* limit : {"0.0", "9.0"}) {
    check("limit = Constant<value = double {" + std::string(limit) +
              "}>()\n m = ReduceMax<keepdims = 0>(x)\n c = Less(m, limit)\n"
              " s = Sin(x)\n"
              " y = If(c) <then_branch = t () => (a) { h = Mul(s, w)\n a = Mul(h, x) },"
              " else_branch = e () => (b) { b = Exp(x) }>",
          {x, w});
  }
  // A branch inside a branch, which hands on a value from around it.
  check(
      "c = Constant<value = bool {1}>()\n"
      " y, z = If(c) <then_branch = t () => (a, o) { a = If(c) <then_branch = tt () => (p) { p = "
      "Mul(x, w) },"
      " else_branch = te () => (q) { q = Identity(w) }>\n o = Identity(x) },"
      " else_branch = e () => (b, p) { b = Exp(x)\n p = Neg(x) }>",
      {x, w});
}

void iterations(const Check& check) {
  const Input x{"x", spread({2, 3}, 0.2, 1)}, w{"w", spread({3}, 0.5, 1.2)};
  const std::string four =
      "n = Constant<value = int64 {4}>()\n go = Constant<value = bool {1}>()\n ";
  check(four +
            "y = Loop(n, go, x) <body = b (int64 i, bool c, v) => (o, r) {"
            " o = Identity(c)\n t = Tanh(v)\n r = Mul(t, w) }>",
        {x, w});
  // Stacked outputs, the number of the iteration, and an end before the count is reached.
  check(four +
            "two = Constant<value = int64 {2}>()\n"
            " e, s = Loop(n, go, x) <body = b (int64 i, bool c, v) => (o, r, out) {"
            " o = Less(i, two)\n k = CastLike(i, v)\n h = Mul(v, w)\n r = Sin(h)\n out = Mul(k, r) "
            "}>\n"
            " t = ReduceSum<keepdims = 0>(s)\n y = Mul(e, t)",
        {x, w});
  check(
      "zero = Constant<value = int64 {0}>()\n y = Loop(zero, , x) <body = b (int64 i, bool c, v) "
      "=> (o, r) {"
      " o = Identity(c)\n r = Mul(v, w) }>",
      {x, w});
  const Input h{"h", spread({3}, -1, 1)}, xs{"x", spread({4, 3}, -1, 1)};
  check(
      "f, y = Scan<num_scan_inputs = 1, body = b (s, e) => (t, out) {"
      " p = Mul(s, w)\n q = Add(p, e)\n t = Tanh(q)\n out = Mul(t, e) }>(h, x)",
      {h, xs, w});
  check(
      "f, s = Scan<num_scan_inputs = 2, scan_input_axes = [1, 0], scan_input_directions = [1, 0],"
      " scan_output_axes = [1], scan_output_directions = [1], body = b (s, e, g) => (t, out) {"
      " p = Mul(s, e)\n t = Add(p, g)\n out = Sin(t) }>(h, x, z)\n g = Mul(s, s)\n"
      " k = ReduceSum<keepdims = 0>(g)\n y = Mul(f, k)",
      {h, {"x", spread({3, 4}, -1, 1)}, {"z", spread({4, 3}, -1, 1)}});
  // A Loop in a Scan, and an If in it.
  check(
      "f, y = Scan<num_scan_inputs = 1, body = b (s, e) => (t, out) {"
      " n = Constant<value = int64 {2}>()\n go = Constant<value = bool {1}>()\n"
      " t = Loop(n, go, s) <body = l (int64 i, bool c, v) => (o, r) { o = Identity(c)\n"
      " one = Constant<value = int64 {1}>()\n first = Less(i, one)\n"
      " r = If(first) <then_branch = tb () => (a) { a = Mul(v, w) }, else_branch = eb () => (d) { "
      "d = Sin(e) }> }>\n"
      " out = Mul(t, e) }>(h, x)",
      {h, xs, w});
}

// Iterations whose products the gradient reads instead of computing them again.
void products_in_iterations(const Check& check) {
  const Input x{"x", spread({2, 3}, 0.2, 1)}, w{"w", spread({3, 3}, -0.6, 0.7)},
      b{"b", spread({3}, -0.2, 0.3)};
  const std::string start =
      "n = Constant<value = int64 {3}>()\n two = Constant<value = int64 {2}>()\n go = "
      "Constant<value = bool {1}>()\n zero = Constant<value_ints = [0]>()\n ";
  // What is read is a product, what follows from one, and one part of several; the end comes
  // before the count is reached.
  check(start +
            "e, all = Loop(n, go, x) <body = l (int64 i, bool c, v) => (o, r, out) { o = Less(i, "
            "two)\n m = MatMul(v, w)\n a = Add(m, b)\n s = Softmax(a)\n f, g = Split<axis = 0, "
            "num_outputs = 2>(s)\n h = Mul(f, g)\n k = CastLike(i, h)\n out = Add(h, k)\n"
            " r = Mul(a, v) }>\n t = ReduceSum<keepdims = 0>(all)\n y = Mul(e, t)",
        {x, w, b});
  // A product of what does not change, and one whose shape is another each time.
  check(start +
            "y = Loop(n, go, x) <body = l (int64 i, bool c, v) => (o, r) { o = Identity(c)\n"
            " ww = MatMul(w, w)\n one = Constant<value_ints = [1]>()\n j = Reshape(i, one)\n"
            " k = Add(j, one)\n part = Slice(w, zero, k, zero)\n q = MatMul(part, ww)\n p = "
            "Tanh(q)\n u = ReduceSum(p, zero)\n d = Mul(v, u)\n r = Tanh(d) }>",
        {x, w});
  // Scans both ways, with stacks along other axes.
  check(
      "f, s = Scan<num_scan_inputs = 2, scan_input_axes = [1, 0], scan_input_directions = [1, 0],"
      " scan_output_axes = [1], scan_output_directions = [1], body = l (h, e, g) => (t, out) {"
      " m = Gemm(h, w, b)\n p = Sigmoid(m)\n q = Mul(p, e)\n t = Add(q, g)\n out = MatMul(t, w) "
      "}>(x, i, j)\n k = ReduceSum<keepdims = 0>(s)\n y = Mul(f, k)",
      {x, w, b, {"i", spread({2, 4, 3}, -1, 1)}, {"j", spread({4, 2, 3}, -1, 1)}});
  // Loops in loops, with a branch and a layer between them.
  check(start +
            "y = Loop(n, go, x) <body = l (int64 i, bool c, v) => (o, r) { o = Identity(c)\n"
            " m = MatMul(v, w)\n first = Less(i, two)\n"
            " br = If(first) <then_branch = tb () => (a) { ma = MatMul(m, w)\n a = Sin(ma) }, "
            "else_branch = eb () => (d) { d = Tanh(m) }>\n"
            " h, all = Loop(two, go, br) <body = ll (int64 j, bool cc, u) => (oo, rr, k) { oo = "
            "Identity(cc)\n mu = MatMul(u, w)\n rr = Tanh(mu)\n k = Mul(rr, mu) }>\n"
            " sum = ReduceSum<keepdims = 0>(all, zero)\n r = Add(h, sum) }>",
        {x, w});
  // Beside states that change their shape, and sequences.
  check(start +
            "list = SequenceConstruct(b)\n"
            " e, g, s = Loop(n, go, x, x, list) <body = l (int64 i, bool c, v, grow, items) => (o, "
            "r, more, next) { o = Identity(c)\n m = MatMul(v, w)\n r = Tanh(m)\n"
            " last = Mul(grow, b)\n sl = Sin(last)\n more = Concat<axis = 0>(sl, r)\n"
            " next = SequenceInsert(items, r) }>\n"
            " a = ConcatFromSequence<axis = 0, new_axis = 0>(s)\n"
            " sa = ReduceSum<keepdims = 0>(a)\n sg = ReduceSum<keepdims = 0>(g)\n p = Mul(sa, "
            "sg)\n y = Mul(e, p)",
        {x, w, {"b", spread({1, 3}, -0.2, 0.3)}});
}

// What grows from iteration to iteration, shrinks, or changes its rank.
void changing_states(const Check& check) {
  const Input x{"x", spread({2, 3}, 0.2, 1)}, w{"w", spread({3}, 0.5, 1.2)};
  const std::string three =
      "n = Constant<value = int64 {3}>()\n go = Constant<value = bool {1}>()\n one = "
      "Constant<value_ints = [1]>()\n big = Constant<value_ints = [9]>()\n zero = "
      "Constant<value_ints = [0]>()\n ";
  check(three +
            "y = Loop(n, go, x) <body = b (int64 i, bool c, v) => (o, r) { o = Identity(c)\n"
            " s = Slice(v, zero, one, zero)\n t = Mul(s, w)\n u = Sin(t)\n r = Concat<axis = 0>(v, "
            "u) }>",
        {x, w});
  check(three +
            "y = Loop(n, go, x) <body = b (int64 i, bool c, v) => (o, r) { o = Identity(c)\n"
            " s = Tanh(v)\n t = Concat<axis = 0>(s, s)\n r = Slice(t, one, big, zero) }>",
        {x});
  // Beside a state that keeps its shape, stacked outputs and the number of the iteration.
  check(
      three +
          "p, q, all = Loop(n, go, x, w) <body = b (int64 i, bool c, v, k) => (o, r, l, out) { o = "
          "Identity(c)\n f = CastLike(i, k)\n g = Mul(k, f)\n l = Sin(g)\n h = Mul(v, l)\n"
          " r = Concat<axis = 0>(h, v)\n out = ReduceSum<keepdims = 0>(h) }>\n"
          " sp = ReduceSum<keepdims = 0>(p)\n sa = ReduceSum<keepdims = 0>(all)\n m = Mul(sp, "
          "sa)\n y = "
          "Add(q, m)",
      {x, w});
  // The end of it is not asked for, only what each iteration makes.
  check(three +
            "p, all = Loop(n, go, x) <body = b (int64 i, bool c, v) => (o, r, out) { o = "
            "Identity(c)\n"
            " h = Mul(v, w)\n r = Concat<axis = 0>(h, v)\n out = ReduceSum<keepdims = 0>(h) }>\n"
            " y = Sin(all)",
        {x, w});
}

// Sequences that grow, turn over and are read in part, beside states that are tensors.
void sequence_states(const Check& check) {
  const Input x{"x", spread({2, 3}, 0.2, 1)}, w{"w", spread({3}, 0.5, 1.2)};
  const std::string three =
      "n = Constant<value = int64 {3}>()\n go = Constant<value = bool {1}>()\n zero = "
      "Constant<value = int64 {0}>()\n ";
  check(three +
            "some = SequenceConstruct(x)\n none = SequenceErase(some, zero)\n"
            "h, all = Loop(n, go, x, none) <body = b (int64 i, bool c, v, s) => (o, r, t) { o = "
            "Identity(c)\n u = Mul(v, w)\n r = Sin(u)\n t = SequenceInsert(s, r) }>\n"
            " y = ConcatFromSequence<axis = 0>(all)",
        {x, w});
  check(three +
            "both = SequenceConstruct(x, w)\n"
            "last = Loop(n, go, both) <body = b (int64 i, bool c, s) => (o, t) { o = Identity(c)\n"
            " first = SequenceAt(s, zero)\n rest = SequenceErase(s, zero)\n d = Tanh(first)\n"
            " t = SequenceInsert(rest, d) }>\n"
            " a = SequenceAt(last, zero)\n k = Constant<value = int64 {-1}>()\n"
            " b = SequenceAt(last, k)\n y = Mul(a, b)",
        {x, w});
  // The sequence is read in each iteration, and not at the end; what it holds changes its shape.
  check(three +
            "one = SequenceConstruct(w)\n"
            "s, all = Loop(n, go, one) <body = b (int64 i, bool c, s) => (o, t, out) { o = "
            "Identity(c)\n k = Constant<value = int64 {-1}>()\n last = SequenceAt(s, k)\n"
            " d = Sin(last)\n e = Concat<axis = 0>(d, last)\n t = SequenceInsert(s, e)\n"
            " f = Mul(e, e)\n out = ReduceSum<keepdims = 0>(f) }>\n"
            " y = Sin(all)",
        {w});
  // It grows at its beginning.
  check(three +
            "one = SequenceConstruct(w)\n"
            "s, all = Loop(n, go, one) <body = b (int64 i, bool c, s) => (o, t, out) { o = "
            "Identity(c)\n last = SequenceAt(s, zero)\n"
            " d = Sin(last)\n e = Concat<axis = 0>(d, last)\n t = SequenceInsert(s, e, zero)\n"
            " f = Mul(e, e)\n out = ReduceSum<keepdims = 0>(f) }>\n"
            " k = Constant<value = int64 {2}>()\n h = SequenceAt(s, k)\n"
            " g = ReduceSum<keepdims = 0>(h)\n y = Mul(all, g)",
        {w});
  // In a loop.
  check(three +
            "some = SequenceConstruct(x)\n none = SequenceErase(some, zero)\n"
            "y = Loop(n, go, x) <body = b (int64 i, bool c, v) => (o, r) { o = Identity(c)\n"
            " m = Constant<value = int64 {2}>()\n"
            " h, s = Loop(m, go, v, none) <body = d (int64 j, bool e, p, q) => (f, g, l) { f = "
            "Identity(e)\n g = Mul(p, w)\n l = SequenceInsert(q, g) }>\n"
            " z = SequenceAt(s, zero)\n a = Sin(h)\n r = Add(z, a) }>",
        {x, w});
}

void recurrent_layers(const Check& check) {
  struct Layer {
    const char* op;
    int64_t gates;
    std::vector<const char*> forms;
  };
  const Layer layers[] = {
      {"RNN",
       1,
       {"", "direction = \"reverse\", clip = 0.4, ",
        "activations = [\"Affine\"], activation_alpha = [0.5], activation_beta = [0.1], "}},
      {"GRU",
       3,
       {"", "linear_before_reset = 1, ",
        "activations = [\"HardSigmoid\", \"ScaledTanh\"], activation_alpha = [0.3, 0.8], "
        "activation_beta = [0.4, 1.1], "}},
      {"LSTM",
       4,
       {"", "input_forget = 1, ",
        "activations = [\"Softsign\", \"Elu\", \"Softplus\"], clip = 0.6, "}}};
  for (const Layer& layer : layers) {
    for (const char* form : layer.forms) {
      for (const bool both : {false, true}) {
        const std::string options = form;
        if (both && (options.find("direction") != std::string::npos ||
                     options.find("activations") != std::string::npos))
          continue;
        const int64_t d = both ? 2 : 1, n = layer.gates * 2;
        const bool lstm = layer.gates == 4;
        for (const bool lengths : {false, true}) {
          const std::string call = std::string(layer.op) + "<hidden_size = 2, " + options +
                                   (both ? "direction = \"bidirectional\", " : "") +
                                   "layout = " + (lengths && !both ? "1" : "0") + ">(x, w, r, b, " +
                                   (lengths ? "n" : "") + (lstm ? ", , , p" : "") + ")\n";
          const Shape shape = lengths && !both ? Shape{2, 3, 2} : Shape{3, 2, 2};
          std::vector<Input> inputs{{"x", spread(shape, -1, 1)},
                                    {"w", spread({d, n, 2}, -1, 1)},
                                    {"r", spread({d, n, 2}, -0.9, 1.1)},
                                    {"b", spread({d, 2 * n}, -0.5, 0.4)}};
          if (lstm) inputs.push_back({"p", spread({d, 6}, -1, 1)});
          const std::string outputs = lstm ? "s, h, c = " : "s, h = ";
          const std::string last = lstm ? "hc = Add(h, c)\n t = ReduceSum<keepdims = 0>(hc)\n"
                                        : "t = ReduceSum<keepdims = 0>(h)\n";
          check("n = Constant<value = int32[2] {3, 1}>()\n " + outputs + call + last +
                    " y = Mul(s, t)",
                inputs);
        }
      }
    }
  }
}

void linear_maps(const Check& check) {
  const Input x{"x", spread({2, 2, 3, 4}, -1, 1)};
  for (const char* form :
       {"mode = \"nearest\"", "mode = \"linear\"", "mode = \"cubic\"",
        "mode = \"linear\", coordinate_transformation_mode = \"align_corners\"",
        "mode = \"cubic\", exclude_outside = 1, coordinate_transformation_mode = \"asymmetric\"",
        "mode = \"linear\", antialias = 1"}) {
    check(
        "s = Constant<value_floats = [1.0, 1.0, 1.7, 0.6]>()\n c = Cast<to = 1>(s)\n y = Resize<" +
            std::string(form) + ">(x, , c)",
        {x});
    check("s = Constant<value_ints = [5, 3]>()\n y = Resize<axes = [3, -2], " + std::string(form) +
              ">(x, , , s)",
          {x});
  }
  check(
      "r = Constant<value_floats = [0.1, -0.2, 0.8, 1.3]>()\n s = Constant<value_ints = [4, 3]>()\n"
      " y = Resize<axes = [2, 3], mode = \"linear\", extrapolation_value = 3.0,"
      " coordinate_transformation_mode = \"tf_crop_and_resize\">(x, r, , s)",
      {x});
  for (const char* form : {"mode = \"linear\"", "mode = \"nearest\", padding_mode = \"border\"",
                           "mode = \"cubic\", padding_mode = \"reflection\", align_corners = 1"})
    check(
        "g = Constant<value = double[2, 2, 1, 2] {0.1, -0.3, 0.8, 1.2, -0.9, 0.4, 0.35, 0.15}>()\n"
        " y = GridSample<" +
            std::string(form) + ">(x, g)",
        {x});
  check(
      "r = Constant<value = double[3, 4] {0.1, 0.2, 2.5, 2.2, 0.5, 0.1, 3, 1.9, 0, 0, 3, 2}>()\n"
      " b = Constant<value_ints = [1, 0, 1]>()\n"
      " y = RoiAlign<output_height = 2, output_width = 2, sampling_ratio = 2>(x, r, b)",
      {x});
  check(
      "i = Constant<value_ints = [3, 4]>()\n b = Constant<value_ints = [2, 2]>()\n"
      " y = Col2Im<pads = [1, 0, 0, 1], strides = [1, 2]>(x, i, b)",
      {{"x", spread({2, 8, 6}, -1, 1)}});
  check("s = Constant<value_ints = [5, 2]>()\n y = CenterCropPad<axes = [2, 3]>(x, s)", {x});
  check("s = Constant<value_ints = [1, 2, 2, 7]>()\n y = CenterCropPad(x, s)", {x});
  check("c = Constant<value = bool[3] {1, 0, 1}>()\n y = Compress<axis = -2>(x, c)", {x});
  check("c = Constant<value = bool[5] {0, 1, 1, 0, 1}>()\n y = Compress(x, c)", {x});
  const Input matrix{"x", spread({2, 3, 3}, -1, 1)};
  check("y = Det(x)", {matrix});
  check("y = LRN<size = 4, alpha = 0.7, beta = 0.6, bias = 1.2>(x)",
        {{"x", spread({2, 5, 2, 2}, -1, 1)}});
  check("i = Constant<value_ints = [1, 3]>()\n y = TensorScatter(c, u, i)",
        {{"c", spread({2, 2, 5, 3}, -1, 1)}, {"u", spread({2, 2, 2, 3}, -1, 1)}});
  check(
      "i = Constant<value_ints = [4]>()\n y = TensorScatter<axis = 1, mode = \"circular\">(c, u, "
      "i)",
      {{"c", spread({1, 5, 3}, -1, 1)}, {"u", spread({1, 2, 3}, -1, 1)}});
}

void transposed_convolutions(const Check& check) {
  const Input x{"x", spread({2, 4, 3, 4}, -1, 1)}, bias{"c", spread({2}, -1, 1)};
  for (const char* form : {"", "<strides = [2, 3], output_padding = [1, 2]>",
                           "<dilations = [2, 1], pads = [1, 0, 0, 2]>",
                           "<strides = [2, 2], auto_pad = \"SAME_UPPER\">",
                           "<strides = [2, 2], auto_pad = \"SAME_LOWER\">",
                           "<strides = [2, 2], output_shape = [6, 8]>",
                           "<strides = [1, 2], dilations = [3, 1], output_padding = [2, 0]>"})
    check("y = ConvTranspose" + std::string(form) + "(x, w, c)",
          {x, {"w", spread({4, 2, 2, 3}, -1, 1)}, bias});
  check("y = ConvTranspose<group = 2, strides = [2, 1]>(x, w)",
        {x, {"w", spread({4, 1, 2, 2}, -1, 1)}});
  check("y = ConvTranspose(x, w)",
        {{"x", spread({1, 2, 4}, -1, 1)}, {"w", spread({2, 3, 3}, -1, 1)}});
  for (const char* p : {"1", "2", "3"}) {
    for (const char* form :
         {"kernel_shape = [2, 2]", "kernel_shape = [2, 3], strides = [2, 1], pads = [1, 0, 0, 2]",
          "kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1"})
      check("y = LpPool<p = " + std::string(p) + ", " + form + ">(x)",
            {{"x", spread({1, 2, 5, 4}, 0.1, 1)}});
  }
}

void equations(const Check& check) {
  const Input a{"a", spread({2, 3, 4}, -1, 1)}, b{"b", spread({2, 4, 2}, -1, 1)};
  for (const char* equation : {"bij,bjk->bik", "bij,bjk->", "bij,bjk->kbi", "bij,bjk"})
    check("y = Einsum<equation = \"" + std::string(equation) + "\">(a, b)", {a, b});
  const Input square{"a", spread({2, 3, 3}, -1, 1)};
  for (const char* equation : {"bii->bi", "bii->b", "bij->", "...ij->...ji", "bij,bij,bjk->ik"}) {
    const std::string text = equation;
    check("y = Einsum<equation = \"" + text + "\">(a" +
              (text.find(',') == std::string::npos ? "" : ", a, a") + ")",
          {square});
  }
  check("y = Einsum<equation = \"...i,...i->...\">(a, b)",
        {{"a", spread({2, 3, 4}, -1, 1)}, {"b", spread({4}, -1, 1)}});
  check("y = Einsum<equation = \"ij,ij->ij\">(a, b)",
        {{"a", spread({2, 1}, -1, 1)}, {"b", spread({1, 3}, -1, 1)}});
}

void attention(const Check& check) {
  const Input q{"q", spread({2, 4, 3, 2}, -1, 1)}, k{"k", spread({2, 2, 5, 2}, -1, 1)},
      v{"v", spread({2, 2, 5, 3}, -1, 1)}, m{"m", spread({3, 5}, -1, 1)};
  check("y = Attention(q, k, v)", {q, k, v});
  check("y = Attention<is_causal = 1, scale = 0.7, softcap = 0.9>(q, k, v, m)", {q, k, v, m});
  check(
      "m = Constant<value = bool[3, 4] {1, 1, 0, 1, 0, 1, 1, 0, 0, 0, 0, 1}>()\n y = Attention(q, "
      "k, v, m)",
      {q, k, v});
  check("y = Attention(q, k, v, m)", {q, k, v, {"m", spread({4, 1, 3}, -1, 1)}});
  check(
      "r, pk, pv = Attention<q_num_heads = 2, kv_num_heads = 1>(q, k, v, , past, old)\n"
      " s = ReduceSum<keepdims = 0>(pk)\n t = ReduceSum<keepdims = 0>(pv)\n u = Mul(s, t)\n"
      " y = Mul(r, u)",
      {{"q", spread({2, 3, 4}, -1, 1)},
       {"k", spread({2, 2, 2}, -1, 1)},
       {"v", spread({2, 2, 3}, -1, 1)},
       {"past", spread({2, 1, 3, 2}, -1, 1)},
       {"old", spread({2, 1, 3, 3}, -1, 1)}});
}

void scales_of_bytes(const Check& check) {
  const std::string bytes =
      "x = Constant<value = int8[2, 3, 2] {1, -2, 3, 2, -1, 2, 1, -3, 3, 2, 1, -2}>()\n"
      " f = Cast<to = 1>(s)\n ";
  const std::string to_double = "\n y = Cast<to = 11>(z)";
  const auto scales = [](Shape shape) { return Input{"s", spread(std::move(shape), 0.05, 0.1)}; };
  check(
      bytes +
          "o = Constant<value = int8 {1}>()\n one = Squeeze(f)\n z = DequantizeLinear(x, one, o)" +
          to_double,
      {scales({1})}, Precision::float32);
  for (const char* axis : {"1", "-2"})
    check(bytes + "z = DequantizeLinear<axis = " + axis + ">(x, f)" + to_double, {scales({3})},
          Precision::float32);
  check(bytes + "z = DequantizeLinear<axis = 0>(x, f)" + to_double, {scales({2})},
        Precision::float32);
  // The second block is a part of one.
  check(bytes +
            "o = Constant<value = int8[2, 2, 2] {1, 0, -1, 1, 2, 0, 1, -1}>()\n z = "
            "DequantizeLinear<axis = 1, block_size = 2>(x, f, o)" +
            to_double,
        {scales({2, 2, 2})}, Precision::float32);
}

void sequence_layers(const Check& check) {
  // These operators take no float64.
  const auto cast = [](const std::string& names) {
    std::string text;
    for (const char name : names)
      text += fmt::format("{0}f = Cast<to = 1>({0})\n ", std::string(1, name));
    return text;
  };
  const Input x{"x", spread({2, 3, 5}, -1, 1)}, w{"w", spread({3, 1, 3}, -1, 1)};
  const Input b{"b", spread({3}, -1, 1)}, p{"p", spread({2, 3, 2}, -1, 1), false};
  const std::string to_double = "\n y = Cast<to = 11>(yf)";
  check(cast("xw") + "yf, s = CausalConvWithState(xf, wf)" + to_double, {x, w}, Precision::float32);
  check(cast("xwbp") + "yf, s = CausalConvWithState<activation = \"silu\">(xf, wf, bf, pf)" +
            to_double,
        {x, w, b, p}, Precision::float32);
  const Input q{"q", spread({2, 3, 8}, -1, 1)}, k{"k", spread({2, 3, 4}, -1, 1)};
  const Input v{"v", spread({2, 3, 6}, -1, 1)}, s{"s", spread({2, 2, 2, 3}, -1, 1), false};
  const std::string heads = "q_num_heads = 4, kv_num_heads = 2";
  check(cast("qkv") + "yf, o = LinearAttention<update_rule = \"linear\", " + heads +
            ">(qf, kf, vf)" + to_double,
        {q, k, v}, Precision::float32);
  for (const int64_t size : {2, 4}) {
    check(cast("qkvsd") + "yf, o = LinearAttention<scale = 0.7, update_rule = \"gated\", " + heads +
              ">(qf, kf, vf, sf, df)" + to_double,
          {q, k, v, s, {"d", spread({2, 3, size}, -1, 0)}}, Precision::float32);
  }
  for (const int64_t size : {1, 2}) {
    const Input beta{"b", spread({2, 3, size}, 0.2, 0.9)};
    check(cast("qkvb") + "yf, o = LinearAttention<update_rule = \"delta\", " + heads +
              ">(qf, kf, vf, , , bf)" + to_double,
          {q, k, v, beta}, Precision::float32);
    check(cast("qkvsdb") + "yf, o = LinearAttention<" + heads + ">(qf, kf, vf, sf, df, bf)" +
              to_double,
          {q, k, v, s, {"d", spread({2, 3, 2}, -1, 0)}, beta}, Precision::float32);
  }
}

constexpr GradientCases cases[] = {
    {"UnaryOperators", unary_operators},
    {"BroadcastOperators", broadcast_operators},
    {"Products", products},
    {"Reductions", reductions},
    {"Movement", movement},
    {"Layers", layers},
    {"Windows", windows},
    {"Losses", losses},
    {"Normalizations", normalizations},
    {"Choices", choices},
    {"MoreMovement", more_movement},
    {"Branches", branches},
    {"Iterations", iterations},
    {"ProductsInIterations", products_in_iterations},
    {"ChangingStates", changing_states},
    {"SequenceStates", sequence_states},
    {"RecurrentLayers", recurrent_layers},
    {"LinearMaps", linear_maps},
    {"TransposedConvolutions", transposed_convolutions},
    {"Equations", equations},
    {"Attention", attention},
    {"ScalesOfBytes", scales_of_bytes},
    {"SequenceLayers", sequence_layers},
};

}  // namespace

std::span<const GradientCases> gradient_cases() {
  static const std::vector<GradientCases> all = [] {
    std::vector<GradientCases> joined(std::begin(cases), std::end(cases));
    for (const auto& more : {random_element_cases(), random_layer_cases(), contrib_cases(),
                             collection_cases(), second_order_cases()})
      joined.insert(joined.end(), more.begin(), more.end());
    return joined;
  }();
  return all;
}

}  // namespace sardonyx::test
