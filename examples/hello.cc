// Loads a model, runs it on zeros and prints what comes out: hello MODEL.onnx
#include <sardonyx/session.h>

#include <cstring>
#include <iostream>

int main(int count, char** arguments) try {
  if (count != 2) return std::cerr << "usage: hello MODEL.onnx\n", 2;
  const sardonyx::Session session(arguments[1]);

  std::vector<sardonyx::NamedValue> inputs;
  for (const auto& input : session.inputs()) {
    sardonyx::Shape shape;  // a dimension that the model leaves open becomes 1
    for (const auto& dimension : input.shape.value()) shape.push_back(dimension.size.value_or(1));
    sardonyx::Tensor zeros(input.element_type, shape);
    std::memset(zeros.mutable_data(), 0, zeros.byte_size());
    inputs.emplace_back(input.name, zeros);
  }

  const auto outputs = session.run(inputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::cout << session.outputs()[i].name << ' '
              << sardonyx::to_string(outputs[i].tensor().shape()) << ':';
    for (float element : outputs[i].tensor().elements<float>()) std::cout << ' ' << element;
    std::cout << '\n';
  }
} catch (const sardonyx::Error& error) {
  return std::cerr << error.what() << '\n', 1;
}
