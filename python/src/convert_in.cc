// From Python to the engine.
#include <string>
#include <utility>
#include <vector>

#include "convert.h"
#include "errors.h"
#include "held_value.h"
#include "numpy_table.h"
#include "numpy_types.h"
#include "owner.h"
#include "packed.h"

namespace sardonyx::python {
namespace {

PyArrayObject* as_array(nb::handle object) {
  return reinterpret_cast<PyArrayObject*>(object.ptr());
}

std::string class_name(nb::handle object) { return nb::type_name(object.type()).c_str(); }

// "map(int64,float[])" -> "int64", "float[]"; the words at the outermost level inside "word(…)".
std::vector<std::string_view> inside(std::string_view type) {
  std::vector<std::string_view> parts;
  const size_t open = type.find('(');
  if (open == std::string_view::npos || type.back() != ')') return parts;
  type = type.substr(open + 1, type.size() - open - 2);
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= type.size(); ++i) {
    if (i == type.size() || (type[i] == ',' && depth == 0)) {
      while (begin < i && type[begin] == ' ') ++begin;
      parts.push_back(type.substr(begin, i - begin));
      begin = i + 1;
    } else if (type[i] == '(' || type[i] == '[') {
      ++depth;
    } else if (type[i] == ')' || type[i] == ']') {
      --depth;
    }
  }
  return parts;
}

Wanted wanted_of_text(std::string_view type) {
  Wanted wanted{.type = type};
  const auto starts = [&](std::string_view word) { return type.substr(0, word.size()) == word; };
  if (type.empty()) return wanted;
  if (starts("seq(")) {
    wanted.kind = Value::Kind::sequence;
  } else if (starts("map(")) {
    wanted.kind = Value::Kind::map;
  } else if (starts("optional(")) {
    wanted.kind = Value::Kind::optional;
  } else if (starts("sparse_tensor(") || starts("sparse(")) {
    wanted.kind = Value::Kind::sparse_tensor;
  } else {
    wanted.kind = Value::Kind::tensor;
    if (starts("tensor(")) type = inside(type).empty() ? type : inside(type)[0];
    const auto element = element_type_named(type.substr(0, type.find('[')));
    wanted.element = element.value_or(ElementType::undefined);
  }
  return wanted;
}

// The text of an element of an array of strings: str, bytes, or what str() makes of it.
std::string text_of(nb::handle item) {
  if (PyBytes_Check(item.ptr())) {
    char* data = nullptr;
    Py_ssize_t size = 0;
    if (PyBytes_AsStringAndSize(item.ptr(), &data, &size) != 0) throw nb::python_error();
    return {data, static_cast<size_t>(size)};
  }
  nb::object text = nb::borrow(item);
  if (!PyUnicode_Check(item.ptr())) {
    if (item.is_none()) refuse("an array of strings holds None; give \"\" where there is no text");
    text = nb::str(item);
  }
  nb::object bytes = nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogateescape"));
  if (!bytes.is_valid()) throw nb::python_error();
  return text_of(bytes);
}

Shape shape_of(PyArrayObject* array) {
  const npy_intp* dims = PyArray_DIMS(array);
  return {dims, dims + PyArray_NDIM(array)};
}

Tensor strings_of(nb::handle array) {
  Tensor tensor(ElementType::string, shape_of(as_array(array)));
  nb::object items = array.attr("ravel")().attr("tolist")();
  auto elements = tensor.mutable_elements<std::string>();
  size_t i = 0;
  for (nb::handle item : items) elements[i++] = text_of(item);
  return tensor;
}

bool lies_as_a_tensor(PyArrayObject* array) {
  return PyArray_ISCARRAY_RO(array);  // contiguous, aligned, of the machine's byte order
}

// The array as the engine wants it to lie; a new reference to itself where it does.
nb::object laid_out(nb::handle array) {
  PyArray_Descr* native = PyArray_DescrNewByteorder(PyArray_DESCR(as_array(array)), NPY_NATIVE);
  PyObject* made = PyArray_FromArray(as_array(array), native, NPY_ARRAY_CARRAY_RO);
  if (made == nullptr) throw nb::python_error();
  return nb::steal(made);
}

// Bytes of one length without a meaning, as numpy.void has them: nothing is cut from their ends.
bool is_plain_void(nb::handle array) {
  PyArray_Descr* descr = PyArray_DESCR(as_array(array));
  return descr->type_num == NPY_VOID && !PyDataType_HASFIELDS(descr) &&
         !PyDataType_HASSUBARRAY(descr);
}

ElementType known_element(nb::handle array, ElementType wanted) {
  if (wanted == ElementType::string && is_plain_void(array)) return wanted;
  const ElementType type = element_type_of_array(array.ptr());
  if (type == ElementType::undefined) {
    refuse("an array of dtype " + text_of(nb::object(array.attr("dtype"))) +
           " is no tensor of ONNX; convert it with astype()");
  }
  return type;
}

// `array` lies as a tensor does, and lives as long as `owner` or the caller keeps it.
Tensor viewed(nb::handle array, ElementType type, std::shared_ptr<const void> owner) {
  if (type == ElementType::string) return strings_of(array);
  PyArrayObject* raw = as_array(array);
  if (is_packed(type)) {
    Tensor tensor(type, shape_of(raw));
    pack(type, static_cast<const uint8_t*>(PyArray_DATA(raw)), tensor.size(),
         static_cast<uint8_t*>(tensor.mutable_data()));
    return tensor;
  }
  return Tensor::view(type, shape_of(raw), PyArray_DATA(raw),
                      static_cast<size_t>(PyArray_NBYTES(raw)), std::move(owner));
}

// astype() would take the lowest bits of integers that `wanted` has no room for.
void require_range(nb::handle array, ElementType wanted) {
  const int bits = bit_width(wanted) - (is_signed_integer(wanted) ? 1 : 0);
  const nb::object limit = nb::int_(1).attr("__lshift__")(bits);
  const nb::object least = is_signed_integer(wanted) ? limit.attr("__neg__")() : nb::int_(0);
  const nb::object smallest = nb::int_(nb::object(array.attr("min")()));
  const nb::object largest = nb::int_(nb::object(array.attr("max")()));
  for (const nb::object& one : {smallest, largest}) {
    if (one < least || one >= limit)
      refuse(text_of(nb::str(one)) + " does not fit " + std::string(name_of(wanted)));
  }
}

// What numpy makes of lists and numbers.
nb::object plain_array(nb::handle object) {
  try {
    return nb::module_::import_("numpy").attr("asarray")(object);
  } catch (nb::python_error& failure) {  // lists of unequal lengths
    if (!failure.matches(PyExc_ValueError)) throw;
    refuse("numpy makes no array of it: " + text_of(nb::str(failure.value())));
  }
}

// Of what is no array: through DLPack where it has that, else what numpy makes of it, of the type
// that is wanted.
nb::object array_of(nb::handle object, const Wanted& wanted) {
  nb::module_ numpy = nb::module_::import_("numpy");
  if (nb::hasattr(object, "__dlpack__") && !nb::hasattr(object, "__array_interface__")) {
    try {
      return numpy.attr("from_dlpack")(object);
    } catch (
        nb::python_error& failure) {  // elements that numpy's DLPack does not know, requires_grad
      if (!nb::hasattr(object, "__array__")) throw;
    }
  }
  if (nb::hasattr(object, "__array__")) return numpy.attr("asarray")(object);
  nb::object plain = plain_array(object);
  if (wanted.element == ElementType::undefined) return plain;
  const ElementType natural = element_type_of_array(plain.ptr());
  // A list without elements becomes float64, whatever would be in it.
  const bool is_empty = PyArray_SIZE(as_array(plain)) == 0 && natural == ElementType::float64;
  if (wanted.element == ElementType::string) return is_empty ? plain.attr("astype")("O") : plain;
  // A list of numbers has no type of its own, but floats are not cut to integers unseen.
  const bool cuts = !is_empty && is_floating(natural) && !is_floating(wanted.element) &&
                    wanted.element != ElementType::complex64 &&
                    wanted.element != ElementType::complex128;
  if (cuts || natural == ElementType::string || natural == ElementType::undefined) return plain;
  const bool may_not_fit = is_integer(natural) && bit_width(natural) >= 8 &&
                           is_integer(wanted.element) && natural != wanted.element;
  if (may_not_fit && PyArray_SIZE(as_array(plain)) != 0) require_range(plain, wanted.element);
  return plain.attr("astype")(nb::steal(dtype_of(wanted.element)));
}

SparseTensor sparse_from(nb::handle object) {
  nb::object parts = nb::module_::import_("sardonyx._sparse").attr("parts")(object);
  SparseTensor sparse;
  sparse.values = value_from(parts[0], {.kind = Value::Kind::tensor}).tensor();
  sparse.indices =
      value_from(parts[1], {.kind = Value::Kind::tensor, .element = ElementType::int64}).tensor();
  for (nb::handle size : parts[2]) sparse.shape.push_back(nb::cast<int64_t>(size));
  return sparse;
}

Map map_from(nb::handle object, const Wanted& wanted) {
  const auto parts = inside(wanted.type);
  nb::dict entries = nb::cast<nb::dict>(object);
  nb::list keys;
  Map map;
  for (auto [key, item] : entries) {
    keys.append(key);
    const Wanted value_wanted = parts.size() == 2 ? wanted_of_text(parts[1]) : Wanted{};
    // What stands beside a key is a number, also where it is one of numpy's.
    nb::object plain =
        PyArray_IsScalar(item.ptr(), Generic) ? nb::object(item.attr("item")()) : nb::borrow(item);
    map.values.push_back(value_from(plain, value_wanted));
  }
  Wanted key_wanted{.kind = Value::Kind::tensor};
  if (parts.size() == 2) key_wanted.element = wanted_of_text(parts[0]).element;
  const bool is_empty = nb::len(keys) == 0;  // of an empty list numpy makes numbers
  if (key_wanted.element == ElementType::undefined && is_empty)
    key_wanted.element = ElementType::int64;
  map.keys = is_empty ? Tensor(key_wanted.element, {0}) : value_from(keys, key_wanted).tensor();
  return map;
}

bool is_sparse(nb::handle object) {
  return nb::hasattr(object, "tocoo") ||
         (nb::hasattr(object, "indices") && nb::hasattr(object, "values") &&
          nb::hasattr(object, "shape") && !nb::hasattr(object, "__array__"));
}

constexpr int deepest = 64;  // lists in lists, which a caller may have tied into a ring

Value any_value(nb::handle object, const Wanted& wanted, KeptObjects* made, int depth) {
  if (depth > deepest) refuse("a value holds lists in lists, more than 64 deep");
  if (const HeldValue* held = held_value(object)) return held->value;
  if (wanted.kind == Value::Kind::optional) {
    Optional optional;
    if (!object.is_none()) {
      const auto parts = inside(wanted.type);
      const Wanted content = parts.size() == 1 ? wanted_of_text(parts[0]) : Wanted{};
      optional.held = std::make_unique<Value>(any_value(object, content, nullptr, depth + 1));
    }
    return Value(std::move(optional));
  }
  if (object.is_none()) return {};
  if (!is_array(object.ptr()) || wanted.kind == Value::Kind::sequence) {
    const bool open = wanted.kind == Value::Kind::none;
    if (nb::isinstance<nb::dict>(object)) return Value(map_from(object, wanted));
    if (wanted.kind == Value::Kind::sparse_tensor || (open && is_sparse(object)))
      return Value(sparse_from(object));
    const bool is_list = nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object);
    if (wanted.kind == Value::Kind::sequence) {
      if (!is_list)
        refuse("a sequence is a list in Python, and " + class_name(object) + " was given");
      const auto parts = inside(wanted.type);
      const Wanted item_wanted = parts.size() == 1 ? wanted_of_text(parts[0]) : Wanted{};
      Sequence sequence;
      for (nb::handle item : object)
        sequence.items.push_back(any_value(item, item_wanted, nullptr, depth + 1));
      return Value(std::move(sequence));
    }
  }
  const bool was_array = is_array(object.ptr());
  nb::object array = was_array ? nb::borrow(object) : array_of(object, wanted);
  const ElementType type = known_element(array, wanted.element);
  if (type != ElementType::string && !lies_as_a_tensor(as_array(array))) array = laid_out(array);
  if (made == nullptr) return Value(viewed(array, type, owner_of(array)));
  if (array.ptr() != object.ptr()) made->append(array);
  return Value(viewed(array, type, nullptr));
}

}  // namespace

Wanted wanted_of(const ValueDescription& input) {
  return {.kind = input.kind, .element = input.element_type, .type = input.type};
}

Value value_from(nb::handle object, const Wanted& wanted) {
  return any_value(object, wanted, nullptr, 0);
}

Value borrowed_value_from(nb::handle object, const Wanted& wanted, KeptObjects& made) {
  return any_value(object, wanted, &made, 0);
}

}  // namespace sardonyx::python
