// Where writers put their bytes. Internal to wire.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/mapped_file.h"

namespace sardonyx::wire {

class Sink {
 public:
  virtual ~Sink() = default;
  virtual void put(const void* data, size_t size) = 0;
  void put(std::string_view text) { put(text.data(), text.size()); }
  // Says how many bytes will be put, before the first of them.
  virtual void expect(uint64_t /*size*/) {}
};

class StringSink : public Sink {
 public:
  using Sink::put;
  void put(const void* data, size_t size) override {
    text_.append(static_cast<const char*>(data), size);
  }
  void reserve(size_t size) { text_.reserve(size); }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

// Lets `write` fill a new file beside `path` and renames it over `path` when it is whole; on an
// error nothing is left behind. What is not a regular file (a pipe) is written to directly, and so
// are descriptors (descriptor_named). Returns how many bytes it wrote. Throws Error (unreadable)
// with the path.
//
// Parts of `source` that are put go from its mapping into the file without a copy between, large
// ones from file to file by the system: as clones of the blocks where the file system can, at the
// same distance from a block's start in both.
uint64_t write_file(const std::string& path, const std::function<void(Sink&)>& write,
                    const MappedFile* source = nullptr);

// The same for files that belong together: all are filled, in this order, before the first one is
// put in place. Returns the bytes of all.
struct FileToWrite {
  std::string path;
  std::function<void(Sink&)> write;
  const MappedFile* source = nullptr;  // see write_file
};
uint64_t write_files(std::span<const FileToWrite> files);

}  // namespace sardonyx::wire
