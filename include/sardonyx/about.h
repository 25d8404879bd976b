// What this build of Sardonyx is.
#pragma once

#include <string>

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

struct About {
  std::string version = {};       // "0.1.0"
  std::string onnx_release = {};  // the newest release of the standard it knows
  int ir_version = 0;
  int opset = 0, ml_opset = 0, training_opset = 0;
  int operators = 0;                 // names of the standard's operators, over all its domains
  std::string instruction_set = {};  // what the kernels take on this machine
  bool images = false;               // reads PNG and JPEG
};

// May be called from any thread.
About about();

}  // namespace sardonyx

#pragma GCC visibility pop
