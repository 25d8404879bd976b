#include "capi/session.h"

namespace sardonyx::capi {

RunOptions run_options(const sardonyx_run_options* given) {
  const sardonyx_run_options known = known_part(given);
  RunOptions options;
  if (known.cancel != nullptr) options.cancel = &known.cancel->wanted;
  if (known.deadline_ns < 0)
    fail(ErrorCode::bad_input, "a deadline of {} ns is negative", known.deadline_ns);
  if (known.deadline_ns > 0) {
    // Far enough not to pass the end of the clock.
    constexpr int64_t most = int64_t{1} << 61;
    options.deadline = std::chrono::steady_clock::now() +
                       std::chrono::nanoseconds(std::min(known.deadline_ns, most));
  }
  if (limit_of(known.memory_limit) > 0) options.memory_limit = known.memory_limit;
  if (known.profile != nullptr) options.profile = &known.profile->profile;
  return options;
}

Descriptions described(const std::vector<ValueDescription>& values) {
  Descriptions list;
  for (const ValueDescription& value : values) {
    auto one = std::make_unique<Description>();
    one->name = value.name, one->type = value.type;
    one->kind = value.kind, one->element = value.element_type;
    one->has_rank = value.shape.has_value(), one->optional = value.optional;
    if (value.shape) {
      for (const ValueDescription::Dimension& dimension : *value.shape) {
        one->dims.push_back(dimension.size.value_or(-1));
        one->dim_names.push_back(dimension.size ? std::string() : dimension.name);
      }
    }
    one->finish();
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace sardonyx::capi

using namespace sardonyx;
using namespace sardonyx::capi;

namespace {

// What the session changes of its model.
void set_model_options(const sardonyx_session_options& known, SessionOptions& options) {
  const auto sizes = texts(known.size_names, known.size_count, "size_names");
  if (known.size_count > 0) required(known.sizes, "sizes");
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!options.dimensions.emplace(sizes[i], known.sizes[i]).second)
      fail(ErrorCode::bad_input, "size '{}' is given twice", sizes[i]);
  }
  const auto names = texts(known.initializer_names, known.initializer_count, "initializer_names");
  if (known.initializer_count > 0) required(known.initializers, "initializers");
  for (size_t i = 0; i < names.size(); ++i)
    options.initializers.emplace_back(names[i], value_of(known.initializers[i], "initializers"));
  options.extra_outputs = texts(known.extra_outputs, known.extra_output_count, "extra_outputs");
  if (known.processor_count > 0) required(known.processors, "processors");
  options.processors.assign(known.processors, known.processors + known.processor_count);
}

SessionOptions session_options(const sardonyx_session_options* given) {
  const sardonyx_session_options known = known_part(given);
  SessionOptions options;
  options.threads = known.threads;
  if (known.shared_threads != nullptr) options.shared_threads = known.shared_threads->threads;
  options.reference = known.reference != 0;
  options.fuse = known.no_fusion == 0;
  options.exact = known.exact != 0;
  options.assume_inference = known.assume_inference != 0;
  options.prepack = known.prepack != 0;
  options.all_outputs = known.all_outputs != 0;
  options.seed = known.seed;
  options.memory_limit = limit_of(known.memory_limit);
  set_model_options(known, options);
  return options;
}

sardonyx_session* new_session(const Model& model, const sardonyx_session_options* options) {
  auto made = std::unique_ptr<sardonyx_session>(
      new sardonyx_session{Session(model, session_options(options)), {}, {}, {}});
  made->inputs = described(made->session.inputs());
  made->outputs = described(made->session.outputs());
  for (size_t i = 0; i < made->outputs.size(); ++i)
    made->output_places.emplace(made->outputs[i]->name, i);
  return made.release();
}

// The value to begin with where a caller gives an output: nothing, or a tensor to be filled.
Value begun(const sardonyx_value* output, const std::string& name) {
  if (output == nullptr) return {};
  if (!output->value.is_tensor() || !output->writable)
    fail(ErrorCode::bad_input,
         "the value given for output '{}' is no tensor that may be written to; "
         "sardonyx_tensor_create and sardonyx_tensor_wrap_mutable make such",
         name);
  if (!is_alone(*output))
    fail(ErrorCode::bad_input, "something else shares the elements of the tensor for output '{}'",
         name);
  return output->value;
}

void require_filled(const sardonyx_value& given, const Value& made, const std::string& name) {
  if (made.is_tensor() && made.tensor().data() == given.value.tensor().data()) return;
  const auto text = [](const Value& value) {
    if (!value.is_tensor()) return std::string(name_of(value.kind()));
    return fmt::format("{}{}", name_of(value.tensor().element_type()),
                       to_string(value.tensor().shape()));
  };
  fail(ErrorCode::bad_input, "output '{}' is {}, and was given memory for {}", name, text(made),
       text(given.value));
}

bool overlap(const Tensor& a, const Tensor& b) {
  const auto begin = [](const Tensor& t) { return reinterpret_cast<uintptr_t>(t.data()); };
  return begin(a) < begin(b) + b.byte_size() && begin(b) < begin(a) + a.byte_size();
}

void refuse_inputs(const Value& output, std::span<const Value> inputs, const std::string& name) {
  if (!output.is_tensor()) return;
  for (const Value& input : inputs) {
    if (input.is_tensor() && overlap(input.tensor(), output.tensor()))
      fail(ErrorCode::bad_input, "output '{}' was given memory that is an input of the run", name);
  }
}

// `places`: of the session's outputs, for each of the caller's.
void run(const sardonyx_session& session, std::span<const Value> inputs, const RunOptions& options,
         const std::vector<size_t>& places, sardonyx_value** outputs) {
  std::vector<Value> made(session.outputs.size());
  for (size_t i = 0; i < places.size(); ++i) {
    const std::string& name = session.outputs[places[i]]->name;
    made[places[i]] = begun(outputs[i], name);
    refuse_inputs(made[places[i]], inputs, name);
    for (size_t k = 0; k < i; ++k) {
      const Value& other = made[places[k]];
      if (other.is_tensor() && made[places[i]].is_tensor() &&
          overlap(other.tensor(), made[places[i]].tensor()))
        fail(ErrorCode::bad_input, "output '{}' was given memory of another output", name);
    }
  }
  session.session.run(inputs, made, options);
  std::vector<std::unique_ptr<sardonyx_value>> fresh(places.size());
  for (size_t i = 0; i < places.size(); ++i) {
    if (outputs[i] != nullptr)
      require_filled(*outputs[i], made[places[i]], session.outputs[places[i]]->name);
    else
      fresh[i].reset(new_value(made[places[i]]));
  }
  for (size_t i = 0; i < places.size(); ++i) {
    if (fresh[i]) outputs[i] = fresh[i].release();
  }
}

std::vector<size_t> all_places(const sardonyx_session& session, size_t count) {
  if (count != session.outputs.size())
    fail(ErrorCode::bad_input, "there is room for {} outputs, and the model has {}", count,
         session.outputs.size());
  std::vector<size_t> places(count);
  for (size_t i = 0; i < count; ++i) places[i] = i;
  return places;
}

std::vector<size_t> places_of(const sardonyx_session& session, const char* const* names,
                              size_t count) {
  if (names == nullptr) return all_places(session, count);
  std::vector<size_t> places;
  std::vector<char> seen(session.outputs.size(), 0);
  for (const std::string& name : texts(names, count, "output_names")) {
    const auto found = session.output_places.find(name);
    if (found == session.output_places.end())
      fail(ErrorCode::bad_input, "the model has no output '{}'", name);
    if (seen[found->second]++) fail(ErrorCode::bad_input, "output '{}' is asked for twice", name);
    places.push_back(found->second);
  }
  return places;
}

// By the session's order; throws for names that it does not have, or that come twice.
std::vector<Value> ordered(const sardonyx_session& session, const char* const* names,
                           const sardonyx_value* const* inputs, size_t count) {
  std::vector<Value> values(session.inputs.size());
  if (count > 0) required(inputs, "inputs");
  const std::vector<std::string> given = texts(names, count, "input_names");
  for (size_t k = 0; k < count; ++k) {
    const auto found = std::ranges::find_if(
        session.inputs, [&](const auto& input) { return input->name == given[k]; });
    if (found == session.inputs.end())
      fail(ErrorCode::bad_input, "the model has no input '{}'", given[k]);
    Value& to = values[static_cast<size_t>(found - session.inputs.begin())];
    if (to.kind() != Value::Kind::none)
      fail(ErrorCode::bad_input, "input '{}' is given twice", given[k]);
    to = value_of(inputs[k], "inputs");
  }
  return values;
}

sardonyx_status* describe(const std::vector<std::unique_ptr<Description>>& values, size_t index,
                          const char* what, sardonyx_value_info* info) {
  return guarded([&] {
    if (index >= values.size())
      fail(ErrorCode::bad_input, "there is no {} {} of {}", what, index, values.size());
    fill(info, values[index]->info());
  });
}

}  // namespace

sardonyx_status* sardonyx_threads_create(int count, sardonyx_threads** threads) {
  return guarded([&] {
    required(threads, "threads");
    *threads = new sardonyx_threads{Threads(count)};
  });
}

int sardonyx_threads_count(const sardonyx_threads* threads) {
  return threads == nullptr ? 0 : threads->threads.count();
}

void sardonyx_threads_release(sardonyx_threads* threads) { delete threads; }

sardonyx_status* sardonyx_session_create(const sardonyx_model* model,
                                         const sardonyx_session_options* options,
                                         sardonyx_session** session) {
  return guarded([&] {
    required(session, "session");
    *session = new_session(required(model, "model").model, options);
  });
}

sardonyx_status* sardonyx_session_load(const char* path, const sardonyx_load_options* load,
                                       const sardonyx_session_options* options,
                                       sardonyx_session** session) {
  return guarded([&] {
    required(session, "session");
    *session = new_session(Model(&required(path, "path"), load_options(load)), options);
  });
}

void sardonyx_session_release(sardonyx_session* session) { delete session; }

size_t sardonyx_session_input_count(const sardonyx_session* session) {
  return session == nullptr ? 0 : session->inputs.size();
}

size_t sardonyx_session_output_count(const sardonyx_session* session) {
  return session == nullptr ? 0 : session->outputs.size();
}

sardonyx_status* sardonyx_session_input(const sardonyx_session* session, size_t index,
                                        sardonyx_value_info* info) {
  if (session == nullptr) return guarded([&] { required(session, "session"); });
  return describe(session->inputs, index, "input", info);
}

sardonyx_status* sardonyx_session_output(const sardonyx_session* session, size_t index,
                                         sardonyx_value_info* info) {
  if (session == nullptr) return guarded([&] { required(session, "session"); });
  return describe(session->outputs, index, "output", info);
}

sardonyx_status* sardonyx_cancel_create(sardonyx_cancel** cancel) {
  return guarded([&] { required(cancel, "cancel") = new sardonyx_cancel(); });
}

void sardonyx_cancel_set(sardonyx_cancel* cancel, int wanted) {
  if (cancel != nullptr) cancel->wanted = wanted != 0;
}

void sardonyx_cancel_release(sardonyx_cancel* cancel) { delete cancel; }

sardonyx_status* sardonyx_session_run(const sardonyx_session* session,
                                      const sardonyx_run_options* options,
                                      const char* const* input_names,
                                      const sardonyx_value* const* inputs, size_t input_count,
                                      const char* const* output_names, size_t output_count,
                                      sardonyx_value** outputs) {
  return guarded([&] {
    const sardonyx_session& of = required(session, "session");
    const std::vector<size_t> places = places_of(of, output_names, output_count);
    if (output_count > 0) required(outputs, "outputs");
    run(of, ordered(of, input_names, inputs, input_count), run_options(options), places, outputs);
  });
}

sardonyx_status* sardonyx_session_run_in_order(const sardonyx_session* session,
                                               const sardonyx_run_options* options,
                                               const sardonyx_value* const* inputs,
                                               size_t input_count, sardonyx_value** outputs,
                                               size_t output_count) {
  return guarded([&] {
    const sardonyx_session& of = required(session, "session");
    const std::vector<size_t> places = all_places(of, output_count);
    if (output_count > 0) required(outputs, "outputs");
    if (input_count > 0) required(inputs, "inputs");
    std::vector<Value> values(input_count);
    for (size_t i = 0; i < input_count; ++i) {
      if (inputs[i] != nullptr) values[i] = inputs[i]->value;
    }
    run(of, values, run_options(options), places, outputs);
  });
}
