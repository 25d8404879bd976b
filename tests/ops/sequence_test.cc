// Recurrent layers, attention, rotary embeddings, cache updates.
#include "nn_support.h"

namespace sardonyx::ops_test {
namespace {

// --- Recurrent layers

struct Recurrent {
  std::string op;
  int64_t gates, steps = 5, batch = 3, input = 4, hidden = 6;
  Tensor x, w, r, b;
  Recurrent(Random& random, std::string name, int directions)
      : op(std::move(name)),
        gates(op == "LSTM"  ? 4
              : op == "GRU" ? 3
                            : 1) {
    x = random.floats({steps, batch, input});
    w = random.floats({directions, gates * hidden, input}),
    r = random.floats({directions, gates * hidden, hidden}, 0.5f);
    b = random.floats({directions, 2 * gates * hidden});
  }
  std::string call(const std::string& extra) const {
    return fmt::format("{} <hidden_size = {}{}>", op, hidden, extra);
  }
};

Tensor sliced(const Tensor& x, int64_t axis, int64_t begin, int64_t end, int64_t step = 1) {
  return run_node("Slice", {x, Tensor::of<int64_t>({begin}, {1}), Tensor::of<int64_t>({end}, {1}),
                            Tensor::of<int64_t>({axis}, {1}), Tensor::of<int64_t>({step}, {1})})[0]
      .tensor();
}

TEST(Recurrent, LstmIsItsEquations) {
  Random random(1);
  const Recurrent l(random, "LSTM", 1);
  const auto y = run_node(l.call(""), {l.x, l.w, l.r, l.b}, 3);
  const auto w = l.w.elements<float>(), r = l.r.elements<float>(), b = l.b.elements<float>(),
             x = l.x.elements<float>();
  std::vector<double> h(6, 0), c(6, 0);
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  for (int64_t t = 0; t < 5; ++t) {
    std::vector<double> gate(24);
    for (size_t k = 0; k < 24; ++k) {
      gate[k] = b[k] + b[24 + k];
      for (size_t i = 0; i < 4; ++i)
        gate[k] +=
            static_cast<double>(w[k * 4 + i]) * x[static_cast<size_t>(t) * 12 + i];  // batch 0
      for (size_t i = 0; i < 6; ++i) gate[k] += r[k * 6 + i] * h[i];
    }
    for (size_t i = 0; i < 6; ++i) {
      c[i] = sigmoid(gate[12 + i]) * c[i] + sigmoid(gate[i]) * std::tanh(gate[18 + i]);
      h[i] = sigmoid(gate[6 + i]) * std::tanh(c[i]);
      EXPECT_NEAR(y[0].tensor().elements<float>()[static_cast<size_t>(t) * 18 + i], h[i], 1e-5);
    }
  }
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(y[2].tensor().elements<float>()[i], c[i], 1e-5);
}

TEST(Recurrent, DirectionsLayoutsAndConstantsAgree) {
  Random random(2);
  for (const char* op : {"RNN", "GRU", "LSTM"}) {
    for (const char* extra : {"", ", clip = 0.3", ", linear_before_reset = 1"}) {
      if (std::string(extra).find("linear") != std::string::npos && std::string(op) != "GRU")
        continue;
      const Recurrent l(random, op, 2);
      const std::string more = extra;
      const auto both =
          run_node(l.call(more + ", direction = \"bidirectional\""), {l.x, l.w, l.r, l.b}, 2);
      const auto half = [&](const Tensor& t, int64_t d) { return sliced(t, 0, d, d + 1); };
      const auto forward =
          run_node(l.call(more), {l.x, half(l.w, 0), half(l.r, 0), half(l.b, 0)}, 2);
      const auto backward = run_node(l.call(more + ", direction = \"reverse\""),
                                     {l.x, half(l.w, 1), half(l.r, 1), half(l.b, 1)}, 2);
      expect_near(sliced(both[0].tensor(), 1, 0, 1), forward[0]);
      expect_near(sliced(both[0].tensor(), 1, 1, 2), backward[0]);
      expect_near(sliced(both[1].tensor(), 0, 1, 2), backward[1]);
      // Backwards is forwards on the reversed sequence.
      const Tensor flipped = sliced(l.x, 0, -1, -100, -1);
      const auto again =
          run_node(l.call(more), {flipped, half(l.w, 1), half(l.r, 1), half(l.b, 1)}, 2, {1, 2}, 3);
      expect_near(sliced(again[0].tensor(), 0, -1, -100, -1), backward[0]);
      // Batch first.
      const Tensor turned = run_node("Transpose <perm = [1, 0, 2]>", {l.x})[0].tensor();
      const auto layout = run_node(l.call(more + ", direction = \"bidirectional\", layout = 1"),
                                   {turned, l.w, l.r, l.b}, 2);
      expect_near(run_node("Transpose <perm = [1, 2, 0, 3]>", {layout[0].tensor()})[0], both[0]);
      expect_near(run_node("Transpose <perm = [1, 0, 2]>", {layout[1].tensor()})[0], both[1]);
      const auto wide = [](const Tensor& t) { return converted(t, ElementType::float64); };
      expect_near(run_node(l.call(more + ", direction = \"bidirectional\""),
                           {wide(l.x), wide(l.w), wide(l.r), wide(l.b)}, 2)[0],
                  both[0]);
    }
  }
}

TEST(Recurrent, ShorterSequencesEndInZeros) {
  Random random(3);
  for (const char* op : {"RNN", "GRU", "LSTM"}) {
    const Recurrent l(random, op, 1);
    const Tensor lengths = Tensor::of<int32_t>({5, 2, 0}, {3});
    for (const char* direction : {"forward", "reverse"}) {
      const std::string call = l.call(fmt::format(", direction = \"{}\"", direction));
      const auto y = run_node(call, {l.x, l.w, l.r, l.b, lengths}, 2);
      const auto alone = run_node(call, {sliced(l.x, 0, 0, 2), l.w, l.r, l.b}, 2);
      expect_near(sliced(sliced(y[0].tensor(), 0, 0, 2), 2, 1, 2),
                  sliced(alone[0].tensor(), 2, 1, 2));
      expect_near(sliced(y[1].tensor(), 1, 1, 2), sliced(alone[1].tensor(), 1, 1, 2));
      const Tensor past = sliced(sliced(y[0].tensor(), 0, 2, 5), 2, 1, 3);
      const Tensor empty = sliced(y[1].tensor(), 1, 2, 3);
      for (const float value : past.elements<float>()) EXPECT_EQ(value, 0);
      for (const float value : empty.elements<float>()) EXPECT_EQ(value, 0);
    }
  }
}

TEST(Recurrent, ShapesAndMistakes) {
  const Inferred g(
      R"(g (float[t, batch, 10] x, float[2, 80, 10] w, float[2, 80, 20] r) => (float[a] y) {
    y, h, c = LSTM <hidden_size = 20, direction = "bidirectional"> (x, w, r)
  })");
  EXPECT_EQ(g.shape("y"), "[t,2,batch,20]");
  EXPECT_EQ(g.shape("h"), "[2,batch,20]");
  Random random(4);
  const Recurrent l(random, "GRU", 1);
  EXPECT_NE(error_of([&] {
              run_node("GRU <hidden_size = 5>", {l.x, l.w, l.r});
            }).find("must have shape"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              run_node(l.call(", activations = [\"Foo\", \"Tanh\"]"), {l.x, l.w, l.r});
            }).find("'Foo'"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              run_node(l.call(", direction = \"up\""), {l.x, l.w, l.r});
            }).find("direction"),
            std::string::npos);
  EXPECT_EQ(
      *upgraded("y = GRU <hidden_size = 3, direction = \"foward\", output_sequence = 1> (x, w, r)",
                1)
           .nodes.back()
           .find("direction")
           ->s,
      "forward");
}

