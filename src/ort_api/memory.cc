// Descriptions of memory, and allocators.
#include <algorithm>
#include <array>
#include <new>

#include "ort_api/handles.h"

namespace sardonyx::ort_api {

struct OrtArenaCfg {};

namespace {

constexpr std::align_val_t alignment{64};  // what kernels like

// What the default allocator is, and what CreateAllocator() gives: one more of them.
struct DefaultAllocator : OrtAllocator {
  DefaultAllocator() {
    version = api_version;
    Alloc = [](OrtAllocator*, size_t size) -> void* {
      return size == 0 ? nullptr : ::operator new(size, alignment, std::nothrow);
    };
    Free = [](OrtAllocator*, void* memory) { ::operator delete(memory, alignment); };
    Info = [](const OrtAllocator*) { return &cpu_memory(); };
    Reserve = Alloc;
    GetStats = [](const OrtAllocator*, OrtKeyValuePairs** out) {
      return guarded([&] { give(out, "out", new OrtKeyValuePairs); });
    };
    AllocOnStream = nullptr;
    Shrink = [](OrtAllocator*) -> OrtStatus* { return nullptr; };
  }
};

// Names of memory that the processor reads: its own, and that which devices share with it.
bool is_cpu_memory(std::string_view name) {
  return name.find("Cpu") != name.npos || name.find("CPU") != name.npos;
}

// What ONNX Runtime has names for besides the processor's.
constexpr std::array known_devices{
    std::pair{"Cuda", OrtMemoryInfoDeviceType_GPU},
    std::pair{"CudaPinned", OrtMemoryInfoDeviceType_CPU},
    std::pair{"Cann", OrtMemoryInfoDeviceType_NPU},
    std::pair{"CannPinned", OrtMemoryInfoDeviceType_CPU},
    std::pair{"Hip", OrtMemoryInfoDeviceType_GPU},
    std::pair{"HipPinned", OrtMemoryInfoDeviceType_CPU},
    std::pair{"Dml", OrtMemoryInfoDeviceType_GPU},
    std::pair{"DML", OrtMemoryInfoDeviceType_GPU},
    std::pair{"OpenVINO_CPU", OrtMemoryInfoDeviceType_CPU},
    std::pair{"OpenVINO_GPU", OrtMemoryInfoDeviceType_GPU},
    std::pair{"OpenVINO_RT", OrtMemoryInfoDeviceType_CPU},
    std::pair{"OpenVINO_RT_NPU", OrtMemoryInfoDeviceType_NPU},
    std::pair{"QnnHtpShared", OrtMemoryInfoDeviceType_CPU},
    std::pair{"WebGPU_Buffer", OrtMemoryInfoDeviceType_GPU},
    std::pair{"WebGPU_Buf", OrtMemoryInfoDeviceType_GPU},
    std::pair{"WebNN_Tensor", OrtMemoryInfoDeviceType_GPU},
    std::pair{"WebNN_Ten", OrtMemoryInfoDeviceType_GPU},
};

OrtStatus* CreateMemoryInfo(const char* name, OrtAllocatorType type, int id, OrtMemType mem_type,
                            OrtMemoryInfo** out) {
  return guarded([&] {
    OrtMemoryInfo info{
        .name = text_of(name, "name"), .allocator_type = type, .id = id, .mem_type = mem_type};
    if (info.name != "Cpu") {
      const auto* const known =
          std::find_if(known_devices.begin(), known_devices.end(),
                       [&](const auto& one) { return info.name == one.first; });
      if (known == known_devices.end())
        refuse(ORT_INVALID_ARGUMENT, "'{}' is no memory that ONNX Runtime has a name for",
               info.name);
      info.device_type = known->second;
      if (info.name.ends_with("Pinned")) info.device_mem_type = OrtDeviceMemoryType_HOST_ACCESSIBLE;
    }
    give(out, "out", new OrtMemoryInfo(std::move(info)));
  });
}

OrtStatus* CreateMemoryInfo_V2(const char* name, OrtMemoryInfoDeviceType device_type,
                               uint32_t vendor, int32_t id, OrtDeviceMemoryType mem_type,
                               size_t bytes, OrtAllocatorType type, OrtMemoryInfo** out) {
  return guarded([&] {
    if ((bytes & (bytes - 1)) != 0)
      refuse(ORT_INVALID_ARGUMENT, "an alignment is a power of two, and {} is none", bytes);
    give(out, "out",
         new OrtMemoryInfo{.name = text_of(name, "name"),
                           .allocator_type = type,
                           .id = id,
                           .mem_type = mem_type == OrtDeviceMemoryType_HOST_ACCESSIBLE
                                           ? OrtMemTypeCPUOutput
                                           : OrtMemTypeDefault,
                           .device_type = device_type,
                           .device_mem_type = mem_type,
                           .vendor = vendor,
                           .alignment = bytes});
  });
}

OrtStatus* CreateCpuMemoryInfo(OrtAllocatorType type, OrtMemType mem_type, OrtMemoryInfo** out) {
  return guarded(
      [&] { give(out, "out", new OrtMemoryInfo{.allocator_type = type, .mem_type = mem_type}); });
}

OrtStatus* CompareMemoryInfo(const OrtMemoryInfo* a, const OrtMemoryInfo* b, int* out) {
  return guarded(
      [&] { required(out, "out") = required(a, "info1") == required(b, "info2") ? 0 : -1; });
}

OrtStatus* MemoryInfoGetName(const OrtMemoryInfo* info, const char** out) {
  return guarded([&] { required(out, "out") = required(info, "info").name.c_str(); });
}
OrtStatus* MemoryInfoGetId(const OrtMemoryInfo* info, int* out) {
  return guarded([&] { required(out, "out") = required(info, "info").id; });
}
OrtStatus* MemoryInfoGetMemType(const OrtMemoryInfo* info, OrtMemType* out) {
  return guarded([&] { required(out, "out") = required(info, "info").mem_type; });
}
OrtStatus* MemoryInfoGetType(const OrtMemoryInfo* info, OrtAllocatorType* out) {
  return guarded([&] { required(out, "out") = required(info, "info").allocator_type; });
}
void MemoryInfoGetDeviceType(const OrtMemoryInfo* info, OrtMemoryInfoDeviceType* out) {
  if (info != nullptr && out != nullptr) *out = info->device_type;
}
OrtDeviceMemoryType MemoryInfoGetDeviceMemType(const OrtMemoryInfo* info) {
  return info == nullptr ? OrtDeviceMemoryType_DEFAULT : info->device_mem_type;
}
uint32_t MemoryInfoGetVendorId(const OrtMemoryInfo* info) {
  return info == nullptr ? 0 : info->vendor;
}
void ReleaseMemoryInfo(OrtMemoryInfo* info) { delete info; }

OrtStatus* AllocatorAlloc(OrtAllocator* allocator, size_t size, void** out) {
  return guarded([&] {
    required(out, "out") = required(allocator, "allocator").Alloc(allocator, size);
    if (*out == nullptr && size > 0)
      refuse(ORT_RUNTIME_EXCEPTION, "std::bad_alloc: the allocator gave no {} bytes", size);
  });
}
OrtStatus* AllocatorFree(OrtAllocator* allocator, void* memory) {
  return guarded([&] { required(allocator, "allocator").Free(allocator, memory); });
}
OrtStatus* AllocatorGetInfo(const OrtAllocator* allocator, const OrtMemoryInfo** out) {
  return guarded([&] { required(out, "out") = required(allocator, "allocator").Info(allocator); });
}
OrtStatus* AllocatorGetStats(const OrtAllocator* allocator, OrtKeyValuePairs** out) {
  return guarded([&] {
    const OrtAllocator& given = required(allocator, "allocator");
    if (given.version < 23 || given.GetStats == nullptr)
      refuse(ORT_NOT_IMPLEMENTED, "the allocator keeps no statistics");
    throw_status(given.GetStats(allocator, out));
  });
}
OrtStatus* GetAllocatorWithDefaultOptions(OrtAllocator** out) {
  return guarded([&] { required(out, "out") = default_allocator(); });
}

OrtStatus* CreateAllocator(const OrtSession* session, const OrtMemoryInfo* info,
                           OrtAllocator** out) {
  return guarded([&] {
    required(session, "session");
    require_cpu(required(info, "mem_info"));
    give(out, "out", new DefaultAllocator);
  });
}
void ReleaseAllocator(OrtAllocator* allocator) {
  if (allocator != default_allocator()) delete static_cast<DefaultAllocator*>(allocator);
}

// Arenas are not what memory comes from here: their settings are taken and decide nothing.
OrtStatus* CreateArenaCfg(size_t, int, int, int, OrtArenaCfg** out) {
  return guarded([&] { give(out, "out", new OrtArenaCfg); });
}
OrtStatus* CreateArenaCfgV2(const char* const* keys, const size_t* values, size_t count,
                            OrtArenaCfg** out) {
  return guarded([&] {
    items(keys, count, "arena_config_keys"), items(values, count, "arena_config_values");
    give(out, "out", new OrtArenaCfg);
  });
}
void ReleaseArenaCfg(OrtArenaCfg* config) { delete config; }

}  // namespace

const OrtMemoryInfo& cpu_memory() {
  static const OrtMemoryInfo info;
  return info;
}

void require_cpu(const OrtMemoryInfo& info) {
  if (info.device_type != OrtMemoryInfoDeviceType_CPU && !is_cpu_memory(info.name))
    refuse(ORT_INVALID_ARGUMENT,
           "memory '{}' is a device's, and there is no device but the processor", info.name);
}

OrtAllocator* default_allocator() {
  static DefaultAllocator allocator;
  return &allocator;
}

void* given_memory(OrtAllocator* allocator, size_t bytes) {
  void* const memory =
      required(allocator, "allocator").Alloc(allocator, std::max<size_t>(bytes, 1));
  if (memory == nullptr) refuse(ORT_FAIL, "the allocator gave no memory for {} bytes", bytes);
  return memory;
}

char* given_text(OrtAllocator* allocator, std::string_view text) {
  char* const copy = static_cast<char*>(given_memory(allocator, text.size() + 1));
  std::copy(text.begin(), text.end(), copy);
  copy[text.size()] = 0;
  return copy;
}

char** given_texts(OrtAllocator* allocator, const std::vector<std::string>& texts) {
  if (texts.empty()) return nullptr;
  auto* const list = static_cast<char**>(given_memory(allocator, texts.size() * sizeof(char*)));
  size_t count = 0;
  try {
    for (; count < texts.size(); ++count) list[count] = given_text(allocator, texts[count]);
  } catch (...) {
    for (size_t i = 0; i < count; ++i) allocator->Free(allocator, list[i]);
    allocator->Free(allocator, list);
    throw;
  }
  return list;
}

void add_memory(OrtApi& table) {
  table.CreateMemoryInfo = CreateMemoryInfo;
  table.CreateMemoryInfo_V2 = CreateMemoryInfo_V2;
  table.CreateCpuMemoryInfo = CreateCpuMemoryInfo;
  table.CompareMemoryInfo = CompareMemoryInfo;
  table.MemoryInfoGetName = MemoryInfoGetName;
  table.MemoryInfoGetId = MemoryInfoGetId;
  table.MemoryInfoGetMemType = MemoryInfoGetMemType;
  table.MemoryInfoGetType = MemoryInfoGetType;
  table.MemoryInfoGetDeviceType = MemoryInfoGetDeviceType;
  table.MemoryInfoGetDeviceMemType = MemoryInfoGetDeviceMemType;
  table.MemoryInfoGetVendorId = MemoryInfoGetVendorId;
  table.ReleaseMemoryInfo = ReleaseMemoryInfo;
  table.AllocatorAlloc = AllocatorAlloc;
  table.AllocatorFree = AllocatorFree;
  table.AllocatorGetInfo = AllocatorGetInfo;
  table.AllocatorGetStats = AllocatorGetStats;
  table.GetAllocatorWithDefaultOptions = GetAllocatorWithDefaultOptions;
  table.CreateAllocator = CreateAllocator;
  table.ReleaseAllocator = ReleaseAllocator;
  table.CreateArenaCfg = CreateArenaCfg;
  table.CreateArenaCfgV2 = CreateArenaCfgV2;
  table.ReleaseArenaCfg = ReleaseArenaCfg;
}

}  // namespace sardonyx::ort_api
