// Traces of runs, in files as ONNX Runtime writes them: a list of events of Chrome's tracing.
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ort_api/handles.h"

namespace sardonyx::ort_api {

namespace {

using nlohmann::json;

json event_of(const char* category, const std::string& name, int thread, int64_t begin_us,
              int64_t length_us, json about) {
  return {{"cat", category}, {"pid", 0},  {"tid", thread}, {"dur", length_us},
          {"ts", begin_us},  {"ph", "X"}, {"name", name},  {"args", std::move(about)}};
}

// The node's own name; of one that has none the operator and its place, as ONNX Runtime calls it.
std::string name_of_step(const Profile::Step& step, int place) {
  const std::string before = step.operator_name + " '";
  if (step.node.starts_with(before) && step.node.ends_with('\''))
    return step.node.substr(before.size(), step.node.size() - before.size() - 1);
  return fmt::format("{}_{}", step.operator_name, place);
}

// "2026-11-30_15-04-05_123", of now.
std::string time_stamp() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto part =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm parts{};
#ifdef _WIN32
  localtime_s(&parts, &seconds);
#else
  localtime_r(&seconds, &parts);
#endif
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d_%H-%M-%S", &parts);
  return fmt::format("{}_{:03}", text, part);
}

// Opens a file of its own for each profile: several may end within one millisecond. Returns its
// path.
std::string open_new(const std::string& prefix, std::ofstream& file) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const std::string stem = fmt::format("{}_{}", prefix, time_stamp());
  std::string path = stem + ".json";
  std::error_code ignored;
  for (int i = 2; std::filesystem::exists(native_path(path), ignored); ++i)
    path = fmt::format("{}_{}.json", stem, i);
  file.open(std::filesystem::path(native_path(path)));
  return path;
}

OrtStatus* SessionEndProfiling(OrtSession* session, OrtAllocator* allocator, char** out) {
  return guarded([&] {
    OrtSession& from = required(session, "session");
    required(allocator, "allocator"), required(out, "out");
    *out = given_text(allocator, end_profiling(from));
  });
}

OrtStatus* SessionGetProfilingStartTimeNs(const OrtSession* session, uint64_t* out) {
  return guarded([&] { required(out, "out") = required(session, "session").profile_begin_ns; });
}

}  // namespace

void start_profiling(OrtSession& session, const OrtSessionOptions& options) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  session.profile_begin_ns =
      static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  if (!options.profile_prefix) return;
  session.profile = std::make_unique<Profile>();
  session.profile_prefix = *options.profile_prefix;
  session.is_profiled = true;
}

ProfiledRun::ProfiledRun(OrtSession& session) {
  if (!session.is_profiled) return;
  const std::lock_guard lock(session.profile_mutex);
  if (session.profile == nullptr || !session.is_profiled) return;
  session_ = &session;
  ++session.profiled_runs;
}

ProfiledRun::~ProfiledRun() {
  if (session_ == nullptr) return;
  // Told under the lock: whoever waits may destroy the session then.
  const std::lock_guard lock(session_->profile_mutex);
  if (--session_->profiled_runs == 0) session_->profile_is_free.notify_all();
}

std::string end_profiling(OrtSession& session) {
  std::unique_lock lock(session.profile_mutex);
  session.is_profiled = false;
  session.profile_is_free.wait(lock, [&] { return session.profiled_runs == 0; });
  const std::unique_ptr<Profile> profile = std::move(session.profile);
  return profile == nullptr ? std::string()
                            : write_trace(*profile, session.profile_prefix, session.made_us);
}

std::string write_trace(const Profile& profile, const std::string& prefix, int64_t made_us) {
  std::ofstream file;
  const std::string path = open_new(prefix, file);
  // Whole microseconds, as readers of such files want them.
  const auto since = [made_us](int64_t ns) { return ns / 1000 + made_us; };
  const auto lasting = [](int64_t begin, int64_t end) { return (end - begin + 500) / 1000; };
  file << "[\n"
       << event_of("Session", "session_initialization", 0, 0, made_us, json::object()).dump();
  for (const Profile::Run& run : profile.runs())
    file << ",\n"
         << event_of("Session", "model_run", 0, since(run.begin), lasting(run.begin, run.end),
                     json::object())
                .dump();
  for (const Profile::Event& event : profile.events()) {
    const Profile::Step& step = profile.steps()[static_cast<size_t>(event.step)];
    const json about = {{"op_name", step.operator_name},
                        {"node_index", std::to_string(event.step)},
                        {"kernel", step.kernel},
                        {"provider", "CPUExecutionProvider"}};
    // Names may be any bytes.
    file << ",\n"
         << event_of("Node", name_of_step(step, event.step) + "_kernel_time", event.thread,
                     since(event.begin), lasting(event.begin, event.end), about)
                .dump(-1, ' ', false, json::error_handler_t::replace);
  }
  file << "\n]\n";
  file.close();
  if (!file) refuse(ORT_FAIL, "the trace could not be written to {}", path);
  return path;
}

void add_profiling(OrtApi& table) {
  table.SessionEndProfiling = SessionEndProfiling;
  table.SessionGetProfilingStartTimeNs = SessionGetProfilingStartTimeNs;
}

}  // namespace sardonyx::ort_api
