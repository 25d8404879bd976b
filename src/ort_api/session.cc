// Making sessions, and what they say of themselves.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <set>

#include "ir/dimension.h"
#include "ort_api/described.h"
#include "ort_api/handles.h"
#include "sardonyx/infer.h"
#include "sardonyx/packing.h"
#include "session/model.h"

namespace sardonyx::ort_api {

// Models that sessions made with one container share, and with them the packed forms of weights.
struct OrtPrepackedWeightsContainer {
  struct Entry {
    std::string path;  // empty: from memory
    std::shared_ptr<const std::string> bytes;
    Model model;

    // Whether the model's files are as they were when it was read.
    bool is_current() const {
      const Model::Implementation& read = model.implementation();
      if (!path.empty() && read.stamp != stamp_of(path)) return false;
      return std::ranges::all_of(read.external_files, [&](const auto& file) {
        return file.second == stamp_of(read.model.folder + "/" + file.first);
      });
    }
  };
  std::mutex mutex;
  std::vector<Entry> entries;
};

namespace {

std::filesystem::path file_path(const std::string& path) {
  return std::filesystem::path(native_path(path));
}

OrtLogger logger_of(OrtEnv& env, const OrtSessionOptions& options) {
  std::unique_lock lock(env.mutex);
  OrtLogger logger = env.logger;
  lock.unlock();
  if (!options.log_id.empty()) logger.id = options.log_id;
  if (options.log_severity >= 0) logger.level = static_cast<OrtLoggingLevel>(options.log_severity);
  if (options.log_function != nullptr)
    logger.function = options.log_function, logger.param = options.log_param;
  return logger;
}

void tell_message(const OrtLogger& logger, const LogMessage& told) {
  constexpr OrtLoggingLevel levels[] = {ORT_LOGGING_LEVEL_VERBOSE, ORT_LOGGING_LEVEL_VERBOSE,
                                        ORT_LOGGING_LEVEL_INFO, ORT_LOGGING_LEVEL_WARNING,
                                        ORT_LOGGING_LEVEL_ERROR};
  // What is wrong with models is worth less: exporters write it, and users can't change it.
  const OrtLoggingLevel level =
      told.rule.empty() ? levels[static_cast<int>(told.level) % 5] : ORT_LOGGING_LEVEL_INFO;
  logger.tell(level, "sardonyx", told.place.c_str(), told.to_string());
}

// Takes a session's outputs from an allocator of the caller's, which knows no alignment: before the
// memory that a run gets lies where the allocator's began.
class CallersAllocator final : public Allocator {
 public:
  explicit CallersAllocator(OrtAllocator* allocator) : allocator_(allocator) {}
  void* allocate(size_t bytes, size_t alignment) override {
    size_t all = 0;
    if (__builtin_add_overflow(bytes, alignment + sizeof(void*), &all)) return nullptr;
    void* const begin = allocator_->Alloc(allocator_, all);
    if (begin == nullptr) return nullptr;
    const uintptr_t first = reinterpret_cast<uintptr_t>(begin) + sizeof(void*);
    const uintptr_t place = (first + alignment - 1) / alignment * alignment;
    std::memcpy(reinterpret_cast<void*>(place - sizeof(void*)), &begin, sizeof(void*));
    return reinterpret_cast<void*>(place);
  }
  void release(void* memory, size_t) noexcept override {
    void* begin = nullptr;
    std::memcpy(&begin, static_cast<char*>(memory) - sizeof(void*), sizeof(void*));
    allocator_->Free(allocator_, begin);
  }

