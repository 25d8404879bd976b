#include "ort_api/api.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

extern "C" const sardonyx::ort_api::OrtApiBase* OrtGetApiBase();

namespace sardonyx::ort_api {

bool is_sardonyx() {
  static const bool own = std::getenv("ORT_LIBRARY") == nullptr;
  return own;
}

const OrtApiBase& base() {
  static const OrtApiBase* const found = [] {
    const char* const path = std::getenv("ORT_LIBRARY");
    if (path == nullptr) return OrtGetApiBase();
    setenv("ORT_DISABLE_TELEMETRY", "1", 1);
    void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void* const function = library == nullptr ? nullptr : dlsym(library, "OrtGetApiBase");
    if (function == nullptr) {
      std::fprintf(stderr, "ORT_LIBRARY: %s\n", dlerror());
      std::abort();
    }
    return reinterpret_cast<const OrtApiBase* (*)()>(function)();
  }();
  return *found;
}

const OrtApi& api() {
  static const OrtApi* const table = base().GetApi(22);
  return *table;
}

Outcome outcome(OrtStatus* status) {
  if (status == nullptr) return {};
  Outcome found{api().GetErrorCode(status), api().GetErrorMessage(status)};
  api().ReleaseStatus(status);
  return found;
}

testing::AssertionResult succeeds(OrtStatus* status) {
  const Outcome found = outcome(status);
  if (found.code == ORT_OK) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "status " << found.code << ": " << found.message;
}

testing::AssertionResult is_refused(OrtStatus* status, OrtErrorCode code, const std::string& part) {
  const Outcome found = outcome(status);
  if (found.code == code && (!is_sardonyx() || found.message.find(part) != std::string::npos))
    return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << "status " << found.code << ": " << found.message << "; expected status " << code
         << " and '" << part << "' in the message";
}

Held<OrtEnv> make_env() {
  OrtEnv* env = nullptr;
  EXPECT_OK(api().CreateEnv(ORT_LOGGING_LEVEL_ERROR, "test", &env));
  return {env, {api().ReleaseEnv}};
}

Held<OrtSessionOptions> make_options() {
  OrtSessionOptions* options = nullptr;
  EXPECT_OK(api().CreateSessionOptions(&options));
  return {options, {api().ReleaseSessionOptions}};
}

Held<OrtRunOptions> make_run_options() {
  OrtRunOptions* options = nullptr;
  EXPECT_OK(api().CreateRunOptions(&options));
  return {options, {api().ReleaseRunOptions}};
}

Held<OrtMemoryInfo> cpu_info() {
  OrtMemoryInfo* info = nullptr;
  EXPECT_OK(api().CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &info));
  return {info, {api().ReleaseMemoryInfo}};
}

OrtAllocator* allocator() {
  OrtAllocator* found = nullptr;
  EXPECT_OK(api().GetAllocatorWithDefaultOptions(&found));
  return found;
}

Held<OrtValue> hold(OrtValue* value) { return {value, {api().ReleaseValue}}; }

std::string model_bytes(const char* text) { return Model::from_text(text).to_bytes(); }

Held<OrtSession> make_session(OrtEnv* env, const char* text, const OrtSessionOptions* options) {
  const std::string bytes = model_bytes(text);
  OrtSession* session = nullptr;
  EXPECT_OK(api().CreateSessionFromArray(env, bytes.data(), bytes.size(), options, &session));
  return {session, {api().ReleaseSession}};
}

std::vector<int64_t> shape_of(const OrtValue* value) {
  OrtTensorTypeAndShapeInfo* info = nullptr;
  EXPECT_OK(api().GetTensorTypeAndShape(value, &info));
  size_t rank = 0;
  EXPECT_OK(api().GetDimensionsCount(info, &rank));
  std::vector<int64_t> shape(rank);
  EXPECT_OK(api().GetDimensions(info, shape.data(), rank));
  api().ReleaseTensorTypeAndShapeInfo(info);
  return shape;
}

std::vector<float> floats_of(const OrtValue* value) {
  OrtTensorTypeAndShapeInfo* info = nullptr;
  EXPECT_OK(api().GetTensorTypeAndShape(value, &info));
  size_t count = 0;
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  EXPECT_OK(api().GetTensorShapeElementCount(info, &count));
  EXPECT_OK(api().GetTensorElementType(info, &type));
  api().ReleaseTensorTypeAndShapeInfo(info);
  EXPECT_EQ(type, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
  void* data = nullptr;
  EXPECT_OK(api().GetTensorMutableData(const_cast<OrtValue*>(value), &data));
  const auto* const first = static_cast<const float*>(data);
  return {first, first + count};
}

std::vector<Held<OrtValue>> run(OrtSession* session, const std::vector<Feed>& feeds,
                                const std::vector<const char*>& outputs,
                                const OrtRunOptions* options) {
  std::vector<const char*> names;
  std::vector<const OrtValue*> values;
  for (const Feed& feed : feeds) names.push_back(feed.name), values.push_back(feed.value);
  std::vector<OrtValue*> made(outputs.size());
  EXPECT_OK(api().Run(session, options, names.data(), values.data(), names.size(), outputs.data(),
                      outputs.size(), made.data()));
  std::vector<Held<OrtValue>> held;
  for (OrtValue* value : made) held.push_back(hold(value));
  return held;
}

}  // namespace sardonyx::ort_api
