// An engine that the driver runs models on.
#pragma once

#include <cstddef>
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
  // From now on each run is one of so many steps of a decoder, and takes what the run before gave
  // (steps.h). How many outputs are carried so: 0 of a model that is no decoder, whose runs stay as
  // they are.
  virtual size_t carry_on(int steps) = 0;
  // The next run is the first step.
  virtual void begin_anew() = 0;
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
