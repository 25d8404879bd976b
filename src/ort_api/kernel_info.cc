// What a kernel of the caller's learns of its node while it is made.
#include <algorithm>

#include "ort_api/kernels.h"

namespace sardonyx::ort_api {

namespace {

KernelNode& node_of(const OrtKernelInfo* info) { return *required(info, "info").node; }

const OrtOpAttr& attribute_named(const OrtKernelInfo* info, const char* name) {
  const KernelNode& node = node_of(info);
  const auto found = node.attributes.find(text_of(name, "name"));
  if (found == node.attributes.end())
    refuse(ORT_FAIL, "{} '{}' has no attribute '{}'", node.type, node.name, name);
  return found->second;
}

template <class T>
const T& attribute_value(const OrtKernelInfo* info, const char* name, const char* kind) {
  const OrtOpAttr& attribute = attribute_named(info, name);
  const T* const value = std::get_if<T>(&attribute.value);
  if (value == nullptr) refuse(ORT_FAIL, "attribute '{}' is not {}", name, kind);
  return *value;
}

OrtStatus* KernelInfoGetAttribute_float(const OrtKernelInfo* info, const char* name, float* out) {
  return guarded([&] { required(out, "out") = attribute_value<float>(info, name, "a float"); });
}
OrtStatus* KernelInfoGetAttribute_int64(const OrtKernelInfo* info, const char* name, int64_t* out) {
  return guarded([&] { required(out, "out") = attribute_value<int64_t>(info, name, "an int"); });
}
OrtStatus* KernelInfoGetAttribute_string(const OrtKernelInfo* info, const char* name, char* out,
                                         size_t* size) {
  return guarded(
      [&] { fill_text(attribute_value<std::string>(info, name, "a string"), out, size); });
}
OrtStatus* KernelInfoGetAttribute_tensor(const OrtKernelInfo* info, const char* name,
                                         OrtAllocator* allocator, OrtValue** out) {
  return guarded([&] {
    required(allocator, "allocator");
    const Tensor& tensor = attribute_value<Tensor>(info, name, "a tensor");
    // The caller may write to it.
    const CustomTensor seen{tensor.element_type(), tensor.shape(), const_cast<void*>(tensor.data()),
                            tensor.size()};
    give(out, "out", new OrtValue{copy_of_tensor(seen)});
  });
}

// A list of another type has no elements of this one.
template <class T>
const std::vector<T>& attribute_list(const OrtKernelInfo* info, const char* name) {
  static const std::vector<T> none;
  const auto* const list = std::get_if<std::vector<T>>(&attribute_named(info, name).value);
  return list != nullptr ? *list : none;
}

template <class T>
OrtStatus* fill_list(const OrtKernelInfo* info, const char* name, T* out, size_t* size) {
  return guarded([&] {
    const std::vector<T>& list = attribute_list<T>(info, name);
    const size_t room = required(size, "size");
    *size = list.size();
    if (out == nullptr) return;
    if (room < list.size())
      refuse(ORT_INVALID_ARGUMENT, "attribute '{}' has {} elements, and there is room for {}", name,
             list.size(), room);
    std::copy(list.begin(), list.end(), out);
  });
}
OrtStatus* KernelInfoGetAttributeArray_float(const OrtKernelInfo* info, const char* name,
                                             float* out, size_t* size) {
  return fill_list(info, name, out, size);
}
OrtStatus* KernelInfoGetAttributeArray_int64(const OrtKernelInfo* info, const char* name,
                                             int64_t* out, size_t* size) {
  return fill_list(info, name, out, size);
}

OrtStatus* KernelInfoGetAttributeArray_string(const OrtKernelInfo* info, const char* name,
                                              OrtAllocator* allocator, char*** out, size_t* size) {
  return guarded([&] {
    const std::vector<std::string>& list = attribute_list<std::string>(info, name);
    required(size, "size") = list.size();
    if (out == nullptr) return;
    *out = given_texts(allocator, list);
  });
}

// --- The node itself ------------------------------------------------------------------------

OrtStatus* KernelInfo_GetNodeName(const OrtKernelInfo* info, char* out, size_t* size) {
  return guarded([&] { fill_text(node_of(info).name, out, size); });
}
OrtStatus* KernelInfo_GetOperatorDomain(const OrtKernelInfo* info, char* out, size_t* size) {
  return guarded([&] { fill_text(node_of(info).domain, out, size); });
}
OrtStatus* KernelInfo_GetOperatorType(const OrtKernelInfo* info, char* out, size_t* size) {
  return guarded([&] { fill_text(node_of(info).type, out, size); });
}
OrtStatus* KernelInfo_GetOperatorSinceVersion(const OrtKernelInfo* info, int* out) {
  return guarded([&] { required(out, "since_version") = node_of(info).since; });
}
OrtStatus* KernelInfo_GetConfigEntries(const OrtKernelInfo* info, OrtKeyValuePairs** out) {
  return guarded([&] {
    auto pairs = std::make_unique<OrtKeyValuePairs>();
    pairs->entries = node_of(info).config;
    pairs->refresh();
    give(out, "out", pairs.release());
  });
}
OrtStatus* KernelInfo_GetLogger(const OrtKernelInfo* info, const OrtLogger** out) {
  return guarded([&] { required(out, "logger") = &node_of(info).logger; });
}
OrtStatus* KernelInfoGetAllocator(const OrtKernelInfo* info, OrtMemType, OrtAllocator** out) {
  return guarded([&] {
    node_of(info);
    required(out, "out") = default_allocator();
  });
}

// --- Its inputs and outputs -----------------------------------------------------------------

const KernelNode::Place& place_at(const std::vector<KernelNode::Place>& places, size_t index,
                                  const char* what) {
  if (index >= places.size())
    refuse(ORT_INVALID_ARGUMENT, "there is no {} {}: the node has {}", what, index, places.size());
  return places[index];
}

OrtTypeInfo* type_at(const std::vector<KernelNode::Place>& places, size_t index, const char* what) {
  const KernelNode::Place& place = place_at(places, index, what);
  if (!place.is_there) refuse(ORT_INVALID_GRAPH, "the node does not have {} {}", what, index);
  auto made = std::make_unique<OrtTypeInfo>();
  made->kind = ONNX_TYPE_TENSOR;
  made->tensor.type = number_of(place.type);
  made->tensor.has_shape = place.shape.has_value();
  made->tensor.dims = place.shape.value_or(std::vector<int64_t>());
  made->tensor.names.resize(made->tensor.dims.size());
  return made.release();
}

OrtStatus* KernelInfo_GetInputCount(const OrtKernelInfo* info, size_t* out) {
  return guarded([&] { required(out, "out") = node_of(info).inputs.size(); });
}
OrtStatus* KernelInfo_GetOutputCount(const OrtKernelInfo* info, size_t* out) {
  return guarded([&] { required(out, "out") = node_of(info).outputs.size(); });
}
OrtStatus* KernelInfo_GetInputName(const OrtKernelInfo* info, size_t index, char* out,
                                   size_t* size) {
  return guarded(
      [&] { fill_text(place_at(node_of(info).inputs, index, "input").name, out, size); });
}
OrtStatus* KernelInfo_GetOutputName(const OrtKernelInfo* info, size_t index, char* out,
                                    size_t* size) {
  return guarded(
      [&] { fill_text(place_at(node_of(info).outputs, index, "output").name, out, size); });
}
OrtStatus* KernelInfo_GetInputTypeInfo(const OrtKernelInfo* info, size_t index, OrtTypeInfo** out) {
  return guarded([&] { give(out, "type_info", type_at(node_of(info).inputs, index, "input")); });
}
OrtStatus* KernelInfo_GetOutputTypeInfo(const OrtKernelInfo* info, size_t index,
                                        OrtTypeInfo** out) {
  return guarded([&] { give(out, "type_info", type_at(node_of(info).outputs, index, "output")); });
}

OrtStatus* KernelInfoGetConstantInput_tensor(const OrtKernelInfo* info, size_t index,
                                             int* is_constant, const OrtValue** out) {
  return guarded([&] {
    KernelNode& node = node_of(info);
    required(is_constant, "is_constant") = 0;
    required(out, "out") = nullptr;
    auto held = node.constants.find(index);
    if (held == node.constants.end()) {
      if (node.builder == nullptr || index >= node.inputs.size()) return;
      const CustomTensor found = node.builder->constant(static_cast<int>(index));
      if (found.type == ElementType::undefined) return;
      held = node.constants.emplace(index, OrtValue{copy_of_tensor(found)}).first;
    }
    *is_constant = 1;
    *out = &held->second;
  });
}

OrtStatus* CopyKernelInfo(const OrtKernelInfo* info, OrtKernelInfo** out) {
  return guarded([&] { give(out, "info_copy", new OrtKernelInfo(required(info, "info"))); });
}
void ReleaseKernelInfo(OrtKernelInfo* info) { delete info; }

}  // namespace

KernelNode::KernelNode(const KernelBuilder& from, const AttributeTypes& types)
    : name(from.node_name()),
      since(from.since()),
      attributes(attributes_of(from, types)),
      builder(&from) {
  for (int i = 0; i < from.input_count(); ++i)
    inputs.push_back({from.input_name(i), from.has_input(i), from.element(i), from.input_shape(i)});
  for (int i = 0; i < from.output_count(); ++i)
    outputs.push_back(
        {from.output_name(i), from.has_output(i), from.output_element(i), from.output_shape(i)});
}

void add_kernel_info(OrtApi& table) {
  table.KernelInfoGetAttribute_float = KernelInfoGetAttribute_float;
  table.KernelInfoGetAttribute_int64 = KernelInfoGetAttribute_int64;
  table.KernelInfoGetAttribute_string = KernelInfoGetAttribute_string;
  table.KernelInfoGetAttribute_tensor = KernelInfoGetAttribute_tensor;
  table.KernelInfoGetAttributeArray_float = KernelInfoGetAttributeArray_float;
  table.KernelInfoGetAttributeArray_int64 = KernelInfoGetAttributeArray_int64;
  table.KernelInfoGetAttributeArray_string = KernelInfoGetAttributeArray_string;
  table.KernelInfo_GetNodeName = KernelInfo_GetNodeName;
  table.KernelInfo_GetOperatorDomain = KernelInfo_GetOperatorDomain;
  table.KernelInfo_GetOperatorType = KernelInfo_GetOperatorType;
  table.KernelInfo_GetOperatorSinceVersion = KernelInfo_GetOperatorSinceVersion;
  table.KernelInfo_GetConfigEntries = KernelInfo_GetConfigEntries;
  table.KernelInfo_GetLogger = KernelInfo_GetLogger;
  table.KernelInfoGetAllocator = KernelInfoGetAllocator;
  table.KernelInfo_GetInputCount = KernelInfo_GetInputCount;
  table.KernelInfo_GetOutputCount = KernelInfo_GetOutputCount;
  table.KernelInfo_GetInputName = KernelInfo_GetInputName;
  table.KernelInfo_GetOutputName = KernelInfo_GetOutputName;
  table.KernelInfo_GetInputTypeInfo = KernelInfo_GetInputTypeInfo;
  table.KernelInfo_GetOutputTypeInfo = KernelInfo_GetOutputTypeInfo;
  table.KernelInfoGetConstantInput_tensor = KernelInfoGetConstantInput_tensor;
  table.CopyKernelInfo = CopyKernelInfo;
  table.ReleaseKernelInfo = ReleaseKernelInfo;
}

}  // namespace sardonyx::ort_api
