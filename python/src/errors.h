// What the engine throws, as exceptions of Python (sardonyx/_errors.py).
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <string>

#include "sardonyx/error.h"

namespace sardonyx::python {

// Lets every function of the module raise the Python class that belongs to an Error's code, with
// `code`, `message` and `location`.
void translate_errors();

// Raises sardonyx.BadInputError from C++.
[[noreturn]] void refuse(std::string message, std::string location = {});

// str() of an object as UTF-8; what has no UTF-8, such as parts of names of files, is escaped.
std::string utf8_of(nanobind::handle object);

// What code in Python raised that the engine had called on this thread. The text is for the error
// that the engine makes of it: the exception is that error's cause once it is raised on this
// thread, and is raised itself where it is no Exception (KeyboardInterrupt, SystemExit).
std::string remember(nanobind::python_error& failure);
// Throws what was remembered, if `error` came of it and it is no Exception.
void throw_if_beyond_exceptions(const Error& error);
// Forgets it: the call has ended well all the same. With the lock held.
void forget_remembered();

// The exception that a function of the module would raise for it.
nanobind::object exception_of(const std::exception_ptr& thrown);

}  // namespace sardonyx::python
