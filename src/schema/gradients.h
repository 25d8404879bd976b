// Gradients of operators as text: spec/gradients, the newest versions'.
#pragma once

#include "schema/schema.h"

namespace sardonyx::schema {

// A function in ONNX's textual syntax: from inputs and outputs of the operator, by their names, and
// the gradients of outputs, "d" before the name, to those of inputs. `name` is the operator's, with
// ".value" behind it where an attribute chooses among several.
std::span<const FunctionText> gradient_texts();  // ordered by domain, name
const FunctionText* gradient_text(std::string_view domain, std::string_view name);

}  // namespace sardonyx::schema
