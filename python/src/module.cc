// The extension module sardonyx._core: what sardonyx/*.py is written on. Not for direct use.
#include <nanobind/nanobind.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "errors.h"
#include "model.h"
#include "numpy_types.h"
#include "sardonyx/session.h"
#include "text.h"

namespace {

// Classes of the extension are objects of the interpreter that made them. Importing the module into
// another one has put that one's tables into the place of the first's by now.
void require_first_interpreter() {
  static std::atomic<int64_t> first{-1};
  static decltype(nanobind::detail::internals) tables = nullptr;
  const int64_t here = PyInterpreterState_GetID(PyInterpreterState_Get());
  int64_t expected = -1;
  if (first.compare_exchange_strong(expected, here)) tables = nanobind::detail::internals;
  if (expected == -1 || expected == here) return;
  nanobind::detail::internals = tables;
  throw std::runtime_error(
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
  bind_editor(module);
  bind_training(module);
  bind_fit(module);
  bind_trainable(module);
  bind_operators(module);
  module.def("version", [] { return std::string(sardonyx::version()); });
}
