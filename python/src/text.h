// std::string and str, in place of nanobind/stl/string.h: bytes that are no UTF-8 are surrogates in
// Python ("surrogateescape"), as in names of files. Names in models and on disks may have them.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>

namespace sardonyx::python {

inline nanobind::object text_object(std::string_view text) {
  PyObject* made =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape");
  if (made == nullptr) throw nanobind::python_error();
  return nanobind::steal(made);
}

}  // namespace sardonyx::python

namespace nanobind::detail {

template <>
struct type_caster<std::string> {
  NB_TYPE_CASTER(std::string, const_name("str"))

  bool from_python(handle source, uint32_t, cleanup_list*) noexcept {
    if (!PyUnicode_Check(source.ptr())) return false;
    Py_ssize_t size = 0;
    if (const char* text = PyUnicode_AsUTF8AndSize(source.ptr(), &size)) {
      value.assign(text, static_cast<size_t>(size));
      return true;
    }
    PyErr_Clear();
    PyObject* bytes = PyUnicode_AsEncodedString(source.ptr(), "utf-8", "surrogateescape");
    if (bytes == nullptr) {
      PyErr_Clear();
      return false;
    }
    value.assign(PyBytes_AsString(bytes), static_cast<size_t>(PyBytes_Size(bytes)));
    Py_DECREF(bytes);
    return true;
  }

  static handle from_cpp(const std::string& value, rv_policy, cleanup_list*) noexcept {
    return PyUnicode_DecodeUTF8(value.data(), static_cast<Py_ssize_t>(value.size()),
                                "surrogateescape");
  }
};

}  // namespace nanobind::detail
