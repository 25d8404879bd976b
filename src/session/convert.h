// Carrying a model up to a newer opset.
#pragma once

#include <cstdint>

#include "ir/model.h"
#include "sardonyx/convert.h"

namespace sardonyx {

// The model with every node in the form that `opset` of ai.onnx and the least sufficient versions
// of the standard's other domains have: the same rules that carry old nodes up before a run.
// Functions of the model are inlined, external data becomes data of the model, declared types of
// inner values are dropped. Throws Error: (invalid_model) where the model cannot run, (bad_input)
// where `opset` is below the model's own, or cannot say what some node means; the message then
// names the least that can.
ir::Model convert(const Model& model, const ConvertOptions& options = {});

}  // namespace sardonyx
