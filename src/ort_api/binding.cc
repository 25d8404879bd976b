// Inputs and outputs of a session bound once, for many runs.
#include <algorithm>

#include "ort_api/handles.h"
#include "ort_api/run_values.h"

namespace sardonyx::ort_api {

struct OrtIoBinding {
  explicit OrtIoBinding(OrtSession* of) : session(of), binding(of->session) {}

  OrtSession* session;
  Binding binding;
  std::vector<std::string> inputs, outputs;  // names, in the order in which they were bound
  // The caller's tensors that outputs are written to. A run writes into those that are `memory`
  // itself; into strings what it made is copied.
  std::map<std::string, Value, std::less<>> targets;
  std::map<std::string, Value, std::less<>> given;  // outputs that others hold, too, as copies

  // What the output is after a run, or is to be written to.
  Value output(const std::string& name) {
    const auto target = targets.find(name);
    if (target != targets.end()) return target->second;
    const auto found = given.find(name);
    if (found == given.end()) return binding.output(name);
    if (found->second.kind() == Value::Kind::none)
      found->second = owned(binding.output(name));  // made when it is first asked for
    return found->second;
  }
  void finish_run();
};

// What has just been made is held by the binding alone; what is not, is the model's or an input.
void OrtIoBinding::finish_run() {
  for (const auto& [name, target] : targets) {
    if (is_memory(target)) continue;
    require_same_type(binding.output(name), target.tensor());
    copy_into(binding.output(name).tensor(), target.tensor());
  }
  for (const std::string& name : outputs) {
    const Value& made = binding.output(name);
    const bool is_alone = made.is_tensor() && made.tensor().owner().use_count() == 1;
    if (!is_alone && !targets.contains(name)) given[name];
  }
}

namespace {

OrtStatus* CreateIoBinding(OrtSession* session, OrtIoBinding** out) {
  return guarded([&] {
    require_finished(required(session, "session"));
    give(out, "out", new OrtIoBinding(session));
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

// Into the value's memory, or its strings; else the run makes the output.
OrtStatus* BindOutput(OrtIoBinding* binding, const char* name, const OrtValue* value) {
  return guarded([&] {
    OrtIoBinding& to = required(binding, "binding_ptr");
    output_place(*to.session, name);
    to.targets.erase(name);
    const Value& target = required(value, "val_ptr").value;
    if (target.is_tensor()) to.targets.emplace(name, target);
    if (is_memory(target)) {
      const Tensor& tensor = target.tensor();
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
    to.targets.erase(name);
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
  binding->outputs.clear(), binding->targets.clear(), binding->given.clear();
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
    bound.given.clear();
    // Adapters do not affect runs of bindings.
    run_with(from, options, [&](const RunOptions& run) { bound.binding.run(run); });
    bound.finish_run();
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
    // The handle is const there; copies are made where they are asked for.
    OrtIoBinding& from = const_cast<OrtIoBinding&>(required(binding, "binding_ptr"));
    required(out, "output") = nullptr, required(count, "output_count") = from.outputs.size();
    if (from.outputs.empty()) return;
    std::vector<std::unique_ptr<OrtValue>> made;
    for (const std::string& name : from.outputs) {
      made.emplace_back(new_value(from.output(name)));
      set_declared(*made.back(), *from.session, output_place(*from.session, name.c_str()));
    }
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
