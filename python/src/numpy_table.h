// numpy's C interface for the files of this module: one table, taken in numpy_types.cc.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <nanobind/nanobind.h>

#define NPY_NO_DEPRECATED_API NPY_1_22_API_VERSION
#define NPY_TARGET_VERSION NPY_1_22_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL sardonyx_numpy_table
#ifndef SARDONYX_OWNS_NUMPY_TABLE
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>
