#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <filesystem>
#include <vector>

#include "base/fail.h"
#include "wire/confined_open.h"

#if defined(__linux__)
#include <linux/openat2.h>
#include <sys/syscall.h>
#endif

namespace sardonyx::wire {
namespace {

// A named pipe in the folder must not make the reader wait.
constexpr int reading = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

#if defined(__linux__) && defined(SYS_openat2)
int open_in_one_call(int folder, const std::string& relative) {
  open_how how{};
  how.flags = reading;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  for (int tries = 0;; ++tries) {
    const long fd = syscall(SYS_openat2, folder, relative.c_str(), &how, sizeof how);
    // EAGAIN: something was renamed meanwhile.
    if (fd >= 0 || (errno != EAGAIN && errno != EINTR) || tries == 16) return static_cast<int>(fd);
  }
}
#else
int open_in_one_call(int, const std::string&) {
  errno = ENOSYS;
  return -1;
}
#endif

}  // namespace

os::Descriptor open_confined(int folder, const std::string& relative) {
  const int fd = open_in_one_call(folder, relative);
  // EPERM: sandboxes answer so to calls they do not know.
  if (fd < 0 && (errno == ENOSYS || errno == EPERM))
    return open_confined_by_component(folder, relative);
  return os::Descriptor(fd);
}

os::Descriptor open_confined_by_component(int folder, const std::string& relative) {
  std::vector<std::string> parts;
  for (const auto& part : std::filesystem::path(relative)) {
    if (!part.empty() && part != ".") parts.push_back(part.string());
  }
  if (parts.empty()) return os::Descriptor(openat(folder, ".", reading));
  os::Descriptor at;
  for (size_t i = 0; i < parts.size(); ++i) {
    const int outer = at.is_open() ? at.get() : folder;
    const bool last = i + 1 == parts.size();
    const int fd = openat(outer, parts[i].c_str(), reading | O_NOFOLLOW | (last ? 0 : O_DIRECTORY));
    if (fd < 0) {
      // A link in place of a folder is reported as "not a folder".
      struct stat info {};
      const int reason = errno;
      const bool link = fstatat(outer, parts[i].c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
                        S_ISLNK(info.st_mode);
      errno = link ? ELOOP : reason;
      return {};
    }
    os::Descriptor next(fd);
    at = std::move(next);
  }
  return at;
}

os::Descriptor find_linked(int folder, const std::string& relative) {
  return os::Descriptor(openat(folder, relative.c_str(), O_PATH | O_CLOEXEC));
}

os::Descriptor reopened(int found) {
  return os::Descriptor(open(fmt::format("/proc/self/fd/{}", found).c_str(), O_RDONLY | O_CLOEXEC));
}

std::string real_path_of(int descriptor) {
  std::string path(PATH_MAX, '\0');
  const ssize_t length =
      readlink(fmt::format("/proc/self/fd/{}", descriptor).c_str(), path.data(), path.size());
  path.resize(length > 0 && static_cast<size_t>(length) < path.size() ? static_cast<size_t>(length)
                                                                      : 0);
  return path;
}

}  // namespace sardonyx::wire
