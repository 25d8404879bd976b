// sardonyx.Value.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "convert.h"
#include "errors.h"
#include "held_value.h"
#include "model.h"
#include "numpy_types.h"
#include "packed.h"
#include "sardonyx/value.h"
#include "text.h"

namespace sardonyx::python {
namespace {

ElementType named(const std::string& name) {
  const auto type = element_type_named(name);
  if (!type) refuse("there is no element type '" + name + "'");
  return *type;
}

bool is_writable(nb::handle array) { return nb::cast<bool>(array.attr("flags")["WRITEABLE"]); }

// numpy takes what comes by DLPack without a version for read-only: such memory does not say
// whether it is, and its owners expect it to be written to.
bool is_read_only(nb::handle array) {
  if (!is_array(array.ptr()) || is_writable(array)) return false;
  nb::object base = nb::borrow(array);
  while (is_array(base.ptr())) base = base.attr("base");
  return PyCapsule_IsValid(base.ptr(), "numpy_dltensor") == 0;
}

HeldValue value_of(nb::handle object, const std::string& type) {
  Wanted wanted{.type = type};
  if (type.starts_with("optional(")) wanted.kind = Value::Kind::optional;
  if (type.starts_with("seq(")) wanted.kind = Value::Kind::sequence;
  if (type.starts_with("map(")) wanted.kind = Value::Kind::map;
  if (type.empty() && (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object)) &&
      nb::len(object) > 0 && is_array(object[0].ptr()))
    wanted.kind = Value::Kind::sequence;
  if (const auto element = element_type_named(type)) wanted.element = *element;
  const bool writable = is_array(object.ptr()) && is_writable(object);
  return {value_from(object, wanted), writable, is_read_only(object)};
}

// An array's bytes under another element type: uint16 as bfloat16, uint8 as packed int4.
HeldValue reinterpreted(nb::handle array, const std::string& type, std::vector<int64_t> shape) {
  const Value plain = value_from(array, {.kind = Value::Kind::tensor});
  const Tensor& tensor = plain.tensor();
  return {Value(Tensor::view(named(type), std::move(shape), tensor.data(), tensor.byte_size(),
                             tensor.owner())),
          false, is_read_only(array)};
}

HeldValue uninitialised(const std::string& type, std::vector<int64_t> shape) {
  Tensor tensor(named(type), std::move(shape));
  if (tensor.element_type() != ElementType::string)
    std::memset(tensor.mutable_data(), 0, tensor.byte_size());
  return {Value(std::move(tensor)), true};
}

// The elements as they lie: of types of less than a byte several in each.
nb::bytes bytes_of(const HeldValue& held) {
  const Tensor& tensor = held.value.tensor();
  if (tensor.element_type() == ElementType::string) refuse("texts have no bytes of one size");
  return nb::bytes(tensor.data(), tensor.byte_size());
}

// Writes an array's elements over those of the tensor.
void fill(const HeldValue& held, nb::handle array) {
  if (held.read_only)
    refuse("the value views an array that must not be written to; make it of a copy of that");
  Tensor target = held.value.tensor();
  const Value source_value =
      value_from(array, {.kind = Value::Kind::tensor, .element = target.element_type()});
  const Tensor& source = source_value.tensor();
  if (source.element_type() != target.element_type() || source.shape() != target.shape()) {
    refuse("the tensor is " + std::string(name_of(target.element_type())) +
           to_string(target.shape()) + ", and " + std::string(name_of(source.element_type())) +
           to_string(source.shape()) + " was given to be written into it");
  }
  if (target.element_type() == ElementType::string) {
    std::copy(source.elements<std::string>().begin(), source.elements<std::string>().end(),
              target.mutable_elements<std::string>().begin());
  } else if (target.byte_size() > 0) {
    std::memmove(target.mutable_data(), source.data(), target.byte_size());
  }
}

}  // namespace

void bind_values(nb::module_& module) {
  nb::class_<HeldValue>(module, "Value", "A value that stays with the engine.")
      .def_static("of", &value_of, nb::arg("object").none(), nb::arg("type") = "")
      .def_static("reinterpreted", &reinterpreted, nb::arg("array"), nb::arg("type"),
                  nb::arg("shape"))
      .def_static("zeros", &uninitialised, nb::arg("type"), nb::arg("shape"))
      .def_prop_ro("kind",
                   [](const HeldValue& held) { return std::string(name_of(held.value.kind())); })
      .def_prop_ro("element_type",
                   [](const HeldValue& held) {
                     const Tensor& tensor = held.value.kind() == Value::Kind::sparse_tensor
                                                ? held.value.sparse_tensor().values
                                                : held.value.tensor();
                     return std::string(name_of(tensor.element_type()));
                   })
      .def_prop_ro("shape",
                   [](const HeldValue& held) {
                     return held.value.kind() == Value::Kind::sparse_tensor
                                ? held.value.sparse_tensor().shape
                                : held.value.tensor().shape();
                   })
      .def_prop_ro("address",
                   [](const HeldValue& held) {
                     return reinterpret_cast<uintptr_t>(held.value.tensor().data());
                   })
      .def_prop_ro("byte_size",
                   [](const HeldValue& held) { return held.value.tensor().byte_size(); })
      .def("has_memory_of",
           [](const HeldValue& held, const HeldValue& other) {
             return held.value.is_tensor() && other.value.is_tensor() &&
                    held.value.tensor().data() == other.value.tensor().data() &&
                    held.value.tensor().shape() == other.value.tensor().shape();
           })
      .def_prop_ro("writable",
                   [](const HeldValue& held) { return held.writable && held.value.is_tensor(); })
      .def("to_bytes", &bytes_of)
      .def("fill", &fill, nb::arg("array"))
      .def("view",
           [](const HeldValue& held) { return view_of(held.value.tensor(), held.writable); })
      .def("to_python", [](const HeldValue& held) { return object_from(Value(held.value)); });
  module.def("element_type_of",
             [](nb::handle dtype) { return std::string(name_of(element_type_of_dtype(dtype))); });
  module.def("dtype_of", [](const std::string& name) { return nb::steal(dtype_of(named(name))); });
  module.def("element_bits", [](const std::string& name) { return bit_width(named(name)); });
  module.def("element_type_number",
             [](const std::string& name) { return static_cast<int>(named(name)); });
  module.def("element_type_name",
             [](int number) { return std::string(name_of(static_cast<ElementType>(number))); });
}

}  // namespace sardonyx::python
