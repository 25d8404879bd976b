#include "wire/sink.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "base/fail.h"
#include "base/os.h"

namespace sardonyx::wire {
namespace {

// Gathers what it is given and writes many parts at once. Small parts are copied; parts of the
// source stay where they are until they are written.
class FileSink : public Sink {
 public:
  // `is_new`: the file is empty and nobody else writes to it.
  FileSink(int descriptor, const std::string& path, const MappedFile* source, bool is_new)
      : descriptor_(descriptor), path_(path), source_(source), is_new_(is_new) {}

  using Sink::put;
  void put(const void* data, size_t size) override {
    const char* text = static_cast<const char*>(data);
    if (size < min_view) return copy(text, size);
    const auto offset = offset_in_source(text, size);
    if (offset && size >= min_copied_by_system) {
      const size_t done = copy_from_source(*offset, size);
      text += done;
      size -= done;
    }
    while (size > 0) {
      const size_t piece = std::min(size, max_gathered - gathered_);
      refer_to(text, piece, offset.has_value());
      text += piece;
      size -= piece;
    }
    if (!offset) flush();  // whose they are is not known
  }

  // A file that does not fit is refused before it is filled, and blocks are found at once.
  void expect(uint64_t size) override {
    if (is_new_ && written_ == 0 && gathered_ == 0 && size >= min_reserved &&
        !os::reserve(descriptor_, size))
      fail_at(path_, ErrorCode::unreadable, "cannot write: {}", std::strerror(ENOSPC));
  }

  void flush() {
    for (const std::span<const std::byte> view : views_) os::bring_pages(view);
    for (std::span<os::Part> left(parts_); !left.empty();) write_some(left);
    for (const std::span<const std::byte> view : views_) os::release_pages(view);
    parts_.clear();
    views_.clear();
    copied_ = gathered_ = 0;
  }
  uint64_t written() const { return written_; }

 private:
  static constexpr size_t min_view = 1 << 12;
  static constexpr size_t min_reserved = 1 << 16;
  static constexpr size_t min_copied_by_system = 1 << 20;
  static constexpr size_t max_gathered = 8 << 20;
  static constexpr size_t max_copied = size_t{1} << 16;
  static constexpr size_t store_at_once = 8 << 20;
  static constexpr size_t block = 4096;

  std::optional<size_t> offset_in_source(const char* data, size_t size) const {
    if (source_ == nullptr || !source_->is_mapped()) return std::nullopt;
    const auto begin = reinterpret_cast<uintptr_t>(source_->bytes().data());
    const auto at = reinterpret_cast<uintptr_t>(data);
    const size_t length = source_->bytes().size();
    if (at < begin || at - begin > length || length - (at - begin) < size) return std::nullopt;
    return at - begin;
  }

  void copy(const char* text, size_t size) {
    if (size == 0) return;
    if (size > max_copied - copied_) flush();
    char* place = copies_.get() + copied_;
    std::memcpy(place, text, size);
    copied_ += size;
    refer_to(place, size, false);
  }

  void refer_to(const char* text, size_t size, bool in_source) {
    if (!parts_.empty() && end_of(parts_.back()) == text) {
      parts_.back().size += size;
    } else {
      parts_.push_back({text, size});
    }
    if (in_source) views_.emplace_back(reinterpret_cast<const std::byte*>(text), size);
    gathered_ += size;
    if (gathered_ >= max_gathered || parts_.size() == os::max_parts) flush();
  }

  static const char* end_of(const os::Part& part) { return part.data + part.size; }

