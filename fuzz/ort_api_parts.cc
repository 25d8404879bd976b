#include "ort_api_parts.h"

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "sardonyx/model.h"
#include "target.h"

extern "C" const sardonyx::ort_api::OrtApiBase* OrtGetApiBase();

namespace sardonyx::fuzzing {

using namespace ort_api;

namespace {

constexpr const char* graphs[] = {
    "(float[N] x, float[N] w) => (float[N] sum) { sum = Add(x, w) }",
    "(float[N, 2] x, float[2] w = {1, 2}) => (float[N, 2] y, float[N, 2] z) { y = Mul(x, w) z = "
    "Add(y, x) }",
    "(string[N] x) => (string[N] y, bool[N] e) { y = StringConcat(x, x) e = Equal(x, y) }",
    "(seq(float[N]) s, int64 i) => (float[M] y, optional(float[M]) o) { y = SequenceAt(s, i) o = "
    "Optional(y) }",
    "(map(string, float) m) => (float[1, 2] y) { y = ai.onnx.ml.DictVectorizer<string_vocabulary = "
    "[\"a\", \"b\"]>(m) }",
    "(optional(float[N]) o) => (bool y) { y = OptionalHasElement(o) }",
    "(sparse_tensor(float[3, 4]) a, float[4, 2] b) => (float[3, 2] y) { y = "
    "com.microsoft.SparseToDenseMatMul(a, b) }",
    "(float[N] x) => (float[N] y) { a = Neg(x) b = test.Foo(a) y = Neg(b) }",
    "(bool b, float[N] x) => (float[M] y) { y = If(b) <then_branch = t () => (p) { p = Neg(x) }, "
    "else_branch = f () => (q) { q = Concat<axis = 0>(x, x) }> }",
    // What comes in goes out.
    "(float[N] x, seq(float[N]) s) => (float[N] y, seq(float[N]) z, seq(float[N]) a) "
    "{ y = Identity(x) z = Identity(s) a = SequenceConstruct(x, y) }",
    "(float[N] x) => (float[N] x, string y) { y = Constant<value = string {\"text\"}>() }",
    "(float[2] x) => (float[2] y) <float[2] w = [\"location\": \"f\", \"offset\": \"4\"]> { y = "
    "Add(x, w) }",
    "(int64[N] i) => (float[N, 1] y) <float[3, 1] w = {1, 2, 3}> { y = Gather(w, i) }"};
static_assert(std::size(graphs) == model_count);

// --- The operator ---------------------------------------------------------------------------

OrtStatus* add_one(void*, OrtKernelContext* context) {
  const OrtValue* input = nullptr;
  OrtTensorTypeAndShapeInfo* info = nullptr;
  const void* from = nullptr;
  size_t rank = 0, count = 0;
  if (OrtStatus* const status = table().KernelContext_GetInput(context, 0, &input)) return status;
  if (OrtStatus* const status = table().GetTensorTypeAndShape(input, &info)) return status;
  require(table().GetDimensionsCount(info, &rank) == nullptr, "a shape has a rank");
  std::vector<int64_t> dims(rank);
  require(table().GetDimensions(info, dims.data(), rank) == nullptr, "a shape has sizes");
  require(table().GetTensorShapeElementCount(info, &count) == nullptr, "a shape has elements");
  table().ReleaseTensorTypeAndShapeInfo(info);
  if (OrtStatus* const status = table().GetTensorData(input, &from)) return status;
  OrtValue* output = nullptr;
  void* to = nullptr;
  if (OrtStatus* const status =
          table().KernelContext_GetOutput(context, 0, dims.data(), rank, &output))
    return status;
  if (OrtStatus* const status = table().GetTensorMutableData(output, &to)) return status;
  for (size_t i = 0; i < count; ++i) {
    const float x = static_cast<const float*>(from)[i];
    if (x == 7) return table().CreateStatus(ORT_EP_FAIL, "7 is not taken");
    static_cast<float*>(to)[i] = x + 1;
  }
  return nullptr;
}

OrtCustomOp made_operator() {
  OrtCustomOp op{};
  op.version = 22;
  op.GetName = [](const OrtCustomOp*) { return "Foo"; };
  op.GetExecutionProviderType = [](const OrtCustomOp*) -> const char* { return nullptr; };
  op.GetInputType = op.GetOutputType = [](const OrtCustomOp*, size_t) {
    return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
  };
  op.GetInputTypeCount = op.GetOutputTypeCount = [](const OrtCustomOp*) -> size_t { return 1; };
  op.GetInputCharacteristic =
      op.GetOutputCharacteristic = [](const OrtCustomOp*, size_t) { return INPUT_OUTPUT_REQUIRED; };
  op.CreateKernelV2 = [](const OrtCustomOp* self, const OrtApi*, const OrtKernelInfo*,
                         void** kernel) -> OrtStatus* {
    *kernel = const_cast<OrtCustomOp*>(self);
    return nullptr;
  };
  op.KernelComputeV2 = add_one;
  op.KernelDestroy = [](void*) {};
  return op;
}

// --- The allocator --------------------------------------------------------------------------

std::mutex allocator_mutex;

void* give_memory(OrtAllocator*, size_t bytes) {
  const std::lock_guard lock(allocator_mutex);
  if (CallersAllocator::failing_in == 0 || bytes > 1 << 24) return nullptr;
  if (CallersAllocator::failing_in > 0) --CallersAllocator::failing_in;
  ++CallersAllocator::live;
  return std::calloc(bytes + 1, 1);
}

void take_back(OrtAllocator*, void* memory) {
  const std::lock_guard lock(allocator_mutex);
  if (memory != nullptr) --CallersAllocator::live;
  std::free(memory);
}

}  // namespace

const OrtApi& table() {
  static const OrtApi* const found = OrtGetApiBase()->GetApi(api_version);
  return *found;
}

OrtAllocator* default_memory() {
  OrtAllocator* found = nullptr;
  require(table().GetAllocatorWithDefaultOptions(&found) == nullptr, "there is an allocator");
  return found;
}

const OrtMemoryInfo* cpu_memory_info() {
  static const OrtMemoryInfo* const made = [] {
    OrtMemoryInfo* info = nullptr;
    require(table().CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &info) == nullptr,
            "there is memory");
    return info;
  }();
  return made;
}

