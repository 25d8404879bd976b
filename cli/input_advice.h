// What to write for an input's value instead of a text that is none.
#pragma once

#include <string>
#include <string_view>

#include "sardonyx/session.h"

namespace sardonyx::cli {

// `text`: what stands behind NAME=; `name`: of the input. Never empty.
std::string input_advice(std::string_view name, std::string_view text,
                         const ValueDescription& wanted);

}  // namespace sardonyx::cli
