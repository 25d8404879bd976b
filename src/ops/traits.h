// What passes must know of an operator beyond its meaning.
#pragma once

#include <cstdint>

#include "ir/model.h"

namespace sardonyx::ops {

using Traits = uint32_t;

// One output of the first input's shape, each element of which comes from the element there; what
// other inputs there are, are scalars. Works on any layout.
inline constexpr Traits unary = 1;
// One output, element by element from inputs that broadcast against each other.
inline constexpr Traits broadcasts = 2;
// Folds the axes that its second input names.
inline constexpr Traits reduces = 4;
// Kernels compute float16 and bfloat16 in float32, and it means the same whichever float it gets.
inline constexpr Traits half_through_float32 = 8;
// Moves elements, or adds up a few of them: it follows the type that it is given.
inline constexpr Traits hands_on = 16;
// Its kernels pack constant weights (the second input) of any float type.
inline constexpr Traits packs_weights = 32;
// Moves elements or picks the largest: the same before and after scaling by a positive number.
inline constexpr Traits keeps_quantization = 64;
// Whatever gradient is asked for, the output does not depend on how large the input is.
inline constexpr Traits no_gradient = 128;
// Takes much longer than reading its inputs and writing its outputs: products, normalizations,
// recurrent layers, transforms, sorts.
inline constexpr Traits costly = 256;

// Of the newest version of an operator of ai.onnx; 0 for those of other domains and for those that
// have none. traits.cc lists them.
Traits traits_of(const ir::Node& node);
inline bool has_trait(const ir::Node& node, Traits any) { return (traits_of(node) & any) != 0; }

}  // namespace sardonyx::ops
