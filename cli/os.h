// What the program asks of the operating system: os_posix.cc and os_windows.cc. No other source of
// it includes a system's headers. Paths and arguments are UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace sardonyx::cli::os {

enum Stream : int { standard_input = 0, standard_output = 1, standard_error = 2 };

// Readies the streams for bytes and for UTF-8, sees to it that writing fails with an error and not
// with the end of the program, and returns the arguments of the program.
std::vector<std::string> begin(int count, char** arguments);
// Whether a person is at the other end.
bool is_terminal(Stream stream);

// The path that the text names, as std::filesystem takes it, and back.
std::filesystem::path path(std::string_view text);
std::string text(const std::filesystem::path& path);
bool exists(const std::string& path);
bool is_folder(const std::string& path);
// Of a regular file, or of a descriptor's that a path such as /dev/stdin names; 0 of all else.
int64_t file_bytes(const std::string& path);

bool is_pipe(int descriptor);
// Puts what comes through a pipe into a file without a name, which takes the pipe's place. False,
// with errno set, on failure.
bool gather(int descriptor);

// Memory of the process in MB (2^20 bytes); 0 where the system does not say.
double resident_megabytes();
double peak_megabytes();
// Holds the process to so much memory, mapped files apart; false where that can't be done, or a
// lower limit holds already.
bool limit_memory(int64_t bytes);

// Where a mapped file becomes shorter or its disk fails, some systems end the process: then these
// are written first, to standard error and standard output, which must stay where they are.
void on_lost_mapping(const char* message, const char* report, int exit_code);

// While it lives, the first Ctrl-C, or request to end, calls `then`; a second one ends the program.
// Writing to a pipe that nobody reads any more fails then, and does not end it. One at a time.
class Interrupts {
 public:
  explicit Interrupts(void (*then)());
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
};

}  // namespace sardonyx::cli::os
