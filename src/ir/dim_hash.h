// For tables of what is made of sizes: their texts, what decides them.
#pragma once

#include <cstddef>

#include "ir/dim.h"

namespace sardonyx::ir {

// Equal for sizes that are ==; an indefinite one equals nothing, itself included.
struct DimHash {
  size_t operator()(const Dim& dim) const;
};

}  // namespace sardonyx::ir
