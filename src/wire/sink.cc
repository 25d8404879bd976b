#include "wire/sink.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "base/fail.h"
#include "wire/beneath.h"

namespace sardonyx::wire {
namespace {

class FileSink : public Sink {
 public:
  FileSink(int descriptor, const std::string& path) : descriptor_(descriptor), path_(path) {
    buffer_.reserve(capacity);
  }

  using Sink::put;
  void put(const void* data, size_t size) override {
    if (buffer_.size() + size > capacity) flush();
    if (size >= capacity) return write_all(static_cast<const char*>(data), size);
    buffer_.append(static_cast<const char*>(data), size);
  }

  void flush() {
    write_all(buffer_.data(), buffer_.size());
    buffer_.clear();
  }

 private:
  static constexpr size_t capacity = 1 << 16;
  static constexpr off_t store_at_once = 8 << 20;

  void write_all(const char* data, size_t size) {
    while (size > 0) {
      // Systems write at most 2 GB a call.
      const ssize_t done = write(descriptor_, data, std::min(size, size_t{1} << 30));
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) fail_at(path_, ErrorCode::unreadable, "cannot write: {}", std::strerror(errno));
      data += done;
      size -= static_cast<size_t>(done);
      start_storing(done);
    }
  }

  // The disk begins while more is made, so that the wait for it at the end is short.
  void start_storing(ssize_t written) {
    written_ += written;
    if (written_ - storing_ < store_at_once) return;
#if defined(__linux__)
    sync_file_range(descriptor_, storing_, written_ - storing_, SYNC_FILE_RANGE_WRITE);
#endif
    storing_ = written_;
  }

  int descriptor_;
  const std::string& path_;
  std::string buffer_;
  off_t written_ = 0, storing_ = 0;
};

void fill(int descriptor, const std::string& path, const std::function<void(Sink&)>& write) {
  FileSink sink(descriptor, path);
  write(sink);
  sink.flush();
}

struct Temporary {
  Descriptor file;
  std::string path;
  ~Temporary() {
    if (!path.empty()) unlink(path.c_str());
  }
};

void create_beside(const std::string& path, mode_t mode, Temporary& temporary) {
  std::random_device random;
  for (int tries = 0; tries < 100; ++tries) {
    std::string name = fmt::format("{}.{:08x}.tmp", path, random());
    const int fd = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd >= 0) {
      temporary.file = Descriptor(fd);
      temporary.path = std::move(name);
      return;
    }
    if (errno != EEXIST) break;
  }
  fail_at(path, ErrorCode::unreadable, "cannot create a file beside it: {}", std::strerror(errno));
}

// What is no regular file is written at once; `temporary` then stays empty.
void fill_beside(const FileToWrite& file, Temporary& temporary) {
  const std::string& path = file.path;
  struct stat info {};
  const bool exists = stat(path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode))
    fail_at(path, ErrorCode::unreadable, "is a folder, not a file");
  if (exists && !S_ISREG(info.st_mode)) {
    const Descriptor target(open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!target.is_open())
      fail_at(path, ErrorCode::unreadable, "cannot open for writing: {}", std::strerror(errno));
    return fill(target.get(), path, file.write);
  }
  create_beside(path, exists ? info.st_mode & 0777 : 0666, temporary);
  fill(temporary.file.get(), path, file.write);
  if (fsync(temporary.file.get()) != 0) {
    fail_at(path, ErrorCode::unreadable, "cannot write: {}", std::strerror(errno));
  }
}

}  // namespace

void write_file(const std::string& path, const std::function<void(Sink&)>& write) {
  const FileToWrite file{path, write};
  write_files({&file, 1});
}

void write_files(std::span<const FileToWrite> files) {
  std::vector<Temporary> temporaries(files.size());
  for (size_t i = 0; i < files.size(); ++i) fill_beside(files[i], temporaries[i]);
  for (size_t i = 0; i < files.size(); ++i) {
    Temporary& temporary = temporaries[i];
    if (temporary.path.empty()) continue;
    if (rename(temporary.path.c_str(), files[i].path.c_str()) != 0) {
      fail_at(files[i].path, ErrorCode::unreadable, "cannot put the written file in place: {}",
              std::strerror(errno));
    }
    temporary.path.clear();
  }
}

}  // namespace sardonyx::wire
