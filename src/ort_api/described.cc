#include "ort_api/described.h"

#include <algorithm>
#include <set>

#include "sardonyx/infer.h"

namespace sardonyx::ort_api {

namespace {

ONNXType kind_of(TypeView::Kind kind) {
  switch (kind) {
    case TypeView::Kind::tensor: return ONNX_TYPE_TENSOR;
    case TypeView::Kind::sparse_tensor: return ONNX_TYPE_SPARSETENSOR;
    case TypeView::Kind::sequence: return ONNX_TYPE_SEQUENCE;
    case TypeView::Kind::map: return ONNX_TYPE_MAP;
    case TypeView::Kind::optional: return ONNX_TYPE_OPTIONAL;
    case TypeView::Kind::opaque: return ONNX_TYPE_OPAQUE;
    case TypeView::Kind::none: break;
  }
  return ONNX_TYPE_UNKNOWN;
}

ONNXType kind_of(Value::Kind kind) {
  switch (kind) {
    case Value::Kind::tensor: return ONNX_TYPE_TENSOR;
    case Value::Kind::sparse_tensor: return ONNX_TYPE_SPARSETENSOR;
    case Value::Kind::sequence: return ONNX_TYPE_SEQUENCE;
    case Value::Kind::map: return ONNX_TYPE_MAP;
    case Value::Kind::optional: return ONNX_TYPE_OPTIONAL;
    case Value::Kind::none: break;
  }
  return ONNX_TYPE_UNKNOWN;
}

// What the model says.
OrtTypeInfo declared(const TypeView& type) {
  OrtTypeInfo info;
  info.kind = kind_of(type.kind());
  info.denotation = type.denotation();
  if (info.kind == ONNX_TYPE_TENSOR || info.kind == ONNX_TYPE_SPARSETENSOR) {
    info.tensor.type = number_of(type.element_type());
    info.tensor.has_shape = type.has_shape();
    for (const DimensionView& dimension : type.shape()) {
      info.tensor.dims.push_back(dimension.size().value_or(-1));
      info.tensor.names.emplace_back(dimension.name());
    }
  }
  if (info.kind == ONNX_TYPE_MAP) info.key = number_of(type.element_type());
  if (const auto nested = type.nested()) info.of = std::make_shared<OrtTypeInfo>(declared(*nested));
  return info;
}

// The declared type with what the session knows better: sizes that were set or inferred. `names`:
// those that a size may have, which are the inputs'.
OrtTypeInfo described(const ValueDescription& value, const std::optional<TypeView>& type,
                      const std::set<std::string, std::less<>>& names) {
  OrtTypeInfo info;
  if (type) info = declared(*type);
  if (value.kind != Value::Kind::tensor && value.kind != Value::Kind::sparse_tensor) {
    if (!type) info.kind = kind_of(value.kind);
    return info;
  }
  info.kind = kind_of(value.kind);
  OrtTensorTypeAndShapeInfo known;
  known.type = number_of(value.element_type);
  known.has_shape = value.shape.has_value();
  if (value.shape) {
    const bool fits = info.tensor.has_shape && info.tensor.dims.size() == value.shape->size();
    for (size_t i = 0; i < value.shape->size(); ++i) {
      const ValueDescription::Dimension& dimension = (*value.shape)[i];
      known.dims.push_back(dimension.size.value_or(-1));
      std::string name;
      if (!dimension.size) {
        if (fits) name = info.tensor.names[i];
        if (name.empty() && names.contains(dimension.name)) name = dimension.name;
      }
      known.names.push_back(std::move(name));
    }
  }
  info.tensor = std::move(known);
  return info;
}

bool is_open(const ValueDescription& one) {
  if (one.kind != Value::Kind::tensor || !one.shape) return one.kind == Value::Kind::tensor;
  return std::any_of(one.shape->begin(), one.shape->end(),
                     [](const ValueDescription::Dimension& size) { return !size.size; });
}

// The outputs with what inference says of sizes that the model leaves open.
std::vector<ValueDescription> inferred_outputs(const OrtSession& session) {
  std::vector<ValueDescription> outputs = session.session.outputs();
  InferOptions options;
  options.sizes = session.sizes;
  const Inference inferred = infer_types(session.model, options);
  std::map<std::string_view, const InferredValue*> known;  // of the main graph
  for (const InferredValue& value : inferred.values)
    if (value.graph.empty() && value.shape) known.emplace(value.name, &value);
  for (ValueDescription& output : outputs) {
    const auto found = known.find(output.name);
    if (!is_open(output) || found == known.end()) continue;
    const auto& shape = *found->second->shape;
    if (!output.shape) output.shape.emplace(shape.size());
    if (output.shape->size() != shape.size()) continue;
    for (size_t i = 0; i < shape.size(); ++i) {
      ValueDescription::Dimension& size = (*output.shape)[i];
      if (size.size) continue;
      if (shape[i].number >= 0) {
        size = {shape[i].number, {}};
      } else if (size.name.empty()) {
        size.name = shape[i].expression;
      }
    }
  }
  return outputs;
}

// Of the model's inputs or outputs, by name.
std::map<std::string_view, TypeView> declared_types(const ViewList<ValueInfoView>& list) {
  std::map<std::string_view, TypeView> types;
  for (const ValueInfoView& one : list)
    if (const auto type = one.type()) types.emplace(one.name(), *type);
  return types;
}

std::optional<TypeView> type_in(const std::map<std::string_view, TypeView>& types,
                                std::string_view name) {
  const auto found = types.find(name);
  return found == types.end() ? std::nullopt : std::optional(found->second);
}

// Names of sizes that inputs leave open.
std::set<std::string, std::less<>> size_names(const OrtSession& session) {
  std::set<std::string, std::less<>> names;
  for (const ValueDescription& input : session.session.inputs()) {
    for (size_t i = 0; input.shape && i < input.shape->size(); ++i) {
      const std::string& name = (*input.shape)[i].name;
      if (!name.empty() && name != fmt::format("{}.{}", input.name, i)) names.insert(name);
    }
  }
  return names;
}

}  // namespace

void describe(OrtSession& session) {
  const GraphView graph = session.model.graph();
  const auto input_types = declared_types(graph.inputs()),
             output_types = declared_types(graph.outputs());
  const auto names = size_names(session);
  size_t index = 0;
  for (const ValueDescription& input : session.session.inputs()) {
    auto& list = input.optional ? session.defaults : session.inputs;
    list.push_back(
        {input.name, index++, described(input, type_in(input_types, input.name), names)});
  }
  index = 0;
  for (const ValueDescription& output : session.session.outputs())
    session.outputs.push_back(
        {output.name, index++, described(output, type_in(output_types, output.name), names)});
  for (const auto& one : session.inputs) session.input_index.emplace(one.name, one.index);
  for (const auto& one : session.defaults) session.input_index.emplace(one.name, one.index);
  for (const auto& one : session.outputs) session.output_index.emplace(one.name, one.index);
}

const OrtTypeInfo& output_type(const OrtSession& session, size_t index) {
  const OrtTypeInfo& known = session.outputs[index].type;
  const auto& outputs = session.session.outputs();
  if (std::none_of(outputs.begin(), outputs.end(), is_open)) return known;
  OrtSession::InferredOutputs& inferred = *session.inferred;
  std::call_once(inferred.once, [&] {
    const auto types = declared_types(session.model.graph().outputs());
    const auto names = size_names(session);
    for (const ValueDescription& output : inferred_outputs(session))
      inferred.types.push_back(described(output, type_in(types, output.name), names));
  });
  return inferred.types[index];
}

}  // namespace sardonyx::ort_api
