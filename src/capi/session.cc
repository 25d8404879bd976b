#include "capi/session.h"
#include "sardonyx/allocator.h"
#include "session/session_log.h"

namespace sardonyx::capi {

RunOptions run_options(const sardonyx_run_options* given) {
  const sardonyx_run_options known = known_part(given);
  RunOptions options;
  if (const auto* cancel = if_given(known.cancel, "cancel")) options.cancel = &cancel->wanted;
  if (known.deadline_ns < 0)
    fail(ErrorCode::bad_input, "a deadline of {} ns is negative", known.deadline_ns);
  if (known.deadline_ns > 0) {
    // Far enough not to pass the end of the clock.
    constexpr int64_t most = int64_t{1} << 61;
    options.deadline = std::chrono::steady_clock::now() +
                       std::chrono::nanoseconds(std::min(known.deadline_ns, most));
  }
  if (limit_of(known.memory_limit) > 0) options.memory_limit = known.memory_limit;
  if (auto* profile = if_given(known.profile, "profile")) options.profile = &profile->profile;
  return options;
}

Descriptions described(const std::vector<ValueDescription>& values) {
  Descriptions list;
  for (const ValueDescription& value : values) {
    auto one = std::make_unique<Description>();
    one->name = value.name, one->type = value.type;
    one->kind = value.kind, one->element = value.element_type;
    one->has_rank = value.shape.has_value(), one->optional = value.optional;
    if (value.shape) {
      for (const ValueDescription::Dimension& dimension : *value.shape) {
        one->dims.push_back(dimension.size.value_or(-1));
        one->dim_names.push_back(dimension.size ? std::string() : dimension.name);
      }
    }
    one->finish();
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace sardonyx::capi

using namespace sardonyx;
using namespace sardonyx::capi;

namespace {

// What the session changes of its model.
void set_model_options(const sardonyx_session_options& known, SessionOptions& options) {
  const auto sizes = texts(known.size_names, known.size_count, "size_names");
  if (known.size_count > 0) required(known.sizes, "sizes");
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!options.dimensions.emplace(sizes[i], known.sizes[i]).second)
      fail(ErrorCode::bad_input, "size '{}' is given twice", sizes[i]);
  }
  const auto names = texts(known.initializer_names, known.initializer_count, "initializer_names");
  if (known.initializer_count > 0) required(known.initializers, "initializers");
  for (size_t i = 0; i < names.size(); ++i)
    options.initializers.emplace_back(names[i], value_of(known.initializers[i], "initializers"));
  options.extra_outputs = texts(known.extra_outputs, known.extra_output_count, "extra_outputs");
  if (known.processor_count > 0) required(known.processors, "processors");
  options.processors.assign(known.processors, known.processors + known.processor_count);
  if (known.packed != nullptr) options.packed = known.packed;
  if (known.cache_folder != nullptr) options.cache_folder = known.cache_folder;
}

void set_log(const sardonyx_session_options& known, SessionOptions& options) {
  if (known.log_level < 0 || known.log_level > SARDONYX_LOG_ERROR)
    fail(ErrorCode::bad_input, "log_level is 0 or a level from {} to {}; got {}",
         SARDONYX_LOG_DEBUG, SARDONYX_LOG_ERROR, known.log_level);
  if (known.log_level != 0) options.log_level = static_cast<LogLevel>(known.log_level);
  if (known.log == nullptr) return;
  options.log = [log = known.log, user = known.log_user](const LogMessage& told) {
    const sardonyx_log_message message{sizeof(sardonyx_log_message),
                                       static_cast<sardonyx_log_level>(told.level),
                                       told.rule.c_str(),
                                       told.place.c_str(),
                                       told.message.c_str(),
                                       told.advice.c_str()};
    log(&message, user);
  };
}

// Asks the caller's functions.
class CallersAllocator final : public Allocator {
 public:
  explicit CallersAllocator(const sardonyx_allocator& functions) : functions_(functions) {}
  CallersAllocator(const CallersAllocator&) = delete;
  CallersAllocator& operator=(const CallersAllocator&) = delete;
  ~CallersAllocator() override {
    if (owns_user_ && functions_.release_user != nullptr) functions_.release_user(functions_.user);
  }
  void* allocate(size_t bytes, size_t alignment) override {
    return functions_.allocate(bytes, alignment, functions_.user);
  }
  void release(void* memory, size_t bytes) noexcept override {
    functions_.release(memory, bytes, functions_.user);
  }
  void own_user() { owns_user_ = true; }

 private:
  const sardonyx_allocator functions_;
  bool owns_user_ = false;
};

// Null where the caller has none.
std::shared_ptr<CallersAllocator> allocator_of(const sardonyx_session_options* given) {
  const sardonyx_session_options known = known_part(given);
  if (known.output_allocator == nullptr) return nullptr;
  const sardonyx_allocator functions = known_part(known.output_allocator);
  if (functions.allocate == nullptr || functions.release == nullptr)
    fail(ErrorCode::bad_input, "the functions 'allocate' and 'release' of an allocator are needed");
  return std::make_shared<CallersAllocator>(functions);
}

}  // namespace

SessionOptions capi::session_options(const sardonyx_session_options* given) {
  const sardonyx_session_options known = known_part(given);
  SessionOptions options;
  options.threads = known.threads;
  if (const auto* shared = if_given(known.shared_threads, "shared_threads"))
    options.shared_threads = shared->threads;
  options.reference = known.reference != 0;
  options.fuse = known.no_fusion == 0;
  options.exact = known.exact != 0;
  options.assume_inference = known.assume_inference != 0;
  options.prepack = known.prepack != 0;
  options.all_outputs = known.all_outputs != 0;
  options.seed = known.seed;
  options.flush_denormals = known.flush_denormals != 0;
  options.memory_limit = limit_of(known.memory_limit);
  set_model_options(known, options);
  set_log(known, options);
  return options;
}

namespace {

sardonyx_session* new_session(const Model& model, const sardonyx_session_options* options) {
  SessionOptions known = session_options(options);
  const std::shared_ptr<CallersAllocator> allocator = allocator_of(options);
  known.output_allocator = allocator;
  auto made = std::unique_ptr<sardonyx_session>(
      new sardonyx_session{{}, {}, {}, {}, {}, Session(model, known)});
  made->inputs = described(made->session.inputs());
  made->outputs = described(made->session.outputs());
  for (size_t i = 0; i < made->inputs.size(); ++i)
    made->input_places.emplace(made->inputs[i]->name, i);
  for (size_t i = 0; i < made->outputs.size(); ++i)
    made->output_places.emplace(made->outputs[i]->name, i);
  if (allocator) allocator->own_user();
  return made.release();
}

sardonyx_status* describe(const sardonyx_session* session, Descriptions sardonyx_session::*list,
                          size_t index, const char* what, sardonyx_value_info* info) {
  return guarded([&] {
    const Descriptions& values = required(session, "session").*list;
    if (index >= values.size())
      fail(ErrorCode::bad_input, "there is no {} {} of {}", what, index, values.size());
    fill(info, "info", values[index]->info());
  });
}

}  // namespace

sardonyx_status* sardonyx_threads_create(int count, sardonyx_threads** threads) {
  return guarded([&] {
    required(threads, "threads");
    *threads = new sardonyx_threads{{}, Threads(count)};
  });
}

int sardonyx_threads_count(const sardonyx_threads* threads) {
  return !is_usable(threads) ? 0 : threads->threads.count();
}

void sardonyx_threads_release(sardonyx_threads* threads) { release_handle(threads); }

sardonyx_status* sardonyx_session_create(const sardonyx_model* model,
                                         const sardonyx_session_options* options,
                                         sardonyx_session** session) {
  return guarded([&] {
    required(session, "session");
    *session = new_session(required(model, "model").model, options);
  });
}

sardonyx_status* sardonyx_session_load(const char* path, const sardonyx_load_options* load,
                                       const sardonyx_session_options* options,
                                       sardonyx_session** session) {
  return guarded([&] {
    required(session, "session");
    LoadOptions loading = load_options(load);
    if (!loading.warn) loading.warn = SessionLog(session_options(options), {}).warn();
    *session = new_session(Model(&required(path, "path"), loading), options);
  });
}

void sardonyx_session_release(sardonyx_session* session) { release_handle(session); }

size_t sardonyx_session_input_count(const sardonyx_session* session) {
  return !is_usable(session) ? 0 : session->inputs.size();
}

size_t sardonyx_session_output_count(const sardonyx_session* session) {
  return !is_usable(session) ? 0 : session->outputs.size();
}

sardonyx_status* sardonyx_session_input(const sardonyx_session* session, size_t index,
                                        sardonyx_value_info* info) {
  return describe(session, &sardonyx_session::inputs, index, "input", info);
}

sardonyx_status* sardonyx_session_output(const sardonyx_session* session, size_t index,
                                         sardonyx_value_info* info) {
  return describe(session, &sardonyx_session::outputs, index, "output", info);
}

sardonyx_status* sardonyx_cancel_create(sardonyx_cancel** cancel) {
  return guarded([&] { required(cancel, "cancel"), *cancel = new sardonyx_cancel(); });
}

void sardonyx_cancel_set(sardonyx_cancel* cancel, int wanted) {
  if (is_usable(cancel)) cancel->wanted = wanted != 0;
}

void sardonyx_cancel_release(sardonyx_cancel* cancel) { release_handle(cancel); }
