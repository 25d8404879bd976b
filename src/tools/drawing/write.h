// Diagrams as text.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "tools/drawing/diagram.h"

namespace sardonyx::drawing {

using Write = std::function<void(std::string_view)>;

void write_dot(std::span<const Diagram> diagrams, const Write& write);
void write_svg(std::span<const Diagram> diagrams, const Write& write);

}  // namespace sardonyx::drawing
