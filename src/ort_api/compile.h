// ONNX Runtime's table for compiling models ahead of time (OrtCompileApi). Programs in C# read it
// as soon as they start, so it has to be there.
#pragma once

#include "ort_api/types.h"

namespace sardonyx::ort_api {

struct OrtModelCompilationOptions;

using OrtWriteBufferFunc = OrtStatus* (*)(void* state, const void* buffer, size_t bytes);
using OrtGetInitializerLocationFunc = OrtStatus* (*)(void* state, const char* name,
                                                     const OrtValue* value,
                                                     const OrtExternalInitializerInfo* before,
                                                     OrtExternalInitializerInfo** after);

struct OrtCompileApi {
  using Options = OrtModelCompilationOptions;
  void (*ReleaseModelCompilationOptions)(Options*);
  OrtStatus* (*CreateModelCompilationOptionsFromSessionOptions)(const OrtEnv*,
                                                                const OrtSessionOptions*,
                                                                Options**);
  OrtStatus* (*ModelCompilationOptions_SetInputModelPath)(Options*, const PathChar*);
  OrtStatus* (*ModelCompilationOptions_SetInputModelFromBuffer)(Options*, const void*, size_t);
  OrtStatus* (*ModelCompilationOptions_SetOutputModelPath)(Options*, const PathChar*);
  OrtStatus* (*ModelCompilationOptions_SetOutputModelExternalInitializersFile)(Options*,
                                                                               const PathChar*,
                                                                               size_t);
  OrtStatus* (*ModelCompilationOptions_SetOutputModelBuffer)(Options*, OrtAllocator*, void**,
                                                             size_t*);
  OrtStatus* (*ModelCompilationOptions_SetEpContextEmbedMode)(Options*, bool);
  OrtStatus* (*CompileModel)(const OrtEnv*, const Options*);
  // 23
  OrtStatus* (*ModelCompilationOptions_SetFlags)(Options*, uint32_t);
  OrtStatus* (*ModelCompilationOptions_SetEpContextBinaryInformation)(Options*, const PathChar*,
                                                                      const PathChar*);
  OrtStatus* (*ModelCompilationOptions_SetGraphOptimizationLevel)(Options*, GraphOptimizationLevel);
  OrtStatus* (*ModelCompilationOptions_SetOutputModelWriteFunc)(Options*, OrtWriteBufferFunc,
                                                                void*);
  OrtStatus* (*ModelCompilationOptions_SetOutputModelGetInitializerLocationFunc)(
      Options*, OrtGetInitializerLocationFunc, void*);
  // 24
  OrtStatus* (*ModelCompilationOptions_SetInputModel)(Options*, const OrtModel*);
  // 29
  OrtStatus* (*ModelCompilationOptions_SetWeightlessEnabled)(Options*, bool);
  // Of 31, whose names are not known here: they say so when called.
  OrtStatus* (*unnamed[3])();
};

const OrtCompileApi* served_compile_table();

}  // namespace sardonyx::ort_api
