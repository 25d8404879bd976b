// How many channels ONNX Runtime put into one block (com.microsoft.nchwc).
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "ir/model.h"

namespace sardonyx::lower {

// A model that ONNX Runtime saved after optimisation does not say it: blocks have 16 channels where
// the processor has AVX-512, else 8. Weights whose output channels are an odd multiple of 8 tell;
// where all are multiples of 16, it is what ONNX Runtime would take on this processor.
class ChannelBlocks {
 public:
  // `graph` may be null, and is borrowed.
  explicit ChannelBlocks(const ir::Graph* graph) : graph_(graph) {}

  static bool concerns(const ir::Node& node) { return node.domain == "com.microsoft.nchwc"; }
  // Says of a node of the model that it is there.
  void meet(const ir::Node& node);
  // Of the nodes met so far.
  int64_t size() const;

 private:
  const ir::Graph* graph_;
  bool indexed_ = false, narrow_ = false;
  std::unordered_map<std::string_view, int64_t> output_channels_;  // of initializers
};

}  // namespace sardonyx::lower
