// What the handles of ONNX Runtime's C interface hold, how errors become statuses, and what the
// files of this folder share. Each of them ends with a function that puts its functions into the
// table; what no file has stays a function that says that it is not there (table.cc).
//
// All is built on the public headers of Sardonyx, but for the model editor's sessions. Callers that
// break the rules (null where a pointer must be, kinds that don't fit) get a status with
// ORT_INVALID_ARGUMENT.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ort_api/types.h"
#include "sardonyx/allocator.h"
#include "sardonyx/binding.h"
#include "sardonyx/custom.h"
#include "sardonyx/profile.h"
#include "sardonyx/session.h"

namespace sardonyx::ort_api {

// --- Statuses -------------------------------------------------------------------------------

struct OrtStatus {
  OrtErrorCode code;
  std::string message;
};

// What guarded() makes a status of, besides Error.
struct Failure {
  OrtErrorCode code;
  std::string message;
};

template <class... Args>
[[noreturn]] void refuse(OrtErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Failure{code, fmt::format(format, std::forward<Args>(args)...)};
}

// Never throws: where memory is short the status says that.
OrtStatus* new_status(OrtErrorCode code, std::string_view message) noexcept;
void ReleaseStatus(OrtStatus* status);
// Of the exception that is being handled.
OrtStatus* status_of_exception() noexcept;
OrtErrorCode code_of(ErrorCode code);
// What code_of() gives this number back for: codes that Sardonyx does not have, too, pass through a
// run as they are.
ErrorCode error_code_of(OrtErrorCode code);

// Calls what does the work; null where it throws nothing.
template <class Call>
OrtStatus* guarded(const Call& call) noexcept {
  try {
    call();
    return nullptr;
  } catch (...) {
    return status_of_exception();
  }
}

// The failure that a caller's function tells of by a status, which is released; nothing for null.
void throw_status(OrtStatus* status);

template <class T>
T& required(T* argument, const char* name) {
  if (argument == nullptr) refuse(ORT_INVALID_ARGUMENT, "'{}' is null", name);
  return *argument;
}

// Gives the caller what was made for it, or destroys it where there is no place for it.
template <class T, class Made>
void give(T** place, const char* name, Made* made) {
  std::unique_ptr<Made> held(made);
  T*& to = required(place, name);
  to = held.release();
}

// Callers' arrays, which may be null where they have no items.
template <class T>
T* items(T* first, size_t count, const char* name) {
  if (count > 0 && first == nullptr)
    refuse(ORT_INVALID_ARGUMENT, "'{}' is null, and {} items were said to be there", name, count);
  return first;
}

inline std::string text_of(const char* text, const char* name) { return &required(text, name); }
// A path as UTF-8.
std::string path_of(const PathChar* path, const char* name);
// The other way round.
std::basic_string<PathChar> native_path(const std::string& path);

// --- Memory ---------------------------------------------------------------------------------

struct OrtMemoryInfo {
  std::string name = "Cpu";
  OrtAllocatorType allocator_type = OrtDeviceAllocator;
  int id = 0;
  OrtMemType mem_type = OrtMemTypeDefault;
  OrtMemoryInfoDeviceType device_type = OrtMemoryInfoDeviceType_CPU;
  OrtDeviceMemoryType device_mem_type = OrtDeviceMemoryType_DEFAULT;
  uint32_t vendor = 0;
  size_t alignment = 0;

