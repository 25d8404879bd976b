#include "terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "fail.h"
#include "os.h"
#include "sardonyx/text.h"
#include "words.h"

namespace sardonyx::cli {
namespace {

constexpr auto patience = std::chrono::milliseconds(700);
constexpr auto refresh = std::chrono::milliseconds(200);

std::string scaled(double number, double step, std::initializer_list<std::string_view> units) {
  auto unit = units.begin();
  while (number >= step && unit + 1 != units.end()) {
    number /= step;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", number,
                     unit == units.begin() ? 0
                     : number < 10         ? 2
                     : number < 100        ? 1
                                           : 0,
                     *unit);
}

}  // namespace

void emit(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0)
    return;
  fail_at("standard output", ErrorCode::unreadable, "cannot write: {}", std::strerror(errno));
}

void say(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void warn(std::string_view text) { say(fmt::format("sardonyx: warning: {}\n", text)); }

void emit_json(const nlohmann::ordered_json& json) { emit(text_of(json)); }

std::string text_of(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string shown(std::string_view text) { return printable(text); }

std::string grouped(int64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    const size_t left = digits.size() - i;
    if (i > 0 && left % 3 == 0 && digits[i - 1] != '-') text += ',';
    text += digits[i];
  }
  return text;
}

std::string milliseconds(double ms) {
  if (ms < 1) return fmt::format("{:.{}f} µs", 1000 * ms, ms < 0.01 ? 2 : ms < 0.1 ? 1 : 0);
  return fmt::format("{:.{}f} ms", ms, ms < 10 ? 2 : ms < 100 ? 1 : 0);
}

std::string bytes_text(double bytes) {
  return scaled(bytes, 1000, {"bytes", "kB", "MB", "GB", "TB"});
}

std::string flops_text(double flops) {
  return scaled(flops, 1000, {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"});
}

std::string origin_text(const std::string& origin, std::vector<std::string> sources, size_t most) {
  if (sources.empty()) return origin;
  // What several in a row are of, " (in function …)", is told once, after the last of them.
  const auto tail = [](const std::string& source) {
    const size_t at = source.find(" (in function ");
    return at == source.npos ? std::string_view() : std::string_view(source).substr(at);
  };
  for (size_t i = 0; i + 1 < std::min(sources.size(), most); ++i) {
    const size_t length = tail(sources[i]).size();
    if (tail(sources[i]) == tail(sources[i + 1])) sources[i].resize(sources[i].size() - length);
  }
  return "from " + listed(sources, most);
}

Progress::Progress(std::string what) : what_(std::move(what)) {
  if (!os::is_terminal(os::standard_error)) return;
  try {
    thread_ = std::thread([this] { watch(); });
  } catch (const std::system_error&) {  // then nothing is told meanwhile
  }
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Progress::set(std::string what) {
  const std::lock_guard lock(mutex_);
  what_ = std::move(what);
}

void Progress::watch() {
  const auto start = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, patience, [&] { return done_; })) return;
  while (!done_) {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    say(fmt::format("\r\033[K{} … {:.0f} s", printable(what_), passed.count()));
    changed_.wait_for(lock, refresh, [&] { return done_; });
  }
  say("\r\033[K");
}

}  // namespace sardonyx::cli
