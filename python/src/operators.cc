#include "operators.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "convert.h"
#include "errors.h"
#include "model.h"
#include "numpy_types.h"
#include "owner.h"
#include "sardonyx/signatures.h"
#include "text.h"

namespace sardonyx::python {

namespace nb = nanobind;

namespace {

// What a node's code is told of its signature.
struct Version {
  struct Attribute {
    std::string name;
    AttributeType type = AttributeType::undefined;
    bool has_default = false;
  };
  struct Output {
    std::string name;
    ElementType element = ElementType::undefined;  // where the signature allows one alone
    int like_input = -1;                           // the first that has the same constraint
  };
  int32_t since = 0;
  std::vector<Attribute> attributes;
  std::vector<Output> outputs;
  size_t inputs = 0;

  const Output* output(int i) const {
    if (outputs.empty()) return nullptr;
    return &outputs[std::min(static_cast<size_t>(i), outputs.size() - 1)];  // the last is variadic
  }
};

ElementType only_type(const std::vector<std::string>& types) {
  constexpr std::string_view open = "tensor(";
  if (types.size() != 1 || !types[0].starts_with(open)) return ElementType::undefined;
  const std::string_view name =
      std::string_view(types[0]).substr(open.size(), types[0].size() - open.size() - 1);
  return element_type_named(name).value_or(ElementType::undefined);
}

Version version_of(const OperatorSignature& signature) {
  Version version;
  version.since = signature.since;
  version.inputs = signature.inputs.size();
  for (const auto& one : signature.attributes) {
    switch (one.type) {
      case AttributeType::float_:
      case AttributeType::int_:
      case AttributeType::string:
      case AttributeType::tensor:
      case AttributeType::floats:
      case AttributeType::ints:
      case AttributeType::strings: break;
      default:
        throw Error(ErrorCode::unsupported, "attribute '" + std::string(one.name) + "' is " +
                                                std::string(name_of(one.type)) +
                                                "; operators in Python have numbers, strings, "
                                                "lists of these and tensors");
    }
    version.attributes.push_back({std::string(one.name), one.type, one.has_default});
  }
  for (const auto& one : signature.outputs) {
    Version::Output output{std::string(one.name), only_type(one.types), -1};
    for (size_t i = 0; i < signature.inputs.size(); ++i) {
      if (signature.inputs[i].type == one.type) {
        output.like_input = static_cast<int>(i);
        break;
      }
    }
    version.outputs.push_back(std::move(output));
  }
  return version;
}

// A copy: the memory is the plan's, which goes on with it when the call is over.
nb::object array_of(const CustomTensor& tensor) {
  Shape shape(tensor.shape.begin(), tensor.shape.end());
  if (tensor.type != ElementType::string) {
    const auto bytes = static_cast<size_t>(byte_size(tensor.type, tensor.count));
    return object_from(Value(Tensor::view(tensor.type, std::move(shape), tensor.data, bytes)));
  }
  Tensor texts(ElementType::string, std::move(shape));
  const auto elements = tensor.elements<std::string>();
  std::copy(elements.begin(), elements.end(), texts.mutable_elements<std::string>().begin());
  return object_from(Value(std::move(texts)));
}

nb::object attribute_of(const CustomNode& node, const Version::Attribute& one) {
  switch (one.type) {
    case AttributeType::float_: return nb::cast(node.attribute_float(one.name));
    case AttributeType::int_: return nb::cast(node.attribute_int(one.name));
    case AttributeType::string: return text_object(node.attribute_string(one.name));
    case AttributeType::floats: return nb::cast(node.attribute_floats(one.name));
    case AttributeType::ints: return nb::cast(node.attribute_ints(one.name));
    case AttributeType::strings: {
      nb::list made;
      for (const auto& text : node.attribute_strings(one.name)) made.append(text_object(text));
      return made;
    }
    default: return array_of(node.attribute_tensor(one.name));
  }
}

nb::dict attributes_of(const CustomNode& node, const Version& version) {
  nb::dict made;
  for (const auto& one : version.attributes) {
    if (one.has_default || node.has_attribute(one.name))
      made[one.name.c_str()] = attribute_of(node, one);
  }
  return made;
}

// ---- inference

// What `infer` of an operator is given; of use as long as that call, and in its thread.
class Inference {
 public:
  Inference(ShapeInferenceContext& context, const Version& version)
      : context_(&context), version_(&version) {}
  void end() { context_ = nullptr; }

