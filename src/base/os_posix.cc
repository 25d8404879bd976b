#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "base/os.h"

namespace sardonyx::os {
namespace {

constexpr size_t huge_page = size_t{2} << 20;

template <class Call>
auto uninterrupted(const Call& call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

FileKind kind_of(mode_t mode) {
  if (S_ISREG(mode)) return FileKind::regular;
  if (S_ISDIR(mode)) return FileKind::folder;
  return S_ISLNK(mode) ? FileKind::link : FileKind::other;
}

FileInfo to_info(const struct stat& found) {
  return {.kind = kind_of(found.st_mode),
          .size = static_cast<uint64_t>(found.st_size),
          .seconds = found.st_mtim.tv_sec,
          .nanoseconds = found.st_mtim.tv_nsec,
          .device = found.st_dev,
          .number = found.st_ino,
          .links = found.st_nlink,
          .permissions = found.st_mode & 0777};
}

std::byte* mutable_address(const std::byte* address) { return const_cast<std::byte*>(address); }

}  // namespace

std::filesystem::path path(std::string_view text) { return text; }
std::string text(const std::filesystem::path& path) { return path.string(); }

std::optional<FileInfo> info_of(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) return std::nullopt;
  return to_info(found);
}

std::optional<FileInfo> info_of(int descriptor) {
  struct stat found {};
  if (fstat(descriptor, &found) != 0) return std::nullopt;
  return to_info(found);
}

int open(const std::string& path, Opening opening) {
  int flags = O_CLOEXEC;
  switch (opening) {
    case Opening::read: flags |= O_RDONLY | O_NONBLOCK; break;
    case Opening::append: flags |= O_RDWR | O_APPEND; break;
    case Opening::write: flags |= O_WRONLY; break;
    case Opening::lock: flags |= O_RDWR | O_CREAT | O_NOFOLLOW; break;
  }
  return ::open(path.c_str(), flags, 0666);
}

int create(const std::string& path, std::optional<unsigned> permissions) {
  const int made = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                          permissions.value_or(0666));
  if (made >= 0 && permissions) ::fchmod(made, *permissions);  // whatever the mask takes away
  return made;
}

#ifdef O_TMPFILE
int create_unnamed(const std::string& folder, std::optional<unsigned> permissions) {
  const int made =
      ::open(folder.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, permissions.value_or(0666));
  if (made >= 0 && permissions) ::fchmod(made, *permissions);
  return made;
}

