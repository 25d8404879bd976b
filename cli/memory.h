// How much memory the process may use.
#pragma once

#include <string>
#include <vector>

#include "options.h"

namespace sardonyx::cli {

// --memory-limit, which all commands take.
void add_memory_option(const Options& command, std::string& limit);

// Holds the process to `limit`: a size, "none", or empty for what the files justify that the
// command line names and those beside them. Mapped files do not count. Throws UsageError for
// another text.
void limit_memory(const std::string& limit, const std::vector<std::string>& arguments);

// What to add to the message of a command that ran out of memory; empty without a limit.
std::string memory_advice();

}  // namespace sardonyx::cli
