// A model as text: in ONNX's textual syntax, or as a drawing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "session/drawing.h"

namespace sardonyx {

struct ShowOptions {
  // Tensors with more elements are cut, which makes the text unreadable for parsers.
  size_t max_elements = static_cast<size_t>(-1);
  std::optional<DrawingForm> drawing;  // instead of the syntax; the rest is not for it
  bool annotations = true;  // what models hold beyond the standard's syntax, on "#@" lines
};

// Gives the text piece by piece to `write`: the memory used does not grow with the weights. It ends
// in a new line. Throws Error as read_model_file does, before the first piece. External data is not
// needed.
void show_model(const std::string& path, const ShowOptions& options,
                const std::function<void(std::string_view)>& write);

// How many bytes that would be.
uint64_t shown_bytes(const std::string& path, const ShowOptions& options);

// Writes it to a file, which appears when it is whole.
void show_model_in(const std::string& file, const std::string& path, const ShowOptions& options);

}  // namespace sardonyx
