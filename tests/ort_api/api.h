// The table that these tests call: that of Sardonyx, or with ORT_LIBRARY=PATH in the environment
// that of the library there, so that the same tests say what ONNX Runtime does.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "ort_api/types.h"
#include "sardonyx/model.h"

namespace sardonyx::ort_api {

const OrtApiBase& base();
const OrtApi& api();
bool is_sardonyx();  // false: the library of ORT_LIBRARY

// Releases the status; its message where there is one.
struct Outcome {
  OrtErrorCode code = ORT_OK;
  std::string message;
};
Outcome outcome(OrtStatus* status);

// Reports a call that fails; false then.
testing::AssertionResult succeeds(OrtStatus* status);
#define EXPECT_OK(call) EXPECT_TRUE(::sardonyx::ort_api::succeeds(call))
#define ASSERT_OK(call) ASSERT_TRUE(::sardonyx::ort_api::succeeds(call))
// A call that must fail with this code; its message must have `part` in it, in Sardonyx.
testing::AssertionResult is_refused(OrtStatus* status, OrtErrorCode code, const std::string& part);
#define EXPECT_REFUSED(call, code, part) \
  EXPECT_TRUE(::sardonyx::ort_api::is_refused(call, code, part))

// A handle that is released where it goes out of scope.
template <class Handle>
struct Release {
  void (*release)(Handle*);
  void operator()(Handle* handle) const { release(handle); }
};
template <class Handle>
using Held = std::unique_ptr<Handle, Release<Handle>>;

Held<OrtEnv> make_env();
Held<OrtSessionOptions> make_options();
Held<OrtRunOptions> make_run_options();
Held<OrtMemoryInfo> cpu_info();
OrtAllocator* allocator();
Held<OrtValue> hold(OrtValue* value);

// A model's bytes from the textual syntax.
std::string model_bytes(const char* text);
// A session of a model in the textual syntax; a test failure where it can't be made.
Held<OrtSession> make_session(OrtEnv* env, const char* text, const OrtSessionOptions* options);

// A view of the memory.
template <class T>
Held<OrtValue> tensor(std::vector<T>& elements, const std::vector<int64_t>& shape,
                      ONNXTensorElementDataType type) {
  OrtValue* value = nullptr;
  const auto info = cpu_info();
  EXPECT_OK(api().CreateTensorWithDataAsOrtValue(info.get(), elements.data(),
                                                 elements.size() * sizeof(T), shape.data(),
                                                 shape.size(), type, &value));
  return hold(value);
}
inline Held<OrtValue> floats(std::vector<float>& elements, const std::vector<int64_t>& shape) {
  return tensor(elements, shape, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
}
std::vector<float> floats_of(const OrtValue* value);
std::vector<int64_t> shape_of(const OrtValue* value);

// Runs with inputs by name; a test failure where it fails.
struct Feed {
  const char* name;
  const OrtValue* value;
};
std::vector<Held<OrtValue>> run(OrtSession* session, const std::vector<Feed>& feeds,
                                const std::vector<const char*>& outputs,
                                const OrtRunOptions* options = nullptr);

}  // namespace sardonyx::ort_api
