// Types: of a model's inputs and outputs, and of values.
#include <algorithm>

#include "base/value_kind.h"
#include "ort_api/handles.h"

namespace sardonyx::ort_api {

namespace {

int64_t elements_of(const OrtTensorTypeAndShapeInfo& info) {
  // Open sizes leave it open, a 0 makes it 0, whatever else there is.
  if (std::any_of(info.dims.begin(), info.dims.end(), [](int64_t size) { return size < 0; }))
    return -1;
  if (std::find(info.dims.begin(), info.dims.end(), 0) != info.dims.end()) return 0;
  int64_t count = 1;
  for (const int64_t size : info.dims) {
    if (__builtin_mul_overflow(count, size, &count))
      refuse(ORT_INVALID_ARGUMENT, "the shape has more elements than 64 bits can count");
  }
  return count;
}

OrtStatus* GetOnnxTypeFromTypeInfo(const OrtTypeInfo* info, ONNXType* out) {
  return guarded([&] { required(out, "out") = required(info, "type_info").kind; });
}

OrtStatus* GetDenotationFromTypeInfo(const OrtTypeInfo* info, const char** denotation,
                                     size_t* length) {
  return guarded([&] {
    required(denotation, "denotation") = required(info, "type_info").denotation.c_str();
    required(length, "len") = info->denotation.size();
  });
}

// What a type is seen as, null where it is of another kind.
OrtStatus* CastTypeInfoToTensorInfo(const OrtTypeInfo* info,
                                    const OrtTensorTypeAndShapeInfo** out) {
  return guarded([&] {
    const ONNXType kind = required(info, "type_info").kind;
    const bool has = kind == ONNX_TYPE_TENSOR || kind == ONNX_TYPE_SPARSETENSOR;
    required(out, "out") = has ? &info->tensor : nullptr;
  });
}
OrtStatus* CastTypeInfoToMapTypeInfo(const OrtTypeInfo* info, const OrtMapTypeInfo** out) {
  return guarded([&] {
    const bool is_map = required(info, "type_info").kind == ONNX_TYPE_MAP;
    required(out, "out") = is_map ? static_cast<const OrtMapTypeInfo*>(info) : nullptr;
  });
}
OrtStatus* CastTypeInfoToSequenceTypeInfo(const OrtTypeInfo* info,
                                          const OrtSequenceTypeInfo** out) {
  return guarded([&] {
    const bool is_sequence = required(info, "type_info").kind == ONNX_TYPE_SEQUENCE;
    required(out, "out") = is_sequence ? static_cast<const OrtSequenceTypeInfo*>(info) : nullptr;
  });
}
OrtStatus* CastTypeInfoToOptionalTypeInfo(const OrtTypeInfo* info,
                                          const OrtOptionalTypeInfo** out) {
  return guarded([&] {
    const bool is_optional = required(info, "type_info").kind == ONNX_TYPE_OPTIONAL;
    required(out, "out") = is_optional ? static_cast<const OrtOptionalTypeInfo*>(info) : nullptr;
  });
}

OrtTypeInfo* copy_of_nested(const OrtTypeInfo& info) {
  if (info.of == nullptr) refuse(ORT_FAIL, "the type does not say what it is made of");
  return new OrtTypeInfo(*info.of);
}

OrtStatus* GetMapKeyType(const OrtMapTypeInfo* info, ONNXTensorElementDataType* out) {
  return guarded([&] { required(out, "out") = required(info, "map_type_info").key; });
}
OrtStatus* GetMapValueType(const OrtMapTypeInfo* info, OrtTypeInfo** out) {
  return guarded([&] { give(out, "type_info", copy_of_nested(required(info, "map_type_info"))); });
}
OrtStatus* GetSequenceElementType(const OrtSequenceTypeInfo* info, OrtTypeInfo** out) {
  return guarded(
      [&] { give(out, "type_info", copy_of_nested(required(info, "sequence_type_info"))); });
}
OrtStatus* GetOptionalContainedTypeInfo(const OrtOptionalTypeInfo* info, OrtTypeInfo** out) {
  return guarded([&] { give(out, "out", copy_of_nested(required(info, "optional_type_info"))); });
}

void ReleaseTypeInfo(OrtTypeInfo* info) { delete info; }
// Only those that somebody made would come here, and no function makes one.
void ReleaseMapTypeInfo(OrtMapTypeInfo*) {}
void ReleaseSequenceTypeInfo(OrtSequenceTypeInfo*) {}

OrtStatus* CreateTensorTypeAndShapeInfo(OrtTensorTypeAndShapeInfo** out) {
  return guarded([&] { give(out, "out", new OrtTensorTypeAndShapeInfo); });
}
void ReleaseTensorTypeAndShapeInfo(OrtTensorTypeAndShapeInfo* info) { delete info; }

OrtStatus* SetTensorElementType(OrtTensorTypeAndShapeInfo* info, ONNXTensorElementDataType type) {
  return guarded([&] {
    element_type_of(type);  // is one
    required(info, "info").type = type;
  });
}
OrtStatus* SetDimensions(OrtTensorTypeAndShapeInfo* info, const int64_t* dims, size_t count) {
  return guarded([&] {
    items(dims, count, "dim_values");
    for (size_t i = 0; i < count; ++i)
      if (dims[i] < -1)
        refuse(ORT_INVALID_ARGUMENT, "dimension {} is {}; open ones are -1", i, dims[i]);
    required(info, "info").dims.assign(dims, dims + count);
    info->names.resize(count);  // those that are set stay
    info->has_shape = true;
  });
}
OrtStatus* SetSymbolicDimensions(OrtTensorTypeAndShapeInfo* info, const char** names,
                                 size_t count) {
  return guarded([&] {
    items(names, count, "dim_params");
    auto& dims = required(info, "info").dims;
    if (dims.size() < count) dims.resize(count, -1);
    info->names.assign(dims.size(), "");
    for (size_t i = 0; i < count; ++i)
      if (names[i] != nullptr) info->names[i] = names[i];
  });
}

OrtStatus* GetTensorElementType(const OrtTensorTypeAndShapeInfo* info,
                                ONNXTensorElementDataType* out) {
  return guarded([&] { required(out, "out") = required(info, "info").type; });
}
OrtStatus* GetDimensionsCount(const OrtTensorTypeAndShapeInfo* info, size_t* out) {
  return guarded([&] { required(out, "out") = required(info, "info").dims.size(); });
}
OrtStatus* GetDimensions(const OrtTensorTypeAndShapeInfo* info, int64_t* dims, size_t count) {
  return guarded([&] {
    items(dims, count, "dim_values");
    const auto& found = required(info, "info").dims;
    std::copy_n(found.begin(), std::min(count, found.size()), dims);
  });
}
OrtStatus* GetSymbolicDimensions(const OrtTensorTypeAndShapeInfo* info, const char** names,
                                 size_t count) {
  return guarded([&] {
    items(names, count, "dim_params");
    const auto& found = required(info, "info").names;
    for (size_t i = 0; i < count; ++i) names[i] = i < found.size() ? found[i].c_str() : "";
  });
}
OrtStatus* GetTensorShapeElementCount(const OrtTensorTypeAndShapeInfo* info, size_t* out) {
  return guarded(
      [&] { required(out, "out") = static_cast<size_t>(elements_of(required(info, "info"))); });
}
bool TensorTypeAndShape_HasShape(const OrtTensorTypeAndShapeInfo* info) {
  return info != nullptr && info->has_shape;
}

// Where there are no items, the declared ones' type; where nothing is declared, that of floats.
std::shared_ptr<const OrtTypeInfo> type_of_no_items(const OrtValue& value) {
  if (value.declared != nullptr && value.declared->of != nullptr) return value.declared->of;
  OrtTypeInfo floats;
  floats.kind = ONNX_TYPE_TENSOR;
  floats.tensor.type = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
  return std::make_shared<OrtTypeInfo>(std::move(floats));
}

OrtStatus* GetTypeInfo(const OrtValue* value, OrtTypeInfo** out) {
  return guarded([&] {
    const Value& held = required(value, "value").value;
    required(out, "out") = nullptr;
    if (held.kind() == Value::Kind::none) return;
    auto info = std::make_unique<OrtTypeInfo>(type_of(held));
    const bool has_items = info->kind == ONNX_TYPE_SEQUENCE || info->kind == ONNX_TYPE_MAP;
    if (has_items && info->of == nullptr) info->of = type_of_no_items(*value);
    *out = info.release();
  });
}

OrtStatus* GetValueType(const OrtValue* value, ONNXType* out) {
  return guarded([&] {
    switch (required(value, "value").value.kind()) {
      case Value::Kind::tensor: required(out, "out") = ONNX_TYPE_TENSOR; break;
      case Value::Kind::sparse_tensor: required(out, "out") = ONNX_TYPE_SPARSETENSOR; break;
      case Value::Kind::sequence: required(out, "out") = ONNX_TYPE_SEQUENCE; break;
      case Value::Kind::map: required(out, "out") = ONNX_TYPE_MAP; break;
      case Value::Kind::optional: required(out, "out") = ONNX_TYPE_OPTIONAL; break;
      case Value::Kind::none: required(out, "out") = ONNX_TYPE_UNKNOWN; break;
    }
  });
}

OrtTensorTypeAndShapeInfo described_tensor(ElementType type, const Shape& shape) {
  return {.type = number_of(type), .dims = shape, .names = std::vector<std::string>(shape.size())};
}

OrtStatus* GetTensorTypeAndShape(const OrtValue* value, OrtTensorTypeAndShapeInfo** out) {
  return guarded([&] {
    const Value& held = required(value, "value").value;
    if (held.kind() != Value::Kind::tensor && held.kind() != Value::Kind::sparse_tensor)
      refuse(ORT_FAIL, "{} has no element type and shape", with_article(held.kind()));
    give(out, "out", new OrtTensorTypeAndShapeInfo(type_of(held).tensor));
  });
}

}  // namespace

ElementType element_type_of(ONNXTensorElementDataType type) {
  switch (type) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT2: return ElementType::uint2;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2: return ElementType::int2;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0: return ElementType::float8e8m0;
    default: break;
  }
  if (type < ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED ||
      type > ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT4E2M1)
    refuse(ORT_INVALID_ARGUMENT, "{} is the number of no element type", static_cast<int>(type));
  return static_cast<ElementType>(type);
}

