// What is in a model file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sardonyx/inputs.h"

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

// One run of a model, as far as its shapes can be told.
struct Cost {
  DimSizes sizes = {};     // what the named dimensions were taken as
  double flops = 0;        // floating-point operations; a multiply-add counts as two
  double value_bytes = 0;  // all that lives at the same time, but for weights: the largest sum
  // Whose operator is not known, or whose sizes only a run decides: such a size counts as 1.
  int64_t unknown_nodes = 0;
};

struct ModelInfo {
  std::string path = {};
  int64_t file_bytes = 0;
  std::optional<int64_t> ir_version = {};
  std::vector<std::pair<std::string, int64_t>> opsets =
      {};                     // domain ("ai.onnx" is named so), version
  std::string producer = {};  // name and version
  std::string domain = {};
  int64_t model_version = 0;
  std::string description = {};  // doc_string
  std::vector<std::pair<std::string, std::string>> metadata = {};

  std::string graph_name = {};
  struct Port {
    std::string name = {};
    std::string type = {};     // "float[batch,3]"
    bool has_default = false;  // an input with an initializer
  };
  std::vector<Port> inputs = {}, outputs = {};

  int64_t nodes = 0;  // those of subgraphs and functions too
  struct OperatorCount {
    std::string name = {};  // with its domain where that is not ai.onnx
    int64_t count = 0;
    bool supported = true;  // can run
  };
  std::vector<OperatorCount> operators = {};  // most frequent first
  std::vector<std::string> functions = {};    // of the model itself

  int64_t parameters = 0;  // elements of initializers and constants
  int64_t parameter_bytes = 0;
  std::vector<std::pair<std::string, int64_t>> parameter_types = {};  // element type, elements
  std::vector<std::string> external_files = {};                       // as the model names them
  bool external_data_present = true;  // whether all of them are there
  bool training = false;

  std::optional<Cost> cost = {};  // absent where the model can't be lowered
  std::string cost_reason = {};   // then why
};

// Throws Error as read_model_file does. External data is not needed. `sizes` gives named
// dimensions; others count as 1. `libraries` (files) hold operators that the model may call; their
// code runs here.
ModelInfo model_info(const std::string& path, const DimSizes& sizes = {},
                     const std::vector<std::string>& libraries = {});
// The same of a model that is read already, with the operators that were loaded with it.
ModelInfo model_info(const Model& model, const DimSizes& sizes = {});

}  // namespace sardonyx

#pragma GCC visibility pop
