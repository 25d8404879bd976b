// What the shared library exports.
#include "ort_api/handles.h"

#ifdef _WIN32
#define EXPORTED extern "C" __declspec(dllexport)
#else
#define EXPORTED extern "C" __attribute__((visibility("default")))
#endif

EXPORTED const sardonyx::ort_api::OrtApiBase* OrtGetApiBase() {
  return sardonyx::ort_api::served_base();
}

// The processor is what a session runs on, whether it is named or not.
EXPORTED sardonyx::ort_api::OrtStatus* OrtSessionOptionsAppendExecutionProvider_CPU(
    sardonyx::ort_api::OrtSessionOptions* options, int /*use_arena*/) {
  using namespace sardonyx::ort_api;
  return guarded([&] { required(options, "options"); });
}
