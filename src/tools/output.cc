#include "sardonyx/outputs.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <unordered_set>

#include "base/fail.h"
#include "base/os.h"
#include "base/value_kind.h"
#include "formats/npy.h"
#include "tools/npz_names.h"
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

std::vector<std::string> npz_names(std::span<const ValueDescription> outputs) {
  std::unordered_set<std::string> taken;
  for (const ValueDescription& output : outputs) taken.insert(output.name);
  std::vector<std::string> names;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = outputs[i].name;
    names.push_back(is_harmless(name) ? name : fmt::format("output_{}", i));
    while (names[i] != name && !taken.insert(names[i]).second) names[i] += '_';
  }
  return names;
}

void write_output_npz(const std::string& path, std::span<const ValueDescription> descriptions,
                      std::span<const Value> outputs) {
  if (descriptions.size() != outputs.size())
    fail_at(path, ErrorCode::bad_input, "{} outputs are described, and {} are given",
            descriptions.size(), outputs.size());
  std::vector<std::string> names = npz_names(descriptions);
  std::unordered_set<std::string_view> written;
  std::vector<formats::NamedTensor> tensors;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = descriptions[i].name;
    if (outputs[i].kind() == Value::Kind::none) continue;
    if (!outputs[i].is_tensor()) {
      fail_at(fmt::format("output '{}'", name), ErrorCode::bad_input,
              "is {}, which an .npz file cannot hold; name a folder instead",
              with_article(outputs[i].kind()));
    }
    if (!written.insert(name).second) continue;  // the same value
    tensors.push_back({std::move(names[i]), outputs[i].tensor()});
  }
  formats::write_npz(tensors, path);
}

void write_text(const std::string& path, std::string_view text) {
  wire::write_file(path, [&](wire::Sink& sink) { sink.put(text); });
}

}  // namespace sardonyx