bool give_name(int descriptor, const std::string& path) {
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  return ::linkat(AT_FDCWD, link.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0;
}
#else
int create_unnamed(const std::string&, std::optional<unsigned>) { return -1; }
bool give_name(int, const std::string&) { return false; }
#endif

int open_folder(const std::string& path) {
  return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

void close(int descriptor) { ::close(descriptor); }

int64_t read(int descriptor, void* into, size_t size) {
  return uninterrupted([&] { return ::read(descriptor, into, size); });
}

int64_t read_at(int descriptor, void* into, size_t size, uint64_t offset) {
  return uninterrupted([&] { return ::pread(descriptor, into, size, static_cast<off_t>(offset)); });
}

int64_t write(int descriptor, const void* data, size_t size) {
  return uninterrupted([&] { return ::write(descriptor, data, size); });
}

int64_t write(int descriptor, std::span<const Part> parts) {
  std::array<iovec, max_parts> list;
  const size_t count = std::min(parts.size(), max_parts);
  for (size_t i = 0; i < count; ++i) list[i] = {const_cast<char*>(parts[i].data), parts[i].size};
  return uninterrupted([&] { return ::writev(descriptor, list.data(), static_cast<int>(count)); });
}

bool set_size(int descriptor, uint64_t size) {
  return ::ftruncate(descriptor, static_cast<off_t>(size)) == 0;
}

bool sync(int descriptor) { return ::fsync(descriptor) == 0; }
bool lock(int descriptor) { return ::flock(descriptor, LOCK_EX | LOCK_NB) == 0; }

#ifdef __linux__
bool reserve(int descriptor, uint64_t size) {
  return ::fallocate(descriptor, 0, 0, static_cast<off_t>(size)) == 0 || errno != ENOSPC;
}

void begin_sync(int descriptor, uint64_t offset, uint64_t size) {
  ::sync_file_range(descriptor, static_cast<off_t>(offset), static_cast<off_t>(size),
                    SYNC_FILE_RANGE_WRITE);
}

int64_t copy(int from, uint64_t offset, int to, size_t size) {
  return uninterrupted([&] {
    auto place = static_cast<off64_t>(offset);
    return ::copy_file_range(from, &place, to, nullptr, size, 0);
  });
}
#else
bool reserve(int, uint64_t) { return true; }
void begin_sync(int, uint64_t, uint64_t) {}
int64_t copy(int, uint64_t, int, size_t) { return -1; }
#endif

bool replace(const std::string& from, const std::string& to) {
  return std::rename(from.c_str(), to.c_str()) == 0;
}

void remove(const std::string& path) { ::unlink(path.c_str()); }

std::string make_folder(const std::string& prefix) {
  std::string name = prefix + "XXXXXX";
  return ::mkdtemp(name.data()) == nullptr ? std::string() : name;
}

const std::byte* map(int descriptor, size_t size) {
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  return address == MAP_FAILED ? nullptr : static_cast<const std::byte*>(address);
}

void unmap(const std::byte* address, size_t size) { ::munmap(mutable_address(address), size); }

void bring_pages([[maybe_unused]] std::span<const std::byte> mapped) {
#ifdef MADV_POPULATE_READ
  constexpr size_t page = 4096;
  const size_t before = reinterpret_cast<uintptr_t>(mapped.data()) % page;
  ::madvise(mutable_address(mapped.data() - before), mapped.size() + before, MADV_POPULATE_READ);
#endif
}

void release_pages(std::span<const std::byte> mapped) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<uintptr_t>(mapped.data()) + page - 1) / page * page;
  const auto end = (reinterpret_cast<uintptr_t>(mapped.data()) + mapped.size()) / page * page;
  if (end > begin) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

void* allocate(size_t size, size_t alignment) {
  void* block = nullptr;
  if (::posix_memalign(&block, alignment, size) != 0) return nullptr;
#ifdef MADV_HUGEPAGE
  // Whole huge pages only: the rest stays on small ones, or it would cost up to 2 MB more.
  if (alignment == huge_page && size >= huge_page)
    ::madvise(block, size / huge_page * huge_page, MADV_HUGEPAGE);
#endif
  return block;
}

void free(void* block) { std::free(block); }

size_t find(std::string_view text, std::string_view part) {
  const void* found = ::memmem(text.data(), text.size(), part.data(), part.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

void* load_library(const std::string& path, std::string& problem) {
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const reason = ::dlerror();
    problem = reason != nullptr ? reason : "no reason is given";
  }
  return library;
}

void* find_symbol(void* library, const char* name) { return ::dlsym(library, name); }
void unload_library(void* library) { ::dlclose(library); }

int processor_limit() { return CPU_SETSIZE; }

std::vector<int> processors() {
  std::vector<int> list;
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return list;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(static_cast<size_t>(i), &set)) list.push_back(i);
  }
  return list;
}

bool run_on(std::span<const int> processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int processor : processors) CPU_SET(static_cast<size_t>(processor), &set);
  return ::sched_setaffinity(0, sizeof set, &set) == 0;
}

// Threads begin where the thread that starts them may run.
Place::Place() = default;
void Place::take() const {}

double processor_quota() {
  std::ifstream v2("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (v2 >> quota >> period && quota != "max" && period > 0) return std::stod(quota) / period;
  std::ifstream quota_v1("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream period_v1("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  double used = 0;
  if (quota_v1 >> used && period_v1 >> period && used > 0 && period > 0) return used / period;
  return 0;
}

int64_t cache_bytes([[maybe_unused]] int level) {
#ifdef _SC_LEVEL1_DCACHE_SIZE
  constexpr int names[] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE};
  return std::max<int64_t>(::sysconf(names[level - 1]), 0);
#else
  return 0;
#endif
}

}  // namespace sardonyx::os
