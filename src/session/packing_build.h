#pragma once

#include "base/content_hash.h"

namespace sardonyx {

// Of the sources of kernels, operators and all that makes a plan of a model
// (tools/packing_build.py): whatever changes how weights are packed and graphs optimised, or how
// either is read, changes it.
extern const ContentHash packing_build;

}  // namespace sardonyx
