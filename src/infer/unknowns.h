// Names for what only the run knows, and why it does.
#pragma once

#include <string>

#include "infer/infer.h"

namespace sardonyx::infer {

// The elements of a small integer tensor that nothing is known of get a name each.
void name_elements(ValueFacts& value, ir::SymbolTable& symbols);

// Gives all symbols from number `first` on, which the node made, the node and the reason.
void note_unknowns(const ops::InferContext& context, int first, const InferenceContext& inference);

// The text, cut off where it is long: it is said of each unknown again.
std::string shortened(std::string text);

}  // namespace sardonyx::infer
