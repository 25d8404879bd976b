// The types of ONNX Runtime's C interface, as its binary interface has them: handles that callers
// know by pointers alone, numbers, and the structs that callers fill or read. Names, numbers and
// the order of fields are ONNX Runtime's (onnxruntime_c_api.h); handles.h has what handles hold.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sardonyx::ort_api {

// Paths: UTF-8, but for Windows.
#ifdef _WIN32
using PathChar = wchar_t;
#else
using PathChar = char;
#endif

// --- Numbers --------------------------------------------------------------------------------

enum OrtErrorCode : int {
  ORT_OK,
  ORT_FAIL,
  ORT_INVALID_ARGUMENT,
  ORT_NO_SUCHFILE,
  ORT_NO_MODEL,
  ORT_ENGINE_ERROR,
  ORT_RUNTIME_EXCEPTION,
  ORT_INVALID_PROTOBUF,
  ORT_MODEL_LOADED,
  ORT_NOT_IMPLEMENTED,
  ORT_INVALID_GRAPH,
  ORT_EP_FAIL,
  ORT_MODEL_LOAD_CANCELED,
  ORT_MODEL_REQUIRES_COMPILATION,
  ORT_NOT_FOUND,
};

// Element types up to 23 have the standard's numbers; element_type_of() of handles.h has the rest.
enum ONNXTensorElementDataType : int {
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED = 0,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT = 1,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 = 7,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING = 8,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT4E2M1 = 23,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT2 = 24,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2 = 25,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0 = 26,
};

enum ONNXType : int {
  ONNX_TYPE_UNKNOWN,
  ONNX_TYPE_TENSOR,
  ONNX_TYPE_SEQUENCE,
  ONNX_TYPE_MAP,
  ONNX_TYPE_OPAQUE,
  ONNX_TYPE_SPARSETENSOR,
  ONNX_TYPE_OPTIONAL,
};

enum OrtSparseFormat : int {
  ORT_SPARSE_UNDEFINED = 0,
  ORT_SPARSE_COO = 1,
  ORT_SPARSE_CSRC = 2,
  ORT_SPARSE_BLOCK_SPARSE = 4,
};

enum OrtSparseIndicesFormat : int {
  ORT_SPARSE_COO_INDICES,
  ORT_SPARSE_CSR_INNER_INDICES,
  ORT_SPARSE_CSR_OUTER_INDICES,
  ORT_SPARSE_BLOCK_SPARSE_INDICES,
};

enum OrtLoggingLevel : int {
  ORT_LOGGING_LEVEL_VERBOSE,
  ORT_LOGGING_LEVEL_INFO,
  ORT_LOGGING_LEVEL_WARNING,
  ORT_LOGGING_LEVEL_ERROR,
  ORT_LOGGING_LEVEL_FATAL,
};

enum OrtOpAttrType : int {
  ORT_OP_ATTR_UNDEFINED,
  ORT_OP_ATTR_INT,
  ORT_OP_ATTR_INTS,
  ORT_OP_ATTR_FLOAT,
  ORT_OP_ATTR_FLOATS,
  ORT_OP_ATTR_STRING,
  ORT_OP_ATTR_STRINGS,
  ORT_OP_ATTR_GRAPH,
  ORT_OP_ATTR_TENSOR,
};

enum GraphOptimizationLevel : int {
  ORT_DISABLE_ALL = 0,
  ORT_ENABLE_BASIC = 1,
  ORT_ENABLE_EXTENDED = 2,
  ORT_ENABLE_LAYOUT = 3,
  ORT_ENABLE_ALL = 99,
};

enum ExecutionMode : int { ORT_SEQUENTIAL, ORT_PARALLEL };
enum OrtLanguageProjection : int { ORT_PROJECTION_C = 0 };

enum OrtAllocatorType : int {
  OrtInvalidAllocator = -1,
  OrtDeviceAllocator = 0,
  OrtArenaAllocator = 1,
  OrtReadOnlyAllocator = 2,
};

enum OrtMemType : int {
  OrtMemTypeCPUInput = -2,
  OrtMemTypeCPUOutput = -1,
  OrtMemTypeDefault = 0,
};

enum OrtDeviceMemoryType : int {
  OrtDeviceMemoryType_DEFAULT = 0,
  OrtDeviceMemoryType_HOST_ACCESSIBLE = 5,
};

