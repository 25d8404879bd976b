#include "ort_api/test_operator.h"

#include <cstring>
#include <stdexcept>

namespace sardonyx::ort_api {

namespace {

const TestOperator& self(const OrtCustomOp* op) { return *static_cast<const TestOperator*>(op); }
TestOperator& self(void* kernel) { return *static_cast<TestOperator*>(kernel); }

OrtCustomOpInputOutputCharacteristic kind_at(
    const std::vector<OrtCustomOpInputOutputCharacteristic>& kinds, size_t index) {
  return index < kinds.size() ? kinds[index] : INPUT_OUTPUT_REQUIRED;
}

}  // namespace

TestOperator::TestOperator(std::string name_) : OrtCustomOp{}, name(std::move(name_)) {
  version = 22;
  GetName = [](const OrtCustomOp* op) { return self(op).name.c_str(); };
  GetExecutionProviderType = [](const OrtCustomOp* op) { return self(op).provider; };
  GetInputTypeCount = [](const OrtCustomOp* op) { return self(op).input_types.size(); };
  GetInputType = [](const OrtCustomOp* op, size_t index) { return self(op).input_types[index]; };
  GetOutputTypeCount = [](const OrtCustomOp* op) { return self(op).output_types.size(); };
  GetOutputType = [](const OrtCustomOp* op, size_t index) { return self(op).output_types[index]; };
  GetInputCharacteristic = [](const OrtCustomOp* op, size_t index) {
    return kind_at(self(op).input_kinds, index);
  };
  GetOutputCharacteristic = [](const OrtCustomOp* op, size_t index) {
    return kind_at(self(op).output_kinds, index);
  };
  GetInputMemoryType = [](const OrtCustomOp*, size_t) { return OrtMemTypeDefault; };
  GetVariadicInputMinArity = [](const OrtCustomOp* op) { return self(op).least; };
  GetVariadicInputHomogeneity = [](const OrtCustomOp* op) { return int{self(op).is_homogeneous}; };
  GetVariadicOutputMinArity = [](const OrtCustomOp* op) { return self(op).least; };
  GetVariadicOutputHomogeneity = [](const OrtCustomOp* op) { return int{self(op).is_homogeneous}; };
  GetStartVersion = [](const OrtCustomOp* op) { return self(op).first; };
  GetEndVersion = [](const OrtCustomOp* op) { return self(op).last; };
  CreateKernelV2 = [](const OrtCustomOp* op, const OrtApi*, const OrtKernelInfo* info,
                      void** kernel) -> OrtStatus* {
    auto* const made = const_cast<TestOperator*>(&self(op));
    OrtStatus* const status = made->create ? made->create(info) : nullptr;
    if (status == nullptr) *kernel = made, ++made->made;
    return status;
  };
  KernelComputeV2 = [](void* kernel, OrtKernelContext* context) {
    return self(kernel).compute(context);
  };
  KernelDestroy = [](void* kernel) { ++self(kernel).destroyed; };
}

void TestOperator::infer_with(std::function<OrtStatus*(OrtShapeInferContext*)> call) {
  infer = std::move(call);
  InferOutputShapeFn = [](const OrtCustomOp* op, OrtShapeInferContext* context) {
    return self(op).infer(context);
  };
}

Program::Program(std::initializer_list<TestOperator*> operators, const char* name) {
  OrtCustomOpDomain* made = nullptr;
  EXPECT_OK(api().CreateCustomOpDomain(name, &made));
  domain = {made, {api().ReleaseCustomOpDomain}};
  for (const TestOperator* op : operators) EXPECT_OK(api().CustomOpDomain_Add(made, op));
  EXPECT_OK(api().AddCustomOpDomain(options.get(), made));
}

OrtStatus* Program::make(const std::string& text, Held<OrtSession>& session) const {
  const std::string bytes = model_bytes(text.c_str());
  OrtSession* made = nullptr;
  OrtStatus* const status =
      api().CreateSessionFromArray(env.get(), bytes.data(), bytes.size(), options.get(), &made);
  session = {made, {api().ReleaseSession}};
  return status;
}

Held<OrtSession> Program::session(const std::string& text) const {
  Held<OrtSession> session;
  EXPECT_OK(make(text, session));
  return session;
}

std::string model_text(const std::string& graph, int version) {
  return "<ir_version: 10, opset_import: [\"\" : 21, \"test\" : " + std::to_string(version) +
         "]>\ng " + graph;
}

std::string one_node(const std::string& attributes) {
  return model_text("(float[N] x) => (float[N] y) { [node] y = test.Foo " + attributes + " (x) }");
}

void require(OrtStatus* status) {
  const Outcome found = outcome(status);
  if (found.code != ORT_OK) throw std::runtime_error(found.message);
}

std::vector<float> input_floats(const OrtKernelContext* context, size_t index) {
  const OrtValue* value = nullptr;
  require(api().KernelContext_GetInput(context, index, &value));
  return floats_of(value);
}

std::vector<int64_t> input_shape(const OrtKernelContext* context, size_t index) {
  const OrtValue* value = nullptr;
  require(api().KernelContext_GetInput(context, index, &value));
  return shape_of(value);
}

std::vector<std::string> texts_of(const OrtValue* value) {
  size_t count = 1;
  for (const int64_t size : shape_of(value)) count *= static_cast<size_t>(size);
  std::vector<std::string> texts;
  for (size_t i = 0; i < count; ++i) {
    size_t length = 0;
    require(api().GetStringTensorElementLength(value, i, &length));
    std::string text(length, ' ');
    require(api().GetStringTensorElement(value, length, i, text.data()));
    texts.push_back(text);
  }
  return texts;
}

OrtValue* output(OrtKernelContext* context, size_t index, const std::vector<int64_t>& shape) {
  OrtValue* value = nullptr;
  require(api().KernelContext_GetOutput(context, index, shape.data(), shape.size(), &value));
  return value;
}

void give_floats(OrtKernelContext* context, size_t index, const std::vector<float>& values,
                 const std::vector<int64_t>& shape) {
  void* data = nullptr;
  require(api().GetTensorMutableData(output(context, index, shape), &data));
  if (!values.empty()) std::memcpy(data, values.data(), values.size() * sizeof(float));
}

OrtStatus* add(OrtKernelContext* context, float sum) {
  std::vector<float> values = input_floats(context, 0);
  for (float& value : values) value += sum;
  give_floats(context, 0, values, input_shape(context, 0));
  return nullptr;
}

std::vector<float> run_floats(OrtSession* session, std::vector<float> values,
                              const std::vector<int64_t>& shape) {
  const auto x = floats(values, shape);
  const auto outputs = run(session, {{"x", x.get()}}, {"y"});
  return outputs[0] == nullptr ? std::vector<float>() : floats_of(outputs[0].get());
}

Outcome outcome_of_run(OrtSession* session, std::vector<float> values,
                       const std::vector<int64_t>& shape) {
  const auto x = floats(values, shape);
  const char* const inputs[] = {"x"};
  const char* const outputs[] = {"y"};
  const OrtValue* const given[] = {x.get()};
  OrtValue* made = nullptr;
  const Outcome found = outcome(api().Run(session, nullptr, inputs, given, 1, outputs, 1, &made));
  hold(made);
  return found;
}

}  // namespace sardonyx::ort_api
