// Inputs and outputs of a session bound once, for many runs.
#include <algorithm>

#include "ort_api/handles.h"
#include "ort_api/run_values.h"

namespace sardonyx::ort_api {

struct OrtIoBinding {
  OrtSession* session;
  Binding binding;
  std::vector<std::string> inputs, outputs;  // names, in the order in which they were bound
};

namespace {

OrtStatus* CreateIoBinding(OrtSession* session, OrtIoBinding** out) {
  return guarded([&] {
    require_finished(required(session, "session"));
    give(out, "out", new OrtIoBinding{session, Binding(session->session), {}, {}});
  });
}
void ReleaseIoBinding(OrtIoBinding* binding) { delete binding; }

void remember(std::vector<std::string>& names, std::string_view name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
}

OrtStatus* BindInput(OrtIoBinding* binding, const char* name, const OrtValue* value) {
  return guarded([&] {
    OrtIoBinding& to = required(binding, "binding_ptr");
    const size_t place = input_place(*to.session, name);
    to.binding.bind_input(name, input_value(*to.session, place, value));
    remember(to.inputs, name);
  });
}

// Into the value's memory where it has some that a run can write to, else the run makes the output.
OrtStatus* BindOutput(OrtIoBinding* binding, const char* name, const OrtValue* value) {
  return guarded([&] {
    OrtIoBinding& to = required(binding, "binding_ptr");
    output_place(*to.session, name);
    if (is_memory(required(value, "val_ptr").value)) {
      const Tensor& tensor = value->value.tensor();
      to.binding.bind_output(name, MutableTensorRef{{.element_type = tensor.element_type(),
                                                     .shape = tensor.shape(),
                                                     .data = const_cast<void*>(tensor.data()),
                                                     .bytes = tensor.byte_size(),
                                                     .owner = tensor.owner()}});
    } else {
      to.binding.bind_output(name);
    }
    remember(to.outputs, name);
  });
}

OrtStatus* BindOutputToDevice(OrtIoBinding* binding, const char* name, const OrtMemoryInfo* info) {
  return guarded([&] {
    OrtIoBinding& to = required(binding, "binding_ptr");
    output_place(*to.session, name);
    require_cpu(required(info, "mem_info_ptr"));
    to.binding.bind_output(name);
    remember(to.outputs, name);
  });
}

// These have no way to say what went wrong.
void ClearBoundInputs(OrtIoBinding* binding) {
  if (binding == nullptr) return;
  served_table()->ReleaseStatus(guarded([&] {
    for (const std::string& name : binding->inputs) binding->binding.unbind_input(name);
  }));
  binding->inputs.clear();
}
void ClearBoundOutputs(OrtIoBinding* binding) {
  if (binding == nullptr) return;
  served_table()->ReleaseStatus(guarded([&] {
    for (const std::string& name : binding->outputs) binding->binding.bind_output(name);
  }));
  binding->outputs.clear();
}

OrtStatus* RunWithBinding(OrtSession* session, const OrtRunOptions* options,
                          const OrtIoBinding* binding) {
  return guarded([&] {
    OrtSession& from = required(session, "session");
    // The handle is const there and changes all the same: outputs are in it after the run.
    OrtIoBinding& bound = const_cast<OrtIoBinding&>(required(binding, "binding_ptr"));
    if (bound.session != session) refuse(ORT_INVALID_ARGUMENT, "the binding is another session's");
    if (bound.outputs.empty())
      refuse(ORT_INVALID_ARGUMENT, "At least one output should be requested.");
    // Adapters do not affect runs of bindings.
    run_with(from, options, [&](const RunOptions& run) { bound.binding.run(run); });
  });
}

// All names one after the other, and their lengths; null where there is none.
OrtStatus* GetBoundOutputNames(const OrtIoBinding* binding, OrtAllocator* allocator, char** buffer,
                               size_t** lengths, size_t* count) {
  return guarded([&] {
    const auto& names = required(binding, "binding_ptr").outputs;
    required(buffer, "buffer") = nullptr, required(lengths, "lengths") = nullptr;
    required(count, "count") = names.size();
    if (names.empty()) return;
    std::string all;
    for (const std::string& name : names) all += name;
    char* const text = given_text(allocator, all);
    size_t* numbers = nullptr;
    try {
      numbers = static_cast<size_t*>(given_memory(allocator, names.size() * sizeof(size_t)));
    } catch (...) {
      allocator->Free(allocator, text);
      throw;
    }
    std::transform(names.begin(), names.end(), numbers,
                   [](const std::string& name) { return name.size(); });
    *buffer = text, *lengths = numbers;
  });
}

OrtStatus* GetBoundOutputValues(const OrtIoBinding* binding, OrtAllocator* allocator,
                                OrtValue*** out, size_t* count) {
  return guarded([&] {
    const OrtIoBinding& from = required(binding, "binding_ptr");
    required(out, "output") = nullptr, required(count, "output_count") = from.outputs.size();
    if (from.outputs.empty()) return;
    std::vector<std::unique_ptr<OrtValue>> made;
    for (const std::string& name : from.outputs)
      made.emplace_back(new_value(from.binding.output(name)));
    auto* const list =
        static_cast<OrtValue**>(given_memory(allocator, made.size() * sizeof(OrtValue*)));
    std::transform(made.begin(), made.end(), list, [](auto& one) { return one.release(); });
    *out = list;
  });
}

// There is nothing to wait for.
OrtStatus* SynchronizeBoundInputs(OrtIoBinding* binding) {
  return guarded([&] { required(binding, "binding_ptr"); });
}
OrtStatus* SynchronizeBoundOutputs(OrtIoBinding* binding) {
  return guarded([&] { required(binding, "binding_ptr"); });
}

}  // namespace

void add_binding(OrtApi& table) {
  table.CreateIoBinding = CreateIoBinding;
  table.ReleaseIoBinding = ReleaseIoBinding;
  table.BindInput = BindInput;
  table.BindOutput = BindOutput;
  table.BindOutputToDevice = BindOutputToDevice;
  table.ClearBoundInputs = ClearBoundInputs;
  table.ClearBoundOutputs = ClearBoundOutputs;
  table.RunWithBinding = RunWithBinding;
  table.GetBoundOutputNames = GetBoundOutputNames;
  table.GetBoundOutputValues = GetBoundOutputValues;
  table.SynchronizeBoundInputs = SynchronizeBoundInputs;
  table.SynchronizeBoundOutputs = SynchronizeBoundOutputs;
}

}  // namespace sardonyx::ort_api
