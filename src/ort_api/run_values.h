// What all ways to run a session share.
#pragma once

#include <exception>

#include "ort_api/handles.h"

namespace sardonyx::ort_api {

// Refuses a session of the model editor that is not finished.
void require_finished(const OrtSession& session);

// The place of an input or output in the session's order; refuses other names.
size_t input_place(const OrtSession& session, const char* name);
size_t output_place(const OrtSession& session, const char* name);

// The value as the input at this place takes it.
Value input_value(const OrtSession& session, size_t place, const OrtValue* given);

// Whether a run can write into the value.
bool is_memory(const Value& value);

// Refuses an output of another kind, type or shape than the caller's tensor that it is written to.
void require_same_type(const Value& made, const Tensor& given);
// Writes the elements of `from`, which are of the same type and count, where `to` has its own.
void copy_into(const Tensor& from, const Tensor& to);
// An output as it is the caller's, to be written to and to outlive what came in.
Value owned(Value value);
// Keeps of an output's type what a value without items does not tell.
void set_declared(OrtValue& value, const OrtSession& session, size_t output);

// Throws what a run threw, in ONNX Runtime's words where programs look for them.
[[noreturn]] void rethrow_of_run(const std::exception_ptr& error);

// Calls `run` with the options as the engine takes them. `options` may be null.
template <class Run>
void run_with(OrtSession& session, const OrtRunOptions* options, const Run& run) {
  RunOptions engine;
  std::optional<Profile> own_profile;
  const ProfiledRun profiled(session);
  engine.profile = profiled.profile();
  if (options != nullptr) {
    engine.cancel = &options->terminate;
    if (options->profile_prefix) engine.profile = &own_profile.emplace();
  }
  try {
    run(engine);
  } catch (...) {
    rethrow_of_run(std::current_exception());
  }
  if (own_profile) write_trace(*own_profile, *options->profile_prefix, 0);
}

}  // namespace sardonyx::ort_api
