// What `sardonyx check` found in one of its files.
#pragma once

#include <optional>
#include <string>

#include "sardonyx/check.h"
#include "sardonyx/error.h"

namespace sardonyx::cli {

struct CheckedFile {
  std::string path;
  CheckReport report;
  std::optional<Error> error;  // why it could not be checked
};

}  // namespace sardonyx::cli
