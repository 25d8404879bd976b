#include "base/os.h"

#include <charconv>
#include <system_error>

namespace sardonyx::os {

std::string folder_of(const std::string& path) {
  const size_t last = path.find_last_of(separators);
  if (last == std::string::npos) return ".";
  return last == 0 ? path.substr(0, 1) : path.substr(0, last);
}

std::optional<int> descriptor_named(std::string_view path) {
  constexpr std::string_view streams[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
  for (int i = 0; i < 3; ++i) {
    if (path == streams[i]) return i;
  }
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    int descriptor = -1;
    const char* end = path.data() + path.size();
    const auto [stop, problem] = std::from_chars(path.data() + folder.size(), end, descriptor);
    if (problem == std::errc() && stop == end && descriptor >= 0) return descriptor;
  }
  return std::nullopt;
}

}  // namespace sardonyx::os