 private:
  OrtAllocator* const allocator_;
};

std::shared_ptr<Allocator> output_allocator(OrtEnv& env, const OrtSessionOptions& options) {
  if (options.entry("session.use_env_allocators") != "1") return nullptr;
  const std::lock_guard lock(env.mutex);
  for (OrtAllocator* const one : env.allocators)
    if (one != default_allocator()) return std::make_shared<CallersAllocator>(one);
  return nullptr;
}

// "1,2;3-4": for each thread but the caller's the processors it may run on, counted from 1. They
// are taken together: all threads may run on all of them.
std::vector<int> processors_of(std::string_view text) {
  std::set<int> processors;
  const char* next = text.data();
  const char* const end = next + text.size();
  while (next < end) {
    int first = 0;
    auto read = std::from_chars(next, end, first);
    int last = first;
    if (read.ec == std::errc() && read.ptr < end && *read.ptr == '-')
      read = std::from_chars(read.ptr + 1, end, last);
    const bool ends_well = read.ptr == end || *read.ptr == ',' || *read.ptr == ';';
    if (read.ec != std::errc() || !ends_well || first < 1 || last < first || last > 65536)
      refuse(ORT_INVALID_ARGUMENT,
             "'{}' is no list of processors as session.intra_op_thread_affinities has them: "
             "\"1,2;3-4\"",
             text);
    for (int i = first; i <= last; ++i) processors.insert(i - 1);
    next = read.ptr == end ? end : read.ptr + 1;
  }
  return {processors.begin(), processors.end()};
}

SessionOptions engine_options(OrtEnv& env, const OrtSessionOptions& options,
                              const OrtLogger& logger) {
  SessionOptions engine;
  engine.threads = options.threads;
  if (!options.own_threads) {
    if (!env.threads)
      refuse(
          ORT_INVALID_ARGUMENT,
          "the session is to have no threads of its own, and the environment has none either; make "
          "it with CreateEnvWithGlobalThreadPools()");
    engine.shared_threads = env.threads;
    engine.flush_denormals = env.flush_denormals;
  } else {
    engine.processors = processors_of(options.entry("session.intra_op_thread_affinities"));
  }
  if (options.entry("session.set_denormal_as_zero") == "1") engine.flush_denormals = true;
  engine.fuse = options.optimization != ORT_DISABLE_ALL;
  engine.packed = options.entry("sardonyx.packed");
  engine.cache_folder = options.entry("sardonyx.cache_folder");
  engine.output_allocator = output_allocator(env, options);
  engine.log = [logger](const LogMessage& told) { tell_message(logger, told); };
  engine.log_level = logger.level == ORT_LOGGING_LEVEL_VERBOSE ? LogLevel::debug
                     : logger.level == ORT_LOGGING_LEVEL_INFO  ? LogLevel::info
                                                               : LogLevel::warning;
  return engine;
}

// Where the links of a model hub's cache lead: what lies there may be named, too.
std::string folder_behind_link(const std::string& path) {
  std::error_code ignored;
  if (path.empty() || !std::filesystem::is_symlink(file_path(path), ignored)) return {};
  const auto real = std::filesystem::canonical(file_path(path), ignored);
  if (ignored) return {};
  const std::u8string folder = real.parent_path().u8string();
  return {folder.begin(), folder.end()};
}

// Programs write one model after the other to the same file, while sessions of earlier ones run:
// what costs nothing to be read is not mapped.
bool is_small(const std::string& path) {
  constexpr uintmax_t small = 1 << 20;
  std::error_code error;
  const uintmax_t size = path.empty() ? small : std::filesystem::file_size(file_path(path), error);
  return !error && size < small;
}

LoadOptions load_options(const ModelSource& source, const OrtSessionOptions& options,
                         const OrtLogger& logger) {
  LoadOptions load;
  load.warn = [logger](const Warning& warning) {
    logger.tell(ORT_LOGGING_LEVEL_INFO, "sardonyx", warning.place.c_str(), warning.to_string());
  };
  load.trusted_folder = folder_behind_link(source.path);
  load.read_into_memory =
      is_small(source.path) || options.entry("sardonyx.read_into_memory") == "1";
  load.libraries = options.sardonyx_libraries;
  load.load_external_data = options.initializers.empty() && options.data_files.empty();
  return load;
}

Model unedited_model(const ModelSource& source, const OrtSessionOptions& options,
                     const LoadOptions& load) {
  if (!source.path.empty()) return Model(source.path, load);
  const std::string folder(options.entry("session.model_external_initializers_file_folder_path"));
  return Model(source.data, source.bytes, folder, source.owner, load);
}

Model read_model(const ModelSource& source, const OrtSessionOptions& options,
                 const LoadOptions& load) {
  Model model = unedited_model(source, options, load);
  return source.edit ? source.edit(model) : model;
}

// As read_model(), but the container's model where it has that of the source.
Model shared_model(const ModelSource& source, const OrtSessionOptions& options,
                   const LoadOptions& load, OrtPrepackedWeightsContainer& container) {
  const std::lock_guard lock(container.mutex);
  const auto is_it = [&](const OrtPrepackedWeightsContainer::Entry& one) {
    if (one.path != source.path) return false;
    if (source.path.empty() &&
        *one.bytes != std::string_view(static_cast<const char*>(source.data), source.bytes))
      return false;
    return one.is_current();
  };
  const auto found = std::ranges::find_if(container.entries, is_it);
  if (found != container.entries.end()) return found->model;
  if (!source.path.empty())  // of another time
    std::erase_if(container.entries, [&](const auto& one) { return one.path == source.path; });
  std::shared_ptr<const std::string> bytes;
  if (source.path.empty())
    bytes =
        std::make_shared<const std::string>(static_cast<const char*>(source.data), source.bytes);
  ModelSource kept = source;
  if (bytes != nullptr) kept.data = bytes->data(), kept.owner = bytes;
  const Model model = read_model(kept, options, load);
  container.entries.push_back({source.path, bytes, model});
  return model;
}

// What the options give instead of the model's initializers. Options may serve several models,
// which need not have all of them.
void add_initializers(const Model& model, const OrtSessionOptions& options,
                      std::vector<NamedValue>& initializers) {
  if (options.initializers.empty()) return;
  std::set<std::string_view> names;
  const GraphView graph = model.graph();
  for (const TensorView& tensor : graph.initializers()) names.insert(tensor.name());
  for (const auto& [name, given] : options.initializers)
    if (given.is_required || names.contains(name)) initializers.emplace_back(name, given.value);
}

// What a file of external data in the caller's memory has for the model's initializers.
void add_from_files(const Model& model, const OrtSessionOptions& options,
                    std::vector<NamedValue>& initializers) {
  if (options.data_files.empty()) return;
  for (const TensorView& tensor : model.graph().initializers()) {
    if (!tensor.is_external()) continue;
    std::string location;
    std::string_view begin = "0";
    for (const EntryView& entry : tensor.external_data()) {
      if (entry.key() == "location") location = entry.value();
      if (entry.key() == "offset") begin = entry.value();
    }
    const auto file = options.data_files.find(location);
    if (file == options.data_files.end()) continue;
    uint64_t offset = 0;
    const auto read = std::from_chars(begin.data(), begin.data() + begin.size(), offset);
    const bool is_number = read.ec == std::errc() && read.ptr == begin.data() + begin.size();
    if (!is_number || offset > file->second.size())
      refuse(ORT_INVALID_ARGUMENT,
             "initializer '{}' begins at byte '{}' of file '{}', which has {}", tensor.name(),
             begin, location, file->second.size());
    // Looked at where they lie: a shape may say more than there is memory for. The session copies
    // them.
    const std::string_view data = file->second.substr(offset);
    initializers.emplace_back(
        tensor.name(),
        Tensor::view(tensor.element_type(), Shape(tensor.shape().begin(), tensor.shape().end()),
                     data.data(), data.size()));
  }
}

// The sizes of the options that the inputs leave open; what fits no input is ignored, as there, and
// negative ones leave it open.
std::map<std::string, int64_t, std::less<>> open_sizes(const Model& model,
                                                       const OrtSessionOptions& options) {
  std::map<std::string, int64_t, std::less<>> sizes;
  const auto& graph = model.implementation().model.graph;
  if ((options.sizes.empty() && options.denoted_sizes.empty()) || !graph) return sizes;
  std::vector<ir::ValueInfo> inputs = graph->inputs;
  ir::name_open_sizes(inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ir::ValueInfo& input = inputs[i];
    if (!input.type || !input.type->shape) continue;
    for (size_t d = 0; d < input.type->shape->dims.size(); ++d) {
      const ir::Dimension& dimension = input.type->shape->dims[d];
      if (ir::declared_number(dimension)) continue;
      const std::string name(ir::declared_name(dimension));
      const auto set = [&](const auto& given, const std::string& key) {
        const auto found = given.find(key);
        if (!key.empty() && found != given.end() && found->second >= 0) sizes[name] = found->second;
      };
      set(options.sizes, name);
      // What the model says may be a name that stands for none ("?", "unk__12").
      set(options.sizes, graph->inputs[i].type->shape->dims[d].param.value_or(""));
      set(options.denoted_sizes, dimension.denotation);
    }
  }
  return sizes;
}

SaveOptions save_options(const OrtSessionOptions& options) {
  SaveOptions save;
  save.form = ModelForm::binary;
  save.external_data = options.entry("session.optimized_model_external_initializers_file_name");
  save.embed = save.external_data.empty();
  constexpr std::string_view key =
      "session.optimized_model_external_initializers_min_size_in_bytes";
  const std::string_view least = options.entry(key);
  if (least.empty()) return save;
  const char* const end = least.data() + least.size();
  const auto read = std::from_chars(least.data(), end, save.threshold);
  if (read.ec != std::errc() || read.ptr != end)
    refuse(ORT_FAIL, "'{}' is '{}', which is no number of bytes", key, least);
  return save;
}

// "The optimised model" is the model as it is; a name that ends in .sdx gets the packed weights.
void save_model(const OrtSession& made, const OrtSessionOptions& options,
                const SessionOptions& engine) {
  const std::string& path = options.optimized_model_path;
  if (path.empty()) return;
  try {
    if (path.ends_with(".sdx")) {
      pack_model(made.model, path, engine);
    } else {
      made.model.save(path, save_options(options));
    }
  } catch (const Error& error) {
    refuse(ORT_INVALID_ARGUMENT, "The optimised model could not be written: {}", error.what());
  }
}

// Of what options ask a session to refuse.
void require_allowed(const Model& model, const OrtSessionOptions& options) {
  if (!model.has_graph()) return;
  if (options.entry("session.disable_cpu_ep_fallback") == "1" && model.graph().nodes().size() > 0)
    refuse(
        ORT_FAIL,
        "This session contains graph nodes that are assigned to the default CPU EP, but fallback "
        "to CPU EP has been explicitly disabled by the user "
        "(session.disable_cpu_ep_fallback); Sardonyx computes on the processor alone");
  if (options.entry("session.strict_shape_type_inference") != "1") return;
  InferOptions strict;
  strict.strict = true;
  const Inference inference = infer_types(model, strict);
  for (const InferFinding& finding : inference.findings)
    if (finding.is_error)
      refuse(ORT_FAIL, "{}: {} (session.strict_shape_type_inference)", finding.place,
             finding.message);
}

void require_not_cancelled(const OrtSessionOptions& options) {
  if (options.cancel_load->load())
    refuse(ORT_MODEL_LOAD_CANCELED, "the session was not made: its options say to cancel that");
}

std::unique_ptr<OrtSession> prepared_session(OrtEnv& env, const ModelSource& source,
                                             const OrtSessionOptions& options,
                                             OrtPrepackedWeightsContainer* container,
                                             bool& was_read) {
  const auto begin = std::chrono::steady_clock::now();
  require_not_cancelled(options);
  const OrtLogger logger = logger_of(env, options);
  LoadOptions load = load_options(source, options, logger);
  // Models that options change are nobody else's.
  const bool can_share =
      container != nullptr && !source.edit && options.domains.empty() &&
      options.sardonyx_libraries.empty() &&
      options.entry("session.model_external_initializers_file_folder_path").empty() &&
      load.load_external_data;
  Model model = can_share ? shared_model(source, options, load, *container)
                          : read_model(source, options, load);
  if (const auto operators = operators_for(model, options, logger)) {
    load.custom_operators = operators;
    model = read_model(source, options, load);
  }
  was_read = true;
  require_not_cancelled(options);
  require_allowed(model, options);
  SessionOptions engine = engine_options(env, options, logger);
  add_initializers(model, options, engine.initializers);
  add_from_files(model, options, engine.initializers);
  engine.dimensions = open_sizes(model, options);
  auto made = std::make_unique<OrtSession>(model, Session(model, engine));
  require_not_cancelled(options);
  made->logger = logger;
  made->libraries = options.libraries;
  made->config = options.config;
  if (options.entry("session.record_ep_graph_assignment_info") == "1")
    made->assignment = assignment_of(made->model);
  made->sizes = engine.dimensions;
  describe(*made);
  save_model(*made, options, engine);
  require_not_cancelled(options);
  using std::chrono::duration_cast;
  made->made_us =
      duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin).count();
  logger.tell(ORT_LOGGING_LEVEL_VERBOSE, "sardonyx", "session",
              fmt::format("a session of {} was made in {:.3f} ms",
                          source.path.empty() ? "a model from memory" : source.path,
                          static_cast<double>(made->made_us) / 1e3));
  start_profiling(*made, options);
  return made;
}

OrtStatus* new_session(const OrtEnv* env, const ModelSource& source,
                       const OrtSessionOptions* options, OrtPrepackedWeightsContainer* container,
                       OrtSession** out) {
  return guarded([&] {
    required(env, "env"), required(out, "out");
    *out = made_session(env, source, options, container).release();
  });
}

OrtStatus* CreateSessionWithPrepackedWeightsContainer(const OrtEnv* env, const PathChar* path,
                                                      const OrtSessionOptions* options,
                                                      OrtPrepackedWeightsContainer* container,
                                                      OrtSession** out) {
  ModelSource source;
  OrtStatus* const status = guarded([&] {
    source.path = path_of(path, "model_path");
    if (source.path.empty()) refuse(ORT_NO_SUCHFILE, "the path of the model is empty");
  });
  return status != nullptr ? status : new_session(env, source, options, container, out);
}
OrtStatus* CreateSessionFromArrayWithPrepackedWeightsContainer(
    const OrtEnv* env, const void* data, size_t bytes, const OrtSessionOptions* options,
    OrtPrepackedWeightsContainer* container, OrtSession** out) {
  if (data == nullptr || bytes == 0)
    return new_status(ORT_INVALID_ARGUMENT, "the model's bytes are none");
  return new_session(env, {.data = data, .bytes = bytes}, options, container, out);
}
OrtStatus* CreateSession(const OrtEnv* env, const PathChar* path, const OrtSessionOptions* options,
                         OrtSession** out) {
  return CreateSessionWithPrepackedWeightsContainer(env, path, options, nullptr, out);
}
OrtStatus* CreateSessionFromArray(const OrtEnv* env, const void* data, size_t bytes,
                                  const OrtSessionOptions* options, OrtSession** out) {
  return CreateSessionFromArrayWithPrepackedWeightsContainer(env, data, bytes, options, nullptr,
                                                             out);
}
// A profile that nobody has ended is written, as there.
void ReleaseSession(OrtSession* session) {
  if (session != nullptr) served_table()->ReleaseStatus(guarded([&] { end_profiling(*session); }));
  delete session;
}

OrtStatus* CreatePrepackedWeightsContainer(OrtPrepackedWeightsContainer** out) {
  return guarded([&] { give(out, "out", new OrtPrepackedWeightsContainer); });
}
void ReleasePrepackedWeightsContainer(OrtPrepackedWeightsContainer* container) { delete container; }

using Places = std::vector<OrtSession::Place>;
const OrtSession::Place& place_in(const Places& places, size_t index, const char* what) {
  if (index >= places.size())
    refuse(ORT_FAIL, "the model has {} {}, and number {} was asked for", places.size(), what,
           index);
  return places[index];
}

OrtStatus* SessionGetInputCount(const OrtSession* session, size_t* out) {
  return guarded([&] { required(out, "out") = required(session, "session").inputs.size(); });
}
OrtStatus* SessionGetOutputCount(const OrtSession* session, size_t* out) {
  return guarded([&] { required(out, "out") = required(session, "session").outputs.size(); });
}
OrtStatus* SessionGetOverridableInitializerCount(const OrtSession* session, size_t* out) {
  return guarded([&] { required(out, "out") = required(session, "session").defaults.size(); });
}
OrtStatus* SessionGetInputName(const OrtSession* session, size_t index, OrtAllocator* allocator,
                               char** out) {
  return guarded([&] {
    char*& to = required(out, "value");
    to = given_text(allocator, place_in(required(session, "session").inputs, index, "inputs").name);
  });
}
OrtStatus* SessionGetOutputName(const OrtSession* session, size_t index, OrtAllocator* allocator,
                                char** out) {
  return guarded([&] {
    char*& to = required(out, "value");
    to = given_text(allocator,
                    place_in(required(session, "session").outputs, index, "outputs").name);
  });
}
OrtStatus* SessionGetOverridableInitializerName(const OrtSession* session, size_t index,
                                                OrtAllocator* allocator, char** out) {
  return guarded([&] {
    const auto& place =
        place_in(required(session, "session").defaults, index, "inputs with a default");
    char*& to = required(out, "value");
    to = given_text(allocator, place.name);
  });
}
OrtStatus* SessionGetInputTypeInfo(const OrtSession* session, size_t index, OrtTypeInfo** out) {
  return guarded([&] {
    give(out, "type_info",
         new OrtTypeInfo(place_in(required(session, "session").inputs, index, "inputs").type));
  });
}
OrtStatus* SessionGetOutputTypeInfo(const OrtSession* session, size_t index, OrtTypeInfo** out) {
  return guarded([&] {
    place_in(required(session, "session").outputs, index, "outputs");
    give(out, "type_info", new OrtTypeInfo(output_type(*session, index)));
  });
}
OrtStatus* SessionGetOverridableInitializerTypeInfo(const OrtSession* session, size_t index,
                                                    OrtTypeInfo** out) {
  return guarded([&] {
    const auto& place =
        place_in(required(session, "session").defaults, index, "inputs with a default");
    give(out, "type_info", new OrtTypeInfo(place.type));
  });
}

OrtStatus* memory_of_all(const Places& places, const OrtMemoryInfo** out, size_t count) {
  return guarded([&] {
    items(out, count, "memory_info");
    if (count < places.size())
      refuse(ORT_INVALID_ARGUMENT, "there is room for {} descriptions, and {} are needed", count,
             places.size());
    std::fill_n(out, places.size(), &cpu_memory());
  });
}
OrtStatus* SessionGetMemoryInfoForInputs(const OrtSession* session, const OrtMemoryInfo** out,
                                         size_t count) {
  if (session == nullptr) return new_status(ORT_INVALID_ARGUMENT, "'session' is null");
  return memory_of_all(session->inputs, out, count);
}
OrtStatus* SessionGetMemoryInfoForOutputs(const OrtSession* session, const OrtMemoryInfo** out,
                                          size_t count) {
  if (session == nullptr) return new_status(ORT_INVALID_ARGUMENT, "'session' is null");
  return memory_of_all(session->outputs, out, count);
}

}  // namespace

