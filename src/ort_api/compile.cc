// Compiling models ahead of time. No provider here does, so what is written is the model as it is.
#include "ort_api/compile.h"

#include <filesystem>

#include "ort_api/handles.h"

namespace sardonyx::ort_api {

struct OrtModelCompilationOptions {
  enum Flags : uint32_t { if_no_nodes_compiled = 1, if_output_file_exists = 2 };
  uint32_t refuse_flags = 0;
  std::optional<std::string> input_path;
  std::string_view input;   // the caller's, until the model is compiled
  std::string data_folder;  // of its external data
  // Where the model goes: at most one of a path, memory and a function.
  std::string output_path;
  OrtAllocator* allocator = nullptr;
  void** output = nullptr;
  size_t* output_bytes = nullptr;
  OrtWriteBufferFunc write = nullptr;
  void* write_state = nullptr;
  std::string data_file;  // of larger initializers
  size_t threshold = 0;

  void clear_output() {
    output_path.clear();
    allocator = nullptr, write = nullptr;
  }
};

namespace {

using CompileOptions = OrtModelCompilationOptions;

CompileOptions& compile_options_of(CompileOptions* options) {
  return required(options, "model_compile_options");
}

std::string path_to_compile(const PathChar* path, const char* name) {
  std::string found = path_of(path, name);
  if (found.empty()) refuse(ORT_INVALID_ARGUMENT, "the path '{}' is empty", name);
  return found;
}

void ReleaseModelCompilationOptions(CompileOptions* options) { delete options; }

OrtStatus* CreateModelCompilationOptionsFromSessionOptions(const OrtEnv* env,
                                                           const OrtSessionOptions* options,
                                                           CompileOptions** out) {
  return guarded([&] {
    required(env, "env"), required(options, "session_options");
    required(out, "out") = nullptr;
    auto made = std::make_unique<CompileOptions>();
    made->data_folder = options->entry("session.model_external_initializers_file_folder_path");
    *out = made.release();
  });
}

OrtStatus* ModelCompilationOptions_SetInputModelPath(CompileOptions* options,
                                                     const PathChar* path) {
  return guarded([&] {
    compile_options_of(options).input_path = path_to_compile(path, "input_model_path");
    options->input = {};
  });
}

OrtStatus* ModelCompilationOptions_SetInputModelFromBuffer(CompileOptions* options,
                                                           const void* data, size_t bytes) {
  return guarded([&] {
    const char& first = required(static_cast<const char*>(data), "input_model_data");
    if (bytes == 0) refuse(ORT_INVALID_ARGUMENT, "the model in memory has no bytes");
    compile_options_of(options).input = {&first, bytes};
    options->input_path.reset();
  });
}

OrtStatus* ModelCompilationOptions_SetInputModel(CompileOptions*, const OrtModel*) {
  return new_status(ORT_NOT_IMPLEMENTED,
                    "models of the model editor are for sessions, and can't be compiled");
}

OrtStatus* ModelCompilationOptions_SetOutputModelPath(CompileOptions* options,
                                                      const PathChar* path) {
  return guarded([&] {
    std::string name = path_to_compile(path, "output_model_path");
    compile_options_of(options).clear_output();
    options->output_path = std::move(name);
  });
}

OrtStatus* ModelCompilationOptions_SetOutputModelBuffer(CompileOptions* options,
                                                        OrtAllocator* allocator, void** buffer,
                                                        size_t* bytes) {
  return guarded([&] {
    required(allocator, "allocator"), required(bytes, "output_model_buffer_size_ptr");
    required(buffer, "output_model_buffer_ptr");
    compile_options_of(options).clear_output();
    options->allocator = allocator, options->output = buffer, options->output_bytes = bytes;
  });
}

OrtStatus* ModelCompilationOptions_SetOutputModelWriteFunc(CompileOptions* options,
                                                           OrtWriteBufferFunc write, void* state) {
  return guarded([&] {
    if (write == nullptr) refuse(ORT_INVALID_ARGUMENT, "'write_func' is null");
    compile_options_of(options).clear_output();
    options->write = write, options->write_state = state;
  });
}

OrtStatus* ModelCompilationOptions_SetOutputModelExternalInitializersFile(CompileOptions* options,
                                                                          const PathChar* path,
                                                                          size_t threshold) {
  return guarded([&] {
    compile_options_of(options).data_file = path_of(path, "external_initializers_file_path");
    options->threshold = threshold;
  });
}

OrtStatus* ModelCompilationOptions_SetOutputModelGetInitializerLocationFunc(
    CompileOptions*, OrtGetInitializerLocationFunc, void*) {
  return new_status(ORT_NOT_IMPLEMENTED,
                    "initializers are inside the model or in one file, "
                    "which SetOutputModelExternalInitializersFile() names");
}

OrtStatus* ModelCompilationOptions_SetFlags(CompileOptions* options, uint32_t flags) {
  return guarded([&] { compile_options_of(options).refuse_flags = flags; });
}

OrtStatus* ModelCompilationOptions_SetWeightlessEnabled(CompileOptions* options, bool enabled) {
  return guarded([&] {
    compile_options_of(options);
    if (enabled) refuse(ORT_NOT_IMPLEMENTED, "no provider here makes models without weights");
  });
}

// What is for providers that compile is taken, and decides nothing.
OrtStatus* ModelCompilationOptions_SetEpContextEmbedMode(CompileOptions* options, bool) {
  return guarded([&] { compile_options_of(options); });
}
OrtStatus* ModelCompilationOptions_SetEpContextBinaryInformation(CompileOptions* options,
                                                                 const PathChar*, const PathChar*) {
  return guarded([&] { compile_options_of(options); });
}
OrtStatus* ModelCompilationOptions_SetGraphOptimizationLevel(CompileOptions* options,
                                                             GraphOptimizationLevel) {
  return guarded([&] { compile_options_of(options); });
}

std::filesystem::path compile_path(const std::string& path) {
  return std::filesystem::path(std::u8string(path.begin(), path.end()));
}
std::string compile_text(const std::filesystem::path& path) {
  const std::u8string text = path.u8string();
  return {text.begin(), text.end()};
}

Model model_to_compile(const CompileOptions& options) {
  if (options.input_path) return Model(*options.input_path);
  if (options.input.empty()) refuse(ORT_INVALID_ARGUMENT, "no model was given to be compiled");
  return Model(options.input.data(), options.input.size(), options.data_folder);
}

// Without a path: "model_ctx.onnx" beside "model.onnx".
std::string compiled_path(const CompileOptions& options) {
  if (!options.output_path.empty()) return options.output_path;
  if (!options.input_path)
    refuse(ORT_FAIL, "a model from memory needs a place that it is written to");
  const std::filesystem::path source = compile_path(*options.input_path);
  return compile_text(source.parent_path() / source.stem()) + "_ctx.onnx";
}

void compile_to_file(const CompileOptions& options, const Model& model) {
  const std::string path = compiled_path(options);
  const std::filesystem::path file = compile_path(path);
  std::error_code ignored;
  const bool may_replace = (options.refuse_flags & CompileOptions::if_output_file_exists) == 0;
  if (!may_replace && std::filesystem::exists(file, ignored))
    refuse(ORT_FAIL, "the file '{}' exists already, and a flag asks to keep it", path);
  const std::filesystem::path data = compile_path(options.data_file);
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  SaveOptions save;
  save.external_data = compile_text(data.is_absolute() ? data.lexically_relative(folder) : data);
  save.threshold = options.threshold;
  save.embed = save.external_data.empty();
  save.form = ModelForm::binary;
  model.save(path, save);
}

OrtStatus* CompileModel(const OrtEnv* env, const CompileOptions* options) {
  return guarded([&] {
    required(env, "env");
    const CompileOptions& asked = required(options, "model_options");
    const Model model = model_to_compile(asked);
    if ((asked.refuse_flags & CompileOptions::if_no_nodes_compiled) != 0)
      refuse(ORT_FAIL, "no provider here compiles nodes, and a flag asks for one at least");
    if (asked.allocator == nullptr && asked.write == nullptr) return compile_to_file(asked, model);
    if (!asked.data_file.empty())
      refuse(ORT_INVALID_ARGUMENT, "initializers in a file of their own need a model in a file");
    const std::string bytes = model.to_bytes();
    if (asked.write != nullptr) {
      throw_status(asked.write(asked.write_state, bytes.data(), bytes.size()));
    } else {
      *asked.output = given_memory(asked.allocator, bytes.size());
      std::memcpy(*asked.output, bytes.data(), bytes.size());
      *asked.output_bytes = bytes.size();
    }
  });
}

OrtStatus* unknown_compile_function() {
  return new_status(ORT_NOT_IMPLEMENTED,
                    "Sardonyx does not have a function that version 31 added for compiling");
}

}  // namespace

const OrtCompileApi* served_compile_table() {
  static const OrtCompileApi table{
      ReleaseModelCompilationOptions,
      CreateModelCompilationOptionsFromSessionOptions,
      ModelCompilationOptions_SetInputModelPath,
      ModelCompilationOptions_SetInputModelFromBuffer,
      ModelCompilationOptions_SetOutputModelPath,
      ModelCompilationOptions_SetOutputModelExternalInitializersFile,
      ModelCompilationOptions_SetOutputModelBuffer,
      ModelCompilationOptions_SetEpContextEmbedMode,
      CompileModel,
      ModelCompilationOptions_SetFlags,
      ModelCompilationOptions_SetEpContextBinaryInformation,
      ModelCompilationOptions_SetGraphOptimizationLevel,
      ModelCompilationOptions_SetOutputModelWriteFunc,
      ModelCompilationOptions_SetOutputModelGetInitializerLocationFunc,
      ModelCompilationOptions_SetInputModel,
      ModelCompilationOptions_SetWeightlessEnabled,
      {unknown_compile_function, unknown_compile_function, unknown_compile_function}};
  return &table;
}

}  // namespace sardonyx::ort_api
