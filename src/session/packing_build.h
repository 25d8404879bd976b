#pragma once

#include "base/content_hash.h"

namespace sardonyx {

// Of the sources of kernels and operators (tools/packing_build.py): whatever changes how weights
// are packed or read changes it.
extern const ContentHash packing_build;

}  // namespace sardonyx