enum OrtMemoryInfoDeviceType : int {
  OrtMemoryInfoDeviceType_CPU,
  OrtMemoryInfoDeviceType_GPU,
  OrtMemoryInfoDeviceType_FPGA,
  OrtMemoryInfoDeviceType_NPU,
};

enum OrtHardwareDeviceType : int {
  OrtHardwareDeviceType_CPU,
  OrtHardwareDeviceType_GPU,
  OrtHardwareDeviceType_NPU,
};

enum OrtExecutionProviderDevicePolicy : int { OrtExecutionProviderDevicePolicy_DEFAULT };
enum OrtCompiledModelCompatibility : int { OrtCompiledModelCompatibility_EP_NOT_APPLICABLE };

enum OrtCustomOpInputOutputCharacteristic : int {
  INPUT_OUTPUT_REQUIRED,
  INPUT_OUTPUT_OPTIONAL,
  INPUT_OUTPUT_VARIADIC,
};

// --- Handles --------------------------------------------------------------------------------

struct OrtArenaCfg;
struct OrtCustomOpDomain;
struct OrtDeviceEpIncompatibilityDetails;
struct OrtEnv;
struct OrtEpAssignedNode;
struct OrtEpAssignedSubgraph;
struct OrtEpDevice;
struct OrtExternalInitializerInfo;
struct OrtGraph;
struct OrtHardwareDevice;
struct OrtIoBinding;
struct OrtKernelContext;
struct OrtKernelInfo;
struct OrtKeyValuePairs;
struct OrtLogger;
struct OrtLoraAdapter;
struct OrtMapTypeInfo;
struct OrtMemoryInfo;
struct OrtModel;
struct OrtModelMetadata;
struct OrtNode;
struct OrtOp;
struct OrtOpAttr;
struct OrtOptionalTypeInfo;
struct OrtPrepackedWeightsContainer;
struct OrtRunOptions;
struct OrtSequenceTypeInfo;
struct OrtSession;
struct OrtSessionOptions;
struct OrtShapeInferContext;
struct OrtStatus;
struct OrtSyncStream;
struct OrtTensorTypeAndShapeInfo;
struct OrtThreadingOptions;
struct OrtTypeInfo;
struct OrtValue;
struct OrtValueInfo;

// Options of execution providers that are not there.
struct OrtCANNProviderOptions;
struct OrtCUDAProviderOptions;
struct OrtCUDAProviderOptionsV2;
struct OrtDnnlProviderOptions;
struct OrtMIGraphXProviderOptions;
struct OrtOpenVINOProviderOptions;
struct OrtROCMProviderOptions;
struct OrtTensorRTProviderOptions;
struct OrtTensorRTProviderOptionsV2;

// Further tables, which are not served.
struct OrtCompileApi;
struct OrtEpApi;
struct OrtInteropApi;
struct OrtModelEditorApi;
struct OrtModelPackageApi;
struct OrtTrainingApi;

// --- Functions of the caller's --------------------------------------------------------------

using OrtLoggingFunction = void (*)(void* param, OrtLoggingLevel severity, const char* category,
                                    const char* logid, const char* code_location,
                                    const char* message);
// With outputs and no status, or with a status, which the callee releases.
using RunAsyncCallbackFn = void (*)(void* user_data, OrtValue** outputs, size_t num_outputs,
                                    OrtStatus* status);
using OrtCustomThreadHandle = const void*;
using OrtCustomCreateThreadFn = OrtCustomThreadHandle (*)(void* options, void (*worker)(void*),
                                                          void* worker_parameter);
using OrtCustomJoinThreadFn = void (*)(OrtCustomThreadHandle thread);
using EpSelectionDelegate = OrtStatus* (*)(const OrtEpDevice** devices, size_t count,
                                           const OrtKeyValuePairs* model_metadata,
                                           const OrtKeyValuePairs* runtime_metadata,
                                           const OrtEpDevice** selected, size_t most,
                                           size_t* selected_count, void* state);
using OrtExperimentalFnPtr = void (*)();
using OrtReadNamedBufferFunc = void (*)();  // of providers that are not there

// --- Structs that both sides see ------------------------------------------------------------

