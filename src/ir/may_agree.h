// Whether two types can be those of one value.
#pragma once

#include <cstddef>

#include "ir/dimension.h"

namespace sardonyx::ir {

// What both types say is the same: kind, element type, rank, sizes that are numbers, and so for the
// types of items.
inline bool may_agree(const TypeProto& a, const TypeProto& b) {
  using Kind = TypeProto::Kind;
  if (a.kind == Kind::none || b.kind == Kind::none) return true;
  if (a.kind != b.kind) return false;
  if (a.elem_type != 0 && b.elem_type != 0 && a.elem_type != b.elem_type) return false;
  if (a.nested && b.nested && !may_agree(*a.nested, *b.nested)) return false;
  if (!a.shape || !b.shape) return true;
  if (a.shape->dims.size() != b.shape->dims.size()) return false;
  for (size_t i = 0; i < a.shape->dims.size(); ++i) {
    const auto x = declared_number(a.shape->dims[i]), y = declared_number(b.shape->dims[i]);
    if (x && y && *x != *y) return false;
  }
  return true;
}

}  // namespace sardonyx::ir
