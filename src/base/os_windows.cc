#include "base/os_windows.h"

#include <fcntl.h>
#include <io.h>
#include <malloc.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <random>
#include <system_error>

#include "base/os.h"

namespace sardonyx::os {
namespace {

constexpr DWORD shared = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;

// From the system's count of 100 ns since 1601 to seconds since 1970.
void set_time(FileInfo& info, FILETIME time) {
  const uint64_t ticks = uint64_t{time.dwHighDateTime} << 32 | time.dwLowDateTime;
  constexpr uint64_t per_second = 10'000'000;
  constexpr int64_t seconds_before_1970 = 11'644'473'600;
  info.seconds = static_cast<int64_t>(ticks / per_second) - seconds_before_1970;
  info.nanoseconds = static_cast<int64_t>(ticks % per_second) * 100;
}

std::optional<FileInfo> info_of(HANDLE handle) {
  FileInfo info;
  if (GetFileType(handle) != FILE_TYPE_DISK) return info;
  BY_HANDLE_FILE_INFORMATION found{};
  if (GetFileInformationByHandle(handle, &found) == 0) {
    set_errno();
    return std::nullopt;
  }
  if ((found.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0)
    info.kind = FileKind::link;
  else
    info.kind = (found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0 ? FileKind::folder
                                                                         : FileKind::regular;
  info.size = uint64_t{found.nFileSizeHigh} << 32 | found.nFileSizeLow;
  set_time(info, found.ftLastWriteTime);
  info.device = found.dwVolumeSerialNumber;
  info.number = uint64_t{found.nFileIndexHigh} << 32 | found.nFileIndexLow;
  info.links = found.nNumberOfLinks;
  info.permissions = (found.dwFileAttributes & FILE_ATTRIBUTE_READONLY) != 0 ? 0444 : 0666;
  return info;
}

// The place of a read or write that names its own.
OVERLAPPED at(uint64_t offset) {
  OVERLAPPED place{};
  place.Offset = static_cast<DWORD>(offset);
  place.OffsetHigh = static_cast<DWORD>(offset >> 32);
  return place;
}

DWORD clipped(size_t size) { return static_cast<DWORD>(std::min<size_t>(size, size_t{1} << 30)); }

uint64_t mask_of(std::span<const int> processors) {
  uint64_t mask = 0;
  for (const int processor : processors) mask |= uint64_t{1} << processor;
  return mask;
}

// The system tells which processors a thread had only while it gives it others.
uint64_t thread_mask() {
  DWORD_PTR process = 0, all = 0;
  if (GetProcessAffinityMask(GetCurrentProcess(), &process, &all) == 0) return 0;
  const DWORD_PTR before = SetThreadAffinityMask(GetCurrentThread(), process);
  if (before == 0) return process;
  SetThreadAffinityMask(GetCurrentThread(), before);
  return before;
}

// Windows lets no file be replaced or removed that is mapped, but lets it have another name: files
// that were replaced meanwhile, which go when the last mapping has gone.
class SetAside {
 public:
  void add(std::wstring path) {
    {
      const std::lock_guard lock(mutex_);
      paths_.push_back(std::move(path));
      any_ = true;
    }
    remove();
  }
  void remove() {
    if (!any_) return;
    const std::lock_guard lock(mutex_);
    std::erase_if(paths_, [](const std::wstring& path) { return DeleteFileW(path.c_str()) != 0; });
    any_ = !paths_.empty();
  }

 private:
  std::atomic<bool> any_ = false;
  std::mutex mutex_;
  std::vector<std::wstring> paths_;
};
SetAside set_aside;

}  // namespace

std::wstring wide(std::string_view text) {
  const int size = static_cast<int>(std::min<size_t>(text.size(), INT32_MAX));
  std::wstring made(
      static_cast<size_t>(MultiByteToWideChar(CP_UTF8, 0, text.data(), size, nullptr, 0)), L'\0');
  MultiByteToWideChar(CP_UTF8, 0, text.data(), size, made.data(), static_cast<int>(made.size()));
  return made;
}

std::string narrow(std::wstring_view text) {
  const int size = static_cast<int>(std::min<size_t>(text.size(), INT32_MAX));
  std::string made(static_cast<size_t>(WideCharToMultiByte(CP_UTF8, 0, text.data(), size, nullptr,
                                                           0, nullptr, nullptr)),
                   '\0');
  WideCharToMultiByte(CP_UTF8, 0, text.data(), size, made.data(), static_cast<int>(made.size()),
                      nullptr, nullptr);
  return made;
}

HANDLE handle_of(int descriptor) { return reinterpret_cast<HANDLE>(_get_osfhandle(descriptor)); }

int descriptor_of(HANDLE handle, int flags) {
  if (handle == INVALID_HANDLE_VALUE) return set_errno();
  const int descriptor =
      _open_osfhandle(reinterpret_cast<intptr_t>(handle), flags | _O_BINARY | _O_NOINHERIT);
  if (descriptor < 0) CloseHandle(handle);
  return descriptor;
}

int set_errno() {
  switch (GetLastError()) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_NAME:
    case ERROR_BAD_NETPATH:
    case ERROR_BAD_PATHNAME:
    case ERROR_INVALID_DRIVE: errno = ENOENT; break;
    case ERROR_ACCESS_DENIED:
    case ERROR_SHARING_VIOLATION:
    case ERROR_USER_MAPPED_FILE:
    case ERROR_WRITE_PROTECT: errno = EACCES; break;
    case ERROR_FILE_EXISTS:
    case ERROR_ALREADY_EXISTS: errno = EEXIST; break;
    case ERROR_LOCK_VIOLATION: errno = EWOULDBLOCK; break;
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL: errno = ENOSPC; break;
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_COMMITMENT_LIMIT:
    case ERROR_OUTOFMEMORY: errno = ENOMEM; break;
    case ERROR_TOO_MANY_OPEN_FILES: errno = EMFILE; break;
    case ERROR_DIRECTORY: errno = ENOTDIR; break;
    case ERROR_FILENAME_EXCED_RANGE: errno = ENAMETOOLONG; break;
    case ERROR_INVALID_HANDLE: errno = EBADF; break;
    case ERROR_BROKEN_PIPE:
    case ERROR_NO_DATA: errno = EPIPE; break;
    default: errno = EIO; break;
  }
  return -1;
}

std::filesystem::path path(std::string_view text) { return wide(text); }
std::string text(const std::filesystem::path& path) { return narrow(path.native()); }

std::optional<FileInfo> info_of(const std::string& path) {
  if (const auto named = descriptor_named(path)) return info_of(*named);
  const HANDLE handle = CreateFileW(wide(path).c_str(), FILE_READ_ATTRIBUTES, shared, nullptr,
                                    OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, nullptr);
  if (handle == INVALID_HANDLE_VALUE) {
    set_errno();
    return std::nullopt;
  }
  const auto info = info_of(handle);
  CloseHandle(handle);
  return info;
}

std::optional<FileInfo> info_of(int descriptor) { return info_of(handle_of(descriptor)); }

int open(const std::string& path, Opening opening) {
  if (const auto named = descriptor_named(path)) return _dup(*named);
  DWORD access = GENERIC_READ, creation = OPEN_EXISTING,
        attributes = FILE_ATTRIBUTE_NORMAL | FILE_FLAG_BACKUP_SEMANTICS;
  int flags = _O_RDONLY;
  switch (opening) {
    case Opening::read: break;
    case Opening::append:
      access |= GENERIC_WRITE;
      flags = _O_RDWR | _O_APPEND;
      break;
    case Opening::write:
      access = GENERIC_WRITE;
      flags = _O_WRONLY;
      break;
    case Opening::lock:
      access |= GENERIC_WRITE;
      creation = OPEN_ALWAYS;
      attributes |= FILE_FLAG_OPEN_REPARSE_POINT;
      flags = _O_RDWR;
      break;
  }
  const HANDLE handle =
      CreateFileW(wide(path).c_str(), access, shared, nullptr, creation, attributes, nullptr);
  if (opening == Opening::lock && handle != INVALID_HANDLE_VALUE) {
    const auto info = info_of(handle);
    if (!info || info->kind == FileKind::link) {
      CloseHandle(handle);
      errno = ELOOP;
      return -1;
    }
  }
  return descriptor_of(handle, flags);
}

int create(const std::string& path, std::optional<unsigned>) {
  const HANDLE handle = CreateFileW(wide(path).c_str(), GENERIC_READ | GENERIC_WRITE, shared,
                                    nullptr, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, nullptr);
  return descriptor_of(handle, _O_RDWR);
}

int create_unnamed(const std::string&, std::optional<unsigned>) { return -1; }
bool give_name(int, const std::string&) { return false; }

int open_folder(const std::string& path) {
  const HANDLE handle = CreateFileW(wide(path).c_str(), GENERIC_READ, shared, nullptr,
                                    OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, nullptr);
  if (handle != INVALID_HANDLE_VALUE) {
    const auto info = info_of(handle);
    if (!info || !info->is_folder()) {
      CloseHandle(handle);
      errno = ENOTDIR;
      return -1;
    }
  }
  return descriptor_of(handle, _O_RDONLY);
}

void close(int descriptor) { _close(descriptor); }

int64_t read(int descriptor, void* into, size_t size) {
  return _read(descriptor, into, clipped(size));
}

int64_t read_at(int descriptor, void* into, size_t size, uint64_t offset) {
  DWORD done = 0;
  OVERLAPPED place = at(offset);
  if (ReadFile(handle_of(descriptor), into, clipped(size), &done, &place) != 0) return done;
  return GetLastError() == ERROR_HANDLE_EOF ? 0 : set_errno();
}

int64_t write(int descriptor, const void* data, size_t size) {
  return _write(descriptor, data, clipped(size));
}

int64_t write(int descriptor, std::span<const Part> parts) {
  int64_t done = 0;
  for (const Part& part : parts) {
    const int64_t written = write(descriptor, part.data, part.size);
    if (written < 0) return done > 0 ? done : written;
    done += written;
    if (static_cast<size_t>(written) < part.size) break;
  }
  return done;
}

bool set_size(int descriptor, uint64_t size) {
  return _chsize_s(descriptor, static_cast<int64_t>(size)) == 0;
}

// Pipes and consoles have nothing that could wait.
bool sync(int descriptor) {
  const HANDLE handle = handle_of(descriptor);
  if (GetFileType(handle) != FILE_TYPE_DISK || FlushFileBuffers(handle) != 0) return true;
  set_errno();
  return false;
}

// One byte far behind the end: those who read the file are not kept from it.
bool lock(int descriptor) {
  OVERLAPPED place = at(std::numeric_limits<int64_t>::max() - 1);
  if (LockFileEx(handle_of(descriptor), LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY, 0, 1,
                 0, &place) != 0)
    return true;
  set_errno();
  return false;
}

bool reserve(int descriptor, uint64_t size) {
  FILE_ALLOCATION_INFO room{};
  room.AllocationSize.QuadPart = static_cast<int64_t>(size);
  return SetFileInformationByHandle(handle_of(descriptor), FileAllocationInfo, &room,
                                    sizeof room) != 0 ||
         GetLastError() != ERROR_DISK_FULL;
}

void begin_sync(int, uint64_t, uint64_t) {}
int64_t copy(int, uint64_t, int, size_t) { return -1; }

bool replace(const std::string& from, const std::string& to) {
  const std::wstring made = wide(from), target = wide(to);
  if (MoveFileExW(made.c_str(), target.c_str(), MOVEFILE_REPLACE_EXISTING) != 0) return true;
  const DWORD reason = GetLastError();
  if ((reason == ERROR_ACCESS_DENIED || reason == ERROR_USER_MAPPED_FILE) &&
      GetFileAttributesW(target.c_str()) != INVALID_FILE_ATTRIBUTES) {
    const std::wstring aside = target + L'.' + std::to_wstring(std::random_device()()) + L".old";
    if (MoveFileExW(target.c_str(), aside.c_str(), 0) != 0) {
      if (MoveFileExW(made.c_str(), target.c_str(), 0) != 0) {
        set_aside.add(aside);
        return true;
      }
      MoveFileExW(aside.c_str(), target.c_str(), 0);
    }
  }
  SetLastError(reason);
  set_errno();
  return false;
}

void remove(const std::string& path) { DeleteFileW(wide(path).c_str()); }

std::string make_folder(const std::string& prefix) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::random_device random;
  for (int tries = 0; tries < 100; ++tries) {
    std::string name = prefix;
    for (int i = 0; i < 8; ++i) name += letters[random() % letters.size()];
    if (CreateDirectoryW(wide(name).c_str(), nullptr) != 0) return name;
    if (GetLastError() != ERROR_ALREADY_EXISTS) break;
  }
  set_errno();
  return {};
}

const std::byte* map(int descriptor, size_t) {
  const HANDLE mapping =
      CreateFileMappingW(handle_of(descriptor), nullptr, PAGE_READONLY, 0, 0, nullptr);
  void* address = mapping != nullptr ? MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0) : nullptr;
  if (address == nullptr) set_errno();
  if (mapping != nullptr) CloseHandle(mapping);  // the view keeps what it needs
  return static_cast<const std::byte*>(address);
}

