// clang-format off: the table belongs to this file
#define SARDONYX_OWNS_NUMPY_TABLE
#include "numpy_table.h"
// clang-format on
#include "numpy_types.h"

#include <array>
#include <mutex>
#include <string>

#include "sardonyx/error.h"

namespace sardonyx::python {
namespace {

struct LowPrecision {
  ElementType type;
  const char* name;  // in ml_dtypes
};
constexpr LowPrecision low_precision[] = {
    {ElementType::bfloat16, "bfloat16"},
    {ElementType::float8e4m3fn, "float8_e4m3fn"},
    {ElementType::float8e4m3fnuz, "float8_e4m3fnuz"},
    {ElementType::float8e5m2, "float8_e5m2"},
    {ElementType::float8e5m2fnuz, "float8_e5m2fnuz"},
    {ElementType::uint4, "uint4"},
    {ElementType::int4, "int4"},
    {ElementType::float4e2m1, "float4_e2m1fn"},
    {ElementType::float8e8m0, "float8_e8m0fnu"},
    {ElementType::uint2, "uint2"},
    {ElementType::int2, "int2"},
    {ElementType::float6e2m3, "float6_e2m3fn"},
    {ElementType::float6e3m2, "float6_e3m2fn"},
};

// dtypes of ml_dtypes by element type; kept for the life of the process.
struct MlDtypes {
  bool looked = false;
  std::array<PyObject*, element_type_count> dtypes{};
};

// What is returned changes no more: it is the table once that is complete, and an empty one before.
const MlDtypes& ml_dtypes(bool import) {
  static MlDtypes found;
  static const MlDtypes none;
  static nb::ft_mutex mutex;
  const nb::ft_lock_guard lock(mutex);
  if (found.looked) return found;
  if (!import) {  // arrays of its types exist only where somebody has imported it
    nb::dict modules = nb::module_::import_("sys").attr("modules");
    if (!modules.contains("ml_dtypes")) return none;
  }
  nb::object package;
  try {
    package = nb::module_::import_("ml_dtypes");
  } catch (const nb::python_error&) {
    return none;
  }
  for (const auto& [type, name] : low_precision) {
    nb::object scalar = nb::getattr(package, name, nb::none());
    if (scalar.is_none()) continue;  // of a newer ml_dtypes
    found.dtypes[static_cast<size_t>(type)] =
        nb::module_::import_("numpy").attr("dtype")(scalar).release().ptr();
  }
  found.looked = true;
  return found;
}

int number_of(ElementType type) {
  switch (type) {
    case ElementType::float32: return NPY_FLOAT;
    case ElementType::uint8: return NPY_UINT8;
    case ElementType::int8: return NPY_INT8;
    case ElementType::uint16: return NPY_UINT16;
    case ElementType::int16: return NPY_INT16;
    case ElementType::int32: return NPY_INT32;
    case ElementType::int64: return NPY_INT64;
    case ElementType::string: return NPY_OBJECT;
    case ElementType::boolean: return NPY_BOOL;
    case ElementType::float16: return NPY_HALF;
    case ElementType::float64: return NPY_DOUBLE;
    case ElementType::uint32: return NPY_UINT32;
    case ElementType::uint64: return NPY_UINT64;
    case ElementType::complex64: return NPY_CFLOAT;
    case ElementType::complex128: return NPY_CDOUBLE;
    default: return -1;
  }
}

ElementType integer_of(bool is_signed, npy_intp bytes) {
  switch (bytes) {
    case 1: return is_signed ? ElementType::int8 : ElementType::uint8;
    case 2: return is_signed ? ElementType::int16 : ElementType::uint16;
    case 4: return is_signed ? ElementType::int32 : ElementType::uint32;
    case 8: return is_signed ? ElementType::int64 : ElementType::uint64;
    default: return ElementType::undefined;
  }
}

ElementType element_type_of_descr(PyArray_Descr* descr) {
  switch (descr->type_num) {
    case NPY_FLOAT: return ElementType::float32;
    case NPY_DOUBLE: return ElementType::float64;
    case NPY_HALF: return ElementType::float16;
    case NPY_BOOL: return ElementType::boolean;
    case NPY_CFLOAT: return ElementType::complex64;
    case NPY_CDOUBLE: return ElementType::complex128;
    case NPY_OBJECT:
    case NPY_UNICODE:
    case NPY_STRING: return ElementType::string;
    case NPY_BYTE:
    case NPY_SHORT:
    case NPY_INT:
    case NPY_LONG:
    case NPY_LONGLONG: return integer_of(true, PyDataType_ELSIZE(descr));
    case NPY_UBYTE:
    case NPY_USHORT:
    case NPY_UINT:
    case NPY_ULONG:
    case NPY_ULONGLONG: return integer_of(false, PyDataType_ELSIZE(descr));
    default: break;
  }
  if (descr->type_num < NPY_USERDEF) return ElementType::undefined;
  const auto& known = ml_dtypes(false).dtypes;
  for (size_t i = 0; i < known.size(); ++i) {
    if (known[i] != nullptr &&
        reinterpret_cast<PyArray_Descr*>(known[i])->type_num == descr->type_num)
      return static_cast<ElementType>(i);
  }
  return ElementType::undefined;
}

}  // namespace

void import_numpy() {
  if (PyArray_ImportNumPyAPI() < 0) throw nb::python_error();
}

bool is_array(PyObject* object) { return PyArray_Check(object); }

ElementType element_type_of_array(PyObject* array) {
  return element_type_of_descr(PyArray_DESCR(reinterpret_cast<PyArrayObject*>(array)));
}

ElementType element_type_of_dtype(nb::handle dtype) {
  PyArray_Descr* descr = nullptr;
  if (PyArray_DescrConverter(dtype.ptr(), &descr) != NPY_SUCCEED) throw nb::python_error();
  const ElementType type = element_type_of_descr(descr);
  Py_DECREF(descr);
  return type;
}

PyObject* dtype_of(ElementType type) {
  if (const int number = number_of(type); number >= 0) {
    return reinterpret_cast<PyObject*>(PyArray_DescrFromType(number));
  }
  PyObject* found = ml_dtypes(true).dtypes[static_cast<size_t>(type)];
  if (found == nullptr) {
    throw Error(ErrorCode::unsupported, "numpy has no type for elements of " +
                                            std::string(name_of(type)) +
                                            "; install ml_dtypes, which has one");
  }
  Py_INCREF(found);
  return found;
}

}  // namespace sardonyx::python
