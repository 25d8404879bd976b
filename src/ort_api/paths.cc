// Paths, which callers on Windows give in UTF-16.
#include <filesystem>

#include "ort_api/handles.h"

namespace sardonyx::ort_api {

std::string path_of(const PathChar* path, const char* name) {
  const std::u8string text = std::filesystem::path(&required(path, name)).u8string();
  return {text.begin(), text.end()};
}

std::basic_string<PathChar> native_path(const std::string& path) {
  return std::filesystem::path(std::u8string(path.begin(), path.end())).native();
}

}  // namespace sardonyx::ort_api
