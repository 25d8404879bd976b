// The extension module sardonyx._core: what sardonyx/*.py is written on. Not for direct use.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "errors.h"
#include "model.h"
#include "numpy_types.h"
#include "sardonyx/session.h"

namespace {

// Classes of the extension are objects of the interpreter that made them.
void require_first_interpreter() {
  static std::atomic<int64_t> first{-1};
  const int64_t here = PyInterpreterState_GetID(PyInterpreterState_Get());
  int64_t expected = -1;
  if (first.compare_exchange_strong(expected, here) || expected == here) return;
  throw nanobind::import_error(
      "sardonyx works in one interpreter of a process, and another one has imported it already");
}

}  // namespace

NB_MODULE(_core, module) {
  using namespace sardonyx::python;
  require_first_interpreter();
  import_numpy();
  translate_errors();
  bind_models(module);
  bind_values(module);
  bind_profiles(module);
  bind_sessions(module);
  bind_inference(module);
  bind_tools(module);
  bind_training(module);
  bind_fit(module);
  bind_trainable(module);
  bind_operators(module);
  module.def("version", [] { return std::string(sardonyx::version()); });
}
