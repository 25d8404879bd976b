// Running sessions.
#include <algorithm>

#include "base/value_kind.h"
#include "ort_api/handles.h"
#include "ort_api/run_values.h"

namespace sardonyx::ort_api {

namespace {

// A run's inputs and outputs in the session's order.
struct RunValues {
  std::vector<Value> inputs, outputs;
  std::vector<size_t> asked;  // the outputs that the caller wants, as it names them
};

void take_inputs(const OrtSession& session, const OrtRunOptions* options, const char* const* names,
                 const OrtValue* const* values, size_t count, std::vector<Value>& inputs) {
  items(names, count, "input_names"), items(values, count, "inputs");
  inputs.resize(session.session.inputs().size());
  for (size_t i = 0; i < count; ++i) {
    const size_t place = input_place(session, names[i]);
    inputs[place] = input_value(session, place, values[i]);
  }
  if (options == nullptr) return;
  for (const OrtLoraAdapter* adapter : options->adapters)
    for (const NamedValue& one : adapter->parameters)
      inputs[input_place(session, one.first.c_str())] = one.second;
}

RunValues taken(const OrtSession& session, const OrtRunOptions* options,
                const char* const* input_names, const OrtValue* const* inputs, size_t input_count,
                const char* const* output_names, size_t output_count, OrtValue** outputs) {
  require_finished(session);
  RunValues values;
  take_inputs(session, options, input_names, inputs, input_count, values.inputs);
  items(output_names, output_count, "output_names"), items(outputs, output_count, "outputs");
  if (output_count == 0) refuse(ORT_INVALID_ARGUMENT, "at least one output should be asked for");
  values.outputs.resize(session.session.outputs().size());
  for (size_t i = 0; i < output_count; ++i) {
    const size_t place = output_place(session, output_names[i]);
    if (outputs[i] != nullptr && is_memory(outputs[i]->value))
      values.outputs[place] = outputs[i]->value;
    values.asked.push_back(place);
  }
  return values;
}

// Whether the caller brought a tensor for an output, which then must be of the output's type and
// shape.
bool is_given(const OrtValue* output) { return output != nullptr && output->value.is_tensor(); }

}  // namespace

void require_same_type(const Value& made, const Tensor& given) {
  if (!made.is_tensor())
    refuse(ORT_INVALID_ARGUMENT, "an output was given a tensor to be written to, and is {}",
           with_article(made.kind()));
  const Tensor& tensor = made.tensor();
  if (tensor.element_type() != given.element_type() || tensor.shape() != given.shape())
    refuse(ORT_INVALID_ARGUMENT, "an output was given a tensor {}{} to be written to, and is {}{}",
           name_of(given.element_type()), to_string(given.shape()), name_of(tensor.element_type()),
           to_string(tensor.shape()));
}

namespace {

// A copy where somebody else holds the elements: the session or an input.
Tensor alone(Tensor tensor) {
  if (tensor.owner().use_count() == 1) return tensor;
  Tensor copy(tensor.element_type(), tensor.shape());
  copy_into(tensor, copy);
  return copy;
}

}  // namespace

void copy_into(const Tensor& from, const Tensor& to) {
  if (from.element_type() == ElementType::string) {
    const auto texts = from.elements<std::string>();
    std::ranges::copy(texts, const_cast<Tensor&>(to).mutable_elements<std::string>().begin());
  } else if (from.data() != to.data() && from.byte_size() > 0) {
    std::memmove(const_cast<void*>(to.data()), from.data(), from.byte_size());
  }
}

Value owned(Value value) {
  switch (value.kind()) {
    case Value::Kind::tensor: {
      Tensor tensor = value.tensor();
      value = Value();
      return alone(std::move(tensor));
    }
    case Value::Kind::sparse_tensor: {
      SparseTensor sparse = value.sparse_tensor();
      value = Value();
      return SparseTensor{alone(std::move(sparse.values)), alone(std::move(sparse.indices)),
                          std::move(sparse.shape)};
    }
    case Value::Kind::sequence: {
      Sequence sequence = value.take_sequence();
      for (Value& item : sequence.items) item = owned(std::move(item));
      return sequence;
    }
    case Value::Kind::optional: {
      Value held = value.optional().held == nullptr ? Value() : *value.optional().held;
      value = Value();
      return owned(std::move(held));
    }
    default: return value;
  }
}

void set_declared(OrtValue& value, const OrtSession& session, size_t output) {
  const Value::Kind kind = value.value.kind();
  if (kind != Value::Kind::sequence && kind != Value::Kind::map) return;
  const OrtTypeInfo& type = session.outputs[output].type;
  const bool is_held = type.kind == ONNX_TYPE_OPTIONAL && type.of != nullptr;
  value.declared = is_held ? type.of : std::make_shared<const OrtTypeInfo>(type);
}

namespace {

// Gives the caller what a run made: all, or nothing.
void give_outputs(const OrtSession& session, RunValues& values, OrtValue** outputs) {
  std::vector<std::unique_ptr<OrtValue>> made;
  for (size_t i = 0; i < values.asked.size(); ++i) {
    Value output = values.outputs[values.asked[i]];
    const auto next = values.asked.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    if (std::find(next, values.asked.end(), values.asked[i]) == values.asked.end())
      values.outputs[values.asked[i]] = Value();
    if (is_given(outputs[i])) require_same_type(output, outputs[i]->value.tensor());
    made.emplace_back(
        new_value(is_given(outputs[i]) ? std::move(output) : owned(std::move(output))));
    set_declared(*made.back(), session, values.asked[i]);
  }
  for (size_t i = 0; i < made.size(); ++i) {
    if (outputs[i] == nullptr) {
      outputs[i] = made[i].release();
    } else if (is_memory(outputs[i]->value)) {
      copy_into(made[i]->value.tensor(), outputs[i]->value.tensor());
    } else {
      *outputs[i] = std::move(*made[i]);
    }
  }
}

OrtStatus* Run(OrtSession* session, const OrtRunOptions* options, const char* const* input_names,
               const OrtValue* const* inputs, size_t input_count, const char* const* output_names,
               size_t output_count, OrtValue** outputs) {
  return guarded([&] {
    OrtSession& from = required(session, "session");
    RunValues values =
        taken(from, options, input_names, inputs, input_count, output_names, output_count, outputs);
    run_with(from, options,
             [&](const RunOptions& run) { from.session.run(values.inputs, values.outputs, run); });
    give_outputs(from, values, outputs);
  });
}

// What a run needs that goes on while its caller does.
struct AsyncRun {
  RunValues values;
  std::optional<ProfiledRun> profiled;
  std::optional<Profile> own_profile;
  std::string profile_prefix;
};

OrtStatus* RunAsync(OrtSession* session, const OrtRunOptions* options,
                    const char* const* input_names, const OrtValue* const* inputs,
                    size_t input_count, const char* const* output_names, size_t output_count,
                    OrtValue** outputs, RunAsyncCallbackFn callback, void* user) {
  return guarded([&] {
    OrtSession& from = required(session, "session");
    required(callback, "run_async_callback");
    const auto job = std::make_shared<AsyncRun>();
    job->values =
        taken(from, options, input_names, inputs, input_count, output_names, output_count, outputs);
    std::vector<NamedValue> named;
    for (size_t i = 0; i < job->values.inputs.size(); ++i)
      if (job->values.inputs[i].kind() != Value::Kind::none)
        named.emplace_back(from.session.inputs()[i].name, std::move(job->values.inputs[i]));
    const auto done = [&from, job, outputs, callback, user](std::vector<Value> made,
                                                            std::exception_ptr error) {
      OrtStatus* const status = guarded([&] {
        if (error != nullptr) rethrow_of_run(error);
        if (job->own_profile) write_trace(*job->own_profile, job->profile_prefix, 0);
        job->values.outputs = std::move(made);
        give_outputs(from, job->values, outputs);
      });
      job->profiled.reset();  // before the callback, which may release the session
      const bool failed = status != nullptr;
      callback(user, failed ? nullptr : outputs, failed ? 0 : job->values.asked.size(), status);
    };
    RunOptions run;
    run.profile = job->profiled.emplace(from).profile();
    if (options != nullptr) {
      run.cancel = &options->terminate;
      if (options->profile_prefix) {
        job->profile_prefix = *options->profile_prefix;
        run.profile = &job->own_profile.emplace();
      }
    }
    from.session.run_async(std::move(named), done, run);
  });
}

}  // namespace

namespace {

std::string quoted_names(const std::vector<OrtSession::Place>& first,
                         const std::vector<OrtSession::Place>& then) {
  std::vector<std::string> names;
  for (const auto* const places : {&first, &then})
    for (const auto& one : *places) names.push_back("'" + one.name + "'");
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

size_t input_place(const OrtSession& session, const char* name) {
  const auto found = session.input_index.find(std::string_view(&required(name, "input_names")));
  if (found != session.input_index.end()) return found->second;
  refuse(ORT_INVALID_ARGUMENT, "Invalid input name: {} (the model has {})", name,
         quoted_names(session.inputs, session.defaults));
}

size_t output_place(const OrtSession& session, const char* name) {
  const auto found = session.output_index.find(std::string_view(&required(name, "output_names")));
  if (found != session.output_index.end()) return found->second;
  refuse(ORT_INVALID_ARGUMENT, "Invalid output name: {} (the model has {})", name,
         quoted_names(session.outputs, {}));
}

Value input_value(const OrtSession& session, size_t place, const OrtValue* given) {
  const ValueDescription& input = session.session.inputs()[place];
  if (given == nullptr)
    refuse(ORT_INVALID_ARGUMENT, "NULL input supplied for input {}", input.name);
  const Value& value = run_value(*given);
  if (input.kind != Value::Kind::optional || value.kind() == Value::Kind::optional) return value;
  Optional optional;
  if (value.kind() != Value::Kind::none) optional.held = std::make_unique<Value>(value);
  return optional;
}

bool is_memory(const Value& value) {
  return value.is_tensor() && value.tensor().element_type() != ElementType::string;
}

void rethrow_of_run(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& found) {
    if (found.code() == ErrorCode::cancelled)
      refuse(ORT_FAIL, "Exiting due to terminate flag being set to true. {}", found.what());
    if (found.code() == ErrorCode::run_failed)
      refuse(ORT_RUNTIME_EXCEPTION, "Non-zero status code returned while running {}", found.what());
    throw;
  }
}

void add_running(OrtApi& table) {
  table.Run = Run;
  table.RunAsync = RunAsync;
}

}  // namespace sardonyx::ort_api
