#include "sardonyx/outputs.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <unordered_set>

#include "base/fail.h"
#include "base/os.h"
#include "formats/npy.h"
#include "wire/sink.h"
#include "wire/write.h"

namespace sardonyx {
namespace {

namespace fs = std::filesystem;

// A folder inside `parent` that goes away with everything in it.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const fs::path& parent)
      : path_(os::path(os::make_folder(os::text(parent / ".sardonyx-")))) {
    if (path_.empty()) {
      fail_at(os::text(parent), ErrorCode::unreadable, "cannot write here: {}",
              std::strerror(errno));
    }
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  fs::path operator/(const std::string& name) const { return path_ / os::path(name); }

 private:
  fs::path path_;
};

void write_bytes(const fs::path& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file)
    fail_at(os::text(path), ErrorCode::unreadable, "cannot write: {}", std::strerror(errno));
}

// A name that stays in its folder when an archive with it is unpacked.
bool is_harmless(std::string_view name) {
  if (name.empty() || name.size() > 200 || name.front() == '/' ||
      name.find("..") != std::string_view::npos)
    return false;
  return std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return c >= 0x20 && c != 0x7f && c != '\\'; });
}

}  // namespace

std::vector<std::string> write_output_folder(const std::string& folder,
                                             std::span<const Value> outputs) {
  try {
    fs::create_directories(os::path(folder));
    const TemporaryFolder temporary(os::path(folder));
    std::vector<std::string> names(outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].kind() == Value::Kind::none) continue;
      names[i] = fmt::format("output_{}.{}", i, outputs[i].is_tensor() ? "npy" : "pb");
      if (outputs[i].is_tensor()) {
        formats::write_npy(outputs[i].tensor(), os::text(temporary / names[i]));
      } else {
        write_bytes(temporary / names[i], wire::write_value(outputs[i]));
      }
    }
    for (std::string& name : names) {
      if (name.empty()) continue;
      const fs::path target = os::path(folder) / os::path(name);
      fs::rename(temporary / name, target);
      name = os::text(target);
    }
    return names;
  } catch (const fs::filesystem_error& error) {
    fail_at(folder, ErrorCode::unreadable, "cannot write: {}", error.code().message());
  }
}

void write_output_npz(const std::string& path, std::span<const ValueDescription> descriptions,
                      std::span<const Value> outputs) {
  if (descriptions.size() != outputs.size())
    fail_at(path, ErrorCode::bad_input, "{} outputs are described, and {} are given",
            descriptions.size(), outputs.size());
  std::unordered_set<std::string> names;
  for (const ValueDescription& description : descriptions) names.insert(description.name);
  std::unordered_set<std::string_view> written;
  std::vector<formats::NamedTensor> tensors;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = descriptions[i].name;
    if (outputs[i].kind() == Value::Kind::none) continue;
    if (!outputs[i].is_tensor()) {
      fail_at(fmt::format("output '{}'", name), ErrorCode::bad_input,
              "is a {}, which an .npz file cannot hold; name a folder instead",
              name_of(outputs[i].kind()));
    }
    if (!written.insert(name).second) continue;  // the same value
    std::string kept = is_harmless(name) ? name : fmt::format("output_{}", i);
    while (kept != name && !names.insert(kept).second) kept += '_';
    tensors.push_back({std::move(kept), outputs[i].tensor()});
  }
  formats::write_npz(tensors, path);
}

void write_text(const std::string& path, std::string_view text) {
  wire::write_file(path, [&](wire::Sink& sink) { sink.put(text); });
}

}  // namespace sardonyx
