// Random graphs of differentiable operators: the gradient along random directions against central
// differences in float64, of first and of second order.
#include <gtest/gtest.h>

#include <cmath>

#include "gradient_draw.h"
#include "sardonyx/session.h"

namespace sardonyx::test {
namespace {

constexpr const char* graphs_header =
    "<ir_version: 10, opset_import: [\"\" : 27, \"ai.onnx.preview.training\" : 1, \"f\" : 1]>\n";
// The graphs call these as well.
constexpr const char* functions =
    "\n<domain: \"f\", opset_import: [\"\" : 27, \"f\" : 1]>\n"
    "twist (a, b) => (c) { d = Sin(a)\n e = f.half(b)\n c = Mul(d, e) }\n"
    "<domain: \"f\", opset_import: [\"\" : 27]>\n"
    "half (a) => (c) { h = Constant<value_float = 0.5>()\n g = CastLike(h, a)\n c = Mul(a, g) }\n";

struct Made {
  std::string name;
  Shape shape;
};

// Writes nodes one after the other, each on values that are there.
class Graph {
 public:
  explicit Graph(uint64_t seed) : draw_(seed) {
    const int64_t count = draw_.between(1, 3);
    for (int64_t i = 0; i < count; ++i) {
      Shape shape = draw_.shape(0, 3, false);
      inputs.push_back(draw_.input("x" + std::to_string(i), shape, -1.2, 1.2));
      made_.push_back({inputs.back().name, shape});
    }
    const int64_t nodes = draw_.between(4, 12);
    for (int64_t i = 0; i < nodes; ++i) add();
    // All that was made, so that many values have several uses.
    std::string all = "y0 = Constant<value = double {0}>()\n";
    for (size_t i = 0; i < made_.size(); ++i)
      all += fmt::format(
          " p{0} = ReduceSum<keepdims = 0>({1})\n q{0} = Sin(p{0})\n y{2} = Add(y{0}, q{0})\n", i,
          made_[i].name, i + 1);
    body += " " + all + fmt::format(" value = Identity(y{})\n", made_.size());
  }

  std::string body;
  std::vector<Input> inputs;

 private:
  const Made& any() {
    return made_[static_cast<size_t>(draw_.below(static_cast<int64_t>(made_.size())))];
  }
  std::string fresh() { return "v" + std::to_string(next_++); }
  void emit(Shape shape, const std::string& call, const std::string& before = "") {
    // Nothing grows without bound.
    if (elements_of(shape) > 100) return;
    const std::string name = fresh();
    body += " " + before + name + " = " + call + "\n";
    made_.push_back({name, std::move(shape)});
  }
  std::string ints(const std::vector<int64_t>& values) {
    const std::string name = fresh();
    body += " " + integers(name, values);
    return name;
  }

  void add() {
    const Made x = any();
    const auto rank = static_cast<int64_t>(x.shape.size());
    switch (draw_.below(20)) {
      case 0:
      case 1:
      case 2: return unary(x);
      case 3:
      case 4:
      case 5: return binary(x);
      case 6: return reduce(x);
      case 7: return emit({x.shape.rbegin(), x.shape.rend()}, "Transpose(" + x.name + ")");
      case 8: return emit({elements_of(x.shape)}, "Reshape(" + x.name + ", " + ints({-1}) + ")");
      case 9: return product(x);
      case 10:
        if (rank == 0) return unary(x);
        return emit(x.shape, fmt::format("{}<axis = {}>({})", draw_.word({"Softmax", "LogSoftmax"}),
                                         draw_.axis(rank), x.name));
      case 11: return joined(x);
      case 12: return piece(x);
      case 13: return emit(x.shape, "f.half(" + x.name + ")");
      case 14: return emit(x.shape, fmt::format("f.twist({0}, {0})", x.name));
      case 15: return branch(x);
      case 16: return loop(x);
      case 17: return chosen(x);
      case 18: return whole_numbers(x);
      default: return normalized(x);
    }
  }