  ShapeInferenceContext& context() const {
    if (std::this_thread::get_id() != thread_)
      throw std::runtime_error("the inference of a node belongs to the thread that infer() is in");
    if (context_ == nullptr)
      throw std::runtime_error("the inference of this node is over: nothing of it may be kept");
    return *context_;
  }
  const Version& version() const {
    (void)context();
    return *version_;
  }

 private:
  const std::thread::id thread_ = std::this_thread::get_id();
  ShapeInferenceContext* context_;
  const Version* version_;
};

struct Size {
  std::shared_ptr<Inference> inference;
  SymbolicDim dim;
};

struct InferContext {
  std::shared_ptr<Inference> inference;

  ShapeInferenceContext& of() const { return inference->context(); }

  SymbolicDim dim(nb::handle object) const {
    if (nb::isinstance<Size>(object)) return nb::cast<Size>(object).dim;
    if (!nb::hasattr(object, "__index__"))
      refuse("a size is an integer or what shape() and unknown() give, and " +
             std::string(nb::type_name(object.type()).c_str()) + " was given");
    return {nb::cast<int64_t>(nb::int_(nb::borrow(object)))};
  }
  nb::object object(SymbolicDim dim) const {
    if (dim.is_number()) return nb::cast(dim.value());
    return nb::cast(Size{inference, dim});
  }

