#include "errors.h"

#include <new>
#include <utility>

#include "text.h"

namespace nb = nanobind;

namespace sardonyx::python {
namespace {

// Released with the lock held, which the end of a thread does not have: no destructor.
struct Remembered {
  PyObject* exception = nullptr;
  std::string* text = nullptr;
};
thread_local Remembered remembered;

bool came_of_remembered(const Error& error) {
  return remembered.exception != nullptr &&
         error.message().find(*remembered.text) != std::string::npos;
}

nb::object take_remembered() {
  PyObject* const exception = std::exchange(remembered.exception, nullptr);
  delete std::exchange(remembered.text, nullptr);
  return nb::steal(exception);
}

nb::object made_of(const Error& error) {
  nb::object make = nb::module_::import_("sardonyx._errors").attr("make");
  const auto code = name_of(error.code());
  nb::object exception = make(nb::str(code.data(), code.size()), error.message(), error.location());
  if (came_of_remembered(error))
    PyException_SetCause(exception.ptr(), take_remembered().release().ptr());
  forget_remembered();
  return exception;
}

void set_raised(nb::handle exception) {
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
}

void raise(const Error& error) {
  try {
    throw_if_beyond_exceptions(error);
    set_raised(made_of(error));
  } catch (nb::python_error& failure) {
    failure.restore();
  }
}

std::string text_of(nb::handle exception) {
  std::string text = nb::type_name(exception.type()).c_str();
  try {
    const std::string said = utf8_of(exception);
    if (!said.empty()) text += ": " + said;
  } catch (nb::python_error&) {  // a __str__ that fails
  }
  return text;
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

std::string utf8_of(nb::handle object) {
  const nb::object bytes =
      nb::steal(PyUnicode_AsEncodedString(nb::str(object).ptr(), "utf-8", "backslashreplace"));
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (!bytes.is_valid() || PyBytes_AsStringAndSize(bytes.ptr(), &data, &size) != 0)
    throw nb::python_error();
  return {data, static_cast<size_t>(size)};
}

std::string remember(nb::python_error& failure) {
  forget_remembered();
  nb::object exception = nb::borrow(failure.value());
  if (failure.traceback().is_valid())
    PyException_SetTraceback(exception.ptr(), failure.traceback().ptr());
  std::string text = text_of(exception);
  remembered.text = new std::string(text);
  remembered.exception = exception.release().ptr();
  return text;
}

void forget_remembered() {
  if (remembered.exception != nullptr) (void)take_remembered();
}

void throw_if_beyond_exceptions(const Error& error) {
  if (!came_of_remembered(error) || PyObject_IsInstance(remembered.exception, PyExc_Exception) != 0)
    return;
  set_raised(take_remembered());
  throw nb::python_error();
}

nb::object exception_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    try {
      throw_if_beyond_exceptions(error);
    } catch (nb::python_error& failure) {
      return nb::borrow(failure.value());
    }
    return made_of(error);
  } catch (nb::python_error& failure) {
    return nb::borrow(failure.value());
  } catch (const std::bad_alloc&) {
    return nb::borrow(PyExc_MemoryError)();
  } catch (const std::exception& error) {
    return nb::borrow(PyExc_RuntimeError)(error.what());
  } catch (...) {
    return nb::borrow(PyExc_RuntimeError)("something was thrown that is no std::exception");
  }
}

}  // namespace sardonyx::python