  friend bool operator==(const OrtMemoryInfo&, const OrtMemoryInfo&) = default;
};

// That of the processor: what all values report.
const OrtMemoryInfo& cpu_memory();
// Refuses memory of other devices, which can't be read here.
void require_cpu(const OrtMemoryInfo& info);

OrtAllocator* default_allocator();
// A text, or `bytes` bytes, in memory of the caller's allocator. Refuses with ORT_FAIL where it
// gives none.
char* given_text(OrtAllocator* allocator, std::string_view text);
void* given_memory(OrtAllocator* allocator, size_t bytes);
// A list of texts, each in memory of its own; null where there are none.
char** given_texts(OrtAllocator* allocator, const std::vector<std::string>& texts);

// --- Types and values -----------------------------------------------------------------------

// ORT_INVALID_ARGUMENT for numbers that are none. undefined for 0.
ElementType element_type_of(ONNXTensorElementDataType type);
// Refuses types that ONNX Runtime's numbers lack.
ONNXTensorElementDataType number_of(ElementType type);

struct OrtTensorTypeAndShapeInfo {
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  bool has_shape = true;
  std::vector<int64_t> dims;       // -1: open
  std::vector<std::string> names;  // of open ones, "" where they have none; as many as dims
};

struct OrtTypeInfo {
  ONNXType kind = ONNX_TYPE_UNKNOWN;
  OrtTensorTypeAndShapeInfo tensor;       // of tensors and sparse ones
  std::shared_ptr<const OrtTypeInfo> of;  // items, values, what an optional may hold
  ONNXTensorElementDataType key = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;  // of maps
  std::string denotation;
};

// What a TypeInfo is cast to is the TypeInfo itself, under another name.
struct OrtMapTypeInfo : OrtTypeInfo {};
struct OrtSequenceTypeInfo : OrtTypeInfo {};
struct OrtOptionalTypeInfo : OrtTypeInfo {};

// The indices of a sparse tensor in the form that the caller gave them or asked for (sparse.cc).
struct SparseIndices;

struct OrtValue {
  Value value;  // of kind none: an optional that holds nothing
  std::shared_ptr<SparseIndices> sparse = nullptr;
  // Of a sequence or map that is an output: what it does not say itself, having no items.
  std::shared_ptr<const OrtTypeInfo> declared = nullptr;
};

OrtTypeInfo type_of(const Value& value);
// The tensor of a value that must be one.
Tensor& tensor_of(OrtValue* value, const char* name);
const Tensor& tensor_of(const OrtValue* value, const char* name);
Shape shape_of(const int64_t* dims, size_t count);
// A value that a run gave, as callers see it: what an optional holds stands for it.
OrtValue* new_value(Value value);
// The values of a sparse tensor, in the shape that they were given in.
const Tensor& sparse_values(const OrtValue* value);
// The value as a run takes it: a sparse tensor in coordinate form, whatever the caller made.
const Value& run_value(const OrtValue& value);

// --- Environments ---------------------------------------------------------------------------

// Where messages go: to the caller's function, else to standard error.
struct OrtLogger {
  OrtLoggingFunction function = nullptr;
  void* param = nullptr;
  OrtLoggingLevel level = ORT_LOGGING_LEVEL_WARNING;
  std::string id;

  void tell(OrtLoggingLevel severity, const char* category, const char* place,
            const std::string& message) const;
};

struct OrtKeyValuePairs {
  std::map<std::string, std::string, std::less<>> entries;
  std::vector<const char*> keys, values;  // in the order of `entries`, kept by refresh()
  void refresh();
};

struct OrtThreadingOptions {
  int threads = 0;
  bool flush_denormals = false;
};

struct OrtEnv {
  OrtLogger logger;
  std::optional<Threads> threads;  // that sessions without threads of their own share
  bool flush_denormals = false;    // in runs of these
  // Allocators that sessions may be asked to use (session.use_env_allocators).
  std::mutex mutex;
  std::vector<OrtAllocator*> allocators;  // the caller's, or ours
};

// --- Options --------------------------------------------------------------------------------

using ConfigEntries = std::map<std::string, std::string, std::less<>>;

struct OrtCustomOpDomain {
  std::string name;
  // The caller's, as long as sessions have them; shared with options that the domain was added to.
  std::shared_ptr<std::vector<const OrtCustomOp*>> operators =
      std::make_shared<std::vector<const OrtCustomOp*>>();
};

// A library of operators that options or sessions keep loaded.
using LoadedLibrary = std::shared_ptr<void>;

struct OrtSessionOptions {
  int threads = 0;
  bool own_threads = true;
  GraphOptimizationLevel optimization = ORT_ENABLE_ALL;
  ExecutionMode execution_mode = ORT_SEQUENTIAL;
  bool memory_pattern = true;
  bool deterministic = false;
  std::string log_id;
  int log_severity = -1;  // the environment's
  int log_verbosity = 0;
  OrtLoggingFunction log_function = nullptr;  // instead of the environment's
  void* log_param = nullptr;
  std::optional<std::string> profile_prefix;
  std::string optimized_model_path;
  std::map<std::string, int64_t, std::less<>> sizes;          // by name
  std::map<std::string, int64_t, std::less<>> denoted_sizes;  // by denotation
  struct Initializer {
    Value value;
    bool is_required;  // models that have none of this name are refused
  };
  std::map<std::string, Initializer, std::less<>> initializers;  // instead of the model's
  // Files of external data by name, in the caller's memory until sessions are made.
  std::map<std::string, std::string_view, std::less<>> data_files;
  ConfigEntries config;
  std::vector<OrtCustomOpDomain> domains;
  std::vector<LoadedLibrary> libraries;         // that the domains' operators are in
  std::vector<std::string> sardonyx_libraries;  // of operators made for Sardonyx
  std::shared_ptr<std::atomic<bool>> cancel_load = std::make_shared<std::atomic<bool>>(false);

