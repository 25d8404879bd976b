// A model as text, in ONNX's textual syntax.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace sardonyx {

struct ShowOptions {
  // Tensors with more elements are cut, which makes the text unreadable for parsers.
  size_t max_elements = static_cast<size_t>(-1);
  bool annotations = true;  // what models hold beyond the standard's syntax, on "#@" lines
};

// Gives the text piece by piece to `write`: the memory used does not grow with the weights. It ends
// in a new line. Throws Error as read_model_file does, before the first piece. External data is not
// needed.
void show_model(const std::string& path, const ShowOptions& options,
                const std::function<void(std::string_view)>& write);

}  // namespace sardonyx
