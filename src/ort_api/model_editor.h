// ONNX Runtime's table for building models from nodes, and for adding nodes to those of files
// (OrtModelEditorApi).
#pragma once

#include "ort_api/types.h"

namespace sardonyx::ort_api {

struct OrtModelEditorApi {
  // Types of inputs and outputs.
  OrtStatus* (*CreateTensorTypeInfo)(const OrtTensorTypeAndShapeInfo*, OrtTypeInfo**);
  OrtStatus* (*CreateSparseTensorTypeInfo)(const OrtTensorTypeAndShapeInfo*, OrtTypeInfo**);
  OrtStatus* (*CreateMapTypeInfo)(ONNXTensorElementDataType, const OrtTypeInfo*, OrtTypeInfo**);
  OrtStatus* (*CreateSequenceTypeInfo)(const OrtTypeInfo*, OrtTypeInfo**);
  OrtStatus* (*CreateOptionalTypeInfo)(const OrtTypeInfo*, OrtTypeInfo**);
  OrtStatus* (*CreateValueInfo)(const char*, const OrtTypeInfo*, OrtValueInfo**);
  // Models. What is added to something belongs to it from then on.
  OrtStatus* (*CreateNode)(const char* type, const char* domain, const char* name,
                           const char* const* inputs, size_t input_count,
                           const char* const* outputs, size_t output_count, OrtOpAttr** attributes,
                           size_t attribute_count, OrtNode**);
  OrtStatus* (*CreateGraph)(OrtGraph**);
  OrtStatus* (*SetGraphInputs)(OrtGraph*, OrtValueInfo**, size_t);
  OrtStatus* (*SetGraphOutputs)(OrtGraph*, OrtValueInfo**, size_t);
  OrtStatus* (*AddInitializerToGraph)(OrtGraph*, const char*, OrtValue*, bool is_external);
  OrtStatus* (*AddNodeToGraph)(OrtGraph*, OrtNode*);
  OrtStatus* (*CreateModel)(const char* const* domains, const int* versions, size_t, OrtModel**);
  OrtStatus* (*AddGraphToModel)(OrtModel*, OrtGraph*);
  // Sessions.
  OrtStatus* (*CreateSessionFromModel)(const OrtEnv*, const OrtModel*, const OrtSessionOptions*,
                                       OrtSession**);
  OrtStatus* (*CreateModelEditorSession)(const OrtEnv*, const PathChar*, const OrtSessionOptions*,
                                         OrtSession**);
  OrtStatus* (*CreateModelEditorSessionFromArray)(const OrtEnv*, const void*, size_t,
                                                  const OrtSessionOptions*, OrtSession**);
  OrtStatus* (*SessionGetOpsetForDomain)(const OrtSession*, const char*, int*);
  OrtStatus* (*ApplyModelToModelEditorSession)(OrtSession*, OrtModel*);
  OrtStatus* (*FinalizeModelEditorSession)(OrtSession*, const OrtSessionOptions*,
                                           OrtPrepackedWeightsContainer*);
};

}  // namespace sardonyx::ort_api
