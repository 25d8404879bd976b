// Other versions of a model.
#pragma once

#include <cstdint>

#include "sardonyx/model.h"

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

struct ConvertOptions {
  int64_t opset = 0;  // of ai.onnx; 0: the newest there is
  // BatchNormalization and Dropout up to opset 6 without is_test mean inference, not training.
  bool assume_inference = false;
  // Most bytes that converting may take beside the model that is given; 0: any number.
  int64_t memory_limit = 0;
};

// The model with every node in the form that `opset` of ai.onnx, newer or older than the model's,
// and the least sufficient versions of the standard's other domains have: the same rules that carry
// old nodes up before a run, and their inverses (docs/upgrades.md). Both models give the same
// outputs. Functions of the model are inlined, declared types of inner values are dropped; external
// data is loaded and becomes data of the model. An older opset brings its IR version along; inputs
// with initializers are taken to keep those where the older opset needs a constant, and are no
// inputs any more. Throws Error: (invalid_model) where the model cannot run, (unreadable) for
// external data, (bad_input) where `opset` cannot say what some node means; the message then names
// the least that can.
Model convert_version(const Model& model, const ConvertOptions& options = {});

// The model with its calls of functions of its own replaced by their bodies, and without those
// functions; nodes stay in the versions they have. Values get names of their own, "hint__7", where
// the function's are taken. Throws Error: (invalid_model) where calls don't fit their functions, go
// in circles or nest too deep, (unsupported) where a function imports another version of a domain
// in which one of its nodes means something else: convert_version does both.
Model inline_functions(const Model& model);

}  // namespace sardonyx

#pragma GCC visibility pop
