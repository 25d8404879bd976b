// Loads a model, runs it on zeros and prints what comes out: hello MODEL.onnx
#include <sardonyx/session.h>
#include <sardonyx/text.h>

#include <cstring>
#include <iostream>

int main(int count, char** arguments) try {
  if (count != 2) return std::cerr << "usage: hello MODEL.onnx\n", 2;
  const sardonyx::Session session(arguments[1]);

  std::vector<sardonyx::NamedValue> inputs;
  for (const auto& input : session.inputs()) {
    if (input.optional) continue;  // it has a default
    const bool has_zeros = input.kind == sardonyx::Value::Kind::tensor && input.shape &&
                           input.element_type != sardonyx::ElementType::string;
    if (!has_zeros)
      return std::cerr << "input '" << input.name << "' is " << input.type << "; no zeros fit it\n",
             1;
    sardonyx::Shape shape;  // a dimension that the model leaves open becomes 1
    for (const auto& dimension : *input.shape) shape.push_back(dimension.size.value_or(1));
    sardonyx::Tensor zeros(input.element_type, shape);
    std::memset(zeros.mutable_data(), 0, zeros.byte_size());
    inputs.emplace_back(input.name, zeros);
  }

  const auto outputs = session.run(inputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::cout << session.outputs()[i].name << "  " << sardonyx::type_text(outputs[i]) << "  "
              << sardonyx::preview(outputs[i], 10) << '\n';
  }
} catch (const sardonyx::Error& error) {
  return std::cerr << error.what() << '\n', 1;
}
