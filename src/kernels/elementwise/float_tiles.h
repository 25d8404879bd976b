// The vector forms of float32 operators; inside elementwise/ only. Null where there is none.
#pragma once

#include "kernels/elementwise/binary.h"
#include "kernels/elementwise/unary.h"

namespace sardonyx::kernels {

UnaryTile vector_unary(UnaryOp op);
BinaryTile vector_binary(BinaryOp op, Sides sides);

}  // namespace sardonyx::kernels
