// The checkpoint of ONNX Runtime's training API, a FlatBuffers file.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "ir/model.h"

namespace sardonyx::train {

struct OrtCheckpoint {
  std::vector<ir::TensorProto> trained, frozen;  // parameters, with their names
  // Of the optimizer; nothing where the checkpoint was saved without.
  struct Optimizer {
    int64_t steps = 0;
    float learning_rate = 0;
    // By the name of the parameter, then of the average: "momentum0", "momentum1".
    std::map<std::string, std::map<std::string, ir::TensorProto>> averages;
  };
  std::optional<Optimizer> optimizer;
};

// Tensors are views of the file. Throws Error (unreadable), (unsupported) for folders, which
// versions before 1.16 wrote, and for checkpoints without values.
OrtCheckpoint read_ort_checkpoint(const std::string& path);
// The same of what a file of this name holds, and of the file of data beside it.
OrtCheckpoint read_ort_checkpoint(const std::string& path, const Bytes& file,
                                  const std::function<Bytes()>& data);

}  // namespace sardonyx::train
