// Values by name.
#pragma once

#include "capi/handles.h"

struct sardonyx_named_values {
  SARDONYX_TAG('n', 'v');
  std::vector<sardonyx::NamedValue> list;
};

namespace sardonyx::capi {

// The caller's values with their names.
std::vector<NamedValue> named_values(const char* const* names, const sardonyx_value* const* values,
                                     size_t count, const char* names_argument,
                                     const char* argument);

}  // namespace sardonyx::capi
