// Rows of real tokens, and their places among rows that pad sequences to one length.
#pragma once

#include <string>

#include "ops/contrib/body.h"

namespace sardonyx::ops {

// The first numbers of input `offsets` [batch, length], of which each token has one, in int64.
std::string token_places(Body& body, size_t offsets, const std::string& tokens);

// Rows [tokens, hidden] as [batch, length, hidden]: each at its place, all others zeros.
std::string with_padding(Body& body, const std::string& rows, size_t offsets);

}  // namespace sardonyx::ops
