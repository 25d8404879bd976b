#include "session/show.h"

#include "session/reading.h"
#include "wire/text_print.h"

namespace sardonyx {

std::string show_model(const std::string& path, const ShowOptions& options) {
  return wire::print(read_model_file(path),
                     {.max_elements = options.max_elements, .annotations = options.annotations});
}

}  // namespace sardonyx