// --- Attention

struct Heads {
  int64_t batch = 2, q_heads = 4, kv_heads = 2, queries = 5, keys = 7, size = 8, v_size = 6;
};

// Scores of one query and head as the definition has them; masked ones are absent (-inf).
Tensor plain_attention(const Heads& s, const Tensor& q, const Tensor& k, const Tensor& v,
                       const std::function<bool(int64_t, int64_t, int64_t)>& sees) {
  Tensor y(ElementType::float32, {s.batch, s.q_heads, s.queries, s.v_size});
  const auto scale = 1 / std::sqrt(static_cast<double>(s.size));
  for (int64_t at = 0; at < s.batch * s.q_heads * s.queries; ++at) {
    const int64_t i = at % s.queries, h = at / s.queries % s.q_heads,
                  b = at / s.queries / s.q_heads;
    const int64_t kv = (b * s.kv_heads + h / (s.q_heads / s.kv_heads)) * s.keys;
    std::vector<double> weight(static_cast<size_t>(s.keys), 0);
    double total = 0;
    for (int64_t j = 0; j < s.keys; ++j) {
      if (!sees(b, i, j)) continue;
      double dot = 0;
      for (int64_t d = 0; d < s.size; ++d)
        dot += static_cast<double>(q.elements<float>()[at * s.size + d]) *
               k.elements<float>()[(kv + j) * s.size + d];
      total += weight[static_cast<size_t>(j)] = std::exp(dot * scale);
    }
    for (int64_t d = 0; d < s.v_size; ++d) {
      double sum = 0;
      for (int64_t j = 0; j < s.keys; ++j)
        sum += weight[static_cast<size_t>(j)] * v.elements<float>()[(kv + j) * s.v_size + d];
      y.mutable_elements<float>()[at * s.v_size + d] =
          static_cast<float>(total > 0 ? sum / total : 0);
    }
  }
  return y;
}

