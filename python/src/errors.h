// What the engine throws, as exceptions of Python (sardonyx/_errors.py).
#pragma once

#include <nanobind/nanobind.h>

namespace sardonyx::python {

// Lets every function of the module raise the Python class that belongs to an Error's code, with
// `code`, `message` and `location`.
void translate_errors();

// Raises sardonyx.BadInputError from C++.
[[noreturn]] void refuse(std::string message, std::string location = {});

}  // namespace sardonyx::python
