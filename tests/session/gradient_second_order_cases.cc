// Gradients of gradients: what rules emit has gradients, too.
#include "gradient_draw.h"

namespace sardonyx::test {
namespace {

// `body` computes o of x and others.
void second(const Check& check, const std::string& body, std::vector<Input> inputs,
            Precision precision = Precision::float64) {
  check(body +
            "\n waved = Sin(o)\n total = ReduceSum<keepdims = 0>(waved)\n"
            " y = ai.onnx.preview.training.Gradient<xs = [\"x\"], y = \"total\">(x)",
        inputs, precision);
}

void layers(const Check& check) {
  Draw draw(80);
  const Input x = draw.input("x", {1, 2, 4, 3}), w = draw.input("w", {2, 2, 2, 2});
  second(check, "o = Conv<strides = [2, 1], pads = [1, 0, 0, 1]>(x, w)", {x, w});
  second(check, "o = ConvTranspose<strides = [2, 1]>(x, w)", {x, w});
  second(check, "o = MaxPool<kernel_shape = [2, 2]>(x)", {x});
  second(check,
         "o = AveragePool<kernel_shape = [2, 2], pads = [1, 0, 0, 1], count_include_pad = 1>(x)",
         {x});
  second(check, "o = LpPool<kernel_shape = [2, 2]>(x)", {draw.input("x", {1, 2, 3, 3}, 0.4, 1.5)});
  second(check, "o = GlobalAveragePool(x)", {x});
  second(check, "o = LRN<size = 2, alpha = 0.5, beta = 0.75, bias = 1.2>(x)", {x});
  const Input s = draw.input("s", {2}, 0.5, 2), b = draw.input("b", {2});
  second(check,
         "m = Constant<value = double[2] {0, 0.1}>()\n v = Constant<value = double[2] {1, 2}>()\n"
         " o, rm, rv = BatchNormalization<training_mode = 1, epsilon = 0.1>(x, s, b, m, v)",
         {x, s, b});
  second(check, "o = BatchNormalization(x, s, b, m, v)",
         {x, s, b, draw.input("m", {2}), draw.input("v", {2}, 0.5, 2)});
  second(check, "o = InstanceNormalization<epsilon = 0.1>(x, s, b)", {x, s, b});
  second(check, "o = GroupNormalization<epsilon = 0.1, num_groups = 2>(x, s, b)", {x, s, b});
  second(check, "o = LayerNormalization<epsilon = 0.1>(x, k)", {x, draw.input("k", {3}, 0.5, 2)});
  second(check, "o = RMSNormalization<epsilon = 0.1>(x, k)", {x, draw.input("k", {3}, 0.5, 2)});
  second(check, "o = LpNormalization<axis = 1>(x)", {x});
  second(check, "t = Constant<value = int64[3] {0, 2, 1}>()\n o = SoftmaxCrossEntropyLoss(x, t)",
         {draw.input("x", {3, 4})});
  second(check, "o = Attention<softcap = 1.5, is_causal = 1>(x, k, v)",
         {draw.input("x", {1, 2, 3, 2}), draw.input("k", {1, 1, 3, 2}),
          draw.input("v", {1, 1, 3, 2})});
  second(check, "o, h = GRU<hidden_size = 2>(x, w, r)",
         {draw.input("x", {2, 1, 2}), draw.input("w", {1, 6, 2}), draw.input("r", {1, 6, 2})});
  second(check, "o, h, c = LSTM<hidden_size = 2>(x, w, r)",
         {draw.input("x", {2, 1, 2}), draw.input("w", {1, 8, 2}), draw.input("r", {1, 8, 2})});
  second(check, "o = DeformConv(x, w, p)",
         {draw.input("x", {1, 2, 4, 3}), w, draw.input("p", {1, 8, 3, 2}, -0.9, 0.9)});
  second(check, "o = GridSample<mode = \"cubic\">(x, g)",
         {x, draw.input("g", {1, 2, 2, 2}, -0.9, 0.9)});
  second(check,
         "k = Constant<value_ints = [1, 2, 6, 2]>()\n o = Resize<mode = \"linear\">(x, , , k)",
         {x});
  second(check,
         integers("i", {0}) +
             "r = Constant<value = double[1, 4] {0.3, 0.2, 2.4, 3.1}>()\n o = "
             "RoiAlign<output_height = 2, output_width = 2, sampling_ratio = 2>(x, r, i)",
         {x});
}

void elements(const Check& check) {
  Draw draw(81);
  const Input x = draw.input("x", {2, 3}, 0.4, 1.6);
  for (const char* op : {"Pow(x, x)",
                         "Div(x, q)",
                         "Gelu(x)",
                         "Gelu<approximate = \"tanh\">(x)",
                         "Swish(x)",
                         "Softplus(x)",
                         "Erf(x)",
                         "Acosh(z)",
                         "Softmax(x)",
                         "LogSoftmax(x)",
                         "ReduceProd(x)",
                         "ReduceLogSumExp(x)",
                         "ReduceL2(x)",
                         "ReduceMax(x)",
                         "Einsum<equation = \"ij,kj,ij->ik\">(x, x, q)",
                         "PRelu(n, q)",
                         "Mish(x)",
                         "Tile(x, t)",
                         "Pad<mode = \"reflect\">(x, p)",
                         "Gather<axis = 1>(x, i)",
                         "GatherElements<axis = 1>(x, e)",
                         "CumSum(x, k)",
                         "CumProd(x, k)",
                         "Concat<axis = 0>(x, q, x)",
                         "Max(x, q)"})
    second(check,
           integers("t", {1, 2}) + integers("p", {1, 0, 0, 1}) + integers("i", {2, 0, 2}) +
               integers("e", {2, 1}, {1, 1}) + integers("k", {}, {1}) +
               "u = Constant<value = double {1.5}>()\n z = Add(x, u)\n n = Sub(x, u)\n o = " + op,
           {x, draw.input("q", {2, 3}, 0.5, 1.7)});
  second(check,
         integers("i", {3, 2}, {0, 1, 0, 0, 1, 0}) +
             "o = ScatterElements<reduction = \"mul\">(x, i, u)",
         {x, draw.input("u", {3, 2}, 0.5, 1.5)});
  second(check, "o = Det(x)", {draw.input("x", {2, 3, 3})});
  second(check, "a, c = Split<axis = 1, num_outputs = 2>(x)\n m = MatMul(a, w)\n o = Tanh(m)",
         {x, draw.input("w", {2, 2})});
}

void graphs(const Check& check) {
  Draw draw(82);
  const Input x = draw.input("x", {3}), w = draw.input("w", {3});
  second(check,
         "n = Constant<value = int64 {3}>()\n go = Constant<value = bool {1}>()\n"
         " o, all = Loop(n, go, x) <body = b (int64 i, bool c, v) => (p, r, k) { p = Identity(c)\n "
         "t = Tanh(v)\n r = Mul(t, w)\n k = Sin(r) }>",
         {x, w});
  second(check,
         "n = Constant<value = int64 {3}>()\n go = Constant<value = bool {1}>()\n"
         " o = Loop(n, go, x) <body = b (int64 i, bool c, v) => (p, r) { p = Identity(c)\n "
         "m = MatMul(v, u)\n t = Tanh(m)\n r = Mul(t, w) }>",
         {x, w, draw.input("u", {3, 3})});
  second(check,
         "f, o = Scan<num_scan_inputs = 1, body = b (s, e) => (t, k) { p = Mul(s, w)\n q = "
         "Sin(p)\n t = Add(q, e)\n k = Mul(t, e) }>(x, z)",
         {x, w, draw.input("z", {4, 3})});
  second(check,
         "c = Constant<value = bool {1}>()\n o = If(c) <then_branch = t () => (a) { h = Sin(x)\n a "
         "= Mul(h, w) }, else_branch = e () => (b) { b = Exp(x) }>",
         {x, w});
  second(
      check,
      "n = Constant<value = int64 {3}>()\n go = Constant<value = bool {1}>()\n none = "
      "Optional<type = double[3]>()\n z = Loop(n, go, none) <body = b (int64 i, bool c, "
      "optional(double[3]) v) => (p, r) { p = Identity(c)\n h = OptionalHasElement(v)\n e = "
      "If(h) <then_branch = t () => (k) { q = OptionalGetElement(v)\n s = Sin(q)\n k = Mul(s, w) "
      "}, else_branch = f () => (m) { m = Mul(x, x) }>\n r = Optional(e) }>\n o = "
      "OptionalGetElement(z)",
      {x, w});
  second(check,
         "s = SequenceConstruct(x, w, x)\n t = SequenceMap<body = g (i) => (k) { p = Sin(i)\n k = "
         "Mul(p, w) }>(s)\n o = ConcatFromSequence<axis = 0>(t)",
         {x, w});
}

constexpr GradientCases second_order_groups[] = {{"SecondOrderOfLayers", layers},
                                                 {"SecondOrderOfElements", elements},
                                                 {"SecondOrderOfGraphs", graphs}};

}  // namespace

std::span<const GradientCases> second_order_cases() { return second_order_groups; }

}  // namespace sardonyx::test