std::unique_ptr<OrtSession> made_session(const OrtEnv* env, const ModelSource& source,
                                         const OrtSessionOptions* options,
                                         OrtPrepackedWeightsContainer* container) {
  // Environments are shared by sessions that are made; what they change is guarded by its mutex.
  OrtEnv& from = const_cast<OrtEnv&>(required(env, "env"));
  const OrtSessionOptions defaults;
  bool was_read = false;
  try {
    return prepared_session(from, source, options == nullptr ? defaults : *options, container,
                            was_read);
  } catch (const Error& error) {
    const std::string name = source.path.empty() ? std::string("memory") : source.path;
    OrtErrorCode code = code_of(error.code());
    std::error_code ignored;
    if (error.code() == ErrorCode::unreadable &&
        (source.path.empty() || std::filesystem::exists(file_path(source.path), ignored)))
      code = ORT_INVALID_PROTOBUF;
    if (error.code() == ErrorCode::invalid_model && !was_read) code = ORT_INVALID_PROTOBUF;
    std::string text = error.what();
    if (text.find("give the folder its files are in") != text.npos)
      text += ", in the config entry session.model_external_initializers_file_folder_path";
    refuse(code, "Load model from {} failed: {}", name, text);
  }
}

void OrtSession::become(OrtSession&& made) {
  model = std::move(made.model);
  session = std::move(made.session);
  logger = std::move(made.logger);
  // The indices' names are in the lists' items, which stay where they are.
  inputs = std::move(made.inputs), defaults = std::move(made.defaults);
  outputs = std::move(made.outputs);
  inferred = std::move(made.inferred), sizes = std::move(made.sizes);
  input_index = std::move(made.input_index), output_index = std::move(made.output_index);
  libraries = std::move(made.libraries);  // behind all whose code is in them
  config = std::move(made.config);
  assignment = std::move(made.assignment);
  profile = std::move(made.profile), profile_prefix = std::move(made.profile_prefix);
  is_profiled = made.is_profiled.load();
  made_us = made.made_us, profile_begin_ns = made.profile_begin_ns;
}

