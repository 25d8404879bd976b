#include "ops/contrib/body.h"

namespace sardonyx::ops {

int64_t Body::rank(size_t i) const {
  if (const auto known = ctx_.rank(i)) return *known;
  ctx_.fail(ErrorCode::unsupported,
            "the rank of {} decides how the node is computed, and nothing says it; declare the "
            "shape of that value",
            node().input_name(static_cast<int>(i)));
}

const ir::Dim* Body::dim(size_t i, size_t axis) const {
  const ValueType* type = ctx_.type(i);
  if (type == nullptr || !type->shape || axis >= type->shape->size()) return nullptr;
  return &(*type->shape)[axis];
}

std::string Body::fresh_name() const {
  std::string old;
  const std::string fresh = ctx_.detach_output(0, &old);
  ctx_.node().outputs[0] = old;
  return fresh;
}

Names Body::several(std::string_view op, Names inputs, size_t outputs, Attributes attributes) {
  Names made;
  for (size_t i = 0; i < outputs; ++i) made.push_back(fresh_name());
  node_for(op, std::move(inputs), made, std::move(attributes));
  return made;
}

void Body::node_for(std::string_view op, Names inputs, Names outputs, Attributes attributes) {
  ir::Node made;
  made.op_type = op;
  made.inputs = std::move(inputs);
  made.outputs = std::move(outputs);
  made.attributes = std::move(attributes);
  ctx_.before(std::move(made));
}

void Body::give(size_t output, std::string_view op, Names inputs, Attributes attributes) {
  if (wants(output))
    node_for(op, std::move(inputs), {ctx_.node().outputs[output]}, std::move(attributes));
}

std::string Body::take(std::string value, int64_t position, int64_t axis) {
  const std::string index = ctx_.constant(Tensor::scalar<int64_t>(position), "position");
  return op("Gather", {std::move(value), index}, {int_attribute("axis", axis)});
}

std::string activate(Body& body, const std::string& value, const std::string& name,
                     const std::vector<float>& parameters) {
  if (name.empty()) return value;
  const auto parameter = [&](size_t i, float otherwise) {
    return i < parameters.size() ? parameters[i] : otherwise;
  };
  for (const char* plain :
       {"Relu", "Tanh", "Sigmoid", "HardSwish", "Softplus", "Softsign", "Gelu"}) {
    if (name == plain) return body.op(plain, {value});
  }
  if (name == "LeakyRelu")
    return body.op("LeakyRelu", {value}, {float_attribute("alpha", parameter(0, 0.01f))});
  if (name == "HardSigmoid")
    return body.op("HardSigmoid", {value},
                   {float_attribute("alpha", parameter(0, 0.2f)),
                    float_attribute("beta", parameter(1, 0.5f))});
  if (name == "Clip")
    return body.op("Clip", {value, body.number(parameter(0, -3.402823466e38f), 0),
                            body.number(parameter(1, 3.402823466e38f), 0)});
  if (name == "Elu") return body.op("Elu", {value}, {float_attribute("alpha", parameter(0, 1))});
  if (name == "ThresholdedRelu")
    return body.op("ThresholdedRelu", {value}, {float_attribute("alpha", parameter(0, 1))});
  body.context().fail(
      ErrorCode::unsupported,
      "activation '{}' is not known; known are Relu, Tanh, Sigmoid, LeakyRelu, Clip, "
      "HardSigmoid, HardSwish, Elu, Softplus, Softsign, ThresholdedRelu, Gelu",
      name);
}

}  // namespace sardonyx::ops