  nb::object shape(int input) const {
    const auto rank = of().has_input(input) ? of().rank(input) : std::nullopt;
    if (!rank) return nb::none();
    nb::list sizes;
    for (int64_t axis = 0; axis < *rank; ++axis) sizes.append(object(of().size(input, axis)));
    return nb::tuple(sizes);
  }
  nb::object element_type(int input) const {
    const ElementType type = of().has_input(input) ? of().element(input) : ElementType::undefined;
    if (type == ElementType::undefined) return nb::none();
    return nb::cast(std::string(name_of(type)));
  }
  nb::object constant(int input) const {
    const CustomTensor found = of().constant(input);
    return found.data == nullptr && found.type == ElementType::undefined ? nb::none()
                                                                         : array_of(found);
  }
  void set_output(int output, nb::handle type, nb::handle shape) const {
    ElementType element = ElementType::undefined;
    if (nb::isinstance<nb::str>(type))
      element = element_type_named(utf8_of(type)).value_or(ElementType::undefined);
    if (element == ElementType::undefined) element = element_type_of_dtype(type);
    if (shape.is_none()) return of().set_output_of_any_rank(output, element);
    std::vector<SymbolicDim> sizes;
    for (nb::handle size : shape) sizes.push_back(dim(size));
    of().set_output(output, element, sizes);
  }
  nb::object unknown(nb::handle bound) const {
    return object(bound.is_none() ? of().unknown() : of().unknown(dim(bound)));
  }
  nb::object combined(char operation, nb::handle a, nb::handle b) const {
    const SymbolicDim x = dim(a), y = dim(b);
    switch (operation) {
      case '+': return object(x + y);
      case '-': return object(x - y);
      case '*': return object(x * y);
      case '/': return object(floor_div(x, y));
      case '^': return object(ceil_div(x, y));
      case '<': return object(min(x, y));
      default: return object(max(x, y));
    }
  }
};

nb::object combined(const Size& size, char operation, nb::handle other, bool reversed) {
  const InferContext context{size.inference};
  (void)context.of();
  nb::object self = nb::cast(size);
  return reversed ? context.combined(operation, other, self)
                  : context.combined(operation, self, other);
}

// What the engine itself has found by way of the context goes on as it is.
void throw_if_engines_own(const nb::python_error& failure) {
  nb::object base = nb::module_::import_("sardonyx._errors").attr("Error");
  if (!failure.matches(base)) return;
  const nb::handle error = failure.value();
  const std::string code = utf8_of(error.attr("code"));
  for (const ErrorCode one :
       {ErrorCode::unreadable, ErrorCode::invalid_model, ErrorCode::unsupported,
        ErrorCode::bad_input, ErrorCode::run_failed, ErrorCode::cancelled, ErrorCode::out_of_memory,
        ErrorCode::internal}) {
    if (name_of(one) == code)
      throw Error(one, utf8_of(error.attr("message")), utf8_of(error.attr("location")));
  }
}

// Types as the signature ties them to those of inputs; shapes are the kernel's business.
void infer_by_signature(ShapeInferenceContext& context, const Version& version) {
  for (int i = 0; i < context.output_count(); ++i) {
    const Version::Output* output = version.output(i);
    if (output == nullptr || !context.has_output(i)) continue;
    ElementType element = output->element;
    if (element == ElementType::undefined && output->like_input >= 0 &&
        context.has_input(output->like_input))
      element = context.element(output->like_input);
    if (element == ElementType::undefined && output->like_input < 0)
      context.fail("its inputs do not decide the type of output '" + output->name +
                   "': its operator, which is in Python, needs an infer()");
    if (element != ElementType::undefined) context.set_output_of_any_rank(i, element);
  }
}

// ---- running

// The tensor that the code made for an output of type `wanted`.
Tensor tensor_of(nb::handle object, ElementType wanted, const std::string& name) {
  const Value value = value_from(object, {.kind = Value::Kind::tensor, .element = wanted});
  if (!value.is_tensor())
    throw std::runtime_error("the operator's code gave " +
                             std::string(nb::type_name(object.type()).c_str()) + " for output '" +
                             name + "', which is a tensor");
  if (wanted != ElementType::undefined && value.tensor().element_type() != wanted) {
    throw std::runtime_error("the operator's code gave " +
                             std::string(name_of(value.tensor().element_type())) + " for output '" +
                             name + "', which is " + std::string(name_of(wanted)) +
                             "; convert it with astype()");
  }
  return value.tensor();
}

void fill(const CustomTensor& to, const Tensor& from) {
  if (from.element_type() == ElementType::string) {
    const auto texts = from.elements<std::string>();
    std::copy(texts.begin(), texts.end(), to.mutable_elements<std::string>().begin());
  } else if (from.byte_size() > 0) {
    std::memcpy(to.data, from.data(), from.byte_size());
  }
}

// An operator's object, weakly: models and sessions hold it where Python's collector sees that
// (sardonyx.Model), since it leads back to them by way of its function's global names.
class HeldOperator {
 public:
  explicit HeldOperator(nb::handle object) {
    nb::object weak = nb::steal(PyWeakref_NewRef(object.ptr(), nullptr));
    is_weak_ = weak.is_valid();
    if (!is_weak_) PyErr_Clear();  // an object of __slots__ alone
    held_ = owner_of(is_weak_ ? weak : nb::borrow(object));
  }
  nb::object get() const {
    nb::object held = nb::borrow(static_cast<PyObject*>(const_cast<void*>(held_.get())));
    nb::object object = is_weak_ ? held() : held;
    if (object.is_none())
      throw std::runtime_error("the operator's object is gone, with the models that had it");
    return object;
  }

 private:
  std::shared_ptr<const void> held_;
  bool is_weak_ = false;
};

class PythonKernel final : public CustomKernel {
 public:
  PythonKernel(std::shared_ptr<const HeldOperator> object, std::shared_ptr<const void> node,
               std::string name, const Version& version, int inputs, int outputs)
      : object_(std::move(object)),
        node_(std::move(node)),
        name_(std::move(name)),
        version_(version),
        inputs_(inputs),
        outputs_(outputs) {}

  std::string name() const override { return name_; }

