// A Python object as the owner of memory that the engine sees.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

namespace sardonyx::python {

// Lets go of the object on whatever thread the last user ends, taking the interpreter's lock.
inline std::shared_ptr<const void> owner_of(nanobind::handle object) {
  object.inc_ref();
  return {object.ptr(), [](const void* held) {
            if (!Py_IsInitialized()) return;  // after the interpreter's end its objects are gone
            const nanobind::gil_scoped_acquire lock;
            Py_DECREF(static_cast<PyObject*>(const_cast<void*>(held)));
          }};
}

}  // namespace sardonyx::python
