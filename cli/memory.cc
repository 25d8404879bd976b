#include "memory.h"

#include <cstdlib>
#include <fstream>
#include <string>

namespace sardonyx::cli {

double process_megabytes(std::string_view field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.size() > field.size() && line.starts_with(field) && line[field.size()] == ':') {
      return std::strtod(line.c_str() + field.size() + 1, nullptr) / 1024;
    }
  }
  return 0;
}

}  // namespace sardonyx::cli
