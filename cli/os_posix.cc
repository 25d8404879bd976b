#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "os.h"

namespace sardonyx::cli::os {
namespace {

bool write_all(int descriptor, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t done = ::write(descriptor, data, size);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return false;
    data += done;
    size -= static_cast<size_t>(done);
  }
  return true;
}

bool copy_all(int from, int to) {
  std::array<char, 1 << 16> part;
  for (;;) {
    const ssize_t got = ::read(from, part.data(), part.size());
    if (got == 0) return true;
    if (got < 0 && errno != EINTR) return false;
    if (got > 0 && !write_all(to, part.data(), static_cast<size_t>(got))) return false;
  }
}

// A field of /proc/self/status, in MB.
double status_megabytes(std::string_view field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.size() > field.size() && line.starts_with(field) && line[field.size()] == ':') {
      return std::strtod(line.c_str() + field.size() + 1, nullptr) / 1024;
    }
  }
  return 0;
}

struct {
  const char* message;
  const char* report;
  int exit_code;
} lost_mapping;

void on_sigbus(int) {
  [[maybe_unused]] ssize_t written =
      ::write(STDERR_FILENO, lost_mapping.message, std::strlen(lost_mapping.message));
  written = ::write(STDOUT_FILENO, lost_mapping.report, std::strlen(lost_mapping.report));
  _exit(lost_mapping.exit_code);
}

void (*interrupted)() = nullptr;
void on_interrupt(int) { interrupted(); }
struct sigaction before[3]{};  // of SIGINT, SIGTERM and SIGPIPE

}  // namespace

std::vector<std::string> begin(int count, char** arguments) {
  // A write beyond the limit on the size of files fails as any other, and is cleaned up after.
  ::signal(SIGXFSZ, SIG_IGN);
  return {arguments, arguments + count};
}

bool is_terminal(Stream stream) { return ::isatty(stream) == 1; }

std::filesystem::path path(std::string_view text) { return text; }
std::string text(const std::filesystem::path& path) { return path.string(); }

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

bool is_folder(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

int64_t file_bytes(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) ? info.st_size : 0;
}

bool is_pipe(int descriptor) {
  struct stat info {};
  return ::fstat(descriptor, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode));
}

bool gather(int descriptor) {
  const int memory = ::memfd_create("gathered", MFD_CLOEXEC);
  const bool whole = memory >= 0 && copy_all(descriptor, memory) && ::dup2(memory, descriptor) >= 0;
  const int problem = errno;
  if (memory >= 0) ::close(memory);
  errno = problem;
  return whole;
}

double resident_megabytes() { return status_megabytes("VmRSS"); }
double peak_megabytes() { return status_megabytes("VmHWM"); }

bool limit_memory(int64_t bytes) {
  rlimit held{};
  if (::getrlimit(RLIMIT_DATA, &held) != 0) return false;
  const auto wanted = static_cast<rlim_t>(bytes);
  if (held.rlim_cur != RLIM_INFINITY && held.rlim_cur <= wanted) return false;
  held.rlim_cur = wanted;
  return ::setrlimit(RLIMIT_DATA, &held) == 0;
}

void on_lost_mapping(const char* message, const char* report, int exit_code) {
  lost_mapping = {message, report, exit_code};
  struct sigaction action {};
  action.sa_handler = on_sigbus;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

Interrupts::Interrupts(void (*then)()) {
  interrupted = then;
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, &before[0]);
  ::sigaction(SIGTERM, &action, &before[1]);
  action.sa_handler = SIG_IGN, action.sa_flags = 0;
  ::sigaction(SIGPIPE, &action, &before[2]);
}

Interrupts::~Interrupts() {
  ::sigaction(SIGINT, &before[0], nullptr);
  ::sigaction(SIGTERM, &before[1], nullptr);
  ::sigaction(SIGPIPE, &before[2], nullptr);
}

}  // namespace sardonyx::cli::os
