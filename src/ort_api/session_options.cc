// Options of sessions. What decides nothing here is kept as it was set.
#include <algorithm>
#include <charconv>

#include "ort_api/handles.h"

namespace sardonyx::ort_api {

namespace {

OrtStatus* CreateSessionOptions(OrtSessionOptions** out) {
  return guarded([&] { give(out, "options", new OrtSessionOptions); });
}
// A clone shares the flag that cancels loading, as there.
OrtStatus* CloneSessionOptions(const OrtSessionOptions* options, OrtSessionOptions** out) {
  return guarded(
      [&] { give(out, "out_options", new OrtSessionOptions(required(options, "in_options"))); });
}
void ReleaseSessionOptions(OrtSessionOptions* options) { delete options; }

// Fewer than 1: as many as the process may use.
OrtStatus* SetIntraOpNumThreads(OrtSessionOptions* options, int threads) {
  return guarded([&] { required(options, "options").threads = std::max(threads, 0); });
}
OrtStatus* SetInterOpNumThreads(OrtSessionOptions* options, int) {
  return guarded([&] { required(options, "options"); });  // nodes run one after the other
}
OrtStatus* DisablePerSessionThreads(OrtSessionOptions* options) {
  return guarded([&] { required(options, "options").own_threads = false; });
}
OrtStatus* SetSessionGraphOptimizationLevel(OrtSessionOptions* options,
                                            GraphOptimizationLevel level) {
  return guarded([&] {
    const bool is_one =
        (level >= ORT_DISABLE_ALL && level <= ORT_ENABLE_LAYOUT) || level == ORT_ENABLE_ALL;
    if (!is_one)
      refuse(ORT_INVALID_ARGUMENT, "{} is no level of optimisation", static_cast<int>(level));
    required(options, "options").optimization = level;
  });
}
OrtStatus* SetSessionExecutionMode(OrtSessionOptions* options, ExecutionMode mode) {
  return guarded([&] {
    if (mode != ORT_SEQUENTIAL && mode != ORT_PARALLEL)
      refuse(ORT_INVALID_ARGUMENT, "{} is no mode of execution", static_cast<int>(mode));
    required(options, "options").execution_mode = mode;
  });
}
OrtStatus* GetSessionExecutionMode(const OrtSessionOptions* options, ExecutionMode* out) {
  return guarded([&] { required(out, "out") = required(options, "options").execution_mode; });
}
OrtStatus* EnableMemPattern(OrtSessionOptions* options) {
  return guarded([&] { required(options, "options").memory_pattern = true; });
}
OrtStatus* DisableMemPattern(OrtSessionOptions* options) {
  return guarded([&] { required(options, "options").memory_pattern = false; });
}
OrtStatus* GetMemPatternEnabled(const OrtSessionOptions* options, int* out) {
  return guarded([&] { required(out, "out") = required(options, "options").memory_pattern; });
}
// Working memory is one block for each run that goes on, whatever this says.
OrtStatus* EnableCpuMemArena(OrtSessionOptions* options) {
  return guarded([&] { required(options, "options"); });
}
OrtStatus* DisableCpuMemArena(OrtSessionOptions* options) {
  return guarded([&] { required(options, "options"); });
}
// Results never depend on the number of threads, nor on the run.
OrtStatus* SetDeterministicCompute(OrtSessionOptions* options, bool value) {
  return guarded([&] { required(options, "options").deterministic = value; });
}

OrtStatus* SetSessionLogId(OrtSessionOptions* options, const char* id) {
  return guarded([&] { required(options, "options").log_id = text_of(id, "logid"); });
}
OrtStatus* SetSessionLogVerbosityLevel(OrtSessionOptions* options, int level) {
  return guarded([&] { required(options, "options").log_verbosity = level; });
}
// -1: the environment's.
OrtStatus* SetSessionLogSeverityLevel(OrtSessionOptions* options, int level) {
  return guarded([&] {
    if (level < -1 || level > ORT_LOGGING_LEVEL_FATAL)
      refuse(ORT_INVALID_ARGUMENT,
             "{} is no level of severity; there are 0 (verbose) to 4 (fatal), and -1: that of the "
             "environment",
             level);
    required(options, "options").log_severity = level;
  });
}
OrtStatus* SetUserLoggingFunction(OrtSessionOptions* options, OrtLoggingFunction function,
                                  void* param) {
  return guarded([&] {
    required(options, "options").log_function = function;
    options->log_param = param;
  });
}

OrtStatus* EnableProfiling(OrtSessionOptions* options, const PathChar* prefix) {
  return guarded([&] {
    required(options, "options").profile_prefix = path_of(prefix, "profile_file_prefix");
  });
}
OrtStatus* DisableProfiling(OrtSessionOptions* options) {
  return guarded([&] { required(options, "options").profile_prefix.reset(); });
}
OrtStatus* SetOptimizedModelFilePath(OrtSessionOptions* options, const PathChar* path) {
  return guarded([&] {
    required(options, "options").optimized_model_path = path_of(path, "optimized_model_filepath");
  });
}

OrtStatus* AddFreeDimensionOverride(OrtSessionOptions* options, const char* denotation,
                                    int64_t size) {
  return guarded([&] {
    required(options, "options").denoted_sizes[text_of(denotation, "dim_denotation")] = size;
  });
}
OrtStatus* AddFreeDimensionOverrideByName(OrtSessionOptions* options, const char* name,
                                          int64_t size) {
  return guarded([&] { required(options, "options").sizes[text_of(name, "dim_name")] = size; });
}

// --- Config entries -------------------------------------------------------------------------

// Whether it is that word, in small letters or not.
bool is_word(std::string_view text, std::string_view word) {
  const auto to_small = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(text.begin(), text.end(), word.begin(), word.end(),
                    [&](char a, char b) { return to_small(a) == b; });
}

bool flag_of_entry(const char* key, std::string_view value) {
  if (value == "1" || is_word(value, "true")) return true;
  if (value == "0" || is_word(value, "false")) return false;
  refuse(ORT_INVALID_ARGUMENT, "'{}' is '{}'; it is 0 or 1, or false or true", key, value);
}

int number_of_entry(const char* key, std::string_view value) {
  int number = 0;
  const char* const end = value.data() + value.size();
  const auto read = std::from_chars(value.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end)
    refuse(ORT_INVALID_ARGUMENT, "'{}' is '{}', which is no number of 32 bits", key, value);
  return number;
}

GraphOptimizationLevel level_of_entry(const char* key, std::string_view value) {
  constexpr std::pair<std::string_view, GraphOptimizationLevel> levels[] = {
      {"disable_all", ORT_DISABLE_ALL},
      {"enable_basic", ORT_ENABLE_BASIC},
      {"enable_extended", ORT_ENABLE_EXTENDED},
      {"enable_layout", ORT_ENABLE_LAYOUT},
      {"enable_all", ORT_ENABLE_ALL}};
  for (const auto& [name, level] : levels)
    if (is_word(value, name)) return level;
  refuse(ORT_INVALID_ARGUMENT,
         "'{}' is '{}'; it is disable_all, enable_basic, enable_extended, enable_layout or "
         "enable_all",
         key, value);
}

ExecutionMode mode_of_entry(const char* key, std::string_view value) {
  if (is_word(value, "sequential") || is_word(value, "ort_sequential")) return ORT_SEQUENTIAL;
  if (is_word(value, "parallel") || is_word(value, "ort_parallel")) return ORT_PARALLEL;
  refuse(ORT_INVALID_ARGUMENT, "'{}' is '{}'; it is sequential or parallel", key, value);
}

void set_own_threads(OrtSessionOptions* options, bool own) {
  if (own && !options->own_threads)
    refuse(ORT_INVALID_ARGUMENT,
           "the options say that the session has no threads of its own; that is not taken back");
  options->own_threads = own;
}

// Entries that stand for functions of the table: they set the same options, and are not kept.
struct OptionEntry {
  std::string_view key;
  void (*set)(OrtSessionOptions* options, const char* key, const char* value);
};

constexpr OptionEntry option_entries[] = {
    {"session.intra_op_num_threads",
     [](OrtSessionOptions* options, const char* key, const char* value) {
       throw_status(SetIntraOpNumThreads(options, number_of_entry(key, value)));
     }},
    {"session.inter_op_num_threads",
     [](OrtSessionOptions* options, const char* key, const char* value) {
       throw_status(SetInterOpNumThreads(options, number_of_entry(key, value)));
     }},
    {"session.use_per_session_threads",
     [](OrtSessionOptions* options, const char* key, const char* value) {
       set_own_threads(options, flag_of_entry(key, value));
     }},
    {"session.graph_optimization_level",
     [](OrtSessionOptions* options, const char* key, const char* value) {
       options->optimization = level_of_entry(key, value);
     }},
    {"session.execution_mode",
     [](OrtSessionOptions* options, const char* key, const char* value) {
       options->execution_mode = mode_of_entry(key, value);
     }},
    {"session.enable_mem_pattern",
     [](OrtSessionOptions* options, const char* key, const char* value) {
       options->memory_pattern = flag_of_entry(key, value);
     }},
    {"session.enable_cpu_mem_arena",
     [](OrtSessionOptions*, const char* key, const char* value) { flag_of_entry(key, value); }},
    {"session.use_deterministic_compute",
     [](OrtSessionOptions* options, const char* key, const char* value) {
       options->deterministic = flag_of_entry(key, value);
     }},
    {"session.log_id",
     [](OrtSessionOptions* options, const char*, const char* value) { options->log_id = value; }},
    {"session.log_severity_level",
     [](OrtSessionOptions* options, const char* key, const char* value) {
       throw_status(SetSessionLogSeverityLevel(options, number_of_entry(key, value)));
     }},
    {"session.log_verbosity_level",
     [](OrtSessionOptions* options, const char* key, const char* value) {
       options->log_verbosity = number_of_entry(key, value);
     }},
    // The prefix of the profiles' names; none: no profile.
    {"session.enable_profiling",
     [](OrtSessionOptions* options, const char*, const char* value) {
       options->profile_prefix.reset();
       if (*value != 0) options->profile_prefix = value;
     }},
    {"session.optimized_model_filepath",
     [](OrtSessionOptions* options, const char*, const char* value) {
       options->optimized_model_path = value;
     }},
};

OrtStatus* AddSessionConfigEntry(OrtSessionOptions* options, const char* key, const char* value) {
  return guarded([&] {
    if (text_of(key, "config_key").empty())
      refuse(ORT_INVALID_ARGUMENT, "the key of a config entry is empty");
    required(options, "options"), required(value, "config_value");
    const auto* const option = std::ranges::find(option_entries, key, &OptionEntry::key);
    if (option != std::end(option_entries)) return option->set(options, key, value);
    options->config[key] = value;
  });
}
OrtStatus* HasSessionConfigEntry(const OrtSessionOptions* options, const char* key, int* out) {
  return guarded([&] {
    required(out, "out") = required(options, "options").config.contains(text_of(key, "config_key"));
  });
}
// `size`: the room for the value with its zero, then how much that takes; too little room is
// ORT_INVALID_ARGUMENT.
OrtStatus* GetSessionConfigEntry(const OrtSessionOptions* options, const char* key, char* value,
                                 size_t* size) {
  return guarded([&] {
    const auto found = required(options, "options").config.find(text_of(key, "config_key"));
    if (found == options->config.end())
      refuse(ORT_INVALID_ARGUMENT, "the options have no config entry '{}'", key);
    const size_t room = required(size, "size");
    *size = found->second.size() + 1;
    if (value == nullptr) return;
    if (room < *size)
      refuse(ORT_INVALID_ARGUMENT, "the value has {} bytes, and there is room for {}", *size, room);
    std::memcpy(value, found->second.c_str(), *size);
  });
}
OrtStatus* GetSessionOptionsConfigEntries(const OrtSessionOptions* options,
                                          OrtKeyValuePairs** out) {
  return guarded([&] {
    auto pairs = std::make_unique<OrtKeyValuePairs>();
    pairs->entries = required(options, "options").config;
    pairs->refresh();
    give(out, "out", pairs.release());
  });
}

// `stays`: the memory is the caller's as long as sessions have it, so it is used where it lies.
// Otherwise sessions copy memory that no value owns, and refuse models without such an initializer.
void add_initializer(OrtSessionOptions& options, const char* name, const OrtValue* value,
                     bool stays) {
  Value given = run_value(required(value, "val"));
  if (stays && given.is_tensor() && given.tensor().owner() == nullptr &&
      given.tensor().element_type() != ElementType::string) {
    const Tensor& tensor = given.tensor();
    static const auto nobody = std::make_shared<const int>(0);
    given = Tensor::view(tensor.element_type(), tensor.shape(), tensor.data(), tensor.byte_size(),
                         nobody);
  }
  const bool is_new = options.initializers
                          .try_emplace(text_of(name, "name"),
                                       OrtSessionOptions::Initializer{std::move(given), !stays})
                          .second;
  if (!is_new)
    refuse(ORT_INVALID_ARGUMENT, "an initializer '{}' has already been added to the options", name);
}
OrtStatus* AddInitializer(OrtSessionOptions* options, const char* name, const OrtValue* value) {
  return guarded(
      [&] { add_initializer(required(options, "options"), &required(name, "name"), value, true); });
}
OrtStatus* AddExternalInitializers(OrtSessionOptions* options, const char* const* names,
                                   const OrtValue* const* values, size_t count) {
  return guarded([&] {
    items(names, count, "initializer_names"), items(values, count, "initializers");
    for (size_t i = 0; i < count; ++i)
      add_initializer(required(options, "options"), &required(names[i], "initializer_names"),
                      values[i], false);
  });
}
OrtStatus* AddExternalInitializersFromFilesInMemory(OrtSessionOptions* options,
                                                    const PathChar* const* names,
                                                    char* const* buffers, const size_t* lengths,
                                                    size_t count) {
  return guarded([&] {
    items(names, count, "external_initializer_file_names"),
        items(lengths, count, "external_initializer_file_lengths");
    items(buffers, count, "external_initializer_file_buffer_array");
    for (size_t i = 0; i < count; ++i) {
      const std::string name = path_of(names[i], "external_initializer_file_names");
      const char* const data =
          items(buffers[i], lengths[i], "external_initializer_file_buffer_array");
      if (!required(options, "options")
               .data_files.emplace(name, std::string_view(data, lengths[i]))
               .second)
        refuse(ORT_INVALID_ARGUMENT, "file '{}' is given twice", name);
    }
  });
}

OrtStatus* SessionOptionsSetLoadCancellationFlag(OrtSessionOptions* options, bool cancel) {
  return guarded([&] { required(options, "options").cancel_load->store(cancel); });
}

}  // namespace

std::string_view OrtSessionOptions::entry(std::string_view key) const {
  const auto found = config.find(key);
  return found == config.end() ? std::string_view() : std::string_view(found->second);
}

void add_session_options(OrtApi& table) {
  table.CreateSessionOptions = CreateSessionOptions;
  table.CloneSessionOptions = CloneSessionOptions;
  table.ReleaseSessionOptions = ReleaseSessionOptions;
  table.SetIntraOpNumThreads = SetIntraOpNumThreads;
  table.SetInterOpNumThreads = SetInterOpNumThreads;
  table.DisablePerSessionThreads = DisablePerSessionThreads;
  table.SetSessionGraphOptimizationLevel = SetSessionGraphOptimizationLevel;
  table.SetSessionExecutionMode = SetSessionExecutionMode;
  table.GetSessionExecutionMode = GetSessionExecutionMode;
  table.EnableMemPattern = EnableMemPattern;
  table.DisableMemPattern = DisableMemPattern;
  table.GetMemPatternEnabled = GetMemPatternEnabled;
  table.EnableCpuMemArena = EnableCpuMemArena;
  table.DisableCpuMemArena = DisableCpuMemArena;
  table.SetDeterministicCompute = SetDeterministicCompute;
  table.SetSessionLogId = SetSessionLogId;
  table.SetSessionLogVerbosityLevel = SetSessionLogVerbosityLevel;
  table.SetSessionLogSeverityLevel = SetSessionLogSeverityLevel;
  table.SetUserLoggingFunction = SetUserLoggingFunction;
  table.EnableProfiling = EnableProfiling;
  table.DisableProfiling = DisableProfiling;
  table.SetOptimizedModelFilePath = SetOptimizedModelFilePath;
  table.AddFreeDimensionOverride = AddFreeDimensionOverride;
  table.AddFreeDimensionOverrideByName = AddFreeDimensionOverrideByName;
  table.AddSessionConfigEntry = AddSessionConfigEntry;
  table.HasSessionConfigEntry = HasSessionConfigEntry;
  table.GetSessionConfigEntry = GetSessionConfigEntry;
  table.GetSessionOptionsConfigEntries = GetSessionOptionsConfigEntries;
  table.AddInitializer = AddInitializer;
  table.AddExternalInitializers = AddExternalInitializers;
  table.AddExternalInitializersFromFilesInMemory = AddExternalInitializersFromFilesInMemory;
  table.SessionOptionsSetLoadCancellationFlag = SessionOptionsSetLoadCancellationFlag;
}

}  // namespace sardonyx::ort_api
