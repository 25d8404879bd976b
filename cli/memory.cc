#include "memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>

#include "commands.h"
#include "os.h"
#include "terminal.h"

namespace sardonyx::cli {
namespace {

int64_t limit_in_force = 0;  // 0: none

// Sanitizers map more than any limit that makes sense.
#ifdef SARDONYX_SANITIZED
constexpr bool limits_work = false;
#else
constexpr bool limits_work = true;
#endif

constexpr int64_t largest = int64_t{1} << 62;

int64_t size_of(const std::string& text) {
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, number);
  const std::string_view unit(stop, static_cast<size_t>(end - stop));
  int shift = unit.empty() ? 0 : -1;
  if (unit == "K" || unit == "k") shift = 10;
  if (unit == "M") shift = 20;
  if (unit == "G") shift = 30;
  if (problem != std::errc() || shift < 0 || number <= 0 || number > largest >> shift) {
    throw UsageError(fmt::format(
        "--memory-limit: '{}' is no size; give bytes, a number with K, M or G, or 'none'", text));
  }
  return number << shift;
}

int64_t sum(int64_t a, int64_t b) { return std::min(a, largest - b) + b; }
int64_t times(int64_t a, int64_t factor) { return std::min(a, largest / factor) * factor; }

// Of what lies beside a file: external data may be there.
int64_t bytes_beside(const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path folder = os::path(path).parent_path();
  std::error_code problem, ignored;
  fs::directory_iterator at(folder.empty() ? fs::path(".") : folder, problem), end;
  int64_t bytes = 0;
  constexpr int max_entries = 4096;
  for (int i = 0; i < max_entries && !problem && at != end; ++i, at.increment(problem)) {
    if (!at->is_regular_file(ignored)) continue;
    const auto size = at->file_size(ignored);
    if (!ignored) bytes = sum(bytes, static_cast<int64_t>(size));
  }
  return bytes;
}

int64_t justified_bytes(const std::vector<std::string>& arguments) {
  int64_t named = 0, beside = 0;
  for (size_t i = 1; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const std::string path = argument == "-" ? "/dev/stdin" : argument;
    const size_t equals = argument.find('=');
    int64_t bytes = os::file_bytes(path);
    if (bytes > 0 && argument != "-") beside = std::max(beside, bytes_beside(path));
    if (bytes == 0 && equals != std::string::npos)
      bytes = os::file_bytes(argument.substr(equals + 1));
    named = sum(named, bytes);
  }
  constexpr int64_t floor = int64_t{4} << 30, stack = int64_t{16} << 20;
  const auto threads = static_cast<int64_t>(std::thread::hardware_concurrency());
  return sum(std::max({floor, times(named, 64), times(beside, 8)}), threads * stack);
}

}  // namespace

void add_memory_option(const Options& command, std::string& limit) {
  command
      .add_option("--memory-limit", limit,
                  "Limit of memory, mapped files apart: bytes, a number with K, M or G, or none. "
                  "Without it 4G, or more where the files are large")
      .type_name("SIZE");
}

void limit_memory(const std::string& limit, const std::vector<std::string>& arguments) {
  const int64_t bytes = limit == "none" ? 0
                        : limit.empty() ? justified_bytes(arguments)
                                        : size_of(limit);
  // The user's own may be lower.
  if (limits_work && bytes > 0 && os::limit_memory(bytes)) limit_in_force = bytes;
}

std::string memory_advice() {
  if (limit_in_force == 0) return {};
  return fmt::format("; this process may use {} MiB: --memory-limit SIZE or none changes that",
                     limit_in_force >> 20);
}

}  // namespace sardonyx::cli