std::vector<char> model_bytes(size_t model) {
  static std::string made[model_count];
  std::string& bytes = made[model];
  if (bytes.empty()) {
    const std::string begin =
        "<ir_version: 10, opset_import: [\"\" : 21, \"ai.onnx.ml\" : 4, \"test\" : 1, "
        "\"com.microsoft\" : 1]>\ng ";
    LoadOptions options;
    options.load_external_data = false;
    bytes = Model::from_text(begin + graphs[model], options).to_bytes();
  }
  return {bytes.begin(), bytes.end()};
}

// One parameter: w, float[2].
std::vector<char> adapter_bytes() {
  constexpr uint8_t bytes[] = {
      20, 0, 0,  0, 84, 79, 82, 84, 12, 0, 20, 0, 4,   0, 8, 0, 12, 0, 16,  0,  12, 0, 0, 0,
      1,  0, 0,  0, 5,  0,  0,  0,  7,  0, 0,  0, 4,   0, 0, 0, 1,  0, 0,   0,  16, 0, 0, 0,
      12, 0, 20, 0, 4,  0,  8,  0,  12, 0, 16, 0, 12,  0, 0, 0, 16, 0, 0,   0,  24, 0, 0, 0,
      1,  0, 0,  0, 32, 0,  0,  0,  1,  0, 0,  0, 119, 0, 0, 0, 0,  0, 0,   0,  1,  0, 0, 0,
      2,  0, 0,  0, 0,  0,  0,  0,  0,  0, 0,  0, 8,   0, 0, 0, 0,  0, 128, 63, 0,  0, 0, 64};
  return {std::begin(bytes), std::end(bytes)};
}

OrtCustomOpDomain* domain() {
  static const OrtCustomOp op = made_operator();
  static OrtCustomOpDomain* const made = [] {
    OrtCustomOpDomain* held = nullptr;
    require(table().CreateCustomOpDomain("test", &held) == nullptr, "a domain is made");
    require(table().CustomOpDomain_Add(held, &op) == nullptr, "it gets an operator");
    return held;
  }();
  return made;
}

OrtAllocator* callers_memory() {
  static OrtAllocator allocator = [] {
    OrtAllocator made{};
    made.version = 22;
    made.Alloc = made.Reserve = give_memory;
    made.Free = take_back;
    made.Info = [](const OrtAllocator*) { return cpu_memory_info(); };
    return made;
  }();
  return &allocator;
}

void read_log(void*, OrtLoggingLevel, const char* category, const char* logid, const char* place,
              const char* message) {
  for (const char* text : {category, logid, place, message})
    require(std::strlen(text) < 1000000, "what a log is told ends");
}

}  // namespace sardonyx::fuzzing
