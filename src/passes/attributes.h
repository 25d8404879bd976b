// What the attributes of a node of the newest version say.
#pragma once

#include <cstdint>
#include <string_view>

#include "ir/model.h"

namespace sardonyx::passes {

inline int64_t attr_int(const ir::Node& node, std::string_view name, int64_t fallback) {
  const ir::Attribute* a = node.find(name);
  return a && a->i ? *a->i : fallback;
}

inline float attr_float(const ir::Node& node, std::string_view name, float fallback) {
  const ir::Attribute* a = node.find(name);
  return a && a->f ? *a->f : fallback;
}

}  // namespace sardonyx::passes
