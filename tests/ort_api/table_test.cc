#include <cstring>

#include "ort_api/api.h"

namespace sardonyx::ort_api {
namespace {

TEST(Table, ServesVersionsFromOneOn) {
  EXPECT_EQ(base().GetApi(0), nullptr);
  EXPECT_NE(base().GetApi(1), nullptr);
  EXPECT_NE(base().GetApi(16), nullptr);
  EXPECT_NE(base().GetApi(api_version), nullptr);
  EXPECT_EQ(base().GetApi(api_version + 1), nullptr);
  EXPECT_EQ(std::string(base().GetVersionString()).substr(0, 5), "1.31.");
}

TEST(Table, HasAFunctionInEachPlace) {
  const auto* const places = reinterpret_cast<void* const*>(&api());
  for (size_t i = 0; i < sizeof(OrtApi) / sizeof(void*); ++i) EXPECT_NE(places[i], nullptr) << i;
}

TEST(Table, PlacesAreThoseOfOnnxRuntime) {
  // Some that programs have relied on since their releases.
  const auto place = [](auto OrtApi::*member) {
    static const OrtApi table{};
    return (reinterpret_cast<const char*>(&(table.*member)) -
            reinterpret_cast<const char*>(&table)) /
           static_cast<ptrdiff_t>(sizeof(void*));
  };
  EXPECT_EQ(place(&OrtApi::CreateStatus), 0);
  EXPECT_EQ(place(&OrtApi::CreateEnv), 3);
  EXPECT_EQ(place(&OrtApi::CreateSession), 7);
  EXPECT_EQ(place(&OrtApi::Run), 9);
  EXPECT_EQ(place(&OrtApi::SessionGetInputName), 36);
  EXPECT_EQ(place(&OrtApi::CreateTensorWithDataAsOrtValue), 49);
  EXPECT_EQ(place(&OrtApi::GetTensorMutableData), 51);
  EXPECT_EQ(place(&OrtApi::GetValueCount), 81);
  EXPECT_EQ(place(&OrtApi::ReleaseSessionOptions), 100);
  EXPECT_EQ(place(&OrtApi::KernelContext_GetPreallocatedOutput), 425);
  EXPECT_EQ(place(&OrtApi::GetModelPackageApi), 427);
}

TEST(Table, WhatIsNotThereSaysSo) {
  if (!is_sardonyx()) GTEST_SKIP() << "ONNX Runtime has it";
  EXPECT_REFUSED(api().Graph_GetName(nullptr, nullptr), ORT_NOT_IMPLEMENTED, "Graph_GetName");
  api().ReleaseGraph(nullptr);
}

TEST(Status, HoldsCodeAndMessage) {
  OrtStatus* const status = api().CreateStatus(ORT_EP_FAIL, "what went wrong");
  EXPECT_EQ(api().GetErrorCode(status), ORT_EP_FAIL);
  EXPECT_STREQ(api().GetErrorMessage(status), "what went wrong");
  api().ReleaseStatus(status);
  api().ReleaseStatus(nullptr);
}

TEST(Memory, DescribesTheProcessor) {
  const auto info = cpu_info();
  const char* name = nullptr;
  int id = -1, differs = -1;
  OrtMemType mem_type{};
  OrtAllocatorType type{};
  OrtMemoryInfoDeviceType device{};
  EXPECT_OK(api().MemoryInfoGetName(info.get(), &name));
  EXPECT_STREQ(name, "Cpu");
  EXPECT_OK(api().MemoryInfoGetId(info.get(), &id));
  EXPECT_EQ(id, 0);
  EXPECT_OK(api().MemoryInfoGetMemType(info.get(), &mem_type));
  EXPECT_EQ(mem_type, OrtMemTypeDefault);
  EXPECT_OK(api().MemoryInfoGetType(info.get(), &type));
  EXPECT_EQ(type, OrtDeviceAllocator);
  api().MemoryInfoGetDeviceType(info.get(), &device);
  EXPECT_EQ(device, OrtMemoryInfoDeviceType_CPU);
  const OrtMemoryInfo* of_allocator = nullptr;
  EXPECT_OK(api().AllocatorGetInfo(allocator(), &of_allocator));
  EXPECT_OK(api().CompareMemoryInfo(info.get(), of_allocator, &differs));
  EXPECT_EQ(differs, 0);
  OrtMemoryInfo* other = nullptr;
  EXPECT_REFUSED(
      api().CreateMemoryInfo("Nonsense", OrtDeviceAllocator, 0, OrtMemTypeDefault, &other),
      ORT_INVALID_ARGUMENT, "'Nonsense'");
}

TEST(Memory, OfDevicesIsRefused) {
  if (!is_sardonyx()) GTEST_SKIP() << "ONNX Runtime looks at it when it runs";
  OrtMemoryInfo* cuda = nullptr;
  ASSERT_OK(api().CreateMemoryInfo("Cuda", OrtDeviceAllocator, 0, OrtMemTypeDefault, &cuda));
  float number = 0;
  const int64_t one = 1;
  OrtValue* value = nullptr;
  EXPECT_REFUSED(api().CreateTensorWithDataAsOrtValue(cuda, &number, 4, &one, 1,
                                                      ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value),
                 ORT_INVALID_ARGUMENT, "'Cuda'");
  api().ReleaseMemoryInfo(cuda);
}

TEST(Memory, AllocatorGivesAndTakesBack) {
  void* memory = nullptr;
  ASSERT_OK(api().AllocatorAlloc(allocator(), 1000, &memory));
  ASSERT_NE(memory, nullptr);
  std::memset(memory, 1, 1000);
  EXPECT_OK(api().AllocatorFree(allocator(), memory));
}

TEST(Memory, ShortageIsAnError) {
  void* memory = nullptr;
  EXPECT_REFUSED(api().AllocatorAlloc(allocator(), size_t{1} << 62, &memory), ORT_RUNTIME_EXCEPTION,
                 "bad_alloc");
}

TEST(Environment, CanHaveThreadsForAllSessions) {
  OrtThreadingOptions* threading = nullptr;
  ASSERT_OK(api().CreateThreadingOptions(&threading));
  EXPECT_OK(api().SetGlobalIntraOpNumThreads(threading, 2));
  EXPECT_OK(api().SetGlobalInterOpNumThreads(threading, 1));
  EXPECT_OK(api().SetGlobalSpinControl(threading, 0));
  EXPECT_OK(api().SetGlobalDenormalAsZero(threading));
  OrtEnv* env = nullptr;
  ASSERT_OK(api().CreateEnvWithGlobalThreadPools(ORT_LOGGING_LEVEL_ERROR, "test", threading, &env));
  api().ReleaseThreadingOptions(threading);
  EXPECT_OK(api().DisableTelemetryEvents(env));
  const auto options = make_options();
  EXPECT_OK(api().DisablePerSessionThreads(options.get()));
  const auto session = make_session(
      env,
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[2] x) => (float[2] y) { y = Neg(x) }",
      options.get());
  std::vector<float> x{1, 2};
  const auto y = run(session.get(), {{"x", floats(x, {2}).get()}}, {"y"});
  EXPECT_EQ(floats_of(y[0].get()), (std::vector<float>{-1, -2}));
  api().ReleaseEnv(env);
}

TEST(Environment, OptionsAreLookedAt) {
  OrtEnvCreationOptions options{};
  OrtEnv* env = nullptr;
  options.log_id = "test";
  options.logging_severity_level = ORT_LOGGING_LEVEL_ERROR;
  EXPECT_REFUSED(api().CreateEnvWithOptions(&options, &env), ORT_INVALID_ARGUMENT, "'version'");
  options.version = 24;
  options.logging_severity_level = 5;
  EXPECT_REFUSED(api().CreateEnvWithOptions(&options, &env), ORT_INVALID_ARGUMENT, "5 is no level");
  options.logging_severity_level = ORT_LOGGING_LEVEL_ERROR;
  options.log_id = nullptr;
  EXPECT_REFUSED(api().CreateEnvWithOptions(&options, &env), ORT_INVALID_ARGUMENT, "'log_id'");
  options.log_id = "";
  ASSERT_OK(api().CreateEnvWithOptions(&options, &env));
  api().ReleaseEnv(env);
}

}  // namespace
}  // namespace sardonyx::ort_api
