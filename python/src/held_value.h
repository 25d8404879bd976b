// sardonyx.Value: a value of the engine that Python holds without looking into it.
#pragma once

#include <nanobind/nanobind.h>

#include "sardonyx/value.h"

namespace sardonyx::python {

struct HeldValue {
  Value value;
  bool writable = false;   // made here, so that nothing else reads it as immutable
  bool read_only = false;  // a view of an array that must not be written to
};

// Null where the object is something else.
inline const HeldValue* held_value(nanobind::handle object) {
  const HeldValue* held = nullptr;
  if (nanobind::isinstance<HeldValue>(object)) held = nanobind::inst_ptr<HeldValue>(object);
  return held;
}

}  // namespace sardonyx::python
