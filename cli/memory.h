// How much memory the process uses, and how much it may.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "options.h"

namespace sardonyx::cli {

// A field of /proc/self/status in MB (2^20 bytes): "VmRSS" now, "VmHWM" at most so far. 0 where
// the system has no such file.
double process_megabytes(std::string_view field);

// --memory-limit, which all commands take.
void add_memory_option(const Options& command, std::string& limit);

// Holds the process to `limit`: a size, "none", or empty for what the files justify that the
// command line names and those beside them. Mapped files do not count. Throws UsageError for
// another text.
void limit_memory(const std::string& limit, int count, char** arguments);

// What to add to the message of a command that ran out of memory; empty without a limit.
std::string memory_advice();

}  // namespace sardonyx::cli