  // How much of the part was copied: all of it, or nothing where the system cannot.
  size_t copy_from_source(size_t offset, size_t size) {
    size_t done = 0;
    const char* bytes = reinterpret_cast<const char*>(source_->bytes().data());
    const size_t at = written_ + gathered_;
    if (offset % block == at % block && offset % block != 0) {  // whole blocks may be clones
      done = block - offset % block;
      refer_to(bytes + offset, done, true);
    }
    flush();
    while (done < size) {
      const int64_t copied = os::copy(source_->descriptor(), offset + done, descriptor_,
                                      std::min(size - done, size_t{1} << 30));
      if (copied <= 0) break;  // another file system, a pipe, an old kernel
      done += static_cast<size_t>(copied);
      count(static_cast<size_t>(copied));
    }
    return done;
  }

  // Takes from the front of `left` what the system wrote, which may be less than there is.
  void write_some(std::span<os::Part>& left) {
    const int64_t result = os::write(descriptor_, left);
    if (result < 0) fail_at(path_, ErrorCode::unreadable, "cannot write: {}", std::strerror(errno));
    auto done = static_cast<size_t>(result);
    count(done);
    while (!left.empty() && done >= left.front().size) {
      done -= left.front().size;
      left = left.subspan(1);
    }
    if (done == 0) return;
    left.front().data += done;
    left.front().size -= done;
  }

  // The disk begins while more is made, so that the wait for it at the end is short.
  void count(size_t written) {
    written_ += written;
    if (written_ - storing_ < store_at_once) return;
    os::begin_sync(descriptor_, storing_, written_ - storing_);
    storing_ = written_;
  }

