// Operators with a kernel against the bodies that the standard gives them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "eval/eval.h"
#include "lower/lower.h"
#include "schema/schema.h"
#include "wire/text_parse.h"

namespace sardonyx {
namespace {

// For every body: nodes that make y (and more) from x, z: float[3, 4], axes = [-1], n = 8.
const std::map<std::string_view, std::string_view> samples = {
    {"AffineGrid",
     "size = Constant<value = int64[4] {2, 1, 3, 4}>() flat = Reshape(x, theta_shape) "
     "y = AffineGrid<align_corners = 1>(flat, size)"},
    {"BlackmanWindow", "y = BlackmanWindow<periodic = 0>(n)"},
    {"Celu", "y = Celu<alpha = 2.0>(x)"},
    {"DynamicQuantizeLinear", "y, scale, zero = DynamicQuantizeLinear(x)"},
    {"Elu", "y = Elu<alpha = 0.5>(x)"},
    {"GreaterOrEqual", "y = GreaterOrEqual(x, z)"},
    {"HammingWindow", "y = HammingWindow(n)"},
    {"HannWindow", "y = HannWindow<periodic = 0>(n)"},
    {"HardSigmoid", "y = HardSigmoid<alpha = 0.3, beta = 0.4>(x)"},
    {"HardSwish", "y = HardSwish(x)"},
    {"LeakyRelu", "y = LeakyRelu<alpha = 0.2>(x)"},
    {"LessOrEqual", "y = LessOrEqual(x, z)"},
    {"MeanVarianceNormalization", "y = MeanVarianceNormalization<axes = [1]>(x)"},
    {"Mish", "y = Mish(x)"},
    {"PRelu", "y = PRelu(x, z)"},
    {"ReduceL1", "y = ReduceL1(x, axes)"},
    {"ReduceL2", "y = ReduceL2<keepdims = 0>(x, axes)"},
    {"ReduceLogSum", "p = Abs(x) y = ReduceLogSum(p, axes)"},
    {"ReduceLogSumExp", "y = ReduceLogSumExp<keepdims = 0>(x, axes)"},
    {"ReduceSumSquare", "y = ReduceSumSquare(x, axes)"},
    {"Relu", "y = Relu(x)"},
    {"Selu", "y = Selu<alpha = 1.5, gamma = 1.2>(x)"},
    {"Shrink", "y = Shrink<bias = 0.5, lambd = 1.0>(x)"},
    {"Softplus", "y = Softplus(x)"},
    {"Softsign", "y = Softsign(x)"},
    {"SwiGLU", "y = SwiGLU<alpha = 1.5>(x, z)"},
    {"Swish", "y = Swish<alpha = 1.5>(x)"},
    {"ThresholdedRelu", "y = ThresholdedRelu<alpha = 0.7>(x)"},
};

ir::Model model_of(std::string_view nodes) {
  return wire::parse_model(fmt::format(
      "<ir_version: 13, opset_import: [\"\" : {}]>\n"
      "g (float[3, 4] x, float[3, 4] z) => (y) {{ axes = Constant<value = int64[1] {{-1}}>() "
      "n = Constant<value = int64 {{8}}>() theta_shape = Constant<value = int64[3] {{2, 2, 3}}>() "
      "{} }}",
      schema::latest_opset(""), nodes));
}

Tensor waves(float phase) {
  Tensor tensor(ElementType::float32, {3, 4});
  for (float& v : tensor.mutable_elements<float>()) v = 3 * std::cos(phase += 0.7f);
  return tensor;
}

// The value y, and how many nodes computed it.
std::pair<Tensor, size_t> run(const ir::Model& model, bool bodies) {
  const ir::Graph graph = lower::lower(model, {.prefer_function_bodies = bodies});
  ThreadPool pool(1);
  eval::Environment environment(pool);
  eval::Frame frame;
  frame.set("x", waves(0));
  frame.set("z", waves(2));
  return {eval::run_graph(graph, frame, environment)[0].tensor(), graph.nodes.size()};
}

void expect_close(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.element_type(), b.element_type());
  ASSERT_EQ(a.shape(), b.shape());
  if (a.element_type() != ElementType::float32) {
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.byte_size()), 0);
    return;
  }
  const auto x = a.elements<float>(), y = b.elements<float>();
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_NEAR(x[i], y[i], 1e-5 * (1 + std::abs(y[i]))) << "at " << i;
}

TEST(FunctionBodies, ComputeWhatTheKernelsDo) {
  for (const schema::FunctionText& function : schema::function_texts()) {
    if (!function.domain.empty()) continue;
    const std::string name(function.name);
    SCOPED_TRACE(name);
    const auto sample = samples.find(name);
    ASSERT_NE(sample, samples.end()) << "add a sample of " << name;
    const ir::Model model = model_of(sample->second);
    const auto [kernel, nodes] = run(model, false);
    const auto [body, more_nodes] = run(model, true);
    EXPECT_GE(more_nodes, nodes);
    expect_close(kernel, body);
  }
}

}  // namespace
}  // namespace sardonyx
