// Drawings of models: DOT for Graphviz, and SVG with a layout of our own.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "ir/model.h"
#include "sardonyx/model.h"

namespace sardonyx {

// Draws the main graph, the bodies of its nodes inside them, and the functions of the model beside
// it. Boxes say the operator, the name, attributes, weights and the types of what they make, also
// those that are inferred where that succeeds. Needs no external data; gives UTF-8 piece by piece.
void draw_model(const ir::Model& model, DrawingForm form,
                const std::function<void(std::string_view)>& write);
// The same of a file. Throws Error as read_model_file does, before the first piece.
void draw_model(const std::string& path, DrawingForm form,
                const std::function<void(std::string_view)>& write);

}  // namespace sardonyx