ONNXTensorElementDataType number_of(ElementType type) {
  switch (type) {
    case ElementType::uint2: return ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT2;
    case ElementType::int2: return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2;
    case ElementType::float8e8m0: return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0;
    default: break;
  }
  if (static_cast<int>(type) > ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT4E2M1)
    refuse(ORT_NOT_IMPLEMENTED, "ONNX Runtime's interface has no number for elements of type {}",
           name_of(type));
  return static_cast<ONNXTensorElementDataType>(type);
}

OrtTypeInfo type_of(const Value& value) {
  OrtTypeInfo info;
  const auto nested = [&](const Value& held) {
    info.of = std::make_shared<OrtTypeInfo>(type_of(held));
  };
  switch (value.kind()) {
    case Value::Kind::tensor:
      info.kind = ONNX_TYPE_TENSOR;
      info.tensor = described_tensor(value.tensor().element_type(), value.tensor().shape());
      break;
    case Value::Kind::sparse_tensor:
      info.kind = ONNX_TYPE_SPARSETENSOR;
      info.tensor = described_tensor(value.sparse_tensor().values.element_type(),
                                     value.sparse_tensor().shape);
      break;
    case Value::Kind::sequence:
      info.kind = ONNX_TYPE_SEQUENCE;
      if (!value.sequence().items.empty()) nested(value.sequence().items.front());
      break;
    case Value::Kind::map:
      info.kind = ONNX_TYPE_MAP;
      info.key = number_of(value.map().keys.element_type());
      if (!value.map().values.empty()) nested(value.map().values.front());
      break;
    case Value::Kind::optional:
      info.kind = ONNX_TYPE_OPTIONAL;
      if (value.optional().held != nullptr) nested(*value.optional().held);
      break;
    case Value::Kind::none: break;
  }
  return info;
}