  void run(KernelContext& run) const override {
    const nb::gil_scoped_acquire lock;
    try {
      nb::object run_in_python = object_->get().attr("run");
      nb::list inputs;
      inputs.append(nb::handle(static_cast<PyObject*>(const_cast<void*>(node_.get()))));
      for (int i = 0; i < inputs_; ++i)
        inputs.append(run.has_input(i) ? array_of(run.input(i)) : nb::none());
      nb::tuple arguments(inputs);
      nb::object made = nb::steal(PyObject_CallObject(run_in_python.ptr(), arguments.ptr()));
      if (!made.is_valid()) throw nb::python_error();
      take(run, made);
    } catch (nb::python_error& failure) {
      throw std::runtime_error(remember(failure));
    } catch (const Error& error) {  // of the conversion: what the code made is at fault
      throw std::runtime_error(error.what());
    }
  }

 private:
  void take(KernelContext& run, nb::handle made) const {
    const bool many = PyTuple_Check(made.ptr()) || (PyList_Check(made.ptr()) && outputs_ > 1);
    const size_t count = many ? nb::len(made) : 1;
    if (count < static_cast<size_t>(outputs_) || (!many && outputs_ > 1) ||
        count > std::max(version_.outputs.size(), static_cast<size_t>(outputs_))) {
      throw std::runtime_error("the operator's code gave " + std::to_string(count) +
                               " values, and the node has " + std::to_string(outputs_) +
                               " outputs");
    }
    for (int i = 0; i < outputs_; ++i) {
      if (!run.has_output(i)) continue;
      nb::object one = many ? nb::object(made[i]) : nb::borrow(made);
      const std::string& name = version_.output(i)->name;
      ElementType wanted = version_.output(i)->element;
      if (const int like = version_.output(i)->like_input;
          wanted == ElementType::undefined && like >= 0 && run.has_input(like))
        wanted = run.input(like).type;
      const Tensor tensor = tensor_of(one, wanted, name);
      const CustomTensor to = run.allocate(i, tensor.shape());
      if (to.type != tensor.element_type())
        throw std::runtime_error("the operator's code gave " +
                                 std::string(name_of(tensor.element_type())) + " for output '" +
                                 name + "', which is " + std::string(name_of(to.type)));
      fill(to, tensor);
    }
  }

  const std::shared_ptr<const HeldOperator> object_;
  const std::shared_ptr<const void> node_;
  const std::string name_;
  const Version version_;
  const int inputs_, outputs_;
};

class PythonOperator final : public CustomOperator {
 public:
  PythonOperator(nb::handle object, std::string name)
      : object_(std::make_shared<HeldOperator>(object)), name_(std::move(name)) {
    nb::object infer = nb::getattr(object, "infer", nb::none());
    infers_ = !infer.is_none();
  }
  void set_versions(const std::vector<OperatorSignature>& signatures) {
    for (const auto& one : signatures) versions_.push_back(version_of(one));
  }

  void infer(ShapeInferenceContext& context) const override {
    const Version& version = this->version(context);
    if (!infers_) return infer_by_signature(context, version);
    const nb::gil_scoped_acquire lock;
    auto held = std::make_shared<Inference>(context, version);
    try {
      object_->get().attr("infer")(nb::cast(InferContext{held}));
      held->end();
    } catch (nb::python_error& failure) {
      held->end();
      throw_if_engines_own(failure);
      throw std::runtime_error("in infer(): " + remember(failure));
    }
  }

  std::unique_ptr<CustomKernel> prepare(KernelBuilder& builder) const override {
    const Version& version = this->version(builder);
    builder.allocates_outputs();
    const nb::gil_scoped_acquire lock;
    try {
      nb::object node = nb::module_::import_("sardonyx._operators")
                            .attr("OperatorNode")(version.since, attributes_of(builder, version),
                                                  builder.input_count(), builder.output_count());
      return std::make_unique<PythonKernel>(object_, owner_of(node), name_, version,
                                            builder.input_count(), builder.output_count());
    } catch (nb::python_error& failure) {
      throw std::runtime_error(remember(failure));
    }
  }

 private:
  const Version& version(const CustomNode& node) const {
    for (const Version& one : versions_) {
      if (one.since == node.since()) return one;
    }
    throw std::runtime_error("its operator has no version " + std::to_string(node.since()));
  }

