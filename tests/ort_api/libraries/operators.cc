// A library of operators for ONNX Runtime's interface (custom_operators_test.cc): test.Triple, of
// version 8 of the interface.
#include "ort_api/types.h"

namespace {

using namespace sardonyx::ort_api;

const OrtApi* table = nullptr;

struct Triple : OrtCustomOp {
  Triple() : OrtCustomOp{} {
    version = 8;
    GetName = [](const OrtCustomOp*) { return "Triple"; };
    GetExecutionProviderType = [](const OrtCustomOp*) -> const char* { return nullptr; };
    GetInputTypeCount = GetOutputTypeCount = [](const OrtCustomOp*) { return size_t{1}; };
    GetInputType = GetOutputType = [](const OrtCustomOp*, size_t) {
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
    };
    GetInputCharacteristic =
        GetOutputCharacteristic = [](const OrtCustomOp*, size_t) { return INPUT_OUTPUT_REQUIRED; };
    CreateKernel = [](const OrtCustomOp*, const OrtApi* api, const OrtKernelInfo*) -> void* {
      table = api;
      return nullptr;
    };
    KernelDestroy = [](void*) {};
    KernelCompute = [](void*, OrtKernelContext* context) {
      const OrtValue* x = nullptr;
      OrtValue* y = nullptr;
      OrtTensorTypeAndShapeInfo* info = nullptr;
      size_t count = 0;
      void *from = nullptr, *to = nullptr;
      int64_t size = 0;
      if (table->KernelContext_GetInput(context, 0, &x) != nullptr) return;
      if (table->GetTensorTypeAndShape(x, &info) != nullptr) return;
      if (table->GetTensorShapeElementCount(info, &count) != nullptr) return;
      table->ReleaseTensorTypeAndShapeInfo(info);
      size = static_cast<int64_t>(count);
      if (table->KernelContext_GetOutput(context, 0, &size, 1, &y) != nullptr) return;
      if (table->GetTensorMutableData(const_cast<OrtValue*>(x), &from) != nullptr) return;
      if (table->GetTensorMutableData(y, &to) != nullptr) return;
      for (size_t i = 0; i < count; ++i)
        static_cast<float*>(to)[i] = 3 * static_cast<float*>(from)[i];
    };
  }
};

// What the library holds until it is unloaded.
struct Domain {
  const OrtApi* api = nullptr;
  OrtCustomOpDomain* made = nullptr;
  ~Domain() {
    if (made != nullptr) api->ReleaseCustomOpDomain(made);
  }
};

OrtStatus* add_triple(OrtSessionOptions* options, const OrtApiBase* base) {
  static const Triple triple;
  static Domain domain;
  domain.api = base->GetApi(12);
  if (domain.made == nullptr) {
    if (OrtStatus* const status = domain.api->CreateCustomOpDomain("test", &domain.made))
      return status;
    if (OrtStatus* const status = domain.api->CustomOpDomain_Add(domain.made, &triple))
      return status;
  }
  return domain.api->AddCustomOpDomain(options, domain.made);
}

}  // namespace

extern "C" {

#ifdef NO_OPERATORS
[[gnu::visibility("default")]] int something_else();
int something_else() { return add_triple(nullptr, nullptr) == nullptr; }
#else
[[gnu::visibility("default")]] OrtStatus* RegisterCustomOps(OrtSessionOptions* options,
                                                            const OrtApiBase* base);
OrtStatus* RegisterCustomOps(OrtSessionOptions* options, const OrtApiBase* base) {
  return add_triple(options, base);
}
#endif

}  // extern "C"
