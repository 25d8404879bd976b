// Inputs and outputs that are bound once.
#include "sardonyx/binding.h"

#include "capi/session.h"

using namespace sardonyx;
using namespace sardonyx::capi;

struct sardonyx_binding {
  SARDONYX_TAG('b', 'i');
  Binding binding;
};

namespace {

MutableTensorRef memory_of(const sardonyx_value& handle, const char* name) {
  if (!handle.value.is_tensor() || !handle.writable)
    fail(ErrorCode::bad_input,
         "the value bound to output '{}' is no tensor that may be written to; "
         "sardonyx_tensor_create and sardonyx_tensor_wrap_mutable make such",
         name);
  refuse_string_output(handle.value.tensor(), name);
  if (!is_alone(handle))
    fail(ErrorCode::bad_input, "something else shares the elements of the tensor for output '{}'",
         name);
  const Tensor& tensor = handle.value.tensor();
  return {{tensor.element_type(),
           tensor.shape(),
           const_cast<void*>(tensor.data()),
           tensor.byte_size(),
           {},
           0,
           tensor.owner()}};
}

}  // namespace

sardonyx_status* sardonyx_binding_create(const sardonyx_session* session,
                                         sardonyx_binding** binding) {
  return guarded([&] {
    required(binding, "binding");
    *binding = new sardonyx_binding{{}, Binding(required(session, "session").session)};
  });
}

void sardonyx_binding_release(sardonyx_binding* binding) { release_handle(binding); }

sardonyx_status* sardonyx_binding_input(sardonyx_binding* binding, const char* name,
                                        const sardonyx_value* value) {
  return guarded([&] {
    Binding& of = required(binding, "binding").binding;
    of.bind_input(&required(name, "name"), value != nullptr ? value_of(value, "value") : Value());
  });
}

sardonyx_status* sardonyx_binding_output(sardonyx_binding* binding, const char* name,
                                         const sardonyx_value* tensor) {
  return guarded([&] {
    Binding& of = required(binding, "binding").binding;
    required(name, "name");
    if (tensor == nullptr) return of.bind_output(name);
    of.bind_output(name, memory_of(required(tensor, "tensor"), name));
  });
}

sardonyx_status* sardonyx_binding_run(sardonyx_binding* binding,
                                      const sardonyx_run_options* options) {
  return guarded([&] { required(binding, "binding").binding.run(run_options(options)); });
}

sardonyx_status* sardonyx_binding_value(const sardonyx_binding* binding, const char* output,
                                        sardonyx_value** value) {
  return guarded([&] {
    const Binding& of = required(binding, "binding").binding;
    const Value& made = of.output(&required(output, "output"));
    required(value, "value");
    if (made.kind() == Value::Kind::none)
      fail(ErrorCode::bad_input, "no run has made output '{}'", output);
    *value = new_value(made);
  });
}
