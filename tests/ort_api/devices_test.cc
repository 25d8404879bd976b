// Devices, execution providers, and what stands beside them: lists of keys and values, and the
// table for compiling models.
#include <cstring>
#include <map>

#include "ort_api/api.h"
#include "ort_api/compile.h"
#include "scratch_folder.h"

namespace sardonyx::ort_api {
namespace {

constexpr const char* small = R"(
  <ir_version: 8, opset_import: ["" : 17], metadata_props: [
     "ep_compatibility_info.CPUExecutionProvider" : "said by the model"]>
  g (float[2] x, float[2] z) => (float[2] y) { y = Add (x, z) })";

using Pairs = std::map<std::string, std::string>;

Pairs pairs_of(const OrtKeyValuePairs* pairs) {
  const char *const *keys = nullptr, *const *values = nullptr;
  size_t count = 0;
  api().GetKeyValuePairs(pairs, &keys, &values, &count);
  Pairs found;
  for (size_t i = 0; i < count; ++i) found[keys[i]] = values[i];
  return found;
}

TEST(KeyValuePairs, HoldWhatIsAdded) {
  OrtKeyValuePairs* pairs = nullptr;
  api().CreateKeyValuePairs(&pairs);
  ASSERT_NE(pairs, nullptr);
  EXPECT_EQ(pairs_of(pairs), Pairs{});
  api().AddKeyValuePair(pairs, "b", "1");
  api().AddKeyValuePair(pairs, "a", "2");
  api().AddKeyValuePair(pairs, "c", "");
  api().AddKeyValuePair(pairs, "b", "3");
  api().AddKeyValuePair(pairs, "", "4");
  api().AddKeyValuePair(pairs, nullptr, "5");
  EXPECT_EQ(pairs_of(pairs), (Pairs{{"a", "2"}, {"b", "3"}, {"c", ""}}));
  EXPECT_STREQ(api().GetKeyValue(pairs, "b"), "3");
  EXPECT_EQ(api().GetKeyValue(pairs, "d"), nullptr);
  api().RemoveKeyValuePair(pairs, "b");
  api().RemoveKeyValuePair(pairs, "d");
  EXPECT_EQ(pairs_of(pairs), (Pairs{{"a", "2"}, {"c", ""}}));
  api().ReleaseKeyValuePairs(pairs);
  api().ReleaseKeyValuePairs(nullptr);
}

TEST(KeyValuePairs, DoNothingWithoutOne) {
  if (!is_sardonyx()) GTEST_SKIP() << "ONNX Runtime reads them";
  api().CreateKeyValuePairs(nullptr);
  api().AddKeyValuePair(nullptr, "a", "b");
  api().RemoveKeyValuePair(nullptr, "a");
  EXPECT_EQ(api().GetKeyValue(nullptr, "a"), nullptr);
  EXPECT_EQ(pairs_of(nullptr), Pairs{});
}

std::vector<const OrtEpDevice*> devices_of(const OrtEnv* env) {
  const OrtEpDevice* const* devices = nullptr;
  size_t count = 0;
  EXPECT_OK(api().GetEpDevices(env, &devices, &count));
  return {devices, devices + count};
}

TEST(Devices, AreTheProcessor) {
  const auto env = make_env();
  const auto devices = devices_of(env.get());
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_STREQ(api().EpDevice_EpName(devices[0]), "CPUExecutionProvider");
  EXPECT_STREQ(api().EpDevice_EpVendor(devices[0]), is_sardonyx() ? "Sardonyx" : "Microsoft");
  EXPECT_EQ(pairs_of(api().EpDevice_EpMetadata(devices[0])).count("version"), 1u);
  EXPECT_EQ(pairs_of(api().EpDevice_EpOptions(devices[0])), Pairs{});
  EXPECT_EQ(api().EpDevice_MemoryInfo(devices[0], OrtDeviceMemoryType_DEFAULT), nullptr);

  const OrtHardwareDevice* const processor = api().EpDevice_Device(devices[0]);
  ASSERT_NE(processor, nullptr);
  EXPECT_EQ(api().HardwareDevice_Type(processor), OrtHardwareDeviceType_CPU);
  EXPECT_NE(api().HardwareDevice_Vendor(processor), nullptr);
  EXPECT_NE(api().HardwareDevice_Metadata(processor), nullptr);
  api().HardwareDevice_VendorId(processor), api().HardwareDevice_DeviceId(processor);

  size_t count = 0;
  EXPECT_OK(api().GetNumHardwareDevices(env.get(), &count));
  ASSERT_GE(count, 1u);
  std::vector<const OrtHardwareDevice*> all(count);
  EXPECT_OK(api().GetHardwareDevices(env.get(), all.data(), count));
  EXPECT_EQ(all[0], processor);
  EXPECT_REFUSED(api().GetHardwareDevices(env.get(), all.data(), 0), ORT_INVALID_ARGUMENT, "room");
}

TEST(Devices, NothingKeepsTheProcessorFromBeingUsed) {
  const auto env = make_env();
  const OrtHardwareDevice* const processor = api().EpDevice_Device(devices_of(env.get())[0]);
  OrtDeviceEpIncompatibilityDetails* details = nullptr;
  ASSERT_OK(api().GetHardwareDeviceEpIncompatibilityDetails(env.get(), "CPUExecutionProvider",
                                                            processor, &details));
  uint32_t reasons = 1;
  int32_t code = 1;
  const char* notes = "";
  EXPECT_OK(api().DeviceEpIncompatibilityDetails_GetReasonsBitmask(details, &reasons));
  EXPECT_OK(api().DeviceEpIncompatibilityDetails_GetErrorCode(details, &code));
  EXPECT_OK(api().DeviceEpIncompatibilityDetails_GetNotes(details, &notes));
  EXPECT_EQ(reasons, 0u);
  EXPECT_EQ(code, 0);
  EXPECT_EQ(notes, nullptr);
  api().ReleaseDeviceEpIncompatibilityDetails(details);
  api().ReleaseDeviceEpIncompatibilityDetails(nullptr);
  for (const char* name : {"CUDAExecutionProvider", ""})
    EXPECT_REFUSED(
        api().GetHardwareDeviceEpIncompatibilityDetails(env.get(), name, processor, &details),
        ORT_INVALID_ARGUMENT, "no execution provider");
}

TEST(Devices, AreChosenForSessions) {
  const auto env = make_env();
  const auto devices = devices_of(env.get());
  const auto options = make_options();
  const char *const key = "a", *const value = "b";
  EXPECT_OK(api().SessionOptionsAppendExecutionProvider_V2(options.get(), env.get(), devices.data(),
                                                           1, &key, &value, 1));
  EXPECT_REFUSED(api().SessionOptionsAppendExecutionProvider_V2(
                     options.get(), env.get(), devices.data(), 0, nullptr, nullptr, 0),
                 ORT_INVALID_ARGUMENT, "no device");
  const auto by_policy = make_options();
  EXPECT_OK(api().SessionOptionsSetEpSelectionPolicy(by_policy.get(),
                                                     OrtExecutionProviderDevicePolicy_DEFAULT));
  for (const OrtSessionOptions* const one : {options.get(), by_policy.get()}) {
    const auto session = make_session(env.get(), small, one);
    ASSERT_NE(session, nullptr);
    const OrtEpDevice* found[2] = {};
    EXPECT_OK(api().SessionGetEpDeviceForInputs(session.get(), found, 2));
    EXPECT_EQ(found[0], devices[0]);
    EXPECT_EQ(found[1], devices[0]);
    found[0] = nullptr;
    EXPECT_OK(api().SessionGetEpDeviceForOutputs(session.get(), found, 1));
    EXPECT_EQ(found[0], devices[0]);
    EXPECT_REFUSED(api().SessionGetEpDeviceForOutputs(session.get(), found, 0),
                   ORT_INVALID_ARGUMENT, "room");
    EXPECT_OK(api().SetEpDynamicOptions(session.get(), &key, &value, 1));
    EXPECT_REFUSED(api().SetEpDynamicOptions(session.get(), nullptr, nullptr, 0),
                   ORT_INVALID_ARGUMENT, "no option");
    EXPECT_OK(api().SessionReleaseCapturedGraph(session.get(), 0));
  }
}

TEST(Devices, ADelegateMayChoose) {
  const auto env = make_env();
  const auto options = make_options();
  EXPECT_OK(api().SessionOptionsSetEpSelectionPolicyDelegate(
      options.get(),
      [](const OrtEpDevice** devices, size_t, const OrtKeyValuePairs*, const OrtKeyValuePairs*,
         const OrtEpDevice** selected, size_t, size_t* count, void*) -> OrtStatus* {
        selected[0] = devices[0], *count = 1;
        return nullptr;
      },
      nullptr));
  EXPECT_NE(make_session(env.get(), small, options.get()), nullptr);
}

TEST(Devices, LibrariesOfProvidersAreRefused) {
  const auto env = make_env();
  EXPECT_REFUSED(api().RegisterExecutionProviderLibrary(env.get(), "mine", "/no/libmine.so"),
                 ORT_FAIL, "'mine' of /no/libmine.so");
  EXPECT_REFUSED(api().UnregisterExecutionProviderLibrary(env.get(), "mine"), ORT_FAIL, "'mine'");
}

TEST(Devices, MemoryIsTheProcessors) {
  const auto env = make_env();
  const OrtEpDevice* const device = devices_of(env.get())[0];
  OrtAllocator* found = nullptr;
  EXPECT_REFUSED(api().CreateSharedAllocator(env.get(), device, OrtDeviceMemoryType_DEFAULT,
                                             OrtDeviceAllocator, nullptr, &found),
                 ORT_INVALID_ARGUMENT, "processor");
  EXPECT_REFUSED(api().ReleaseSharedAllocator(env.get(), device, OrtDeviceMemoryType_DEFAULT),
                 ORT_INVALID_ARGUMENT, "processor");
  const auto info = cpu_info();
  EXPECT_OK(api().GetSharedAllocator(env.get(), info.get(), &found));
  ASSERT_NE(found, nullptr);
  void* memory = nullptr;
  EXPECT_OK(api().AllocatorAlloc(found, 16, &memory));
  EXPECT_NE(memory, nullptr);
  EXPECT_OK(api().AllocatorFree(found, memory));
  OrtMemoryInfo* other = nullptr;
  ASSERT_OK(api().CreateMemoryInfo("Cuda", OrtDeviceAllocator, 0, OrtMemTypeDefault, &other));
  EXPECT_OK(api().GetSharedAllocator(env.get(), other, &found));
  EXPECT_EQ(found, nullptr);
  api().ReleaseMemoryInfo(other);

  OrtSyncStream* stream = nullptr;
  EXPECT_REFUSED(api().CreateSyncStreamForEpDevice(device, nullptr, &stream), ORT_INVALID_ARGUMENT,
                 "no streams");
  EXPECT_EQ(stream, nullptr);
  api().ReleaseSyncStream(nullptr);
  int gpu = 0;
  EXPECT_REFUSED(api().SetCurrentGpuDeviceId(0), ORT_FAIL, "processor");
  EXPECT_REFUSED(api().GetCurrentGpuDeviceId(&gpu), ORT_FAIL, "processor");
}

TEST(Devices, TensorsAreCopied) {
  if (!is_sardonyx()) GTEST_SKIP() << "ONNX Runtime copies from and to other devices alone";
  const auto env = make_env();
  std::vector<float> from{1, 2, 3, 4}, to(4), short_one(3);
  std::vector<int32_t> integers(4);
  const auto source = floats(from, {4}), target = floats(to, {2, 2}), less = floats(short_one, {3}),
             other = tensor(integers, {4}, ONNXTensorElementDataType(6));
  const auto copy = [&](std::vector<const OrtValue*> sources, std::vector<OrtValue*> targets) {
    return api().CopyTensors(env.get(), sources.data(), targets.data(), nullptr, sources.size());
  };
  EXPECT_OK(copy({source.get()}, {target.get()}));
  EXPECT_EQ(to, from);
  EXPECT_OK(copy({source.get()}, {source.get()}));
  to.assign(4, 0);
  EXPECT_REFUSED(copy({source.get(), source.get()}, {target.get(), less.get()}),
                 ORT_INVALID_ARGUMENT, "tensor 1 is float[4], and its copy float[3]");
  EXPECT_REFUSED(copy({source.get()}, {other.get()}), ORT_INVALID_ARGUMENT, "int32[4]");
  EXPECT_REFUSED(copy({}, {}), ORT_INVALID_ARGUMENT, "no tensor");
  EXPECT_EQ(to, std::vector<float>(4, 0));

  const int64_t two = 2;
  OrtValue *texts = nullptr, *copies = nullptr;
  for (OrtValue** const one : {&texts, &copies})
    ASSERT_OK(api().CreateTensorAsOrtValue(allocator(), &two, 1,
                                           ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, one));
  const auto held = hold(texts), held_copies = hold(copies);
  const char* const words[] = {"ab", "c"};
  ASSERT_OK(api().FillStringTensor(texts, words, 2));
  EXPECT_OK(copy({texts}, {copies}));
  size_t length = 0;
  EXPECT_OK(api().GetStringTensorElementLength(copies, 0, &length));
  EXPECT_EQ(length, 2u);
}

TEST(Devices, WhatACompiledModelIsForIsRead) {
  const auto env = make_env();
  const auto devices = devices_of(env.get());
  OrtCompiledModelCompatibility found{1};
  EXPECT_OK(api().GetModelCompatibilityForEpDevices(devices.data(), 1, "text", &found));
  EXPECT_EQ(found, OrtCompiledModelCompatibility_EP_NOT_APPLICABLE);
  EXPECT_REFUSED(api().GetModelCompatibilityForEpDevices(devices.data(), 0, "text", &found),
                 ORT_INVALID_ARGUMENT, "no device");
  EXPECT_REFUSED(api().GetModelCompatibilityForEpDevices(devices.data(), 1, nullptr, &found),
                 ORT_INVALID_ARGUMENT, "'compatibility_info'");
  const std::string bytes = model_bytes(small);
  char* text = nullptr;
  EXPECT_OK(api().GetCompatibilityInfoFromModelBytes(bytes.data(), bytes.size(),
                                                     "CPUExecutionProvider", allocator(), &text));
  EXPECT_STREQ(text, "said by the model");
  EXPECT_OK(api().AllocatorFree(allocator(), text));
  EXPECT_OK(api().GetCompatibilityInfoFromModelBytes(bytes.data(), bytes.size(), "Other",
                                                     allocator(), &text));
  EXPECT_EQ(text, nullptr);
  EXPECT_REFUSED(
      api().GetCompatibilityInfoFromModelBytes(bytes.data(), bytes.size(), "", allocator(), &text),
      ORT_INVALID_ARGUMENT, "empty");
  EXPECT_REFUSED(api().GetCompatibilityInfoFromModel("/no/model.onnx", "CPUExecutionProvider",
                                                     allocator(), &text),
                 ORT_NO_SUCHFILE, "/no/model.onnx");
}

TEST(Providers, TheProcessorIsAvailable) {
  char** names = nullptr;
  int count = 0;
  ASSERT_OK(api().GetAvailableProviders(&names, &count));
  ASSERT_GE(count, 1);
  EXPECT_STREQ(names[count - 1], "CPUExecutionProvider");
  EXPECT_OK(api().ReleaseAvailableProviders(names, count));
}

TEST(Providers, AreAppendedByName) {
  const auto options = make_options();
  const auto append = [&](const char* name) {
    return api().SessionOptionsAppendExecutionProvider(options.get(), name, nullptr, nullptr, 0);
  };
  EXPECT_OK(append("CPU"));
  EXPECT_OK(append("CPUExecutionProvider"));
  for (const char* name : {"CUDA", "CUDAExecutionProvider", "XNNPACK", "QNN", "CoreML", "DML",
                           "OpenVINO", "WebGPU", "Nonsense", ""})
    EXPECT_REFUSED(append(name), ORT_INVALID_ARGUMENT, "no execution provider");
  const char *const empty = "", *const value = "b";
  EXPECT_REFUSED(
      api().SessionOptionsAppendExecutionProvider(options.get(), "CPU", &empty, &value, 1),
      ORT_INVALID_ARGUMENT, "empty");
}

// Calls functions of one provider, whatever they take.
template <class... Arguments>
void expect_refused(OrtStatus* (*function)(Arguments...), const char* name) {
  EXPECT_REFUSED(function(Arguments()...), ORT_FAIL, name);
}

TEST(Providers, OfDevicesAreRefused) {
  const OrtApi& table = api();
  OrtCUDAProviderOptionsV2* cuda = nullptr;
  EXPECT_REFUSED(table.CreateCUDAProviderOptions(&cuda), ORT_FAIL, "CUDA");
  EXPECT_EQ(cuda, nullptr);
  OrtTensorRTProviderOptionsV2* tensorrt = nullptr;
  EXPECT_REFUSED(table.CreateTensorRTProviderOptions(&tensorrt), ORT_FAIL, "TensorRT");
  table.ReleaseCANNProviderOptions(nullptr);
  table.ReleaseCUDAProviderOptions(nullptr);
  table.ReleaseDnnlProviderOptions(nullptr);
  table.ReleaseROCMProviderOptions(nullptr);
  table.ReleaseTensorRTProviderOptions(nullptr);
  const void* functions = &table;
  EXPECT_REFUSED(table.GetExecutionProviderApi("DML", 0, &functions), ORT_INVALID_ARGUMENT, "DML");

  if (!is_sardonyx()) return;  // ONNX Runtime reads the arguments of some
  expect_refused(table.SessionOptionsAppendExecutionProvider_CANN, "CANN");
  expect_refused(table.SessionOptionsAppendExecutionProvider_CUDA, "CUDA");
  expect_refused(table.SessionOptionsAppendExecutionProvider_CUDA_V2, "CUDA");
  expect_refused(table.SessionOptionsAppendExecutionProvider_Dnnl, "oneDNN");
  expect_refused(table.SessionOptionsAppendExecutionProvider_MIGraphX, "MIGraphX");
  expect_refused(table.SessionOptionsAppendExecutionProvider_OpenVINO, "OpenVINO");
  expect_refused(table.SessionOptionsAppendExecutionProvider_OpenVINO_V2, "OpenVINO");
  expect_refused(table.SessionOptionsAppendExecutionProvider_ROCM, "ROCm");
  expect_refused(table.SessionOptionsAppendExecutionProvider_TensorRT, "TensorRT");
  expect_refused(table.SessionOptionsAppendExecutionProvider_TensorRT_V2, "TensorRT");
  expect_refused(table.SessionOptionsAppendExecutionProvider_VitisAI, "Vitis AI");
  expect_refused(table.UpdateCUDAProviderOptionsWithValue, "CUDA");
  expect_refused(table.GetTensorRTProviderOptionsByName, "TensorRT");
  expect_refused(table.GetROCMProviderOptionsAsString, "ROCm");
}

TEST(Providers, TablesThatAreNotThereAreNull) {
  EXPECT_EQ(api().GetTrainingApi(1), nullptr);
  EXPECT_EQ(api().GetExperimentalFunction("nothing"), nullptr);
  if (!is_sardonyx()) return;
  EXPECT_EQ(api().GetEpApi(), nullptr);
  EXPECT_EQ(api().GetInteropApi(), nullptr);
}

struct Compilation {
  explicit Compilation(const OrtEnv* env_) : env(env_) {
    const auto session_options = make_options();
    OrtModelCompilationOptions* made = nullptr;
    EXPECT_OK(
        table.CreateModelCompilationOptionsFromSessionOptions(env, session_options.get(), &made));
    held = {made, {table.ReleaseModelCompilationOptions}};
    options = made;
  }
  OrtStatus* compile() const { return table.CompileModel(env, options); }