  void unary(const Made& x) {
    const std::string op =
        draw_.word({"Sin",  "Cos",   "Tanh", "Sigmoid",  "Softplus",  "Erf",   "Atan",
                    "Gelu", "Swish", "Mish", "Neg",      "Identity",  "Relu",  "LeakyRelu",
                    "Abs",  "Elu",   "Selu", "Softsign", "HardSwish", "Asinh", "Celu"});
    emit(x.shape, op + "(" + x.name + ")");
  }
  void binary(const Made& x) {
    const Made z = any();
    if (!fits(z.shape, x.shape))
      return emit(x.shape, draw_.word({"Mul", "Add"}) + "(" + x.name + ", " + x.name + ")");
    const std::string op = draw_.word({"Add", "Sub", "Mul", "Max", "Min", "Div", "Mean"});
    if (op != "Div") return emit(x.shape, op + "(" + x.name + ", " + z.name + ")");
    const std::string bounded = fresh(), positive = fresh();
    body += " " + bounded + " = Tanh(" + z.name + ")\n " + positive + " = Exp(" + bounded + ")\n";
    emit(x.shape, "Div(" + x.name + ", " + positive + ")");
  }
  static bool fits(const Shape& narrow, const Shape& whole) {
    if (narrow.size() > whole.size()) return false;
    for (size_t i = 0; i < narrow.size(); ++i) {
      const int64_t size = narrow[narrow.size() - 1 - i];
      if (size != 1 && size != whole[whole.size() - 1 - i]) return false;
    }
    return true;
  }
  void reduce(const Made& x) {
    if (x.shape.empty()) return unary(x);
    const std::string op = draw_.word({"ReduceSum", "ReduceMean", "ReduceLogSumExp",
                                       "ReduceSumSquare", "ReduceMax", "ReduceMin"});
    const auto axis = static_cast<size_t>(draw_.below(static_cast<int64_t>(x.shape.size())));
    Shape shape = x.shape;
    const bool keep = draw_.one_in(2);
    if (keep)
      shape[axis] = 1;
    else
      shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
    emit(shape, fmt::format("{}<keepdims = {}>({}, {})", op, int{keep}, x.name,
                            ints({static_cast<int64_t>(axis)})));
  }
  void product(const Made& x) {
    if (x.shape.size() < 2) return unary(x);
    Shape turned = x.shape;
    std::swap(turned[turned.size() - 1], turned[turned.size() - 2]);
    std::vector<int64_t> order(x.shape.size());
    std::iota(order.begin(), order.end(), int64_t{0});
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    const std::string other = fresh();
    body += fmt::format(" {} = Transpose<perm = {}>({})\n", other, listed(order), x.name);
    Shape shape = x.shape;
    shape.back() = turned.back();
    emit(shape, "MatMul(" + x.name + ", " + other + ")");
  }
  void joined(const Made& x) {
    if (x.shape.empty()) return unary(x);
    const auto axis = static_cast<size_t>(draw_.below(static_cast<int64_t>(x.shape.size())));
    Shape shape = x.shape;
    shape[axis] *= 2;
    emit(shape, fmt::format("Concat<axis = {}>({}, {})", axis, x.name, x.name));
  }
  void piece(const Made& x) {
    if (x.shape.empty()) return unary(x);
    const auto axis = static_cast<size_t>(draw_.below(static_cast<int64_t>(x.shape.size())));
    const int64_t size = x.shape[axis];
    Shape shape = x.shape;
    shape[axis] = 2;
    const std::vector<int64_t> places = draw_.integers(2, -size, size - 1);
    if (draw_.one_in(2))
      return emit(shape, fmt::format("Gather<axis = {}>({}, {})", axis, x.name, ints(places)));
    shape[axis] = size - size / 2;
    emit(shape, fmt::format("Slice({}, {}, {}, {})", x.name, ints({size / 2}), ints({9}),
                            ints({static_cast<int64_t>(axis)})));
  }
  void branch(const Made& x) {
    const std::string sum = fresh(), zero = fresh(), c = fresh();
    body += fmt::format(
        " {0} = ReduceSum<keepdims = 0>({1})\n {2} = Constant<value = double {{0.01}}>()\n {3} = "
        "Less({0}, {2})\n",
        sum, x.name, zero, c);
    emit(x.shape, fmt::format("If({0}) <then_branch = t () => (a) {{ a = Sin({1}) }}, else_branch "
                              "= e () => (b) {{ h = f.half({1})\n b = Mul(h, {1}) }}>",
                              c, x.name));
  }
  void loop(const Made& x) {
    const std::string n = fresh(), go = fresh();
    body += fmt::format(
        " {} = Constant<value = int64 {{{}}}>()\n {} = Constant<value = bool {{1}}>()\n", n,
        draw_.between(0, 3), go);
    emit(x.shape, fmt::format("Loop({}, {}, {}) <body = b (int64 i, bool c, v) => (o, r) {{ o = "
                              "Identity(c)\n t = Tanh(v)\n r = Add(t, {}) }}>",
                              n, go, x.name, x.name));
  }
  void chosen(const Made& x) {
    const std::string zero = fresh(), c = fresh(), other = fresh();
    body += fmt::format(
        " {0} = Constant<value = double {{0.1}}>()\n {1} = Greater({2}, {0})\n {3} = Tanh({2})\n",
        zero, c, x.name, other);
    emit(x.shape, fmt::format("Where({}, {}, {})", c, x.name, other));
  }
  // Their steps have no slope.
  void whole_numbers(const Made& x) {
    const std::string whole = fresh(), back = fresh();
    body +=
        fmt::format(" {0} = Cast<to = 7>({1})\n {2} = CastLike({0}, {1})\n", whole, x.name, back);
    emit(x.shape, fmt::format("Add({}, {})", x.name, back));
  }
  void normalized(const Made& x) {
    if (x.shape.empty() || x.shape.back() < 2) return unary(x);
    const std::string one = fresh();
    body +=
        fmt::format(" {} = Constant<value = double[{}] {{{}}}>()\n", one, x.shape.back(),
                    fmt::join(std::vector<double>(static_cast<size_t>(x.shape.back()), 1.5), ", "));
    emit(x.shape, fmt::format("{}<axis = -1, epsilon = 0.1>({}, {})",
                              draw_.word({"LayerNormalization", "RMSNormalization"}), x.name, one));
  }