void unmap(const std::byte* address, size_t) {
  UnmapViewOfFile(address);
  set_aside.remove();
}

void bring_pages(std::span<const std::byte> mapped) {
  WIN32_MEMORY_RANGE_ENTRY range{const_cast<std::byte*>(mapped.data()), mapped.size()};
  PrefetchVirtualMemory(GetCurrentProcess(), 1, &range, 0);
}

// Pages that are not locked leave the process where they are asked to be unlocked.
void release_pages(std::span<const std::byte> mapped) {
  constexpr uintptr_t page = 4096;
  const auto begin = (reinterpret_cast<uintptr_t>(mapped.data()) + page - 1) / page * page;
  const auto end = (reinterpret_cast<uintptr_t>(mapped.data()) + mapped.size()) / page * page;
  if (end > begin) VirtualUnlock(reinterpret_cast<void*>(begin), end - begin);
}

void* allocate(size_t size, size_t alignment) { return _aligned_malloc(size, alignment); }
void free(void* block) { _aligned_free(block); }

// Knuth, Morris and Pratt's: `prefix` tells how much of the part's begin ends at each of its
// places.
size_t find(std::string_view text, std::string_view part) {
  if (part.empty()) return 0;
  std::vector<size_t> prefix(part.size());
  const auto extended = [&](size_t matched, char next) {
    while (matched > 0 && part[matched] != next) matched = prefix[matched - 1];
    return part[matched] == next ? matched + 1 : matched;
  };
  for (size_t i = 1; i < part.size(); ++i) prefix[i] = extended(prefix[i - 1], part[i]);
  size_t matched = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    matched = extended(matched, text[i]);
    if (matched == part.size()) return i + 1 - matched;
  }
  return std::string_view::npos;
}

