#include "errors.h"

#include <nanobind/stl/string.h>

#include <utility>

#include "sardonyx/error.h"

namespace nb = nanobind;

namespace sardonyx::python {
namespace {

void raise(const Error& error) {
  try {
    nb::object make = nb::module_::import_("sardonyx._errors").attr("make");
    const auto code = name_of(error.code());
    nb::object exception =
        make(nb::str(code.data(), code.size()), error.message(), error.location());
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  } catch (nb::python_error& failure) {
    failure.restore();
  }
}

}  // namespace

void translate_errors() {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      raise(error);
    }
  });
}

void refuse(std::string message, std::string location) {
  throw Error(ErrorCode::bad_input, std::move(message), std::move(location));
}

}  // namespace sardonyx::python
