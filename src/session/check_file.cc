#include "session/check_file.h"

#include "session/reading.h"

namespace sardonyx {

std::vector<check::Diagnostic> check_model_file(const std::string& path,
                                                const check::Options& options) {
  return check::check(read_model_file(path), options);
}

}  // namespace sardonyx
