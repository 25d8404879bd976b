#define NOMINMAX
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
// After it.
#include <fcntl.h>
#include <io.h>
#include <psapi.h>
#include <shellapi.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "os.h"

namespace sardonyx::cli::os {
namespace {

std::wstring wide(std::string_view text) {
  const int size = static_cast<int>(text.size());
  std::wstring made(
      static_cast<size_t>(MultiByteToWideChar(CP_UTF8, 0, text.data(), size, nullptr, 0)), L'\0');
  MultiByteToWideChar(CP_UTF8, 0, text.data(), size, made.data(), static_cast<int>(made.size()));
  return made;
}

std::string narrow(std::wstring_view text) {
  const int size = static_cast<int>(text.size());
  std::string made(static_cast<size_t>(WideCharToMultiByte(CP_UTF8, 0, text.data(), size, nullptr,
                                                           0, nullptr, nullptr)),
                   '\0');
  WideCharToMultiByte(CP_UTF8, 0, text.data(), size, made.data(), static_cast<int>(made.size()),
                      nullptr, nullptr);
  return made;
}

UINT code_page_before = 0;
void restore_code_page() { SetConsoleOutputCP(code_page_before); }

HANDLE handle_of(int descriptor) { return reinterpret_cast<HANDLE>(_get_osfhandle(descriptor)); }

// Goes away when nobody has it open.
int temporary_file() {
  std::array<wchar_t, MAX_PATH + 1> folder{}, name{};
  if (GetTempPathW(static_cast<DWORD>(folder.size()), folder.data()) == 0 ||
      GetTempFileNameW(folder.data(), L"sdx", 0, name.data()) == 0)
    return -1;
  const HANDLE handle = CreateFileW(name.data(), GENERIC_READ | GENERIC_WRITE | DELETE,
                                    FILE_SHARE_READ | FILE_SHARE_DELETE, nullptr, CREATE_ALWAYS,
                                    FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, nullptr);
  if (handle == INVALID_HANDLE_VALUE) return -1;
  return _open_osfhandle(reinterpret_cast<intptr_t>(handle), _O_RDWR | _O_BINARY | _O_NOINHERIT);
}

bool copy_all(int from, int to) {
  static std::array<char, 1 << 16> part;
  for (;;) {
    const int got = _read(from, part.data(), static_cast<unsigned>(part.size()));
    if (got <= 0) return got == 0;
    for (int done = 0; done < got;) {
      const int written = _write(to, part.data() + done, static_cast<unsigned>(got - done));
      if (written <= 0) return false;
      done += written;
    }
  }
}

PROCESS_MEMORY_COUNTERS memory_counters() {
  PROCESS_MEMORY_COUNTERS counters{};
  K32GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof counters);
  return counters;
}

constexpr double megabyte = 1 << 20;

void (*interrupted)() = nullptr;

// Returning false lets the next handler end the program.
BOOL WINAPI on_control(DWORD) {
  void (*const then)() = std::exchange(interrupted, nullptr);
  if (then == nullptr) return FALSE;
  then();
  return TRUE;
}

}  // namespace

std::vector<std::string> begin(int count, char** arguments) {
  for (const int stream : {standard_input, standard_output, standard_error})
    _setmode(stream, _O_BINARY);
  code_page_before = GetConsoleOutputCP();
  if (code_page_before != 0 && SetConsoleOutputCP(CP_UTF8) != 0) std::atexit(restore_code_page);
  for (const int stream : {standard_output, standard_error}) {
    DWORD mode = 0;
    if (GetConsoleMode(handle_of(stream), &mode) != 0)
      SetConsoleMode(handle_of(stream), mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
  }
  std::vector<std::string> list;
  int wide_count = 0;
  wchar_t** const wide_list = CommandLineToArgvW(GetCommandLineW(), &wide_count);
  if (wide_list == nullptr) return {arguments, arguments + count};
  for (int i = 0; i < wide_count; ++i) list.push_back(narrow(wide_list[i]));
  LocalFree(wide_list);
  return list;
}

bool is_terminal(Stream stream) { return _isatty(stream) != 0; }

std::filesystem::path path(std::string_view text) { return wide(text); }
std::string text(const std::filesystem::path& path) { return narrow(path.native()); }

bool exists(const std::string& name) {
  std::error_code ignored;
  return std::filesystem::exists(path(name), ignored);
}

bool is_folder(const std::string& name) {
  std::error_code ignored;
  return std::filesystem::is_directory(path(name), ignored);
}

int64_t file_bytes(const std::string& name) {
  LARGE_INTEGER size{};
  if (name == "/dev/stdin") {
    const HANDLE input = handle_of(standard_input);
    return GetFileType(input) == FILE_TYPE_DISK && GetFileSizeEx(input, &size) != 0 ? size.QuadPart
                                                                                    : 0;
  }
  std::error_code problem;
  if (!std::filesystem::is_regular_file(path(name), problem)) return 0;
  const auto bytes = std::filesystem::file_size(path(name), problem);
  return problem ? 0 : static_cast<int64_t>(bytes);
}

bool is_pipe(int descriptor) { return GetFileType(handle_of(descriptor)) == FILE_TYPE_PIPE; }

bool gather(int descriptor) {
  const int file = temporary_file();
  const bool whole = file >= 0 && copy_all(descriptor, file) && _lseeki64(file, 0, SEEK_SET) == 0 &&
                     _dup2(file, descriptor) == 0;
  if (file < 0) errno = EIO;
  const int problem = errno;
  if (file >= 0) _close(file);
  errno = problem;
  return whole;
}

double resident_megabytes() {
  return static_cast<double>(memory_counters().WorkingSetSize) / megabyte;
}
double peak_megabytes() {
  return static_cast<double>(memory_counters().PeakWorkingSetSize) / megabyte;
}

// A job of its own, which ends with the process.
bool limit_memory(int64_t bytes) {
  const HANDLE job = CreateJobObjectW(nullptr, nullptr);
  if (job == nullptr) return false;
  JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits{};
  limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_PROCESS_MEMORY;
  limits.ProcessMemoryLimit = static_cast<SIZE_T>(bytes);
  const bool held = SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits,
                                            sizeof limits) != 0 &&
                    AssignProcessToJobObject(job, GetCurrentProcess()) != 0;
  CloseHandle(job);
  return held;
}

// Files that are mapped can't become shorter.
void on_lost_mapping(const char*, const char*, int) {}

Interrupts::Interrupts(void (*then)()) {
  interrupted = then;
  SetConsoleCtrlHandler(on_control, TRUE);
}

Interrupts::~Interrupts() {
  SetConsoleCtrlHandler(on_control, FALSE);
  interrupted = nullptr;
}

}  // namespace sardonyx::cli::os
