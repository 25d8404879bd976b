// A model as text, in ONNX's textual syntax.
#pragma once

#include <cstddef>
#include <string>

namespace sardonyx {

struct ShowOptions {
  // Tensors with more elements are cut, which makes the text unreadable for parsers.
  size_t max_elements = static_cast<size_t>(-1);
  bool annotations = true;  // what models hold beyond the standard's syntax, on "#@" lines
};

// Throws Error as read_model_file does. External data is not needed.
std::string show_model(const std::string& path, const ShowOptions& options);

}  // namespace sardonyx