  int descriptor_;
  const std::string& path_;
  const MappedFile* source_;
  bool is_new_;
  size_t written_ = 0, storing_ = 0;               // storing_: up to where the disk has begun
  std::vector<os::Part> parts_;                    // what is gathered
  std::vector<std::span<const std::byte>> views_;  // those of the parts that are in the source
  size_t gathered_ = 0;
  // Not cleared: a small file touches few of its pages.
  std::unique_ptr<char[]> copies_ = std::make_unique_for_overwrite<char[]>(max_copied);
  size_t copied_ = 0;
};

uint64_t fill(int descriptor, const FileToWrite& file, bool is_new) {
  FileSink sink(descriptor, file.path, file.source, is_new);
  file.write(sink);
  sink.flush();
  return sink.written();
}

struct Temporary {
  os::Descriptor file;
  std::string path;  // empty while it has no name
  ~Temporary() {
    file.reset();  // before its name goes, for systems that keep the names of open files
    if (!path.empty()) os::remove(path);
  }
};

[[noreturn]] void cannot_create(const std::string& path, int problem) {
  const std::string folder = os::folder_of(path);
  const auto info = os::info_of(folder);
  if ((problem == ENOENT || problem == ENOTDIR) && (!info || !info->is_folder()))
    fail_at(path, ErrorCode::unreadable, "cannot write: there is no folder '{}'", folder);
  fail_at(path, ErrorCode::unreadable, "cannot write into the folder '{}': {}", folder,
          std::strerror(problem));
}

// Waits until the disk has it.
void store(int descriptor, const std::string& path) {
  if (!os::sync(descriptor))
    fail_at(path, ErrorCode::unreadable, "cannot write: {}", std::strerror(errno));
}

// Finds a name beside `path` that `take` can have. False, with errno: it can't.
template <class Take>
bool take_name(const std::string& path, Temporary& temporary, const Take& take) {
  constexpr size_t longest = 200;  // of a name that may have 255 bytes, so that more may follow
  const size_t name_begin = path.find_last_of(os::separators) + 1;
  const std::string stem = path.substr(0, std::min(path.size(), name_begin + longest));
  std::random_device random;
  for (int tries = 0; tries < 100; ++tries) {
    std::string name = fmt::format("{}.{:08x}.tmp", stem, random());
    if (take(name)) {
      temporary.path = std::move(name);
      return true;
    }
    if (errno != EEXIST) break;
  }
  return false;
}

void create_named(const std::string& path, std::optional<unsigned> permissions,
                  Temporary& temporary) {
  const bool made = take_name(path, temporary, [&](const std::string& name) {
    temporary.file = os::Descriptor(os::create(name, permissions));
    return temporary.file.is_open();
  });
  if (!made) cannot_create(path, errno);
}

// Without a name, where the system can, so that a process that is ended leaves nothing.
void create_beside(const std::string& path, std::optional<unsigned> permissions,
                   Temporary& temporary) {
  temporary.file = os::Descriptor(os::create_unnamed(os::folder_of(path), permissions));
  if (!temporary.file.is_open()) create_named(path, permissions, temporary);
}

void copy_all(int from, int to, const std::string& path) {
  std::vector<char> bytes(size_t{1} << 20);
  uint64_t at = 0;
  while (const int64_t count = os::read_at(from, bytes.data(), bytes.size(), at)) {
    for (int64_t done = 0; done < count;) {
      const int64_t written = os::write(to, bytes.data() + done, static_cast<size_t>(count - done));
      if (written <= 0) break;
      done += written;
    }
    at += static_cast<uint64_t>(std::max<int64_t>(count, 0));
    const auto info = os::info_of(to);
    if (count < 0 || !info || info->size != at)
      fail_at(path, ErrorCode::unreadable, "cannot write: {}", std::strerror(errno));
  }
}

void name_beside(const std::string& path, Temporary& temporary) {
  if (!temporary.path.empty()) return;
  const auto give = [&](const std::string& name) {
    return os::give_name(temporary.file.get(), name);
  };
  if (take_name(path, temporary, give)) return;
  // Naming takes /proc, and that nothing forbids links.
  const auto info = os::info_of(temporary.file.get());
  Temporary named;
  create_named(path, info ? std::optional(info->permissions) : std::nullopt, named);
  copy_all(temporary.file.get(), named.file.get(), path);
  std::swap(temporary.file, named.file);
  std::swap(temporary.path, named.path);
  store(temporary.file.get(), path);
}

// What is no regular file is written at once; `temporary` then has no file. Returns the size.
uint64_t fill_beside(const FileToWrite& file, Temporary& temporary) {
  const std::string& path = file.path;
  if (path.empty()) fail(ErrorCode::unreadable, "the name of a file to write is empty");
  if (const auto descriptor = os::descriptor_named(path)) return fill(*descriptor, file, false);
  const auto info = os::info_of(path);
  if (info && info->is_folder()) fail_at(path, ErrorCode::unreadable, "is a folder, not a file");
  if (info && !info->is_regular()) {
    const os::Descriptor target(os::open(path, os::Opening::write));
    if (!target.is_open())
      fail_at(path, ErrorCode::unreadable, "cannot open for writing: {}", std::strerror(errno));
    return fill(target.get(), file, false);
  }
  create_beside(path, info ? std::optional(info->permissions) : std::nullopt, temporary);
  const uint64_t size = fill(temporary.file.get(), file, true);
  store(temporary.file.get(), path);
  return size;
}

}  // namespace

uint64_t write_file(const std::string& path, const std::function<void(Sink&)>& write,
                    const MappedFile* source) {
  const FileToWrite file{path, write, source};
  return write_files({&file, 1});
}

uint64_t write_files(std::span<const FileToWrite> files) {
  std::vector<Temporary> temporaries(files.size());
  uint64_t size = 0;
  for (size_t i = 0; i < files.size(); ++i) size += fill_beside(files[i], temporaries[i]);
  for (size_t i = 0; i < files.size(); ++i) {
    Temporary& temporary = temporaries[i];
    if (!temporary.file.is_open()) continue;
    name_beside(files[i].path, temporary);
    temporary.file.reset();
    if (!os::replace(temporary.path, files[i].path)) {
      fail_at(files[i].path, ErrorCode::unreadable, "cannot put the written file in place: {}",
              std::strerror(errno));
    }
    temporary.path.clear();
  }
  return size;
}

}  // namespace sardonyx::wire
