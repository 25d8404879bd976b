// Inputs and outputs as the public interface describes them.
#pragma once

#include "ir/model.h"
#include "sardonyx/session.h"

namespace sardonyx {

ValueDescription describe(const ir::ValueInfo& info);

}  // namespace sardonyx
