// What a kernel of the caller's sees while it runs.
#include <algorithm>

#include "ort_api/kernels.h"

namespace sardonyx::ort_api {

namespace {

// A view, which needs no owner as long as the run; strings, of which there are no views, are
// copied.
Tensor seen_input(const CustomTensor& input) {
  if (input.type == ElementType::string) return copy_of_tensor(input);
  return Tensor::view(input.type, Shape(input.shape.begin(), input.shape.end()), input.data,
                      static_cast<size_t>(byte_size(input.type, input.count)));
}

OrtStatus* KernelContext_GetInputCount(const OrtKernelContext* context, size_t* out) {
  return guarded([&] { required(out, "out") = required(context, "context").inputs.size(); });
}
OrtStatus* KernelContext_GetOutputCount(const OrtKernelContext* context, size_t* out) {
  return guarded([&] { required(out, "out") = required(context, "context").outputs.size(); });
}
OrtStatus* KernelContext_GetInput(const OrtKernelContext* context, size_t index,
                                  const OrtValue** out) {
  return guarded([&] {
    const auto& inputs = required(context, "context").inputs;
    required(out, "out") = index < inputs.size() && inputs[index] ? &*inputs[index] : nullptr;
  });
}
OrtStatus* KernelContext_GetOutput(OrtKernelContext* context, size_t index, const int64_t* dims,
                                   size_t count, OrtValue** out) {
  return guarded([&] {
    required(out, "out") = required(context, "context").output(index, shape_of(dims, count));
  });
}
// Outputs that the caller of Run() has memory for are filled when the run ends.
OrtStatus* KernelContext_GetPreallocatedOutput(const OrtKernelContext* context, size_t,
                                               OrtValue** out) {
  return guarded([&] {
    required(context, "context");
    required(out, "out") = nullptr;
  });
}

OrtStatus* KernelContext_ParallelFor(const OrtKernelContext* context,
                                     void (*function)(void*, size_t), size_t total, size_t batches,
                                     void* user) {
  return guarded([&] {
    const KernelContext& run = required(context, "context").run;
    if (total == 0) return;
    if (function == nullptr) refuse(ORT_INVALID_ARGUMENT, "'fn' is null");
    if (total > INT64_MAX / 2) refuse(ORT_INVALID_ARGUMENT, "{} calls are too many", total);
    constexpr size_t max_pieces = 64;  // where the caller does not say how many
    const size_t pieces = std::min(total, batches == 0 ? max_pieces : batches);
    run.parallel_for(static_cast<int64_t>(total),
                     static_cast<int64_t>((total + pieces - 1) / pieces),
                     [&](int64_t begin, int64_t end) {
                       for (int64_t i = begin; i < end; ++i) function(user, static_cast<size_t>(i));
                     });
  });
}

OrtStatus* KernelContext_GetAllocator(const OrtKernelContext* context, const OrtMemoryInfo* info,
                                      OrtAllocator** out) {
  return guarded([&] {
    required(context, "context");
    require_cpu(required(info, "mem_info"));
    required(out, "out") = default_allocator();
  });
}
// Callers release it by that allocator.
OrtStatus* KernelContext_GetScratchBuffer(const OrtKernelContext* context,
                                          const OrtMemoryInfo* info, size_t bytes, void** out) {
  return guarded([&] {
    required(context, "context");
    require_cpu(required(info, "mem_info"));
    void*& to = required(out, "out");
    to = bytes == 0 ? nullptr : given_memory(default_allocator(), bytes);
  });
}

// What only devices have.
OrtStatus* KernelContext_GetGPUComputeStream(const OrtKernelContext* context, void** out) {
  return guarded([&] {
    required(context, "context");
    required(out, "out") = nullptr;
  });
}
OrtStatus* KernelContext_GetSyncStream(const OrtKernelContext* context, OrtSyncStream** out) {
  return guarded([&] {
    required(context, "context");
    required(out, "out") = nullptr;
  });
}
OrtStatus* KernelContext_GetResource(const OrtKernelContext* context, int version, int id,
                                     void** out) {
  return guarded([&] {
    required(context, "context");
    required(out, "resource") = nullptr;
    refuse(ORT_INVALID_ARGUMENT,
           "there is no resource {} (version {}): kernels run on the processor", id, version);
  });
}

// --- Messages -------------------------------------------------------------------------------

OrtStatus* KernelContext_GetLogger(const OrtKernelContext* context, const OrtLogger** out) {
  return guarded([&] { required(out, "logger") = &required(context, "context").node.logger; });
}
OrtStatus* Logger_LogMessage(const OrtLogger* logger, OrtLoggingLevel severity, const char* message,
                             const PathChar* file, int line, const char* function) {
  return guarded([&] {
    const OrtLogger& to = required(logger, "logger");
    const std::string text = text_of(message, "message");
    if (severity < to.level) return;
    const std::string place =
        fmt::format("{}:{} {}", file == nullptr ? "" : path_of(file, "file_path"), line,
                    function == nullptr ? "" : function);
    to.tell(severity, "onnxruntime", place.c_str(), text);
  });
}
OrtStatus* Logger_GetLoggingSeverityLevel(const OrtLogger* logger, OrtLoggingLevel* out) {
  return guarded([&] { required(out, "out") = required(logger, "logger").level; });
}

}  // namespace

OrtKernelContext::OrtKernelContext(KernelContext& of, const KernelNode& node_)
    : run(of),
      node(node_),
      inputs(node_.inputs.size()),
      outputs(node_.outputs.size()),
      made_(node_.outputs.size()) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int index = static_cast<int>(i);
    if (run.has_input(index)) inputs[i].emplace(OrtValue{seen_input(run.input(index))});
  }
}

