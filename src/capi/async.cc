// Runs on the session's own threads.
#include "capi/session.h"

using namespace sardonyx;
using namespace sardonyx::capi;

namespace {

sardonyx_status* status_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (...) {
    return status_of_exception();
  }
}

// Gives the values away, or says that there is no memory for their handles.
void tell(sardonyx_done done, void* user, std::vector<Value> made,
          const std::exception_ptr& error) {
  if (error) return done(status_of(error), nullptr, 0, user);
  std::vector<sardonyx_value*> handles;
  sardonyx_status* const status = guarded([&] {
    std::vector<std::unique_ptr<sardonyx_value>> fresh;
    for (Value& value : made) fresh.emplace_back(new_value(std::move(value)));
    handles.reserve(fresh.size());
    for (auto& one : fresh) handles.push_back(one.release());
  });
  done(status, handles.data(), handles.size(), user);
}

}  // namespace

sardonyx_status* sardonyx_session_run_async(const sardonyx_session* session,
                                            const sardonyx_run_options* options,
                                            const char* const* input_names,
                                            const sardonyx_value* const* inputs, size_t input_count,
                                            sardonyx_done done, void* user) {
  return guarded([&] {
    const Session& of = required(session, "session").session;
    if (done == nullptr) fail(ErrorCode::bad_input, "the argument 'done' is NULL");
    if (input_count > 0) required(inputs, "inputs");
    std::vector<NamedValue> given;
    const auto names = texts(input_names, input_count, "input_names");
    for (size_t i = 0; i < names.size(); ++i)
      given.emplace_back(names[i], value_of(inputs[i], "inputs"));
    of.run_async(
        std::move(given),
        [done, user](std::vector<Value> made, std::exception_ptr error) {
          tell(done, user, std::move(made), error);
        },
        run_options(options));
  });
}
