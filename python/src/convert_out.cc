// From the engine to Python.
#include <cstring>
#include <string>
#include <utility>

#include "convert.h"
#include "numpy_table.h"
#include "numpy_types.h"
#include "packed.h"
#include "text.h"

namespace sardonyx::python {
namespace {

constexpr int max_dims = 64;  // numpy's limit since 2.0; before that it says so itself

nb::object new_array(ElementType type, const Shape& shape, void* data, int flags) {
  PyObject* dtype = dtype_of(type);
  npy_intp dims[max_dims];
  if (shape.size() > max_dims) {
    Py_DECREF(dtype);
    throw Error(ErrorCode::unsupported,
                "numpy has no arrays of " + std::to_string(shape.size()) + " dimensions");
  }
  std::copy(shape.begin(), shape.end(), dims);
  PyObject* array =
      PyArray_NewFromDescr(&PyArray_Type, reinterpret_cast<PyArray_Descr*>(dtype),
                           static_cast<int>(shape.size()), dims, nullptr, data, flags, nullptr);
  if (array == nullptr) throw nb::python_error();
  return nb::steal(array);
}

void* data_of(nb::handle array) {
  return PyArray_DATA(reinterpret_cast<PyArrayObject*>(array.ptr()));
}

nb::object strings_array(const Tensor& tensor) {
  nb::object array = new_array(ElementType::string, tensor.shape(), nullptr, 0);
  auto** items = static_cast<PyObject**>(data_of(array));
  for (const std::string& text : tensor.elements<std::string>()) {
    Py_XDECREF(*items);
    *items++ = text_object(text).release().ptr();
  }
  return array;
}

nb::object copied_array(const Tensor& tensor) {
  if (tensor.element_type() == ElementType::string) return strings_array(tensor);
  nb::object array = new_array(tensor.element_type(), tensor.shape(), nullptr, 0);
  if (is_packed(tensor.element_type())) {
    unpack(tensor.element_type(), static_cast<const uint8_t*>(tensor.data()), tensor.size(),
           static_cast<uint8_t*>(data_of(array)));
  } else if (tensor.byte_size() > 0) {
    std::memcpy(data_of(array), tensor.data(), tensor.byte_size());
  }
  return array;
}

// Below this many bytes a copy costs less than an owner.
constexpr size_t small = 512;

nb::object taken_array(Tensor tensor, bool writable) {
  void* data = tensor.mutable_data();
  nb::object array = new_array(tensor.element_type(), tensor.shape(), data,
                               writable ? NPY_ARRAY_CARRAY : NPY_ARRAY_CARRAY_RO);
  nb::capsule owner(new Tensor(std::move(tensor)),
                    [](void* held) noexcept { delete static_cast<Tensor*>(held); });
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array.ptr()), owner.release().ptr()) !=
      0)
    throw nb::python_error();
  return array;
}

nb::object array_from(Tensor&& tensor) {
  const bool ours = tensor.owner().use_count() == 1 && tensor.byte_size() > small &&
                    tensor.element_type() != ElementType::string &&
                    !is_packed(tensor.element_type());
  return ours ? taken_array(std::move(tensor), true) : copied_array(tensor);
}

// An element of a tensor as Python's own number or text; null where numpy must say what it is.
PyObject* plain_object(const Tensor& tensor, size_t i) {
  const auto at = [&]<class T>(T) { return tensor.elements<T>()[i]; };
  switch (tensor.element_type()) {
    case ElementType::float32: return PyFloat_FromDouble(at(float()));
    case ElementType::float64: return PyFloat_FromDouble(at(double()));
    case ElementType::int64: return PyLong_FromLongLong(at(int64_t()));
    case ElementType::int32: return PyLong_FromLong(at(int32_t()));
    case ElementType::string: return text_object(tensor.elements<std::string>()[i]).release().ptr();
    default: return nullptr;
  }
}

nb::object entry_from(const Value& value) {
  if (value.is_tensor() && value.tensor().rank() == 0) {
    if (PyObject* plain = plain_object(value.tensor(), 0)) return nb::steal(plain);
    if (PyErr_Occurred()) throw nb::python_error();
    return object_from(Value(value)).attr("item")();
  }
  return object_from(Value(value));
}

// Keys as Python has them. Maps of one sequence mostly share theirs.
class KeyObjects {
 public:
  const nb::list& of(const Tensor& keys) {
    if (keys.data() == data_ && keys.size() == size_) return list_;
    list_ = nb::list(copied_array(keys).attr("tolist")());
    data_ = keys.data(), size_ = keys.size();
    return list_;
  }

 private:
  const void* data_ = nullptr;
  int64_t size_ = -1;
  nb::list list_;
};

nb::object map_object(const Map& map, KeyObjects& keys) {
  const nb::list& names = keys.of(map.keys);
  nb::dict entries;
  for (size_t i = 0; i < map.values.size(); ++i) {
    PyObject* name = PyList_GetItem(names.ptr(), static_cast<Py_ssize_t>(i));
    if (name == nullptr ||
        PyDict_SetItem(entries.ptr(), name, entry_from(map.values[i]).ptr()) != 0)
      throw nb::python_error();
  }
  return entries;
}

}  // namespace

nb::object view_of(const Tensor& tensor, bool writable) {
  const ElementType type = tensor.element_type();
  if (type == ElementType::string || is_packed(type)) return copied_array(tensor);
  return taken_array(tensor, writable);
}

nb::object object_from(Value&& value) {
  switch (value.kind()) {
    case Value::Kind::none: return nb::none();
    case Value::Kind::tensor: {
      Tensor tensor = value.tensor();
      value = {};
      return array_from(std::move(tensor));
    }
    case Value::Kind::sparse_tensor: {
      const SparseTensor& sparse = value.sparse_tensor();
      nb::list shape;
      for (const int64_t size : sparse.shape) shape.append(size);
      return nb::module_::import_("sardonyx._sparse")
          .attr("SparseTensor")(copied_array(sparse.values), copied_array(sparse.indices),
                                nb::tuple(shape));
    }
    case Value::Kind::sequence: {
      nb::list items;
      KeyObjects keys;
      Sequence sequence = value.take_sequence();
      for (Value& item : sequence.items) {
        items.append(item.kind() == Value::Kind::map ? map_object(item.map(), keys)
                                                     : object_from(std::move(item)));
      }
      return items;
    }
    case Value::Kind::map: {
      KeyObjects keys;
      return map_object(value.map(), keys);
    }
    case Value::Kind::optional: {
      if (value.optional().held == nullptr) return nb::none();
      Value held = *value.optional().held;
      value = {};
      return object_from(std::move(held));
    }
  }
  return nb::none();
}

}  // namespace sardonyx::python
