// Options of single runs.
#include "ort_api/handles.h"

namespace sardonyx::ort_api {

namespace {

OrtStatus* CreateRunOptions(OrtRunOptions** out) {
  return guarded([&] { give(out, "out", new OrtRunOptions); });
}
void ReleaseRunOptions(OrtRunOptions* options) { delete options; }

OrtStatus* RunOptionsSetRunLogVerbosityLevel(OrtRunOptions* options, int level) {
  return guarded([&] { required(options, "options").log_verbosity = level; });
}
OrtStatus* RunOptionsSetRunLogSeverityLevel(OrtRunOptions* options, int level) {
  return guarded([&] { required(options, "options").log_severity = level; });
}
OrtStatus* RunOptionsSetRunTag(OrtRunOptions* options, const char* tag) {
  return guarded([&] { required(options, "options").tag = tag == nullptr ? "" : tag; });
}
OrtStatus* RunOptionsGetRunLogVerbosityLevel(const OrtRunOptions* options, int* out) {
  return guarded(
      [&] { required(out, "log_verbosity_level") = required(options, "options").log_verbosity; });
}
OrtStatus* RunOptionsGetRunLogSeverityLevel(const OrtRunOptions* options, int* out) {
  return guarded(
      [&] { required(out, "log_severity_level") = required(options, "options").log_severity; });
}
OrtStatus* RunOptionsGetRunTag(const OrtRunOptions* options, const char** out) {
  return guarded([&] { required(out, "run_tag") = required(options, "options").tag.c_str(); });
}

// Stops the runs that go on with these options, and those that begin.
OrtStatus* RunOptionsSetTerminate(OrtRunOptions* options) {
  return guarded([&] { required(options, "options").terminate = true; });
}
OrtStatus* RunOptionsUnsetTerminate(OrtRunOptions* options) {
  return guarded([&] { required(options, "options").terminate = false; });
}

OrtStatus* AddRunConfigEntry(OrtRunOptions* options, const char* key, const char* value) {
  return guarded([&] {
    if (text_of(key, "config_key").empty())
      refuse(ORT_INVALID_ARGUMENT, "the key of a config entry is empty");
    required(options, "options").config[key] = text_of(value, "config_value");
  });
}
const char* GetRunConfigEntry(const OrtRunOptions* options, const char* key) {
  if (options == nullptr || key == nullptr) return nullptr;
  const auto found = options->config.find(std::string_view(key));
  return found == options->config.end() ? nullptr : found->second.c_str();
}

// The adapter is the caller's as long as runs have the options.
OrtStatus* RunOptionsAddActiveLoraAdapter(OrtRunOptions* options, const OrtLoraAdapter* adapter) {
  return guarded(
      [&] { required(options, "options").adapters.push_back(&required(adapter, "adapter")); });
}

OrtStatus* RunOptionsEnableProfiling(OrtRunOptions* options, const PathChar* prefix) {
  return guarded([&] {
    required(options, "options").profile_prefix = path_of(prefix, "profile_file_prefix");
  });
}
OrtStatus* RunOptionsDisableProfiling(OrtRunOptions* options) {
  return guarded([&] { required(options, "options").profile_prefix.reset(); });
}

void RunOptionsSetSyncStream(OrtRunOptions*, OrtSyncStream*) {}  // there is none

}  // namespace

void add_run_options(OrtApi& table) {
  table.CreateRunOptions = CreateRunOptions;
  table.ReleaseRunOptions = ReleaseRunOptions;
  table.RunOptionsSetRunLogVerbosityLevel = RunOptionsSetRunLogVerbosityLevel;
  table.RunOptionsSetRunLogSeverityLevel = RunOptionsSetRunLogSeverityLevel;
  table.RunOptionsSetRunTag = RunOptionsSetRunTag;
  table.RunOptionsGetRunLogVerbosityLevel = RunOptionsGetRunLogVerbosityLevel;
  table.RunOptionsGetRunLogSeverityLevel = RunOptionsGetRunLogSeverityLevel;
  table.RunOptionsGetRunTag = RunOptionsGetRunTag;
  table.RunOptionsSetTerminate = RunOptionsSetTerminate;
  table.RunOptionsUnsetTerminate = RunOptionsUnsetTerminate;
  table.AddRunConfigEntry = AddRunConfigEntry;
  table.GetRunConfigEntry = GetRunConfigEntry;
  table.RunOptionsAddActiveLoraAdapter = RunOptionsAddActiveLoraAdapter;
  table.RunOptionsEnableProfiling = RunOptionsEnableProfiling;
  table.RunOptionsDisableProfiling = RunOptionsDisableProfiling;
  table.RunOptionsSetSyncStream = RunOptionsSetSyncStream;
}

}  // namespace sardonyx::ort_api
