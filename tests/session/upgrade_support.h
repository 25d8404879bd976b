// Models of old opsets, written as text and run planned and plain.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "sardonyx/session.h"

namespace sardonyx::upgrade_test {

inline Model model_of(int opset, const std::string& graph) {
  return Model::from_text("<ir_version: 7, opset_import: [\"\" : " + std::to_string(opset) +
                          ", \"ai.onnx.ml\" : 1]>\n" + graph);
}

template <class T>
std::vector<T> values(const Tensor& tensor) {
  const auto elements = tensor.elements<T>();
  return {elements.begin(), elements.end()};
}

// All outputs of a graph of that opset; the planned and the plain run must agree.
inline std::vector<Tensor> run_old(int opset, const std::string& graph,
                                   const std::vector<NamedValue>& inputs) {
  const Model model = model_of(opset, graph);
  const auto planned = Session(model).run(inputs);
  const auto plain = Session(model, {.reference = true}).run(inputs);
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < planned.size(); ++i) {
    outputs.push_back(planned[i].tensor());
    EXPECT_EQ(outputs[i].shape(), plain[i].tensor().shape());
    EXPECT_EQ(outputs[i].element_type(), plain[i].tensor().element_type());
  }
  return outputs;
}

inline void expect_floats(const Tensor& actual, const std::vector<double>& wanted,
                          double tolerance = 1e-5) {
  ASSERT_EQ(actual.element_type(), ElementType::float32);
  const auto found = values<float>(actual);
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(static_cast<double>(found[i]), wanted[i], tolerance) << "element " << i;
}

// {0, 1, 2 …}
inline Tensor counted(Shape shape) {
  Tensor tensor(ElementType::float32, std::move(shape));
  float next = 0;
  for (float& v : tensor.mutable_elements<float>()) v = next++;
  return tensor;
}

// What a model of that opset is refused with.
inline std::string refusal(int opset, const std::string& graph,
                           const std::vector<NamedValue>& inputs) {
  try {
    (void)Session(model_of(opset, graph)).run(inputs);
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "the model ran";
  return {};
}

}  // namespace sardonyx::upgrade_test
