// The extension module sardonyx._core: what sardonyx/*.py is written on. Not for direct use.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "errors.h"
#include "model.h"
#include "numpy_types.h"
#include "sardonyx/session.h"

NB_MODULE(_core, module) {
  using namespace sardonyx::python;
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
  module.def("version", [] { return std::string(sardonyx::version()); });
}
