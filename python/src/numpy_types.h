// Element types and numpy's.
#pragma once

#include <nanobind/nanobind.h>

#include "sardonyx/element_type.h"

namespace sardonyx::python {

namespace nb = nanobind;

// Takes numpy's function table. Once, when the module is imported.
void import_numpy();

// Of an array's dtype: numpy's own, and those of ml_dtypes where that is imported. Undefined for
// what no tensor holds. Strings (object, str, bytes) are ElementType::string.
ElementType element_type_of_array(PyObject* array);
// Of anything that numpy.dtype() takes.
ElementType element_type_of_dtype(nb::handle dtype);

// A new reference. Throws Error (unsupported) for a type that needs ml_dtypes where it is not
// installed.
PyObject* dtype_of(ElementType type);

bool is_array(PyObject* object);

}  // namespace sardonyx::python
