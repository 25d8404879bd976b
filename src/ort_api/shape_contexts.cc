// What an operator of the caller's sees of its node while shapes are inferred.
#include "ort_api/kernels.h"

namespace sardonyx::ort_api {

namespace {

OrtStatus* ShapeInferContext_GetInputCount(const OrtShapeInferContext* context, size_t* out) {
  return guarded([&] { required(out, "out") = required(context, "context").inputs.size(); });
}

// Lent: callers don't release it.
OrtStatus* ShapeInferContext_GetInputTypeShape(const OrtShapeInferContext* context, size_t index,
                                               OrtTensorTypeAndShapeInfo** out) {
  return guarded([&] {
    const auto& inputs = required(context, "context").inputs;
    if (index >= inputs.size())
      refuse(ORT_RUNTIME_EXCEPTION, "there is no input {}: the node has {}", index, inputs.size());
    required(out, "info") = const_cast<OrtTensorTypeAndShapeInfo*>(&inputs[index]);
  });
}

OrtStatus* ShapeInferContext_GetAttribute(const OrtShapeInferContext* context, const char* name,
                                          const OrtOpAttr** out) {
  return guarded([&] {
    const Attributes& attributes = required(context, "context").attributes;
    required(out, "attr") = nullptr;
    const auto found = attributes.find(text_of(name, "attr_name"));
    if (found == attributes.end())
      refuse(ORT_INVALID_ARGUMENT, "the node has no attribute '{}'", name);
    *out = &found->second;
  });
}

OrtStatus* ShapeInferContext_SetOutputTypeShape(const OrtShapeInferContext* context, size_t index,
                                                const OrtTensorTypeAndShapeInfo* info) {
  return guarded([&] {
    auto& outputs = const_cast<OrtShapeInferContext&>(required(context, "context")).outputs;
    required(info, "info");
    if (index >= outputs.size())
      refuse(ORT_RUNTIME_EXCEPTION, "there is no output {}: the node has {}", index,
             outputs.size());
    outputs[index] = *info;
  });
}

}  // namespace

OrtShapeInferContext::OrtShapeInferContext(ShapeInferenceContext& of, const AttributeTypes& types)
    : context(of),
      outputs(static_cast<size_t>(of.output_count())),
      attributes(attributes_of(of, types)) {
  for (int i = 0; i < of.input_count(); ++i) {
    OrtTensorTypeAndShapeInfo& input = inputs.emplace_back();
    const auto rank = of.rank(i);
    input.has_shape = rank.has_value();
    if (of.has_input(i)) input.type = number_of(of.element(i));
    for (int64_t axis = 0; axis < rank.value_or(0); ++axis) {
      const SymbolicDim size = of.size(i, axis);
      input.dims.push_back(size.is_number() ? size.value() : -1);
      input.names.push_back(size.is_number() ? "" : of.text_of(size));
      if (!size.is_number()) named_.emplace(input.names.back(), size);
    }
  }
}

bool OrtShapeInferContext::knows_all_ranks() const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (context.has_input(static_cast<int>(i)) && !inputs[i].has_shape) return false;
  }
  return true;
}

std::vector<SymbolicDim> OrtShapeInferContext::sizes_of(const OrtTensorTypeAndShapeInfo& output,
                                                        bool says_numbers) {
  std::vector<SymbolicDim> sizes;
  for (size_t i = 0; i < output.dims.size(); ++i) {
    const std::string name = i < output.names.size() ? output.names[i] : "";
    if (!name.empty()) {
      auto found = named_.find(name);
      if (found == named_.end()) found = named_.emplace(name, context.unknown()).first;
      sizes.push_back(found->second);
    } else {
      const bool is_number = says_numbers && output.dims[i] >= 0;
      sizes.push_back(is_number ? SymbolicDim(output.dims[i]) : context.unknown());
    }
  }
  return sizes;
}

void add_shape_contexts(OrtApi& table) {
  table.ShapeInferContext_GetInputCount = ShapeInferContext_GetInputCount;
  table.ShapeInferContext_GetInputTypeShape = ShapeInferContext_GetInputTypeShape;
  table.ShapeInferContext_GetAttribute = ShapeInferContext_GetAttribute;
  table.ShapeInferContext_SetOutputTypeShape = ShapeInferContext_SetOutputTypeShape;
}

}  // namespace sardonyx::ort_api
