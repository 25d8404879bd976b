#include "wire/external.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/fail.h"
#include "wire/confined_open.h"
#include "wire/sha1.h"

namespace sardonyx::wire {
namespace {

// What a tensor says about its data. Only these keys have a meaning; any other is passed over.
struct Place {
  std::string location;
  std::string checksum;
  uint64_t offset = 0;
  std::optional<uint64_t> length;
};

uint64_t number_of(const ir::StringEntry& entry) {
  uint64_t number = 0;
  const char* end = entry.value.data() + entry.value.size();
  const auto [stop, error] = std::from_chars(entry.value.data(), end, number);
  if (error != std::errc() || stop != end) {
    fail(ErrorCode::invalid_model,
         "the {} of its external data is '{}'; it must be a decimal number below 2^64", entry.key,
         entry.value);
  }
  return number;
}

void require_safe(const std::string& location) {
  if (location.empty()) fail(ErrorCode::invalid_model, "its external data has no location");
  if (location.find('\0') != std::string::npos) {
    fail(ErrorCode::invalid_model, "the location of its external data has a zero byte in it");
  }
  if (location.front() == '/') {
    fail(ErrorCode::invalid_model,
         "the location '{}' of its external data is absolute; it must be relative to the model's "
         "folder",
         location);
  }
  for (const auto& part : std::filesystem::path(location)) {
    if (part == "..") {
      fail(ErrorCode::invalid_model,
           "the location '{}' of its external data has '..' in it; it must stay in the model's "
           "folder",
           location);
    }
  }
}

Place place_of(const ir::TensorProto& tensor) {
  Place place;
  int locations = 0, offsets = 0, lengths = 0;
  for (const ir::StringEntry& entry : tensor.external_data) {
    if (entry.key == "location") {
      place.location = entry.value;
      ++locations;
    } else if (entry.key == "offset") {
      place.offset = number_of(entry);
      ++offsets;
    } else if (entry.key == "length") {
      place.length = number_of(entry);
      ++lengths;
    } else if (entry.key == "checksum") {
      place.checksum = entry.value;
    }
  }
  if (locations > 1 || offsets > 1 || lengths > 1) {
    fail(ErrorCode::invalid_model,
         "its external data states location, offset or length more than once");
  }
  require_safe(place.location);
  return place;
}

bool lies_in(const std::string& path, const std::string& folder) {
  return !folder.empty() && path.starts_with(folder) &&
         (path.size() == folder.size() || path[folder.size()] == '/' || folder == "/");
}

std::string real_folder(const std::string& folder) {
  char* real = realpath(folder.c_str(), nullptr);
  if (real == nullptr) {
    fail_at(folder, ErrorCode::unreadable, "the trusted folder cannot be resolved: {}",
            std::strerror(errno));
  }
  std::string path(real);
  std::free(real);
  return path;
}

}  // namespace

struct ExternalData::File {
  Bytes bytes;
  std::string sha1;  // empty until a checksum was asked for
};

ExternalData::ExternalData(std::string folder, ExternalOptions options)
    : folder_(std::move(folder)), options_(std::move(options)) {}

ExternalData::~ExternalData() { Descriptor(folder_fd_).reset(); }

int ExternalData::folder_descriptor() {
  if (folder_.empty()) {
    fail(ErrorCode::invalid_model,
         "its elements are external data, but the model was read from memory: give the folder its "
         "files are in");
  }
  if (folder_fd_ < 0) folder_fd_ = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_fd_ < 0)
    fail_at(folder_, ErrorCode::unreadable, "cannot open the model's folder: {}",
            std::strerror(errno));
  return folder_fd_;
}

ExternalData::File& ExternalData::map_once(int descriptor, const std::string& location) {
  struct stat info {};
  if (fstat(descriptor, &info) != 0) {
    fail(ErrorCode::unreadable, "cannot look at external data '{}': {}", location,
         std::strerror(errno));
  }
  auto& file = files_[{info.st_dev, info.st_ino}];
  if (!file) file = std::make_unique<File>(File{map_descriptor(descriptor, location), {}});
  by_location_[location] = file.get();
  return *file;
}

// Through links, but only to a regular file whose real place is in the trusted folder.
ExternalData::File& ExternalData::open_link(const std::string& location,
                                            const std::string& refusal) {
  if (options_.trusted_folder.empty()) {
    fail(ErrorCode::unreadable,
         "external data '{}' {}, which could lead to any file; name the folder it leads into as "
         "trusted_folder to allow it",
         location, refusal);
  }
  const Descriptor found(openat(folder_descriptor(), location.c_str(), O_PATH | O_CLOEXEC));
  if (!found.is_open()) {
    fail(ErrorCode::unreadable, "cannot open external data '{}': {}", location,
         std::strerror(errno));
  }
  const std::string real = real_path_of(found.get());
  const std::string trusted = real_folder(options_.trusted_folder);
  if (!lies_in(real, trusted)) {
    fail(ErrorCode::unreadable,
         "external data '{}' {} and leads to '{}', which is not in the trusted_folder '{}'",
         location, refusal, real, trusted);
  }
  struct stat info {};
  if (fstat(found.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    fail(ErrorCode::unreadable, "external data '{}' leads to '{}', which is not a regular file",
         location, real);
  }
  // The same file, whatever its name points to by now.
  const Descriptor file(
      open(fmt::format("/proc/self/fd/{}", found.get()).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) {
    fail(ErrorCode::unreadable, "cannot open external data '{}': {}", location,
         std::strerror(errno));
  }
  return map_once(file.get(), location);
}

ExternalData::File& ExternalData::open_file(const std::string& location) {
  const auto known = by_location_.find(location);
  if (known != by_location_.end()) return *known->second;
  const Descriptor file = open_confined(folder_descriptor(), location);
  if (!file.is_open()) {
    if (errno == ELOOP || errno == EXDEV)
      return open_link(location, "is a symbolic link or reached through one");
    fail(ErrorCode::unreadable, "cannot open external data '{}' in the model's folder '{}': {}",
         location, folder_, std::strerror(errno));
  }
  struct stat info {};
  if (fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    fail(ErrorCode::unreadable, "external data '{}' is not a regular file", location);
  }
  if (info.st_nlink > 1)
    return open_link(location,
                     fmt::format("is a hard link (the file has {} names)", info.st_nlink));
  return map_once(file.get(), location);
}

Bytes ExternalData::bytes_of(const ir::TensorProto& tensor, uint64_t needed) {
  const Place place = place_of(tensor);
  const std::lock_guard lock(mutex_);
  File& file = open_file(place.location);
  if (options_.verify_checksums && !place.checksum.empty()) {
    if (file.sha1.empty()) file.sha1 = sha1_hex(file.bytes.span());
    std::string stated = place.checksum;
    std::transform(stated.begin(), stated.end(), stated.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    if (stated != file.sha1) {
      fail(ErrorCode::invalid_model,
           "external data '{}' has the SHA-1 digest {}; the model states {}", place.location,
           file.sha1, place.checksum);
    }
  }
  const uint64_t size = file.bytes.size();
  const uint64_t length = place.length.value_or(needed);
  if (length > size || place.offset > size - length) {
    fail(ErrorCode::invalid_model,
         "its external data is {} bytes at offset {} of '{}', which has {} bytes", length,
         place.offset, place.location, size);
  }
  if (length < needed) {
    fail(ErrorCode::invalid_model,
         "its external data is {} bytes long; its shape and element type need {}", length, needed);
  }
  return file.bytes.slice(place.offset, needed);
}

}  // namespace sardonyx::wire
