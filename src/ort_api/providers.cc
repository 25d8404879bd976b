// Execution providers by name. There is one, the processor's; what is for others is refused, with
// the codes of an ONNX Runtime that was built without them.
#include <algorithm>
#include <array>

#include "ort_api/compile.h"
#include "ort_api/handles.h"

namespace sardonyx::ort_api {

namespace {

constexpr std::string_view available_provider = "CPUExecutionProvider";

// An array and a text of new[].
OrtStatus* GetAvailableProviders(char*** out, int* count) {
  return guarded([&] {
    required(out, "out_ptr"), required(count, "provider_length");
    auto name = std::make_unique<char[]>(available_provider.size() + 1);
    std::copy(available_provider.begin(), available_provider.end(), name.get());
    *out = new char*[1];
    (*out)[0] = name.release();
    *count = 1;
  });
}

OrtStatus* ReleaseAvailableProviders(char** names, int count) {
  for (int i = 0; names != nullptr && i < count; ++i) delete[] names[i];
  delete[] names;
  return nullptr;
}

OrtStatus* SessionOptionsAppendExecutionProvider(OrtSessionOptions* options, const char* provider,
                                                 const char* const* keys, const char* const* values,
                                                 size_t count) {
  return guarded([&] {
    required(options, "options");
    const std::string name = text_of(provider, "provider_name");
    items(keys, count, "provider_options_keys"), items(values, count, "provider_options_values");
    for (size_t i = 0; i < count; ++i)
      if (required(keys[i], "provider_options_keys") == 0 ||
          required(values[i], "provider_options_values") == 0)
        refuse(ORT_INVALID_ARGUMENT, "option {} of the provider '{}' has an empty key or value", i,
               name);
    if (name != "CPU" && name != available_provider)
      refuse(ORT_INVALID_ARGUMENT,
             "there is no execution provider '{}': Sardonyx computes on the processor, which is "
             "'CPU' or '{}'",
             name, available_provider);
  });
}

OrtStatus* GetExecutionProviderApi(const char* provider, uint32_t, const void** out) {
  return guarded([&] {
    required(out, "provider_api") = nullptr;
    refuse(ORT_INVALID_ARGUMENT, "the execution provider '{}' has no functions of its own",
           text_of(provider, "provider_name"));
  });
}

OrtStatus* refused_provider(const char* name) {
  return guarded([&] {
    refuse(ORT_FAIL, "there is no execution provider for {}: Sardonyx computes on the processor",
           name);
  });
}

// Makes functions of the table, whatever they take, refuse that provider.
template <const auto& name, class... Arguments>
void set_refusing(OrtStatus* (*&function)(Arguments...)) {
  function = [](Arguments...) { return refused_provider(name); };
}
template <const auto& name, class... Functions>
void set_all_refusing(Functions&... functions) {
  (set_refusing<name>(functions), ...);
}

constexpr char cann[] = "CANN", cuda[] = "CUDA", dnnl[] = "oneDNN", migraphx[] = "MIGraphX",
               openvino[] = "OpenVINO", rocm[] = "ROCm", tensorrt[] = "TensorRT",
               vitisai[] = "Vitis AI";

// Nothing was made that could be released.
template <class Options>
void release_no_options(Options*) {}

}  // namespace

void add_providers(OrtApi& table) {
  table.GetAvailableProviders = GetAvailableProviders;
  table.ReleaseAvailableProviders = ReleaseAvailableProviders;
  table.SessionOptionsAppendExecutionProvider = SessionOptionsAppendExecutionProvider;
  table.GetExecutionProviderApi = GetExecutionProviderApi;

  set_all_refusing<cann>(table.SessionOptionsAppendExecutionProvider_CANN,
                         table.CreateCANNProviderOptions, table.UpdateCANNProviderOptions,
                         table.GetCANNProviderOptionsAsString);
  set_all_refusing<cuda>(table.SessionOptionsAppendExecutionProvider_CUDA,
                         table.SessionOptionsAppendExecutionProvider_CUDA_V2,
                         table.CreateCUDAProviderOptions, table.UpdateCUDAProviderOptions,
                         table.UpdateCUDAProviderOptionsWithValue,
                         table.GetCUDAProviderOptionsByName, table.GetCUDAProviderOptionsAsString);
  set_all_refusing<dnnl>(table.SessionOptionsAppendExecutionProvider_Dnnl,
                         table.CreateDnnlProviderOptions, table.UpdateDnnlProviderOptions,
                         table.GetDnnlProviderOptionsAsString);
  set_all_refusing<migraphx>(table.SessionOptionsAppendExecutionProvider_MIGraphX);
  set_all_refusing<openvino>(table.SessionOptionsAppendExecutionProvider_OpenVINO,
                             table.SessionOptionsAppendExecutionProvider_OpenVINO_V2);
  set_all_refusing<rocm>(table.SessionOptionsAppendExecutionProvider_ROCM,
                         table.CreateROCMProviderOptions, table.UpdateROCMProviderOptions,
                         table.GetROCMProviderOptionsAsString);
  set_all_refusing<tensorrt>(
      table.SessionOptionsAppendExecutionProvider_TensorRT,
      table.SessionOptionsAppendExecutionProvider_TensorRT_V2, table.CreateTensorRTProviderOptions,
      table.UpdateTensorRTProviderOptions, table.UpdateTensorRTProviderOptionsWithValue,
      table.GetTensorRTProviderOptionsByName, table.GetTensorRTProviderOptionsAsString);
  set_all_refusing<vitisai>(table.SessionOptionsAppendExecutionProvider_VitisAI);

  table.ReleaseCANNProviderOptions = release_no_options;
  table.ReleaseCUDAProviderOptions = release_no_options;
  table.ReleaseDnnlProviderOptions = release_no_options;
  table.ReleaseROCMProviderOptions = release_no_options;
  table.ReleaseTensorRTProviderOptions = release_no_options;

  // Null says to callers that these are not there; the table for compiling they take for granted.
  table.GetCompileApi = served_compile_table;
  table.GetTrainingApi = [](uint32_t) -> const OrtTrainingApi* { return nullptr; };
  table.GetEpApi = []() -> const OrtEpApi* { return nullptr; };
  table.GetInteropApi = []() -> const OrtInteropApi* { return nullptr; };
  table.GetExperimentalFunction = [](const char*) -> OrtExperimentalFnPtr { return nullptr; };
}

}  // namespace sardonyx::ort_api
