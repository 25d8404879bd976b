// Talking to the person at the terminal.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace sardonyx::cli {

// The command line itself makes no sense: exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Writes to standard output at once. Throws Error (unreadable) where that fails.
void emit(std::string_view text);
void emit_json(const nlohmann::ordered_json& json);
// As emit_json writes it.
std::string text_of(const nlohmann::ordered_json& json);

// Writes to standard error; what can't be written there is lost, and nothing else is.
void say(std::string_view text);
// "sardonyx: warning: …" on standard error.
void warn(std::string_view text);

// A name or text of a file's as a terminal may be shown it: control characters escaped.
std::string shown(std::string_view text);

// "1,234,567"; "12.3 ms" ("45 µs" below one); "45.6 MB"; "1.23 GFLOP".
std::string grouped(int64_t number);
std::string milliseconds(double ms);
std::string bytes_text(double bytes);
std::string flops_text(double flops);

// Where a step came from: "from Add 'x', Sqrt 'y'", with "and 7 more" where its sources are more
// than `most`; its origin where it has none.
std::string origin_text(const std::string& origin, std::vector<std::string> sources,
                        size_t most = SIZE_MAX);
constexpr size_t max_sources_shown = 6;

// Says on a line of its own, when standard error is a terminal and the work takes long, what is
// being done. The line is gone when this is destroyed.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void set(std::string what);

 private:
  void watch();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string what_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace sardonyx::cli