  Draw draw_;
  std::vector<Made> made_;
  int next_ = 0;
};

// Gives a value and its gradients; of second order, those of a function of the gradients.
Session session_of(const Graph& graph, bool second) {
  std::string formals, names, arguments, results, gradients, squares = "s0";
  for (const Input& input : graph.inputs) {
    const std::string sizes = input.value.shape().empty()
                                  ? ""
                                  : fmt::format("[{}]", fmt::join(input.value.shape(), ", "));
    formals += fmt::format("{}double{} {}", formals.empty() ? "" : ", ", sizes, input.name);
    names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", input.name);
    arguments += (arguments.empty() ? "" : ", ") + input.name;
    results += fmt::format(", double{} d_{}", sizes, input.name);
    gradients += (gradients.empty() ? "d_" : ", d_") + input.name;
  }
  std::string body = graph.body, target = "value";
  if (second) {
    std::string first;
    for (const Input& input : graph.inputs) first += (first.empty() ? "g_" : ", g_") + input.name;
    body += fmt::format(
        " {} = ai.onnx.preview.training.Gradient<xs = [{}], y = \"value\">({})\n s0 = "
        "Constant<value = double {{0}}>()\n",
        first, names, arguments);
    int at = 0;
    for (const Input& input : graph.inputs) {
      body += fmt::format(
          " w{1} = Sin(g_{0})\n r{1} = ReduceSum<keepdims = 0>(w{1})\n s{2} = Add(s{1}, r{1})\n",
          input.name, at, at + 1);
      ++at;
    }
    target = fmt::format("s{}", at);
  }
  return Session(
      Model::from_text(graphs_header +
                       ("g (" + formals + ") => (double " + target + results + ") {\n" + body +
                        " " + gradients + " = ai.onnx.preview.training.Gradient<xs = [" + names +
                        "], y = \"" + target + "\">(" + arguments + ")\n}") +
                       functions));
}

void hold_along_directions(const Graph& graph, bool second, Draw& draw) {
  const Session session = session_of(graph, second);
  std::vector<NamedValue> values;
  for (const Input& input : graph.inputs) values.emplace_back(input.name, input.value);
  const std::vector<Value> outputs = session.run(values);
  for (size_t k = 0; k < graph.inputs.size(); ++k) {
    const Tensor& gradient = outputs.at(k + 1).tensor();
    const Tensor direction = draw.values(graph.inputs[k].value.shape(), -1, 1);
    ASSERT_EQ(gradient.shape(), direction.shape());
    double found = 0, size = 0, sides[2];
    for (size_t i = 0; i < direction.elements<double>().size(); ++i) {
      const double part = gradient.elements<double>()[i] * direction.elements<double>()[i];
      found += part, size += std::abs(part);
    }
    constexpr double step = 1e-6;
    for (int side = 0; side < 2; ++side) {
      Tensor moved(ElementType::float64, direction.shape());
      for (size_t i = 0; i < direction.elements<double>().size(); ++i)
        moved.mutable_elements<double>()[i] =
            graph.inputs[k].value.elements<double>()[i] +
            (side == 0 ? -step : step) * direction.elements<double>()[i];
      std::vector<NamedValue> there = values;
      there[k].second = moved;
      sides[side] = session.run(there)[0].tensor().elements<double>()[0];
    }
    EXPECT_NEAR(found, (sides[1] - sides[0]) / (2 * step), 1e-5 * (1 + size))
        << graph.inputs[k].name;
  }
}

TEST(RandomGradientGraphs, FollowDifferences) {
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    const Graph graph(seed);
    Draw draw(seed + 100000);
    SCOPED_TRACE(fmt::format("seed {}:\n{}", seed, graph.body));
    ASSERT_NO_THROW(hold_along_directions(graph, false, draw));
  }
}

TEST(RandomGradientGraphs, OfSecondOrderFollowDifferences) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    const Graph graph(seed * 7919);
    Draw draw(seed + 200000);
    SCOPED_TRACE(fmt::format("seed {}:\n{}", seed, graph.body));
    ASSERT_NO_THROW(hold_along_directions(graph, true, draw));
  }
}

}  // namespace
}  // namespace sardonyx::test
