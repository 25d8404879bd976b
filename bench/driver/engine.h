// An engine that the driver runs models on.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "sardonyx/value.h"

namespace driver {

// Errors are exceptions derived from std::exception.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual std::string version() const = 0;
  // Makes the model of a file ready to run on this many threads. What was loaded before is let go.
  virtual void load(const std::string& model, int threads) = 0;
  // Inputs by name from an .npz file, for all runs that follow: they stay where they lie.
  virtual void set_inputs(const std::string& npz) = 0;
  // One run. This is all that is timed: it must do nothing but what a caller in C or C++ has to.
  virtual void run() = 0;
  // What the last run gave.
  virtual std::vector<sardonyx::Value> outputs() = 0;
  // The file of packed weights that models loaded from here on take theirs from.
  virtual void set_packed(const std::string& /*file*/) {
    throw std::runtime_error("this engine has no files of packed weights");
  }
};

std::unique_ptr<Engine> make_sardonyx();
// `library`: the shared library of the package.
std::unique_ptr<Engine> make_onnxruntime(const std::string& library);
std::unique_ptr<Engine> make_openvino(const std::string& library);

}  // namespace driver