  const OrtCompileApi& table = *api().GetCompileApi();
  const OrtEnv* env;
  Held<OrtModelCompilationOptions> held;
  OrtModelCompilationOptions* options;
};

// Clients in C# read all of it when they start.
TEST(Compiling, TheTableHasNoNulls) {
  const OrtCompileApi* const table = api().GetCompileApi();
  ASSERT_NE(table, nullptr);
  void* functions[sizeof(OrtCompileApi) / sizeof(void*)];
  std::memcpy(functions, table, sizeof(OrtCompileApi));
  for (const void* const function : functions) EXPECT_NE(function, nullptr);
}

TEST(Compiling, WritesTheModelAsItIs) {
  const auto env = make_env();
  const test::ScratchFolder folder;
  const std::string source = folder / "model.onnx", other = folder / "other.onnx";
  Model::from_text(small).save(source);

  const Compilation beside(env.get());
  ASSERT_OK(beside.table.ModelCompilationOptions_SetInputModelPath(beside.options, source.c_str()));
  EXPECT_OK(beside.table.ModelCompilationOptions_SetEpContextEmbedMode(beside.options, true));
  EXPECT_OK(beside.compile());
  EXPECT_EQ(Model(folder / "model_ctx.onnx").graph().nodes().size(), 1u);

  const Compilation named(env.get());
  const std::string bytes = model_bytes(small);
  ASSERT_OK(named.table.ModelCompilationOptions_SetInputModelFromBuffer(named.options, bytes.data(),
                                                                        bytes.size()));
  ASSERT_OK(named.table.ModelCompilationOptions_SetOutputModelPath(named.options, other.c_str()));
  ASSERT_OK(named.table.ModelCompilationOptions_SetFlags(named.options, 2));
  EXPECT_OK(named.compile());
  EXPECT_REFUSED(named.compile(), ORT_FAIL, "exists already");
  ASSERT_OK(named.table.ModelCompilationOptions_SetFlags(named.options, 1));
  EXPECT_REFUSED(named.compile(), ORT_FAIL, "compiles nodes");
}

TEST(Compiling, WritesToMemoryAndToFunctions) {
  const auto env = make_env();
  const std::string bytes = model_bytes(small);
  const Compilation one(env.get());
  ASSERT_OK(one.table.ModelCompilationOptions_SetInputModelFromBuffer(one.options, bytes.data(),
                                                                      bytes.size()));
  EXPECT_REFUSED(one.compile(), ORT_FAIL, "a place");
  void* memory = nullptr;
  size_t size = 0;
  ASSERT_OK(one.table.ModelCompilationOptions_SetOutputModelBuffer(one.options, allocator(),
                                                                   &memory, &size));
  EXPECT_OK(one.compile());
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(Model(memory, size).graph().nodes().size(), 1u);
  EXPECT_OK(api().AllocatorFree(allocator(), memory));

  std::string written;
  const Compilation other(env.get());
  ASSERT_OK(other.table.ModelCompilationOptions_SetInputModelFromBuffer(other.options, bytes.data(),
                                                                        bytes.size()));
  ASSERT_OK(other.table.ModelCompilationOptions_SetOutputModelWriteFunc(
      other.options,
      [](void* state, const void* data, size_t count) -> OrtStatus* {
        static_cast<std::string*>(state)->append(static_cast<const char*>(data), count);
        return nullptr;
      },
      &written));
  EXPECT_OK(other.compile());
  EXPECT_EQ(Model(written.data(), written.size()).graph().nodes().size(), 1u);
  ASSERT_OK(other.table.ModelCompilationOptions_SetOutputModelWriteFunc(
      other.options,
      [](void*, const void*, size_t) { return api().CreateStatus(ORT_FAIL, "the disk is full"); },
      nullptr));
  EXPECT_REFUSED(other.compile(), ORT_FAIL, "the disk is full");
}

TEST(Compiling, NeedsAModel) {
  const auto env = make_env();
  const Compilation none(env.get());
  EXPECT_REFUSED(none.compile(), ORT_INVALID_ARGUMENT, "no model");
  EXPECT_REFUSED(none.table.ModelCompilationOptions_SetInputModelPath(none.options, ""),
                 ORT_INVALID_ARGUMENT, "empty");
  EXPECT_REFUSED(none.table.ModelCompilationOptions_SetInputModelFromBuffer(none.options, "x", 0),
                 ORT_INVALID_ARGUMENT, "no bytes");
}

}  // namespace
}  // namespace sardonyx::ort_api