  // "" where there is none.
  std::string_view entry(std::string_view key) const;
};

struct OrtLoraAdapter {
  std::vector<NamedValue> parameters;
};

struct OrtRunOptions {
  std::atomic<bool> terminate = false;
  std::string tag;
  int log_severity = -1, log_verbosity = 0;
  ConfigEntries config;
  std::vector<const OrtLoraAdapter*> adapters;  // the caller's
  std::optional<std::string> profile_prefix;
};

// --- Sessions -------------------------------------------------------------------------------

struct OrtModelMetadata {
  std::string producer, graph, domain, description, graph_description;
  int64_t version = INT64_MAX;
  std::vector<std::pair<std::string, std::string>> entries;
};

OrtModelMetadata metadata_of(const Model& model);

// Which provider computes which node (devices.cc). Sessions have it where their options ask for it:
// "session.record_ep_graph_assignment_info" is "1".
struct Assignment;
std::shared_ptr<const Assignment> assignment_of(const Model& model);

// A model that nodes are added to before its session can run (model_editor_sessions.cc).
struct EditedModel;

struct OrtSession {
  struct Place {  // an input or output
    std::string name;
    size_t index;  // in the session's order
    OrtTypeInfo type;
  };
  Model model;
  Session session;
  OrtLogger logger;
  std::vector<Place> inputs, defaults, outputs;  // defaults: inputs with an initializer
  std::map<std::string_view, size_t> input_index, output_index;  // in the session's order
  // What inference says of outputs with open sizes: found when somebody asks for their types
  // (described.h).
  struct InferredOutputs {
    std::once_flag once;
    std::vector<OrtTypeInfo> types;
  };
  std::shared_ptr<InferredOutputs> inferred = std::make_shared<InferredOutputs>();
  std::map<std::string, int64_t, std::less<>> sizes;  // of the inputs, that options set
  std::vector<LoadedLibrary> libraries;
  ConfigEntries config;
  std::shared_ptr<const Assignment> assignment;  // null: not asked for
  // Profiling, while it is on: what ends it waits for the runs that write to the profile.
  std::mutex profile_mutex;
  std::condition_variable profile_is_free;
  int profiled_runs = 0;
  std::unique_ptr<Profile> profile;
  std::atomic<bool> is_profiled = false;  // runs look at the rest only then
  std::string profile_prefix;
  int64_t made_us = 0;
  uint64_t profile_begin_ns = 0;
  std::shared_ptr<EditedModel> edited;  // null: the session can run

  OrtSession(Model model_, Session session_)
      : model(std::move(model_)), session(std::move(session_)) {}
  // Takes all that another one has but for `edited`. No run may be on its way.
  void become(OrtSession&& made);
};

// What a session is made of: a file, or memory.
struct ModelSource {
  std::string path = {};
  const void* data = nullptr;
  size_t bytes = 0;
  std::shared_ptr<const void> owner = nullptr;  // of the memory; null: the model copies it
  // What is made of the model whenever it was read; it must not keep a reference to it.
  std::function<Model(const Model& read)> edit = nullptr;
};

// A session that can run. Refuses models as CreateSession does. `options` may be null.
std::unique_ptr<OrtSession> made_session(const OrtEnv* env, const ModelSource& source,
                                         const OrtSessionOptions* options,
                                         OrtPrepackedWeightsContainer* container = nullptr);

// A run that writes to the session's profile, if that is on. Any thread may end it.
class ProfiledRun {
 public:
  explicit ProfiledRun(OrtSession& session);
  ~ProfiledRun();
  ProfiledRun(const ProfiledRun&) = delete;
  ProfiledRun& operator=(const ProfiledRun&) = delete;
  Profile* profile() const { return session_ == nullptr ? nullptr : session_->profile.get(); }

 private:
  OrtSession* session_ = nullptr;  // null: not profiled
};

void start_profiling(OrtSession& session, const OrtSessionOptions& options);
// Writes the session's profile and returns the file's path; "" where it has none.
std::string end_profiling(OrtSession& session);
// Writes the trace of a profile to "<prefix>_<time>.json" and returns that path.
std::string write_trace(const Profile& profile, const std::string& prefix, int64_t made_us);

// Operators of the options' domains for the nodes that `model` has of them (custom_operators.cc);
// null where the options have no domain.
std::shared_ptr<CustomOperators> operators_for(const Model& model, const OrtSessionOptions& options,
                                               const OrtLogger& logger);

// --- The table ------------------------------------------------------------------------------

const OrtApi* served_table();
const OrtApiBase* served_base();

void add_adapters(OrtApi& table);
void add_binding(OrtApi& table);
void add_custom_operators(OrtApi& table);
void add_devices(OrtApi& table);
void add_environment(OrtApi& table);
void add_invoked_operators(OrtApi& table);
void add_kernels(OrtApi& table);
void add_memory(OrtApi& table);
void add_metadata(OrtApi& table);
void add_model_editor(OrtApi& table);
void add_pairs(OrtApi& table);
void add_profiling(OrtApi& table);
void add_providers(OrtApi& table);
void add_run_options(OrtApi& table);
void add_running(OrtApi& table);
void add_session(OrtApi& table);
void add_session_options(OrtApi& table);
void add_sparse(OrtApi& table);
void add_status(OrtApi& table);
void add_strings(OrtApi& table);
void add_types(OrtApi& table);
void add_values(OrtApi& table);

}  // namespace sardonyx::ort_api
