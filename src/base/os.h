// What the library asks of the operating system: one declaration, one source for each system
// (os_posix.cc, os_windows.cc). Of the other sources only cpu.cc and wire/confined_open_*.cc
// include a system's headers.
//
// Paths are UTF-8. Files that are open have a descriptor, as POSIX and the C library of Windows
// number them. What fails sets errno, whose meaning std::strerror tells.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sardonyx::os {

// --- Names ---------------------------------------------------------------------------------------

// The path that the text names. std::filesystem takes text to be in the system's own encoding,
// which on Windows is not UTF-8.
std::filesystem::path path(std::string_view text);
// The text of a path.
std::string text(const std::filesystem::path& path);
// What stands between the parts of a path; the first one is what the system writes itself.
#ifdef _WIN32
constexpr std::string_view separators = "\\/";
#else
constexpr std::string_view separators = "/";
#endif
// ".", "/" or whatever leads to the file.
std::string folder_of(const std::string& path);
// The descriptor of this process that a path such as /dev/stdin or /dev/fd/3 names, on all systems;
// nothing for all other paths.
std::optional<int> descriptor_named(std::string_view path);

// --- Files ---------------------------------------------------------------------------------------

enum class FileKind : uint8_t { regular, folder, link, other };

struct FileInfo {
  FileKind kind = FileKind::other;
  uint64_t size = 0;
  int64_t seconds = 0, nanoseconds = 0;  // when it was changed
  uint64_t device = 0, number = 0;       // the same for two names of one file
  uint64_t links = 1;                    // how many names it has
  unsigned permissions = 0;              // POSIX's

  bool is_regular() const { return kind == FileKind::regular; }
  bool is_folder() const { return kind == FileKind::folder; }
};

// Through links; nothing where there is no such file.
std::optional<FileInfo> info_of(const std::string& path);
std::optional<FileInfo> info_of(int descriptor);

enum class Opening : uint8_t {
  read,    // a pipe that nobody writes to is opened without waiting
  append,  // to read and to write at the end
  write,   // what is there already, without emptying it
  lock,    // to read and write, made where it is not there; a link is refused
};
// An open descriptor, which processes that this one starts do not get; -1 on failure.
int open(const std::string& path, Opening opening);
// The same for a new file; EEXIST where there is one. Without permissions it has those that the
// process gives to new files.
int create(const std::string& path, std::optional<unsigned> permissions);
// A new file in a folder, to read and write, that has no name, and is gone with its descriptor
// unless give_name() gives it one; -1 where the system has no such files.
int create_unnamed(const std::string& folder, std::optional<unsigned> permissions);
// EEXIST where there is a file of that name.
bool give_name(int descriptor, const std::string& path);
// To look at what is inside, for wire/confined_open.h.
int open_folder(const std::string& path);
void close(int descriptor);

// How many bytes were read or written, which may be fewer than asked for; 0 at the end; -1 on
// failure. Interrupted calls are repeated.
int64_t read(int descriptor, void* into, size_t size);
int64_t read_at(int descriptor, void* into, size_t size, uint64_t offset);
int64_t write(int descriptor, const void* data, size_t size);
struct Part {
  const char* data;
  size_t size;
};
constexpr size_t max_parts = 1024;  // that one call takes
int64_t write(int descriptor, std::span<const Part> parts);

bool set_size(int descriptor, uint64_t size);
// Waits until the disk has what was written.
bool sync(int descriptor);
// For this process alone, as long as the descriptor is open; EWOULDBLOCK where another one has it.
bool lock(int descriptor);

// Hints; nothing where the system has none. False only where the disk has no room.
bool reserve(int descriptor, uint64_t size);
// The disk may begin with this part of the file.
void begin_sync(int descriptor, uint64_t offset, uint64_t size);
// How many bytes went from file to file, at the writer's place; 0 or -1 where the system can't.
int64_t copy(int from, uint64_t offset, int to, size_t size);

// Takes the place of what `to` names, in one step where the system can.
bool replace(const std::string& from, const std::string& to);
void remove(const std::string& path);
// A new folder whose name begins so; empty on failure.
std::string make_folder(const std::string& prefix);

// An open descriptor, closed with its owner.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  int get() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  void reset() {
    if (number_ >= 0) close(number_);
    number_ = -1;
  }

 private:
  int number_ = -1;
};

// --- Memory --------------------------------------------------------------------------------------

// A file for reading; null on failure. The descriptor may be closed meanwhile.
const std::byte* map(int descriptor, size_t size);
void unmap(const std::byte* address, size_t size);
// Brings in the pages of a mapped part at once, or lets go of those wholly inside it. Hints.
void bring_pages(std::span<const std::byte> mapped);
void release_pages(std::span<const std::byte> mapped);
// Aligned to `alignment`, a power of two; huge pages are asked for where it is one's size. Null
// where there is no room.
void* allocate(size_t size, size_t alignment);
void free(void* block);

// Where `part` begins in `text`, in time that grows with the sum of their sizes and not with their
// product; npos where it is not there.
size_t find(std::string_view text, std::string_view part);

// --- Libraries -----------------------------------------------------------------------------------

// Null on failure, for which `problem` says the reason. A path without a folder is looked for where
// the system keeps libraries.
void* load_library(const std::string& path, std::string& problem);
void* find_symbol(void* library, const char* name);
void unload_library(void* library);

// --- Processors ----------------------------------------------------------------------------------

// Processors are numbered from 0 to this, not included.
int processor_limit();
// Those that this thread may run on; empty where the system does not say.
std::vector<int> processors();
// Lets this thread run on these alone, and on others no more if the system allows it.
bool run_on(std::span<const int> processors);
// Where the thread that makes this may run, for a thread that it starts: on some systems threads
// begin there by themselves, on others they have to go.
class Place {
 public:
  Place();
  void take() const;

 private:
  [[maybe_unused]] uint64_t mask_ = 0;
};
// How many processors' worth of time the process gets, where it is bounded; else 0.
double processor_quota();
// The bytes of a processor's cache of level 1 (data), 2 or 3; 0 where the system does not say.
int64_t cache_bytes(int level);

}  // namespace sardonyx::os
