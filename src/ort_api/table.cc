// The table of functions, and what clients ask for it.
#include "ort_api/handles.h"

namespace sardonyx::ort_api {

namespace {

// What stands where a function is not there. Functions that return no status give 0 or null.
template <class Result>
Result missing(const char* name) {
  if constexpr (std::is_same_v<Result, OrtStatus*>) {
    return guarded([&] { refuse(ORT_NOT_IMPLEMENTED, "Sardonyx does not have {}", name); });
  } else {
    return Result();
  }
}

OrtApi made_table() {
  OrtApi table;
#define FUNCTION(result, name, parameters) \
  table.name = [](auto...) -> result { return missing<result>(#name); };
#include "ort_api/functions.inc"
#undef FUNCTION
  add_adapters(table);
  add_binding(table);
  add_custom_operators(table);
  add_devices(table);
  add_environment(table);
  add_invoked_operators(table);
  add_kernels(table);
  add_memory(table);
  add_metadata(table);
  add_model_editor(table);
  add_pairs(table);
  add_profiling(table);
  add_providers(table);
  add_run_options(table);
  add_running(table);
  add_session(table);
  add_session_options(table);
  add_sparse(table);
  add_status(table);
  add_strings(table);
  add_types(table);
  add_values(table);
  return table;
}

const OrtApi* GetApi(uint32_t version) {
  // A place of the table never changes, so one serves all versions.
  return version >= 1 && version <= api_version ? served_table() : nullptr;
}

const char* GetVersionString() {
  static const std::string text = fmt::format("{}+sardonyx.{}", release, sardonyx::version());
  return text.c_str();
}

}  // namespace

const OrtApi* served_table() {
  static const OrtApi table = made_table();
  return &table;
}

const OrtApiBase* served_base() {
  static const OrtApiBase base{GetApi, GetVersionString};
  return &base;
}

}  // namespace sardonyx::ort_api
