// Operators of a test's: what they are is in fields, what they do in functions.
#pragma once

#include <climits>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "ort_api/api.h"

namespace sardonyx::ort_api {

inline constexpr auto any_type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
inline constexpr auto float_type = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
inline constexpr auto int64_type = ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
inline constexpr auto string_type = ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING;

// Version 22 of the interface; its kernel is the operator itself.
struct TestOperator : OrtCustomOp {
  std::string name = "Foo";
  std::vector<ONNXTensorElementDataType> input_types{float_type}, output_types{float_type};
  // As many as types; required where they are fewer.
  std::vector<OrtCustomOpInputOutputCharacteristic> input_kinds, output_kinds;
  int least = 1;
  bool is_homogeneous = true;
  int first = 1, last = INT_MAX;
  const char* provider = nullptr;
  std::function<OrtStatus*(const OrtKernelInfo*)> create;
  std::function<OrtStatus*(OrtKernelContext*)> compute;
  std::function<OrtStatus*(OrtShapeInferContext*)> infer;
  int made = 0, destroyed = 0;

  explicit TestOperator(std::string name_ = "Foo");
  void infer_with(std::function<OrtStatus*(OrtShapeInferContext*)> call);
};

// Options that have a domain "test" with these operators.
struct Program {
  Held<OrtEnv> env = make_env();
  Held<OrtSessionOptions> options = make_options();
  Held<OrtCustomOpDomain> domain;

  explicit Program(std::initializer_list<TestOperator*> operators, const char* name = "test");
  OrtStatus* make(const std::string& text, Held<OrtSession>& session) const;
  Held<OrtSession> session(const std::string& text) const;
};

// A graph "g" with these lines as its parameters and nodes: `(float[N] x) => (float[N] y) { … }`.
std::string model_text(const std::string& graph, int version = 1);
// y = test.Foo (x), of floats.
std::string one_node(const std::string& attributes = "");

// What kernels do. Failures of the interface are thrown, as its C++ wrapper does.
void require(OrtStatus* status);
std::vector<float> input_floats(const OrtKernelContext* context, size_t index);
std::vector<int64_t> input_shape(const OrtKernelContext* context, size_t index);
std::vector<std::string> texts_of(const OrtValue* value);
OrtValue* output(OrtKernelContext* context, size_t index, const std::vector<int64_t>& shape);
void give_floats(OrtKernelContext* context, size_t index, const std::vector<float>& values,
                 const std::vector<int64_t>& shape);
// Output 0 gets input 0 plus `sum`.
OrtStatus* add(OrtKernelContext* context, float sum);

// One run of a session with input x of floats and output y.
std::vector<float> run_floats(OrtSession* session, std::vector<float> values,
                              const std::vector<int64_t>& shape);
// The same, which may fail.
Outcome outcome_of_run(OrtSession* session, std::vector<float> values,
                       const std::vector<int64_t>& shape);

}  // namespace sardonyx::ort_api
