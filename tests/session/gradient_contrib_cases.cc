// Fused operators of com.microsoft that models have after training.
#include "gradient_draw.h"

namespace sardonyx::test {
namespace {

// Lines that make float32 of inputs, for operators that take no float64.
std::string narrowed(std::initializer_list<std::string_view> names) {
  std::string lines;
  for (const std::string_view name : names)
    lines += fmt::format("{0}f = Cast<to = 1>({0})\n ", name);
  return lines;
}
std::string widened(std::string_view call) {
  return fmt::format("yf = com.microsoft.{}\n y = Cast<to = 11>(yf)", call);
}

void fused_products(const Check& check) {
  Draw draw(40);
  for (int round = 0; round < 8; ++round) {
    const bool ta = draw.one_in(2), tb = draw.one_in(2);
    const int64_t m = draw.between(1, 3), k = draw.between(1, 3), n = draw.between(1, 3);
    const std::string form = fmt::format("transA = {}, transB = {}, alpha = {:.1f}", int{ta},
                                         int{tb}, draw.any_of<double>({1.0, 0.5, -1.5}));
    const Input a = draw.input("a", ta ? Shape{2, k, m} : Shape{2, m, k}),
                b = draw.input("b", tb ? Shape{2, n, k} : Shape{2, k, n});
    check("y = com.microsoft.FusedMatMul<" + form + ">(a, b)", {a, b});
    check("y = com.microsoft.TransposeMatMul<" + form + ">(a, b)", {a, b});
    check("y = com.microsoft.FusedMatMulActivation<activation = \"Tanh\", " + form + ">(a, b)",
          {a, b});
    const std::vector<Input> flat{draw.input("a", ta ? Shape{k, m} : Shape{m, k}),
                                  draw.input("b", tb ? Shape{n, k} : Shape{k, n}),
                                  draw.input("c", {n})};
    check(
        narrowed({"a", "b", "c"}) +
            widened(fmt::format("FusedGemm<activation = \"{}\", beta = 0.5, {}>(af, bf, cf)",
                                draw.word({"Relu", "LeakyRelu", "Tanh", "Sigmoid", "Elu"}), form)),
        flat, Precision::float32);
  }
  check("y = com.microsoft.FusedMatMul<transBatchA = 1>(a, b)",
        {draw.input("a", {3, 2, 4}), draw.input("b", {2, 4, 2})});
  check(narrowed({"x", "w", "b"}) + widened("GemmFastGelu(xf, wf, bf)"),
        {draw.input("x", {2, 3}), draw.input("w", {3, 2}), draw.input("b", {2})},
        Precision::float32);
  check("y = com.microsoft.CDist<metric = \"euclidean\">(a, b)",
        {draw.input("a", {3, 2}), draw.input("b", {2, 2}, 2, 3)});
  check("y = com.microsoft.CDist(a, b)", {draw.input("a", {3, 2}), draw.input("b", {2, 2})});
  for (const char* batch : {"", "n"})
    check("y = com.microsoft.Inverse(x)",
          {{"x", batch[0] == 0
                     ? Tensor::of<double>({2, 0.3, -0.4, 1.5}, {2, 2})
                     : Tensor::of<double>({2, 0.3, -0.4, 1.5, 1, 0.2, 0.1, -3}, {2, 2, 2})}});
}

void activations(const Check& check) {
  Draw draw(41);
  for (int round = 0; round < 3; ++round) {
    const Shape shape = draw.shape(2, 3, false);
    const Input x = draw.input("x", shape, -2, 2), b = draw.input("b", {shape.back()});
    check("y = com.microsoft.BiasGelu(x, b)", {x, b});
    check("y = com.microsoft.Gelu(x)", {x});
    check("y = com.microsoft.QuickGelu(x)", {x});
    check("y = com.microsoft.QuickGelu<alpha = 1.0>(x)", {x});
    check(narrowed({"x", "b"}) + widened("FastGelu(xf, bf)"), {x, b}, Precision::float32);
    check(narrowed({"x"}) + widened("FastGelu(xf)"), {x}, Precision::float32);
    check("y = com.microsoft.BiasSoftmax<axis = -1, is_inner_broadcast = 0>(x, b)", {x, b});
    check("y, m = com.microsoft.BiasDropout(x, b)", {x, b});
    check("y, m = com.microsoft.BiasDropout(x, b, r)", {x, b, draw.input("r", shape)});
  }
  check(narrowed({"x", "b"}) + widened("BiasSplitGelu(xf, bf)"),
        {draw.input("x", {1, 2, 8}), draw.input("b", {8})}, Precision::float32);
  check("y = com.microsoft.Trilu<upper = 0>(x)", {draw.input("x", {3, 3})});
  check(narrowed({"x"}) + integers("i", {2, 2}, {0, 2, 1, 2}) + widened("TorchEmbedding(xf, i)"),
        {draw.input("x", {3, 2})}, Precision::float32);
}

void convolutions(const Check& check) {
  Draw draw(42);
  for (const char* activation : {"Relu", "Tanh", "Sigmoid",
                                 "LeakyRelu\", activation_params = [0.2], auto_pad = \"SAME_UPPER",
                                 "HardSigmoid\", activation_params = [0.3, 0.4], pads = [1, 0, 0, "
                                 "1], auto_pad = \"NOTSET"}) {
    const std::string form = fmt::format("<activation = \"{}\">", activation);
    const Input x = draw.input("x", {1, 2, 4, 4}), w = draw.input("w", {2, 2, 2, 2}),
                b = draw.input("b", {2});
    check("y = com.microsoft.FusedConv" + form + "(x, w, b)", {x, w, b});
    if (form.find("auto_pad") == std::string::npos)
      check("y = com.microsoft.FusedConv" + form + "(x, w, b, z)",
            {x, w, b, draw.input("z", {1, 2, 3, 3})});
  }
}

void normalizations(const Check& check) {
  Draw draw(43);
  const Input x = draw.input("x", {2, 3, 4}), s = draw.input("s", {2, 3, 4}),
              g = draw.input("g", {4}, 0.5, 2), b = draw.input("b", {4}), c = draw.input("c", {4});
  const std::string casts = narrowed({"x", "s", "g", "b", "c"});
  for (const char* bias : {"", ", cf"})
    check(casts + fmt::format("r, m, d, u = com.microsoft.SkipLayerNormalization<epsilon = "
                              "0.01>(xf, sf, gf, bf{})\n"
                              " yf = Mul(r, u)\n y = Cast<to = 11>(yf)",
                              bias),
          {x, s, g, b, c}, Precision::float32);
  for (const char* bias : {"", ", cf"})
    check(casts + fmt::format("r, m, d, u = com.microsoft.SkipSimplifiedLayerNormalization<epsilon "
                              "= 0.01>(xf, sf, gf{})\n"
                              " yf = Mul(r, u)\n y = Cast<to = 11>(yf)",
                              bias),
          {x, s, g, b, c}, Precision::float32);
  check("y = SimplifiedLayerNormalization<axis = -1>(x, g)", {x, g});
  const std::string ids =
      "i = Constant<value = int32[2, 3] {0, 2, 1, 3, 0, 0}>()\n "
      "k = Constant<value = int32[2, 3] {0, 1, 1, 0, 0, 1}>()\n ";
  check(narrowed({"w", "p", "t", "g", "b"}) + ids +
            "yf, m = com.microsoft.EmbedLayerNormalization<epsilon = 0.01>(i, k, wf, pf, tf, gf, "
            "bf)\n"
            " y = Cast<to = 11>(yf)",
        {draw.input("w", {4, 4}), draw.input("p", {3, 4}), draw.input("t", {2, 4}), g, b},
        Precision::float32);
  for (const int last : {0, 1}) {
    const Shape shape = last == 1 ? Shape{1, 2, 3, 4} : Shape{1, 4, 2, 3};
    check(narrowed({"x", "g", "b"}) +
              widened(fmt::format("GroupNorm<groups = 2, epsilon = 0.01, activation = {0}, "
                                  "channels_last = {0}>(xf, gf, bf)",
                                  last)),
          {draw.input("x", shape), g, b}, Precision::float32);
  }
}

void attention(const Check& check) {
  Draw draw(44);
  const Input x = draw.input("x", {2, 3, 4}), w = draw.input("w", {4, 12}),
              b = draw.input("b", {12});
  const std::string mask =
      "m = Constant<value = int32[2] {3, 2}>()\n "
      "p = Constant<value = int32[2, 3] {1, 1, 1, 1, 1, 0}>()\n ";
  for (const char* form :
       {"<num_heads = 2>(xf, wf, bf)", "<num_heads = 2, unidirectional = 1>(xf, wf, bf)",
        "<num_heads = 2>(xf, wf, bf, m)", "<num_heads = 2, scale = 0.4>(xf, wf, , p)"})
    check(narrowed({"x", "w", "b"}) + mask + widened(fmt::format("Attention{}", form)), {x, w, b},
          Precision::float32);
  const Input q = draw.input("q", {2, 3, 4}), k = draw.input("k", {2, 3, 4}),
              v = draw.input("v", {2, 3, 6});
  const Input c = draw.input("c", {14}), r = draw.input("r", {1, 2, 3, 3});
  for (const char* form :
       {"<num_heads = 2>(qf, kf, vf)", "<num_heads = 2, unidirectional = 1>(qf, kf, vf, cf)",
        "<num_heads = 2>(qf, kf, vf, , p)", "<num_heads = 2, scale = 0.4>(qf, kf, vf, , , rf)"})
    check(narrowed({"q", "k", "v", "c", "r"}) + mask +
              widened(fmt::format("MultiHeadAttention{}", form)),
          {q, k, v, c, r}, Precision::float32);
  const std::string places =
      "i = Constant<value = int64[2, 3] {0, 1, 2, 1, 2, 3}>()\n "
      "cf = Constant<value = float[4, 1] {1.0, 0.8, 0.5, 0.1}>()\n "
      "sf = Constant<value = float[4, 1] {0.0, 0.6, 0.8, 0.9}>()\n ";
  for (const int interleaved : {0, 1})
    check(narrowed({"q"}) + places +
              widened(fmt::format("RotaryEmbedding<interleaved = {}, num_heads = 2>(qf, i, cf, sf)",
                                  interleaved)),
          {q}, Precision::float32);
}

// Scores and probabilities pass through graphs, which read values around them.
void flex_attention(const Check& check) {
  Draw draw(47);
  const Input q = draw.input("q", {2, 4, 3, 2}), k = draw.input("k", {2, 2, 5, 2}),
              v = draw.input("v", {2, 2, 5, 3}), b = draw.input("b", {3, 5});
  check("y = ai.onnx.preview.FlexAttention(q, k, v)", {q, k, v});
  check(
      "y = ai.onnx.preview.FlexAttention<scale = 0.7, score_mod = g (s) => (t) { h = Add(s, b)\n t "
      "= Tanh(h) }, "
      "prob_mod = p (s) => (t) { t = Mul(s, s) }>(q, k, v)",
      {q, k, v, b});
  check(
      "y = ai.onnx.preview.FlexAttention<softmax_precision = 11, prob_mod = p (s) => (t) { h = "
      "Exp(s)\n t = Mul(s, h) }>(q, k, v)",
      {q, k, v});
}

// Queries, keys and values of a whole sequence, as in training.
void grouped_queries(const Check& check) {
  Draw draw(45);
  const Input q = draw.input("q", {2, 3, 8}), k = draw.input("k", {2, 3, 4}),
              v = draw.input("v", {2, 3, 4}), b = draw.input("b", {1, 1, 3, 3}),
              n = draw.input("n", {2}, 0.5, 1.5), all = draw.input("a", {2, 3, 16}),
              sinks = draw.input("h", {4});
  const std::string lines =
      narrowed({"q", "k", "v", "b", "n", "a", "h"}) +
      "e = Constant<value = int32[2] {2, 1}>()\n t = Constant<value = int32 {3}>()\n "
      "cf = Constant<value = float[4, 1] {1.0, 0.8, 0.5, 0.1}>()\n "
      "sf = Constant<value = float[4, 1] {0.0, 0.6, 0.8, 0.9}>()\n "
      "one = Constant<value = float[2] {1.0, 1.0}>()\n ";
  for (const char* form :
       {"(qf, kf, vf, , , e, t)", "do_rotary = 1(qf, kf, vf, , , e, t, cf, sf)",
        "do_rotary = 1, rotary_interleaved = 1, softcap = 1.5, scale = 0.7(qf, kf, vf, , , e, t, "
        "cf, sf)",
        "local_window_size = 2(qf, kf, vf, , , e, t)", "causal = 0(qf, kf, vf, , , e, t)",
        "(qf, kf, vf, , , e, t, , , , bf)", "(af, , , , , e, t)",
        "qk_norm_epsilon = 0.01(qf, kf, vf, , , e, t, , , , , , , , nf, one)",
        "softcap = 1.5(qf, kf, vf, , , e, t, , , , , hf)",
        "local_window_size = 2(qf, kf, vf, , , e, t, , , , bf, hf)",
        "smooth_softmax = 1(qf, kf, vf, , , e, t)"}) {
    const std::string text = form;
    const size_t at = text.find('(');
    // Rows behind the end of a sequence say nothing.
    check(lines + "r, pk, pv = com.microsoft.GroupQueryAttention<num_heads = 4, kv_num_heads = 2" +
              (at == 0 ? "" : ", ") + text.substr(0, at) + ">" + text.substr(at) +
              "\n s = Constant<value = float[2, 3, 1] {1, 1, 1, 1, 1, 0}>()\n "
              "yf = Mul(r, s)\n y = Cast<to = 11>(yf)",
          {q, k, v, b, n, all, sinks}, Precision::float32);
  }
}

// Behind a past that learns as well, with room for all keys or without, and one that is not read.
void grouped_queries_behind_a_past(const Check& check) {
  Draw draw(48);
  const Input q = draw.input("q", {2, 3, 8}), k = draw.input("k", {2, 3, 4}),
              v = draw.input("v", {2, 3, 4}), b = draw.input("b", {1, 1, 3, 6}),
              sinks = draw.input("h", {4});
  struct Past {
    int64_t rows;
    const char *last, *all;
    bool is_prompt;
  };
  for (const Past& past :
       {Past{3, "5, 4", "6", false}, Past{8, "5, 4", "6", false}, Past{4, "2, 1", "3", true}}) {
    const Input pk = draw.input("p", {2, 2, past.rows, 2}),
                pv = draw.input("o", {2, 2, past.rows, 2});
    const std::string lines =
        narrowed({"q", "k", "v", "p", "o", "b", "h"}) + "e = Constant<value = int32[2] {" +
        past.last + "}>()\n t = Constant<value = int32 {" + past.all +
        "}>()\n "
        "cf = Constant<value = float[8, 1] {1, 0.8, 0.5, 0.1, -0.3, 0.9, 0.2, "
        "0.7}>()\n sf = Constant<value = float[8, 1] {0, 0.6, 0.8, 0.9, 0.95, "
        "0.4, 0.97, -0.7}>()\n ";
    std::vector<std::string> forms{"(qf, kf, vf, pf, of, e, t)",
                                   "local_window_size = 2(qf, kf, vf, pf, of, e, t)",
                                   "do_rotary = 1(qf, kf, vf, pf, of, e, t, cf, sf)",
                                   "(qf, kf, vf, pf, of, e, t, , , , , hf)"};
    if (past.rows == 3) forms.push_back("(qf, kf, vf, pf, of, e, t, , , , bf)");
    for (const std::string& text : forms) {
      const size_t at = text.find('(');
      check(lines +
                "r, pk, pv = com.microsoft.GroupQueryAttention<num_heads = 4, kv_num_heads = 2" +
                (at == 0 ? "" : ", ") + text.substr(0, at) + ">" + text.substr(at) +
                // A prompt may be shorter than its rows, which say nothing then.
                "\n s = Constant<value = float[2, 3, 1] {1, 1, 1, 1, 1, " +
                (past.is_prompt ? "0" : "1") +
                "}>()\n m = Mul(r, s)\n ms = ReduceSum<keepdims = 0>(m)\n ks = Mul(pk, pv)\n"
                " kk = ReduceSum<keepdims = 0>(ks)\n yf = Add(ms, kk)\n y = Cast<to = 11>(yf)",
            {q, k, v, pk, pv, b, sinks}, Precision::float32);
    }
  }
}

// Weights of 4 and 8 bits stay as they are; their scales and what is multiplied with them learn.
// The last block may be a part of one.
void packed_weights(const Check& check) {
  Draw draw(46);
  for (const int64_t bits : {4, 8}) {
    for (const bool zero_points : {false, true}) {
      for (const int64_t k : {32, 25}) {
        const int64_t bytes = 16 * bits / 8, zeros = bits == 4 ? 1 : 2;
        const auto text = [&](const Shape& shape) {
          const auto count = static_cast<size_t>(elements_of(shape));
          return fmt::format("uint8[{}] {{{}}}", fmt::join(shape, ", "),
                             fmt::join(draw.integers(count, 0, 255), ", "));
        };
        const std::string weights = "b = Constant<value = " + text({3, 2, bytes}) +
                                    ">()\n z = Constant<value = " + text({3, zeros}) + ">()\n ";
        check(
            narrowed({"a", "c", "s"}) + weights +
                "t = Constant<value = float {0.001}>()\n small = Mul(sf, t)\n " +
                widened(fmt::format(
                    "MatMulNBits<K = {}, N = 3, bits = {}, block_size = 16>(af, b, small{}, , cf)",
                    k, bits, zero_points ? ", z" : ", ")),
            {draw.input("a", {2, k}, -0.3, 0.3), draw.input("c", {3}),
             draw.input("s", {3, 2}, 0.7, 1.6)},
            Precision::float32);
      }
    }
  }
}

constexpr GradientCases contrib_groups[] = {
    {"FusedProducts", fused_products},
    {"FusedActivations", activations},
    {"FusedConvolutions", convolutions},
    {"FusedNormalizations", normalizations},
    {"FusedAttention", attention},
    {"GroupedQueries", grouped_queries},
    {"GroupedQueriesBehindAPast", grouped_queries_behind_a_past},
    {"PackedWeights", packed_weights},
    {"FlexAttention", flex_attention},
};

}  // namespace

std::span<const GradientCases> contrib_cases() { return contrib_groups; }

}  // namespace sardonyx::test
