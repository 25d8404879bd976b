// How much memory the process uses.
#pragma once

#include <string_view>

namespace sardonyx::cli {

// A field of /proc/self/status in MB (2^20 bytes): "VmRSS" now, "VmHWM" at most so far. 0 where
// the system has no such file.
double process_megabytes(std::string_view field);

}  // namespace sardonyx::cli
