// Environments: where messages go, and what sessions of a process share.
#include <algorithm>
#include <cstdio>

#include "ort_api/handles.h"

namespace sardonyx::ort_api {

namespace {

OrtStatus* made_env(OrtLoggingFunction function, void* param, OrtLoggingLevel level, const char* id,
                    const OrtThreadingOptions* threading, OrtEnv** out) {
  return guarded([&] {
    auto env = std::make_unique<OrtEnv>();
    env->logger = {function, param, level, id == nullptr ? "" : id};
    if (threading != nullptr) {
      env->threads.emplace(threading->threads);
      env->flush_denormals = threading->flush_denormals;
    }
    give(out, "out", env.release());
  });
}

OrtStatus* CreateEnv(OrtLoggingLevel level, const char* id, OrtEnv** out) {
  return made_env(nullptr, nullptr, level, id, nullptr, out);
}
OrtStatus* CreateEnvWithCustomLogger(OrtLoggingFunction function, void* param,
                                     OrtLoggingLevel level, const char* id, OrtEnv** out) {
  return made_env(function, param, level, id, nullptr, out);
}
OrtStatus* CreateEnvWithGlobalThreadPools(OrtLoggingLevel level, const char* id,
                                          const OrtThreadingOptions* threading, OrtEnv** out) {
  return made_env(nullptr, nullptr, level, id, threading, out);
}
OrtStatus* CreateEnvWithCustomLoggerAndGlobalThreadPools(OrtLoggingFunction function, void* param,
                                                         OrtLoggingLevel level, const char* id,
                                                         const OrtThreadingOptions* threading,
                                                         OrtEnv** out) {
  return made_env(function, param, level, id, threading, out);
}
OrtStatus* CreateEnvWithOptions(const OrtEnvCreationOptions* options, OrtEnv** out) {
  constexpr uint32_t first_version = 24;  // that has these options
  OrtStatus* const problem = guarded([&] {
    const OrtEnvCreationOptions& given = required(options, "options");
    if (given.version < first_version)
      refuse(ORT_INVALID_ARGUMENT, "'version' of the options is {}; they are there since {}",
             given.version, first_version);
    if (given.logging_severity_level < ORT_LOGGING_LEVEL_VERBOSE ||
        given.logging_severity_level > ORT_LOGGING_LEVEL_FATAL)
      refuse(ORT_INVALID_ARGUMENT, "{} is no level of severity; there are 0 (verbose) to 4 (fatal)",
             given.logging_severity_level);
    required(given.log_id, "log_id");
  });
  if (problem != nullptr) return problem;
  return made_env(options->custom_logging_function, options->custom_logging_param,
                  static_cast<OrtLoggingLevel>(options->logging_severity_level), options->log_id,
                  options->threading_options, out);
}
void ReleaseEnv(OrtEnv* env) { delete env; }

// Nothing is ever sent anywhere.
OrtStatus* EnableTelemetryEvents(const OrtEnv*) { return nullptr; }
OrtStatus* DisableTelemetryEvents(const OrtEnv*) { return nullptr; }
OrtStatus* SetLanguageProjection(const OrtEnv*, OrtLanguageProjection) { return nullptr; }

OrtStatus* UpdateEnvWithCustomLogLevel(OrtEnv* env, OrtLoggingLevel level) {
  return guarded([&] {
    const std::lock_guard lock(required(env, "ort_env").mutex);
    env->logger.level = level;
  });
}

const char* GetBuildInfoString() {
  static const std::string text =
      fmt::format("Sardonyx {}, as ONNX Runtime {}", sardonyx::version(), release);
  return text.c_str();
}

OrtStatus* CreateThreadingOptions(OrtThreadingOptions** out) {
  return guarded([&] { give(out, "out", new OrtThreadingOptions); });
}
void ReleaseThreadingOptions(OrtThreadingOptions* options) { delete options; }
OrtStatus* SetGlobalIntraOpNumThreads(OrtThreadingOptions* options, int threads) {
  return guarded([&] { required(options, "tp_options").threads = std::max(0, threads); });
}
// What decides nothing here: nodes run one after the other; threads spin for microseconds.
OrtStatus* SetGlobalInterOpNumThreads(OrtThreadingOptions* options, int) {
  return guarded([&] { required(options, "tp_options"); });
}
OrtStatus* SetGlobalSpinControl(OrtThreadingOptions* options, int) {
  return guarded([&] { required(options, "tp_options"); });
}
OrtStatus* SetGlobalDenormalAsZero(OrtThreadingOptions* options) {
  return guarded([&] { required(options, "tp_options").flush_denormals = true; });
}
OrtStatus* SetGlobalIntraOpThreadAffinity(OrtThreadingOptions* options, const char* text) {
  return guarded([&] { required(options, "tp_options"), required(text, "affinity_string"); });
}
OrtStatus* SetPerSessionThreadPoolCallbacks(OrtEnv* env,
                                            const OrtThreadPoolCallbacksConfig* config) {
  return guarded([&] {
    required(env, "env"), required(config, "config");
    refuse(ORT_NOT_IMPLEMENTED, "threads do not call functions of the caller's");
  });
}

// --- Allocators for sessions with "session.use_env_allocators" ------------------------------

bool is_of(const OrtAllocator* allocator, const OrtMemoryInfo& info) {
  const OrtMemoryInfo* const own = allocator->Info(allocator);
  return own != nullptr && own->name == info.name && own->id == info.id;
}

void add_allocator(OrtEnv& env, OrtAllocator* allocator, const OrtMemoryInfo& info) {
  require_cpu(info);
  const std::lock_guard lock(env.mutex);
  std::erase_if(env.allocators, [&](const OrtAllocator* other) {
    return is_of(other, info);
  });  // the newer one takes its place
  env.allocators.push_back(allocator);
}

OrtStatus* RegisterAllocator(OrtEnv* env, OrtAllocator* allocator) {
  return guarded([&] {
    const OrtMemoryInfo* const info = required(allocator, "allocator").Info(allocator);
    add_allocator(required(env, "env"), allocator, required(info, "the allocator's memory info"));
  });
}
OrtStatus* UnregisterAllocator(OrtEnv* env, const OrtMemoryInfo* info) {
  return guarded([&] {
    OrtEnv& from = required(env, "env");
    const OrtMemoryInfo& wanted = required(info, "mem_info");
    const std::lock_guard lock(from.mutex);
    if (std::erase_if(from.allocators,
                      [&](const OrtAllocator* one) { return is_of(one, wanted); }) == 0)
      refuse(ORT_INVALID_ARGUMENT, "the environment has no allocator for memory '{}'", wanted.name);
  });
}
OrtStatus* CreateAndRegisterAllocator(OrtEnv* env, const OrtMemoryInfo* info, const OrtArenaCfg*) {
  return guarded([&] {
    add_allocator(required(env, "env"), default_allocator(), required(info, "mem_info"));
  });
}
OrtStatus* CreateAndRegisterAllocatorV2(OrtEnv* env, const char* provider,
                                        const OrtMemoryInfo* info, const OrtArenaCfg*,
                                        const char* const* keys, const char* const* values,
                                        size_t count) {
  return guarded([&] {
    items(keys, count, "provider_options_keys"), items(values, count, "provider_options_values");
    if (text_of(provider, "provider_type") != "CPUExecutionProvider")
      refuse(ORT_INVALID_ARGUMENT,
             "there is no allocator of '{}'; there is one provider, CPUExecutionProvider",
             provider);
    add_allocator(required(env, "env"), default_allocator(), required(info, "mem_info"));
  });
}

}  // namespace

void OrtLogger::tell(OrtLoggingLevel severity, const char* category, const char* place,
                     const std::string& message) const {
  if (severity < level) return;
  if (function != nullptr) {
    function(param, severity, category, id.c_str(), place, message.c_str());
    return;
  }
  std::fprintf(stderr, "[%c:%s:%s, %s] %s\n", "VIWEF"[std::clamp<int>(severity, 0, 4)], category,
               id.c_str(), place, message.c_str());
}

void add_environment(OrtApi& table) {
  table.CreateEnv = CreateEnv;
  table.CreateEnvWithCustomLogger = CreateEnvWithCustomLogger;
  table.CreateEnvWithGlobalThreadPools = CreateEnvWithGlobalThreadPools;
  table.CreateEnvWithCustomLoggerAndGlobalThreadPools =
      CreateEnvWithCustomLoggerAndGlobalThreadPools;
  table.CreateEnvWithOptions = CreateEnvWithOptions;
  table.ReleaseEnv = ReleaseEnv;
  table.EnableTelemetryEvents = EnableTelemetryEvents;
  table.DisableTelemetryEvents = DisableTelemetryEvents;
  table.SetLanguageProjection = SetLanguageProjection;
  table.UpdateEnvWithCustomLogLevel = UpdateEnvWithCustomLogLevel;
  table.GetBuildInfoString = GetBuildInfoString;
  table.CreateThreadingOptions = CreateThreadingOptions;
  table.ReleaseThreadingOptions = ReleaseThreadingOptions;
  table.SetGlobalIntraOpNumThreads = SetGlobalIntraOpNumThreads;
  table.SetGlobalInterOpNumThreads = SetGlobalInterOpNumThreads;
  table.SetGlobalSpinControl = SetGlobalSpinControl;
  table.SetGlobalDenormalAsZero = SetGlobalDenormalAsZero;
  table.SetGlobalIntraOpThreadAffinity = SetGlobalIntraOpThreadAffinity;
  table.SetPerSessionThreadPoolCallbacks = SetPerSessionThreadPoolCallbacks;
  table.RegisterAllocator = RegisterAllocator;
  table.UnregisterAllocator = UnregisterAllocator;
  table.CreateAndRegisterAllocator = CreateAndRegisterAllocator;
  table.CreateAndRegisterAllocatorV2 = CreateAndRegisterAllocatorV2;
}

}  // namespace sardonyx::ort_api