void add_session(OrtApi& table) {
  table.CreateSession = CreateSession;
  table.CreateSessionFromArray = CreateSessionFromArray;
  table.CreateSessionWithPrepackedWeightsContainer = CreateSessionWithPrepackedWeightsContainer;
  table.CreateSessionFromArrayWithPrepackedWeightsContainer =
      CreateSessionFromArrayWithPrepackedWeightsContainer;
  table.ReleaseSession = ReleaseSession;
  table.CreatePrepackedWeightsContainer = CreatePrepackedWeightsContainer;
  table.ReleasePrepackedWeightsContainer = ReleasePrepackedWeightsContainer;
  table.SessionGetInputCount = SessionGetInputCount;
  table.SessionGetOutputCount = SessionGetOutputCount;
  table.SessionGetOverridableInitializerCount = SessionGetOverridableInitializerCount;
  table.SessionGetInputName = SessionGetInputName;
  table.SessionGetOutputName = SessionGetOutputName;
  table.SessionGetOverridableInitializerName = SessionGetOverridableInitializerName;
  table.SessionGetInputTypeInfo = SessionGetInputTypeInfo;
  table.SessionGetOutputTypeInfo = SessionGetOutputTypeInfo;
  table.SessionGetOverridableInitializerTypeInfo = SessionGetOverridableInitializerTypeInfo;
  table.SessionGetMemoryInfoForInputs = SessionGetMemoryInfoForInputs;
  table.SessionGetMemoryInfoForOutputs = SessionGetMemoryInfoForOutputs;
}

}  // namespace sardonyx::ort_api