void add_types(OrtApi& table) {
  table.GetOnnxTypeFromTypeInfo = GetOnnxTypeFromTypeInfo;
  table.GetDenotationFromTypeInfo = GetDenotationFromTypeInfo;
  table.CastTypeInfoToTensorInfo = CastTypeInfoToTensorInfo;
  table.CastTypeInfoToMapTypeInfo = CastTypeInfoToMapTypeInfo;
  table.CastTypeInfoToSequenceTypeInfo = CastTypeInfoToSequenceTypeInfo;
  table.CastTypeInfoToOptionalTypeInfo = CastTypeInfoToOptionalTypeInfo;
  table.GetMapKeyType = GetMapKeyType;
  table.GetMapValueType = GetMapValueType;
  table.GetSequenceElementType = GetSequenceElementType;
  table.GetOptionalContainedTypeInfo = GetOptionalContainedTypeInfo;
  table.ReleaseTypeInfo = ReleaseTypeInfo;
  table.ReleaseMapTypeInfo = ReleaseMapTypeInfo;
  table.ReleaseSequenceTypeInfo = ReleaseSequenceTypeInfo;
  table.CreateTensorTypeAndShapeInfo = CreateTensorTypeAndShapeInfo;
  table.ReleaseTensorTypeAndShapeInfo = ReleaseTensorTypeAndShapeInfo;
  table.SetTensorElementType = SetTensorElementType;
  table.SetDimensions = SetDimensions;
  table.SetSymbolicDimensions = SetSymbolicDimensions;
  table.GetTensorElementType = GetTensorElementType;
  table.GetDimensionsCount = GetDimensionsCount;
  table.GetDimensions = GetDimensions;
  table.GetSymbolicDimensions = GetSymbolicDimensions;
  table.GetTensorShapeElementCount = GetTensorShapeElementCount;
  table.TensorTypeAndShape_HasShape = TensorTypeAndShape_HasShape;
  table.GetTypeInfo = GetTypeInfo;
  table.GetValueType = GetValueType;
  table.GetTensorTypeAndShape = GetTensorTypeAndShape;
}

}  // namespace sardonyx::ort_api