  const std::shared_ptr<const HeldOperator> object_;
  const std::string name_;
  std::vector<Version> versions_;
  bool infers_ = false;
};

}  // namespace

void add_operator(CustomOperators& operators, const std::string& domain,
                  const std::string& signature, nb::handle object) {
  const std::string name = utf8_of(object.attr("name"));
  auto added = std::make_shared<PythonOperator>(object, "python." + name);
  operators.add(domain, signature, added);
  const auto versions = operator_versions(operators, domain, name);
  if (versions.empty())
    refuse("the signature defines another operator than '" + name +
           "', which its first line has to name");
  added->set_versions(versions);
}

void bind_operators(nb::module_& module) {
  nb::class_<Size>(module, "Size", "A size that inference knows as an expression of names.")
      .def("__add__", [](const Size& a, nb::handle b) { return combined(a, '+', b, false); })
      .def("__radd__", [](const Size& a, nb::handle b) { return combined(a, '+', b, true); })
      .def("__sub__", [](const Size& a, nb::handle b) { return combined(a, '-', b, false); })
      .def("__rsub__", [](const Size& a, nb::handle b) { return combined(a, '-', b, true); })
      .def("__mul__", [](const Size& a, nb::handle b) { return combined(a, '*', b, false); })
      .def("__rmul__", [](const Size& a, nb::handle b) { return combined(a, '*', b, true); })
      .def("__floordiv__", [](const Size& a, nb::handle b) { return combined(a, '/', b, false); })
      .def("__rfloordiv__", [](const Size& a, nb::handle b) { return combined(a, '/', b, true); });
  nb::class_<InferContext>(module, "InferContext", "A node whose types are being inferred.")
      .def_prop_ro("since", [](const InferContext& c) { return c.of().since(); })
      .def_prop_ro("input_count", [](const InferContext& c) { return c.of().input_count(); })
      .def_prop_ro("output_count", [](const InferContext& c) { return c.of().output_count(); })
      .def("has_input", [](const InferContext& c, int i) { return c.of().has_input(i); })
      .def("has_output", [](const InferContext& c, int i) { return c.of().has_output(i); })
      .def_prop_ro(
          "attributes",
          [](const InferContext& c) { return attributes_of(c.of(), c.inference->version()); })
      .def("element_type", &InferContext::element_type, nb::arg("input"))
      .def("shape", &InferContext::shape, nb::arg("input"))
      .def("constant", &InferContext::constant, nb::arg("input"))
      .def("set_output", &InferContext::set_output, nb::arg("output"), nb::arg("element_type"),
           nb::arg("shape").none())
      .def(
          "set_output_like",
          [](const InferContext& c, int output, int input) {
            c.of().set_output_like(output, input);
          },
          nb::arg("output"), nb::arg("input"))
      .def("unknown", &InferContext::unknown, nb::arg("bound").none() = nb::none())
      .def(
          "broadcast",
          [](const InferContext& c, nb::handle a, nb::handle b) {
            return c.object(c.of().broadcast(c.dim(a), c.dim(b)));
          },
          nb::arg("a"), nb::arg("b"))
      .def(
          "ceil_div",
          [](const InferContext& c, nb::handle a, nb::handle b) { return c.combined('^', a, b); },
          nb::arg("a"), nb::arg("b"))
      .def(
          "min",
          [](const InferContext& c, nb::handle a, nb::handle b) { return c.combined('<', a, b); },
          nb::arg("a"), nb::arg("b"))
      .def(
          "max",
          [](const InferContext& c, nb::handle a, nb::handle b) { return c.combined('>', a, b); },
          nb::arg("a"), nb::arg("b"))
      .def(
          "require_equal",
          [](const InferContext& c, nb::handle a, nb::handle b, const std::string& rule) {
            c.of().require_equal(c.dim(a), c.dim(b), rule);
          },
          nb::arg("a"), nb::arg("b"), nb::arg("rule"))
      .def(
          "fail", [](const InferContext& c, const std::string& message) { c.of().fail(message); },
          nb::arg("message"));
}

}  // namespace sardonyx::python