void* load_library(const std::string& path, std::string& problem) {
  const HMODULE library = LoadLibraryW(wide(path).c_str());
  if (library == nullptr) {
    const DWORD reason = GetLastError();
    problem = std::error_code(static_cast<int>(reason), std::system_category()).message();
  }
  return reinterpret_cast<void*>(library);
}

void* find_symbol(void* library, const char* name) {
  return reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(library), name));
}

void unload_library(void* library) { FreeLibrary(static_cast<HMODULE>(library)); }

int processor_limit() { return 64; }  // of one group

std::vector<int> processors() {
  std::vector<int> list;
  const uint64_t mask = thread_mask();
  for (int i = 0; i < processor_limit(); ++i) {
    if ((mask >> i & 1) != 0) list.push_back(i);
  }
  return list;
}

bool run_on(std::span<const int> processors) {
  return SetThreadAffinityMask(GetCurrentThread(), mask_of(processors)) != 0;
}

// Threads begin wherever the process may run.
Place::Place() : mask_(thread_mask()) {}
void Place::take() const {
  if (mask_ != 0) SetThreadAffinityMask(GetCurrentThread(), mask_);
}

double processor_quota() { return 0; }

int64_t cache_bytes(int level) {
  DWORD size = 0;
  GetLogicalProcessorInformation(nullptr, &size);
  std::vector<SYSTEM_LOGICAL_PROCESSOR_INFORMATION> list(
      size / sizeof(SYSTEM_LOGICAL_PROCESSOR_INFORMATION));
  if (list.empty() || GetLogicalProcessorInformation(list.data(), &size) == 0) return 0;
  for (const auto& entry : list) {
    if (entry.Relationship == RelationCache && entry.Cache.Level == level &&
        entry.Cache.Type != CacheInstruction)
      return entry.Cache.Size;
  }
  return 0;
}

}  // namespace sardonyx::os
