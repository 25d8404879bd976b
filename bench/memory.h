// What a benchmark says of its own memory.
#pragma once

#include <cstdlib>
#include <fstream>
#include <string>

// The most that this process has held, in MB; 0 where the system does not say.
inline double resident_mb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::strtod(line.c_str() + 6, nullptr) / 1024;
  }
  return 0;
}