TEST(Attention, MasksAndGroupsAreTheDefinition) {
  Random random(5);
  for (const int64_t queries : {1, 5, 150}) {
    Heads s;
    s.queries = queries;
    const Tensor q = random.floats({s.batch, s.q_heads, s.queries, s.size}),
                 k = random.floats({s.batch, s.kv_heads, s.keys, s.size}),
                 v = random.floats({s.batch, s.kv_heads, s.keys, s.v_size});
    const auto all = [](int64_t, int64_t, int64_t) { return true; };
    const Value plain = run_node("Attention", {q, k, v}, 1, {}, 2)[0];
    expect_near(plain, plain_attention(s, q, k, v, all));
    expect_same(run_node("Attention", {q, k, v}, 1, {}, 1)[0], plain);
    expect_near(run_node("Attention <is_causal = 1>", {q, k, v})[0],
                plain_attention(s, q, k, v, [](int64_t, int64_t i, int64_t j) { return j <= i; }));
    expect_near(run_node("Attention <left_window_size = 2, right_window_size = 1>", {q, k, v})[0],
                plain_attention(s, q, k, v, [](int64_t, int64_t i, int64_t j) {
                  return j >= i - 2 && j <= i + 1;
                }));
    const Tensor mask = random.integers<bool>({s.queries, s.keys - 2}, 0, 1);
    expect_near(run_node("Attention", {q, k, v, mask})[0],
                plain_attention(s, q, k, v, [&](int64_t, int64_t i, int64_t j) {
                  return j < s.keys - 2 &&
                         mask.elements<bool>()[static_cast<size_t>(i * (s.keys - 2) + j)];
                }));
    const Tensor lengths = Tensor::of<int64_t>({3, 7}, {2});
    expect_near(
        run_node("Attention <is_causal = 1>", {q, k, v, Tensor(), Tensor(), Tensor(), lengths})[0],
        plain_attention(s, q, k, v, [&](int64_t b, int64_t i, int64_t j) {
          const int64_t valid = lengths.elements<int64_t>()[static_cast<size_t>(b)];
          return j < valid && j <= i + valid - s.queries;
        }));
    // Queries before the first key see some keys through a window that is wider than all keys.
    for (const int64_t right : {int64_t{0}, s.keys, s.keys + 100, INT64_MAX}) {
      expect_near(run_node(fmt::format("Attention <right_window_size = {}>", right),
                           {q, k, v, Tensor(), Tensor(), Tensor(), lengths})[0],
                  plain_attention(s, q, k, v, [&](int64_t b, int64_t i, int64_t j) {
                    const int64_t valid = lengths.elements<int64_t>()[static_cast<size_t>(b)];
                    return j < valid && (right == INT64_MAX || j <= i + valid - s.queries + right);
                  }));
    }
    for (const auto type : {ElementType::float64, ElementType::float16, ElementType::bfloat16}) {
      expect_near(
          run_node("Attention", {converted(q, type), converted(k, type), converted(v, type)})[0],
          plain, 0.02);
    }
  }
}

TEST(Attention, AGrowingPastIsOneLongSequence) {
  Random random(6);
  const Tensor q = random.floats({2, 6, 4 * 8}), k = random.floats({2, 6, 2 * 8}),
               v = random.floats({2, 6, 2 * 5});
  const std::string call = "Attention <is_causal = 1, q_num_heads = 4, kv_num_heads = 2>";
  const auto whole = run_node(call, {q, k, v}, 3);
  Tensor past_k, past_v;
  for (int64_t t = 0; t < 6; ++t) {
    const auto step =
        run_node(call,
                 {sliced(q, 1, t, t + 1), sliced(k, 1, t, t + 1), sliced(v, 1, t, t + 1), Tensor(),
                  t ? past_k : Tensor(ElementType::float32, {2, 2, 0, 8}),
                  t ? past_v : Tensor(ElementType::float32, {2, 2, 0, 5})},
                 3);
    expect_near(step[0], sliced(whole[0].tensor(), 1, t, t + 1));
    past_k = step[1].tensor(), past_v = step[2].tensor();
  }
  expect_same(past_k, whole[1]);
  expect_same(past_v, whole[2]);
}

