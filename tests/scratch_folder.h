// A folder for the files of one test.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace sardonyx::test {

// It has a name that nothing else has, so that tests can run beside each other, and is removed with
// everything in it.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::random_device random;
    const std::string name = "sardonyx-" + std::to_string(random()) + std::to_string(random());
    path_ = std::filesystem::temp_directory_path() / name;
    if (!std::filesystem::create_directory(path_)) throw std::runtime_error("no temporary folder");
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::string path() const { return path_.string(); }
  std::string operator/(std::string_view name) const { return (path_ / name).string(); }
  // The names of what is in it, sorted.
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    return names;
  }

 private:
  std::filesystem::path path_;
};

// Puts bytes into a file, in its place where it is there. Windows changes no file that is mapped:
// there what was in it goes elsewhere first.
inline void write_bytes(const std::string& path, const std::string& bytes) {
#ifdef _WIN32
  if (std::filesystem::exists(path)) {
    std::random_device random;
    const std::string aside = "sardonyx-" + std::to_string(random()) + std::to_string(random());
    std::filesystem::rename(path, std::filesystem::temp_directory_path() / aside);
  }
#endif
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace sardonyx::test
