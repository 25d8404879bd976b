// Random tensors, plain definitions and comparisons for the tests of neural network operators.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "base/checked.h"
#include "graph_support.h"
#include "kernels/convert/cast.h"

namespace sardonyx::ops_test {

// Values of a fixed generator, the same on every machine.
class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  // In [-1, 1).
  float number() { return static_cast<float>(engine_() >> 8) / 8388608.0f - 1.0f; }
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint32_t>(high - low + 1));
  }
  Tensor floats(Shape shape, float scale = 1) {
    Tensor tensor(ElementType::float32, std::move(shape));
    for (float& value : tensor.mutable_elements<float>()) value = scale * number();
    return tensor;
  }
  template <class T>
  Tensor integers(Shape shape, int64_t low, int64_t high) {
    Tensor tensor(element_type_of<T>::value, std::move(shape));
    for (T& value : tensor.mutable_elements<T>()) value = static_cast<T>(between(low, high));
    return tensor;
  }

 private:
  std::mt19937 engine_;
};

inline Tensor converted(const Tensor& tensor, ElementType type) {
  Tensor result(type, tensor.shape());
  ThreadPool pool(1);
  kernels::cast(tensor.element_type(), type, tensor.data(), result.mutable_data(), tensor.size(),
                {}, pool);
  return result;
}

inline Tensor as_float(const Value& value) {
  return converted(value.tensor(), ElementType::float32);
}

// Fails where the shapes differ or an element differs by more than `relative` of the largest one.
inline void expect_near(const Value& found, const Value& wanted, double relative = 1e-5) {
  ASSERT_EQ(found.tensor().shape(), wanted.tensor().shape());
  const Tensor a = as_float(found), b = as_float(wanted);
  double largest = 1e-30;
  for (const float value : b.elements<float>()) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(static_cast<double>(value)));
  }
  for (int64_t i = 0; i < a.size(); ++i) {
    const auto x = static_cast<double>(a.elements<float>()[static_cast<size_t>(i)]);
    const auto y = static_cast<double>(b.elements<float>()[static_cast<size_t>(i)]);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    ASSERT_LE(std::abs(x - y), relative * largest)
        << "element " << i << ": " << x << " instead of " << y;
  }
}

// Bit for bit.
inline void expect_same(const Value& found, const Value& wanted) {
  ASSERT_EQ(found.tensor().shape(), wanted.tensor().shape());
  ASSERT_EQ(found.tensor().element_type(), wanted.tensor().element_type());
  EXPECT_EQ(std::memcmp(found.tensor().data(), wanted.tensor().data(), found.tensor().byte_size()),
            0);
}

// "float[2,3]" of a tensor.
inline std::string type_text(const Tensor& tensor) {
  return std::string(name_of(tensor.element_type())) + to_string(tensor.shape());
}

// Runs one node: `call` is "Conv <strides = [2, 2]>", inputs become x0, x1 ... (an empty tensor:
// absent); those in `constants` are initializers, the others graph inputs. Gives all outputs.
inline std::vector<Value> run_node(const std::string& call, const std::vector<Tensor>& inputs,
                                   int outputs = 1, std::vector<int> constants = {},
                                   int threads = 1) {
  ir::Node node =
      wire::parse_node(call.find('(') == std::string::npos ? "y0 = " + call + " ()" : call);
  node.inputs.clear(), node.outputs.clear();
  ir::Graph graph;
  eval::Frame frame;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = inputs[i].empty() ? "" : "x" + std::to_string(i);
    node.inputs.push_back(name);
    if (name.empty()) continue;
    if (std::find(constants.begin(), constants.end(), static_cast<int>(i)) != constants.end()) {
      graph.initializers.push_back(ops::tensor_proto(inputs[i], name));
    } else {
      graph.inputs.emplace_back().name = name;
      frame.set(name, inputs[i]);
    }
  }
  for (int i = 0; i < outputs; ++i) {
    node.outputs.push_back("y" + std::to_string(i));
    graph.outputs.emplace_back().name = node.outputs.back();
  }
  graph.nodes = {node};
  ThreadPool pool(threads);
  eval::Environment environment(pool);
  return eval::run_graph(graph, frame, environment);
}

}  // namespace sardonyx::ops_test