// Memory, of ours or of the caller's. What stands below a line is there from that version on.
struct OrtAllocator {
  uint32_t version;
  void* (*Alloc)(OrtAllocator* self, size_t size);
  void (*Free)(OrtAllocator* self, void* memory);
  const OrtMemoryInfo* (*Info)(const OrtAllocator* self);
  // 18
  void* (*Reserve)(OrtAllocator* self, size_t size);
  // 23
  OrtStatus* (*GetStats)(const OrtAllocator* self, OrtKeyValuePairs** out);
  void* (*AllocOnStream)(OrtAllocator* self, size_t size, OrtSyncStream* stream);
  // 25
  OrtStatus* (*Shrink)(OrtAllocator* self);
};

struct OrtApi;

// An operator of the caller's. What stands below a line is there from that version on.
struct OrtCustomOp {
  uint32_t version;
  void* (*CreateKernel)(const OrtCustomOp* self, const OrtApi* api, const OrtKernelInfo* info);
  const char* (*GetName)(const OrtCustomOp* self);
  const char* (*GetExecutionProviderType)(const OrtCustomOp* self);
  ONNXTensorElementDataType (*GetInputType)(const OrtCustomOp* self, size_t index);
  size_t (*GetInputTypeCount)(const OrtCustomOp* self);
  ONNXTensorElementDataType (*GetOutputType)(const OrtCustomOp* self, size_t index);
  size_t (*GetOutputTypeCount)(const OrtCustomOp* self);
  void (*KernelCompute)(void* kernel, OrtKernelContext* context);
  void (*KernelDestroy)(void* kernel);
  OrtCustomOpInputOutputCharacteristic (*GetInputCharacteristic)(const OrtCustomOp* self,
                                                                 size_t index);
  OrtCustomOpInputOutputCharacteristic (*GetOutputCharacteristic)(const OrtCustomOp* self,
                                                                  size_t index);
  // 13
  OrtMemType (*GetInputMemoryType)(const OrtCustomOp* self, size_t index);
  // 14
  int (*GetVariadicInputMinArity)(const OrtCustomOp* self);
  int (*GetVariadicInputHomogeneity)(const OrtCustomOp* self);
  int (*GetVariadicOutputMinArity)(const OrtCustomOp* self);
  int (*GetVariadicOutputHomogeneity)(const OrtCustomOp* self);
  // 16
  OrtStatus* (*CreateKernelV2)(const OrtCustomOp* self, const OrtApi* api,
                               const OrtKernelInfo* info, void** kernel);
  OrtStatus* (*KernelComputeV2)(void* kernel, OrtKernelContext* context);
  // 17
  OrtStatus* (*InferOutputShapeFn)(const OrtCustomOp* self, OrtShapeInferContext* context);
  int (*GetStartVersion)(const OrtCustomOp* self);
  int (*GetEndVersion)(const OrtCustomOp* self);
  // 18
  size_t (*GetMayInplace)(int** inputs, int** outputs);
  void (*ReleaseMayInplace)(int* inputs, int* outputs);
  size_t (*GetAliasMap)(int** inputs, int** outputs);
  void (*ReleaseAliasMap)(int* inputs, int* outputs);
};

struct OrtEnvCreationOptions {  // since 24
  uint32_t version;
  int32_t logging_severity_level;
  const char* log_id;
  OrtLoggingFunction custom_logging_function;
  void* custom_logging_param;
  const OrtThreadingOptions* threading_options;
  const OrtKeyValuePairs* config_entries;
};

struct OrtThreadPoolCallbacksConfig {  // since 25
  uint32_t version;
  void* (*on_enqueue)(void* user);
  void (*on_start_work)(void* user, void* data);
  void (*on_stop_work)(void* user, void* data);
  void (*on_abandon)(void* user, void* data);
  void* user_context;
};

// --- The tables -----------------------------------------------------------------------------

// The newest version of the table that is served, and the release that has it.
inline constexpr uint32_t api_version = 31;
inline constexpr const char* release = "1.31.1";

struct OrtApi {
#define FUNCTION(result, name, parameters) result(*name) parameters;
#include "ort_api/functions.inc"
#undef FUNCTION
};

struct OrtApiBase {
  const OrtApi* (*GetApi)(uint32_t version);
  const char* (*GetVersionString)();
};

}  // namespace sardonyx::ort_api
