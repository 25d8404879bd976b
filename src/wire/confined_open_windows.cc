#include <fcntl.h>
#include <io.h>

#include "base/os_windows.h"
#include "wire/confined_open.h"

namespace sardonyx::wire {
namespace {

constexpr DWORD shared = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;

std::wstring real_path(HANDLE handle) {
  const DWORD size = GetFinalPathNameByHandleW(handle, nullptr, 0, FILE_NAME_NORMALIZED);
  std::wstring path(size, L'\0');
  const DWORD length = GetFinalPathNameByHandleW(handle, path.data(), size, FILE_NAME_NORMALIZED);
  path.resize(length < size ? length : 0);
  return path;
}

// With "\" alone, and no "." or empty parts.
std::wstring below(HANDLE folder, const std::string& relative) {
  std::wstring path = real_path(folder);
  if (path.empty()) return path;
  for (const auto& part : os::path(relative)) {
    if (!part.empty() && part != ".") path += L'\\' + part.native();
  }
  return path;
}

HANDLE open_at(const std::wstring& path, DWORD flags) {
  return CreateFileW(path.c_str(), GENERIC_READ, shared, nullptr, OPEN_EXISTING,
                     flags | FILE_FLAG_BACKUP_SEMANTICS, nullptr);
}

bool same_name(const std::wstring& a, const std::wstring& b) {
  return CompareStringOrdinal(a.c_str(), -1, b.c_str(), -1, TRUE) == CSTR_EQUAL;
}

}  // namespace

// What was opened says where it really is: anywhere else than the name says, and a link led there.
os::Descriptor open_confined(int folder, const std::string& relative) {
  const std::wstring path = below(os::handle_of(folder), relative);
  // A colon names another stream of a file, or a drive.
  if (path.empty() || relative.find(':') != std::string::npos) {
    errno = ENOENT;
    return {};
  }
  const HANDLE handle = open_at(path, FILE_FLAG_OPEN_REPARSE_POINT);
  if (handle == INVALID_HANDLE_VALUE) {
    os::set_errno();
    return {};
  }
  BY_HANDLE_FILE_INFORMATION info{};
  const bool looked = GetFileInformationByHandle(handle, &info) != 0;
  if (!looked || (info.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0 ||
      !same_name(real_path(handle), path)) {
    CloseHandle(handle);
    errno = ELOOP;
    return {};
  }
  return os::Descriptor(os::descriptor_of(handle, _O_RDONLY));
}

os::Descriptor find_linked(int folder, const std::string& relative) {
  const HANDLE handle = open_at(below(os::handle_of(folder), relative), 0);
  return os::Descriptor(os::descriptor_of(handle, _O_RDONLY));
}

os::Descriptor reopened(int found) { return os::Descriptor(_dup(found)); }

std::string real_path_of(int descriptor) {
  return os::narrow(real_path(os::handle_of(descriptor)));
}

}  // namespace sardonyx::wire
