#include "wire/external.h"

#include <algorithm>
#include <cctype>
#include <charconv>
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
  const std::filesystem::path path = os::path(location);
  if (path.has_root_name() || path.has_root_directory()) {
    fail(ErrorCode::invalid_model,
         "the location '{}' of its external data is absolute; it must be relative to the model's "
         "folder",
         location);
  }
  if (std::find(path.begin(), path.end(), std::filesystem::path("..")) != path.end()) {
    fail(ErrorCode::invalid_model,
         "the location '{}' of its external data has '..' in it; it must stay in the model's "
         "folder",
         location);
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
  const auto ends = [](char c) { return os::separators.find(c) != std::string_view::npos; };
  return !folder.empty() && path.starts_with(folder) &&
         (path.size() == folder.size() || ends(path[folder.size()]) || ends(folder.back()));
}

std::string real_folder(const std::string& folder) {
  const os::Descriptor opened(os::open_folder(folder));
  if (!opened.is_open()) {
    fail_at(folder, ErrorCode::unreadable, "the trusted folder cannot be resolved: {}",
            std::strerror(errno));
  }
  return real_path_of(opened.get());
}

}  // namespace

struct ExternalData::File {
  Bytes bytes;
  std::string sha1;  // empty until a checksum was asked for
};

ExternalData::ExternalData(std::string folder, ExternalOptions options)
    : folder_(std::move(folder)), options_(std::move(options)) {}

ExternalData::~ExternalData() = default;

int ExternalData::folder_descriptor() {
  if (folder_.empty()) {
    fail(ErrorCode::invalid_model,
         "its elements are external data, but the model was read from memory: give the folder its "
         "files are in");
  }
  if (!opened_folder_.is_open()) opened_folder_ = os::Descriptor(os::open_folder(folder_));
  if (!opened_folder_.is_open())
    fail_at(folder_, ErrorCode::unreadable, "cannot open the model's folder: {}",
            std::strerror(errno));
  return opened_folder_.get();
}

ExternalData::File& ExternalData::map_once(int descriptor, const std::string& location) {
  const auto info = os::info_of(descriptor);
  if (!info) {
    fail(ErrorCode::unreadable, "cannot look at external data '{}': {}", location,
         std::strerror(errno));
  }
  auto& file = files_[{info->device, info->number}];
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
  const os::Descriptor found = find_linked(folder_descriptor(), location);
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
  const auto info = os::info_of(found.get());
  if (!info || !info->is_regular()) {
    fail(ErrorCode::unreadable, "external data '{}' leads to '{}', which is not a regular file",
         location, real);
  }
  // The same file, whatever its name points to by now.
  const os::Descriptor file = reopened(found.get());
  if (!file.is_open()) {
    fail(ErrorCode::unreadable, "cannot open external data '{}': {}", location,
         std::strerror(errno));
  }
  return map_once(file.get(), location);
}

ExternalData::File& ExternalData::open_file(const std::string& location) {
  const auto known = by_location_.find(location);
  if (known != by_location_.end()) return *known->second;
  const os::Descriptor file = open_confined(folder_descriptor(), location);
  if (!file.is_open()) {
    if (errno == ELOOP || errno == EXDEV)
      return open_link(location, "is a symbolic link or reached through one");
    fail(ErrorCode::unreadable, "cannot open external data '{}' in the model's folder '{}': {}",
         location, folder_, std::strerror(errno));
  }
  const auto info = os::info_of(file.get());
  if (!info || !info->is_regular()) {
    fail(ErrorCode::unreadable, "external data '{}' is not a regular file", location);
  }
  if (info->links > 1)
    return open_link(location, fmt::format("is a hard link (the file has {} names)", info->links));
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