TEST(Attention, ShapesAndMistakes) {
  const Inferred g(
      R"(g (float[b, s, 64] q, float[b, s, 32] k, float[b, 2, p, 16] pk, float[b, 2, p, 16] pv) => (float[a] y) {
    y, nk, nv, qk = Attention <q_num_heads = 4, kv_num_heads = 2> (q, k, k, , pk, pv)
  })");
  EXPECT_EQ(g.shape("y"), "[b,s,64]");
  EXPECT_EQ(g.shape("nk"), "[b,2,p + s,16]");
  EXPECT_EQ(g.shape("qk"), "[b,4,s,p + s]");
  const Tensor x(ElementType::float32, {1, 2, 12}), four(ElementType::float32, {1, 3, 2, 4}),
      two(ElementType::float32, {1, 2, 2, 4});
  EXPECT_NE(error_of([&] {
              run_node("Attention", {x, x, x});
            }).find("q_num_heads"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              run_node("Attention <q_num_heads = 5, kv_num_heads = 3>", {x, x, x});
            }).find("divisible"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              run_node("Attention", {four, two, two});
            }).find("multiple"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              run_node("Attention", {two, two, two, Tensor(), two});
            }).find("together"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              run_node("Attention <qk_matmul_output_mode = 4>", {two, two, two});
            }).find("[0, 3]"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              run_node("Attention", {two, two, two, Tensor(ElementType::boolean, {2, 3})});
            }).find("columns"),
            std::string::npos);
}

TEST(RotaryEmbedding, TurnsPairsAndChecksPositions) {
  Random random(7);
  const Tensor x = random.floats({1, 2, 3, 4});
  Tensor cosine(ElementType::float32, {5, 2}), sine(ElementType::float32, {5, 2});
  for (size_t i = 0; i < 10; ++i)
    cosine.mutable_elements<float>()[i] = std::cos(static_cast<float>(i)),
    sine.mutable_elements<float>()[i] = std::sin(static_cast<float>(i));
  const Tensor positions = Tensor::of<int64_t>({4, 0, 2}, {1, 3});
  for (const int interleaved : {0, 1}) {
    const Tensor y = run_node(fmt::format("RotaryEmbedding <interleaved = {}>", interleaved),
                              {x, cosine, sine, positions})[0]
                         .tensor();
    for (size_t at = 0; at < 6; ++at) {
      for (size_t i = 0; i < 2; ++i) {
        const size_t row = static_cast<size_t>(positions.elements<int64_t>()[at % 3]) * 2 + i;
        const size_t first = at * 4 + (interleaved ? 2 * i : i),
                     second = first + (interleaved ? 1 : 2);
        const auto c = std::cos(static_cast<double>(row)), s = std::sin(static_cast<double>(row));
        EXPECT_NEAR(y.elements<float>()[first],
                    c * x.elements<float>()[first] - s * x.elements<float>()[second], 1e-5);
        EXPECT_NEAR(y.elements<float>()[second],
                    s * x.elements<float>()[first] + c * x.elements<float>()[second], 1e-5);
      }
    }
  }
  EXPECT_NE(
      error_of([&] {
        run_node("RotaryEmbedding", {x, cosine, sine, Tensor::of<int64_t>({4, 5, 2}, {1, 3})});
      }).find("[0, 5)"),
      std::string::npos);
  EXPECT_NE(error_of([&] {
              run_node("RotaryEmbedding <rotary_embedding_dim = 3>", {x, cosine, sine, positions});
            }).find("even"),
            std::string::npos);
}

TEST(TensorScatter, WritesInsideTheCacheOnly) {
  const Tensor cache = Tensor::of<float>({0, 1, 2, 3, 4, 5, 6, 7}, {2, 4, 1}),
               update = Tensor::of<float>({10, 11, 12, 13}, {2, 2, 1});
  EXPECT_EQ(elements<float>(
                run_node("TensorScatter", {cache, update, Tensor::of<int64_t>({2, 0}, {2})})[0]),
            (std::vector<float>{0, 1, 10, 11, 12, 13, 6, 7}));
  EXPECT_EQ(elements<float>(run_node("TensorScatter <mode = \"circular\">",
                                     {cache, update, Tensor::of<int64_t>({3, 5}, {2})})[0]),
            (std::vector<float>{11, 1, 2, 10, 4, 12, 13, 7}));
  for (const int64_t bad : {int64_t{3}, int64_t{-1}, INT64_MAX}) {
    EXPECT_NE(error_of([&] {
                run_node("TensorScatter", {cache, update, Tensor::of<int64_t>({0, bad}, {2})});
              }).find("[0, 2]"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace sardonyx::ops_test
