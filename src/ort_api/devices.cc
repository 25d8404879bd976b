// Devices: there is one, the processor, and one execution provider for it.
#include <algorithm>
#include <array>

#include "ort_api/handles.h"

namespace sardonyx::ort_api {

// What nothing tells about it (vendor, numbers) is empty or 0.
struct OrtHardwareDevice {
  OrtKeyValuePairs metadata;
};

struct OrtEpDevice {
  OrtHardwareDevice device;
  OrtKeyValuePairs metadata, options;
};

// Nothing is known that keeps a device from being used.
struct OrtDeviceEpIncompatibilityDetails {};

struct OrtEpAssignedNode {
  std::string name, domain, type;
};

struct OrtEpAssignedSubgraph {
  OrtEpAssignedNode node;
  const OrtEpAssignedNode* nodes;
};

struct Assignment {
  std::vector<OrtEpAssignedSubgraph> subgraphs;
  std::vector<const OrtEpAssignedSubgraph*> handles;
};

namespace {

constexpr const char* cpu_provider = "CPUExecutionProvider";

const OrtEpDevice& cpu_device() {
  static const OrtEpDevice device = [] {
    OrtEpDevice made;
    made.metadata.entries.emplace("version", sardonyx::version());
    made.metadata.refresh();
    return made;
  }();
  return device;
}

bool is_cpu_device(const OrtEpDevice* device) { return device == &cpu_device(); }
bool is_cpu_device(const OrtHardwareDevice* device) { return device == &cpu_device().device; }

template <class Device>
void require_cpu_device(const Device* device, const char* name) {
  required(device, name);
  if (!is_cpu_device(device))
    refuse(ORT_INVALID_ARGUMENT, "'{}' is no device that this library has given", name);
}

void require_cpu_devices(const OrtEpDevice* const* devices, size_t count) {
  if (count == 0) refuse(ORT_INVALID_ARGUMENT, "no device was given");
  items(devices, count, "ep_devices");
  for (size_t i = 0; i < count; ++i) require_cpu_device(devices[i], "ep_devices");
}

OrtStatus* GetEpDevices(const OrtEnv* env, const OrtEpDevice* const** devices, size_t* count) {
  return guarded([&] {
    required(env, "env"), required(count, "num_ep_devices");
    static const std::array<const OrtEpDevice*, 1> all{&cpu_device()};
    required(devices, "ep_devices") = all.data();
    *count = all.size();
  });
}

// These give null for what is no device.
const char* EpDevice_EpName(const OrtEpDevice* device) {
  return is_cpu_device(device) ? cpu_provider : nullptr;
}
const char* EpDevice_EpVendor(const OrtEpDevice* device) {
  return is_cpu_device(device) ? "Sardonyx" : nullptr;
}
const OrtKeyValuePairs* EpDevice_EpMetadata(const OrtEpDevice* device) {
  return is_cpu_device(device) ? &device->metadata : nullptr;
}
const OrtKeyValuePairs* EpDevice_EpOptions(const OrtEpDevice* device) {
  return is_cpu_device(device) ? &device->options : nullptr;
}
const OrtHardwareDevice* EpDevice_Device(const OrtEpDevice* device) {
  return is_cpu_device(device) ? &device->device : nullptr;
}
// Null also says that the memory is the processor's.
const OrtMemoryInfo* EpDevice_MemoryInfo(const OrtEpDevice*, OrtDeviceMemoryType) {
  return nullptr;
}

OrtHardwareDeviceType HardwareDevice_Type(const OrtHardwareDevice*) {
  return OrtHardwareDeviceType_CPU;
}
uint32_t HardwareDevice_VendorId(const OrtHardwareDevice*) { return 0; }
uint32_t HardwareDevice_DeviceId(const OrtHardwareDevice*) { return 0; }
const char* HardwareDevice_Vendor(const OrtHardwareDevice* device) {
  return is_cpu_device(device) ? "" : nullptr;
}
const OrtKeyValuePairs* HardwareDevice_Metadata(const OrtHardwareDevice* device) {
  return is_cpu_device(device) ? &device->metadata : nullptr;
}

OrtStatus* GetNumHardwareDevices(const OrtEnv* env, size_t* count) {
  return guarded([&] {
    required(env, "env");
    required(count, "num_devices") = 1;
  });
}

OrtStatus* GetHardwareDevices(const OrtEnv* env, const OrtHardwareDevice** devices, size_t count) {
  return guarded([&] {
    required(env, "env");
    if (count < 1) refuse(ORT_INVALID_ARGUMENT, "there is 1 device, and room for none");
    required(devices, "devices") = &cpu_device().device;
  });
}

OrtStatus* GetHardwareDeviceEpIncompatibilityDetails(const OrtEnv* env, const char* provider,
                                                     const OrtHardwareDevice* device,
                                                     OrtDeviceEpIncompatibilityDetails** out) {
  return guarded([&] {
    required(env, "env"), required(out, "details");
    if (text_of(provider, "ep_name") != cpu_provider)
      refuse(ORT_INVALID_ARGUMENT, "there is no execution provider '{}'", provider);
    require_cpu_device(device, "hw");
    *out = new OrtDeviceEpIncompatibilityDetails;
  });
}

using IncompatibilityDetails = OrtDeviceEpIncompatibilityDetails;

OrtStatus* DeviceEpIncompatibilityDetails_GetReasonsBitmask(const IncompatibilityDetails* details,
                                                            uint32_t* reasons) {
  return guarded([&] { required(details, "details"), required(reasons, "reasons_bitmask") = 0; });
}
OrtStatus* DeviceEpIncompatibilityDetails_GetNotes(const IncompatibilityDetails* details,
                                                   const char** notes) {
  return guarded([&] { required(details, "details"), required(notes, "notes") = nullptr; });
}
OrtStatus* DeviceEpIncompatibilityDetails_GetErrorCode(const IncompatibilityDetails* details,
                                                       int32_t* code) {
  return guarded([&] { required(details, "details"), required(code, "error_code") = 0; });
}
void ReleaseDeviceEpIncompatibilityDetails(IncompatibilityDetails* details) { delete details; }

// --- Sessions -------------------------------------------------------------------------------

OrtStatus* SessionOptionsAppendExecutionProvider_V2(OrtSessionOptions* options, OrtEnv* env,
                                                    const OrtEpDevice* const* devices, size_t count,
                                                    const char* const* keys,
                                                    const char* const* values,
                                                    size_t option_count) {
  return guarded([&] {
    required(options, "session_options"), required(env, "env");
    require_cpu_devices(devices, count);
    items(keys, option_count, "ep_option_keys"), items(values, option_count, "ep_option_vals");
  });
}

// There is nothing to choose from.
OrtStatus* SessionOptionsSetEpSelectionPolicy(OrtSessionOptions* options,
                                              OrtExecutionProviderDevicePolicy) {
  return guarded([&] { required(options, "session_options"); });
}
OrtStatus* SessionOptionsSetEpSelectionPolicyDelegate(OrtSessionOptions* options,
                                                      EpSelectionDelegate, void*) {
  return guarded([&] { required(options, "session_options"); });
}

void fill_devices(const OrtEpDevice** devices, size_t room, size_t count) {
  if (room < count)
    refuse(ORT_INVALID_ARGUMENT, "there are {} devices, and room for {}", count, room);
  std::fill_n(items(devices, count, "ep_devices"), count, &cpu_device());
}

OrtStatus* SessionGetEpDeviceForInputs(const OrtSession* session, const OrtEpDevice** devices,
                                       size_t room) {
  return guarded([&] { fill_devices(devices, room, required(session, "session").inputs.size()); });
}
OrtStatus* SessionGetEpDeviceForOutputs(const OrtSession* session, const OrtEpDevice** devices,
                                        size_t room) {
  return guarded([&] { fill_devices(devices, room, required(session, "session").outputs.size()); });
}

OrtStatus* SetEpDynamicOptions(OrtSession* session, const char* const* keys,
                               const char* const* values, size_t count) {
  return guarded([&] {
    required(session, "sess");
    if (count == 0) refuse(ORT_INVALID_ARGUMENT, "no option was given");
    items(keys, count, "keys"), items(values, count, "values");
    for (size_t i = 0; i < count; ++i) required(keys[i], "keys"), required(values[i], "values");
  });
}

OrtStatus* SessionReleaseCapturedGraph(OrtSession* session, int) {
  return guarded([&] { required(session, "session"); });
}

OrtStatus* Session_GetEpGraphAssignmentInfo(const OrtSession* session,
                                            const OrtEpAssignedSubgraph* const** subgraphs,
                                            size_t* count) {
  return guarded([&] {
    const auto& found = required(session, "session").assignment;
    if (found == nullptr)
      refuse(ORT_FAIL,
             "it is kept for sessions whose options have the entry "
             "'session.record_ep_graph_assignment_info' with the value \"1\"");
    required(subgraphs, "ep_subgraphs") = found->handles.data();
    required(count, "num_ep_subgraphs") = found->handles.size();
  });
}

OrtStatus* EpAssignedSubgraph_GetEpName(const OrtEpAssignedSubgraph* subgraph, const char** out) {
  return guarded([&] { required(subgraph, "ep_subgraph"), required(out, "out") = cpu_provider; });
}
OrtStatus* EpAssignedSubgraph_GetNodes(const OrtEpAssignedSubgraph* subgraph,
                                       const OrtEpAssignedNode* const** nodes, size_t* count) {
  return guarded([&] {
    required(nodes, "ep_nodes") = &required(subgraph, "ep_subgraph").nodes;
    required(count, "num_ep_nodes") = 1;
  });
}
OrtStatus* EpAssignedNode_GetName(const OrtEpAssignedNode* node, const char** out) {
  return guarded([&] { required(out, "out") = required(node, "ep_node").name.c_str(); });
}
OrtStatus* EpAssignedNode_GetDomain(const OrtEpAssignedNode* node, const char** out) {
  return guarded([&] { required(out, "out") = required(node, "ep_node").domain.c_str(); });
}
OrtStatus* EpAssignedNode_GetOperatorType(const OrtEpAssignedNode* node, const char** out) {
  return guarded([&] { required(out, "out") = required(node, "ep_node").type.c_str(); });
}

// --- Libraries of providers -----------------------------------------------------------------

OrtStatus* RegisterExecutionProviderLibrary(OrtEnv* env, const char* name, const PathChar* path) {
  return guarded([&] {
    required(env, "env");
    refuse(ORT_FAIL,
           "Sardonyx computes on the processor and loads no libraries of execution providers: '{}' "
           "of {}",
           text_of(name, "registration_name"), path_of(path, "path"));
  });
}
OrtStatus* UnregisterExecutionProviderLibrary(OrtEnv* env, const char* name) {
  return guarded([&] {
    required(env, "env");
    refuse(ORT_FAIL, "there is no library of execution providers of the name '{}'",
           text_of(name, "registration_name"));
  });
}

OrtStatus* GetModelCompatibilityForEpDevices(const OrtEpDevice* const* devices, size_t count,
                                             const char* info, OrtCompiledModelCompatibility* out) {
  return guarded([&] {
    require_cpu_devices(devices, count);
    required(info, "compatibility_info");
    required(out, "out_status") = OrtCompiledModelCompatibility_EP_NOT_APPLICABLE;
  });
}

// What a model that a provider has compiled says of it; null where it says nothing.
void give_compatibility(const Model& model, const char* provider, OrtAllocator* allocator,
                        char** out) {
  const auto found = model.metadata("ep_compatibility_info." + std::string(provider));
  *out = found ? given_text(allocator, *found) : nullptr;
}

void require_provider_name(const char* provider) {
  if (required(provider, "ep_type") == 0) refuse(ORT_INVALID_ARGUMENT, "'ep_type' is empty");
}

LoadOptions without_data() {
  LoadOptions options;
  options.load_external_data = false;
  return options;
}

OrtStatus* GetCompatibilityInfoFromModel(const PathChar* path, const char* provider,
                                         OrtAllocator* allocator, char** out) {
  return guarded([&] {
    require_provider_name(provider);
    required(allocator, "allocator"), required(out, "compatibility_info");
    give_compatibility(Model(path_of(path, "model_path"), without_data()), provider, allocator,
                       out);
  });
}
OrtStatus* GetCompatibilityInfoFromModelBytes(const void* data, size_t bytes, const char* provider,
                                              OrtAllocator* allocator, char** out) {
  return guarded([&] {
    require_provider_name(provider);
    required(allocator, "allocator"), required(out, "compatibility_info");
    const char& first = required(static_cast<const char*>(data), "model_data");
    give_compatibility(Model(&first, bytes, {}, nullptr, without_data()), provider, allocator, out);
  });
}

// --- Memory of devices ----------------------------------------------------------------------

[[noreturn]] void refuse_device_memory() {
  refuse(ORT_INVALID_ARGUMENT,
         "the device is the processor, whose memory GetAllocatorWithDefaultOptions() gives");
}

OrtStatus* CreateSharedAllocator(OrtEnv* env, const OrtEpDevice* device, OrtDeviceMemoryType,
                                 OrtAllocatorType, const OrtKeyValuePairs*, OrtAllocator** out) {
  return guarded([&] {
    required(env, "env"), require_cpu_device(device, "ep_device");
    if (out != nullptr) *out = nullptr;
    refuse_device_memory();
  });
}
OrtStatus* ReleaseSharedAllocator(OrtEnv* env, const OrtEpDevice* device, OrtDeviceMemoryType) {
  return guarded([&] {
    required(env, "env"), require_cpu_device(device, "ep_device");
    refuse_device_memory();
  });
}

bool is_same_memory(const OrtMemoryInfo& a, const OrtMemoryInfo& b) {
  return a.name == b.name && a.id == b.id && a.device_type == b.device_type &&
         a.mem_type == b.mem_type;
}

// One that the caller registered, else ours for the processor's memory, else null.
OrtStatus* GetSharedAllocator(OrtEnv* env, const OrtMemoryInfo* info, OrtAllocator** out) {
  return guarded([&] {
    OrtEnv& from = required(env, "env");
    const OrtMemoryInfo& asked = required(info, "mem_info");
    required(out, "allocator") = nullptr;
    const std::lock_guard lock(from.mutex);
    for (OrtAllocator* const one : from.allocators)
      if (const OrtMemoryInfo* const its = one->Info(one); its && is_same_memory(*its, asked))
        *out = one;
    if (*out == nullptr && is_same_memory(asked, cpu_memory())) *out = default_allocator();
  });
}

OrtStatus* CreateSyncStreamForEpDevice(const OrtEpDevice* device, const OrtKeyValuePairs*,
                                       OrtSyncStream** out) {
  return guarded([&] {
    require_cpu_device(device, "ep_device");
    required(out, "stream") = nullptr;
    refuse(ORT_INVALID_ARGUMENT, "the device is the processor, which has no streams");
  });
}
void* SyncStream_GetHandle(OrtSyncStream*) { return nullptr; }
void ReleaseSyncStream(OrtSyncStream*) {}

void copy_elements(const Tensor& from, Tensor& to) {
  if (from.element_type() == ElementType::string) {
    const auto texts = from.elements<std::string>();
    if (&from != &to)
      std::copy(texts.begin(), texts.end(), to.mutable_elements<std::string>().begin());
  } else if (from.byte_size() > 0) {
    std::memmove(to.mutable_data(), from.data(), from.byte_size());
  }
}

OrtStatus* CopyTensors(const OrtEnv* env, const OrtValue* const* from, OrtValue* const* to,
                       OrtSyncStream*, size_t count) {
  return guarded([&] {
    required(env, "env");
    if (count == 0) refuse(ORT_INVALID_ARGUMENT, "no tensor was given");
    items(from, count, "src_tensors"), items(to, count, "dst_tensors");
    for (size_t i = 0; i < count; ++i) {  // all are looked at before the first is written
      const Tensor& source = tensor_of(from[i], "src_tensors");
      const Tensor& target = tensor_of(to[i], "dst_tensors");
      if (source.element_type() != target.element_type() || source.size() != target.size())
        refuse(ORT_INVALID_ARGUMENT, "tensor {} is {}{}, and its copy {}{}", i,
               name_of(source.element_type()), to_string(source.shape()),
               name_of(target.element_type()), to_string(target.shape()));
    }
    for (size_t i = 0; i < count; ++i)
      copy_elements(tensor_of(from[i], "src_tensors"), tensor_of(to[i], "dst_tensors"));
  });
}

OrtStatus* SetCurrentGpuDeviceId(int) {
  return new_status(ORT_FAIL, "Sardonyx computes on the processor, and there is no other device");
}
OrtStatus* GetCurrentGpuDeviceId(int*) {
  return new_status(ORT_FAIL, "Sardonyx computes on the processor, and there is no other device");
}

}  // namespace

// Each node of the main graph is a part of its own, as for all providers that don't compile.
std::shared_ptr<const Assignment> assignment_of(const Model& model) {
  auto made = std::make_shared<Assignment>();
  for (const NodeView node : model.graph().nodes()) {
    const std::string_view domain = node.domain() == "ai.onnx" ? "" : node.domain();
    made->subgraphs.push_back(
        {{std::string(node.name()), std::string(domain), std::string(node.op_type())}, nullptr});
  }
  for (OrtEpAssignedSubgraph& subgraph : made->subgraphs) {
    subgraph.nodes = &subgraph.node;
    made->handles.push_back(&subgraph);
  }
  return made;
}

void add_devices(OrtApi& table) {
  table.GetEpDevices = GetEpDevices;
  table.EpDevice_EpName = EpDevice_EpName;
  table.EpDevice_EpVendor = EpDevice_EpVendor;
  table.EpDevice_EpMetadata = EpDevice_EpMetadata;
  table.EpDevice_EpOptions = EpDevice_EpOptions;
  table.EpDevice_Device = EpDevice_Device;
  table.EpDevice_MemoryInfo = EpDevice_MemoryInfo;
  table.HardwareDevice_Type = HardwareDevice_Type;
  table.HardwareDevice_VendorId = HardwareDevice_VendorId;
  table.HardwareDevice_DeviceId = HardwareDevice_DeviceId;
  table.HardwareDevice_Vendor = HardwareDevice_Vendor;
  table.HardwareDevice_Metadata = HardwareDevice_Metadata;
  table.GetNumHardwareDevices = GetNumHardwareDevices;
  table.GetHardwareDevices = GetHardwareDevices;
  table.GetHardwareDeviceEpIncompatibilityDetails = GetHardwareDeviceEpIncompatibilityDetails;
  table.DeviceEpIncompatibilityDetails_GetReasonsBitmask =
      DeviceEpIncompatibilityDetails_GetReasonsBitmask;
  table.DeviceEpIncompatibilityDetails_GetNotes = DeviceEpIncompatibilityDetails_GetNotes;
  table.DeviceEpIncompatibilityDetails_GetErrorCode = DeviceEpIncompatibilityDetails_GetErrorCode;
  table.ReleaseDeviceEpIncompatibilityDetails = ReleaseDeviceEpIncompatibilityDetails;
  table.SessionOptionsAppendExecutionProvider_V2 = SessionOptionsAppendExecutionProvider_V2;
  table.SessionOptionsSetEpSelectionPolicy = SessionOptionsSetEpSelectionPolicy;
  table.SessionOptionsSetEpSelectionPolicyDelegate = SessionOptionsSetEpSelectionPolicyDelegate;
  table.SessionGetEpDeviceForInputs = SessionGetEpDeviceForInputs;
  table.SessionGetEpDeviceForOutputs = SessionGetEpDeviceForOutputs;
  table.SetEpDynamicOptions = SetEpDynamicOptions;
  table.SessionReleaseCapturedGraph = SessionReleaseCapturedGraph;
  table.Session_GetEpGraphAssignmentInfo = Session_GetEpGraphAssignmentInfo;
  table.EpAssignedSubgraph_GetEpName = EpAssignedSubgraph_GetEpName;
  table.EpAssignedSubgraph_GetNodes = EpAssignedSubgraph_GetNodes;
  table.EpAssignedNode_GetName = EpAssignedNode_GetName;
  table.EpAssignedNode_GetDomain = EpAssignedNode_GetDomain;
  table.EpAssignedNode_GetOperatorType = EpAssignedNode_GetOperatorType;
  table.RegisterExecutionProviderLibrary = RegisterExecutionProviderLibrary;
  table.UnregisterExecutionProviderLibrary = UnregisterExecutionProviderLibrary;
  table.GetModelCompatibilityForEpDevices = GetModelCompatibilityForEpDevices;
  table.GetCompatibilityInfoFromModel = GetCompatibilityInfoFromModel;
  table.GetCompatibilityInfoFromModelBytes = GetCompatibilityInfoFromModelBytes;
  table.CreateSharedAllocator = CreateSharedAllocator;
  table.GetSharedAllocator = GetSharedAllocator;
  table.ReleaseSharedAllocator = ReleaseSharedAllocator;
  table.CreateSyncStreamForEpDevice = CreateSyncStreamForEpDevice;
  table.SyncStream_GetHandle = SyncStream_GetHandle;
  table.ReleaseSyncStream = ReleaseSyncStream;
  table.CopyTensors = CopyTensors;
  table.SetCurrentGpuDeviceId = SetCurrentGpuDeviceId;
  table.GetCurrentGpuDeviceId = GetCurrentGpuDeviceId;
}

}  // namespace sardonyx::ort_api