OrtValue* OrtKernelContext::output(size_t index, Shape shape) {
  if (index >= outputs.size() || !node.outputs[index].is_there) return nullptr;
  std::optional<OrtValue>& output = outputs[index];
  if (output) {
    const Shape& known = output->value.tensor().shape();
    if (known != shape)
      refuse(ORT_INVALID_ARGUMENT, "output {} was asked for with shape {} and is asked for with {}",
             index, to_string(known), to_string(shape));
    return &*output;
  }
  CustomTensor& made = made_[index];
  const bool is_used = run.has_output(static_cast<int>(index));
  if (is_used) made = run.allocate(static_cast<int>(index), shape);
  if (!is_used || made.type == ElementType::string) {
    output.emplace(OrtValue{Tensor(node.outputs[index].type, std::move(shape))});
  } else {
    output.emplace(OrtValue{Tensor::view(made.type, std::move(shape), made.data,
                                         static_cast<size_t>(byte_size(made.type, made.count)))});
  }
  return &*output;
}

void OrtKernelContext::finish() {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i] || made_[i].type != ElementType::string) continue;
    const auto texts = outputs[i]->value.tensor().elements<std::string>();
    const auto to = made_[i].mutable_elements<std::string>();
    for (size_t k = 0; k < to.size(); ++k) to[k] = std::move(const_cast<std::string&>(texts[k]));
  }
}

void add_kernels(OrtApi& table) {
  add_attributes(table);
  add_kernel_info(table);
  add_shape_contexts(table);
  table.KernelContext_GetInputCount = KernelContext_GetInputCount;
  table.KernelContext_GetOutputCount = KernelContext_GetOutputCount;
  table.KernelContext_GetInput = KernelContext_GetInput;
  table.KernelContext_GetOutput = KernelContext_GetOutput;
  table.KernelContext_GetPreallocatedOutput = KernelContext_GetPreallocatedOutput;
  table.KernelContext_ParallelFor = KernelContext_ParallelFor;
  table.KernelContext_GetAllocator = KernelContext_GetAllocator;
  table.KernelContext_GetScratchBuffer = KernelContext_GetScratchBuffer;
  table.KernelContext_GetGPUComputeStream = KernelContext_GetGPUComputeStream;
  table.KernelContext_GetSyncStream = KernelContext_GetSyncStream;
  table.KernelContext_GetResource = KernelContext_GetResource;
  table.KernelContext_GetLogger = KernelContext_GetLogger;
  table.Logger_LogMessage = Logger_LogMessage;
  table.Logger_GetLoggingSeverityLevel = Logger_GetLoggingSeverityLevel;
}

}  // namespace sardonyx::ort_api
