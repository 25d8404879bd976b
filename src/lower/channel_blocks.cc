#include "lower/channel_blocks.h"

namespace sardonyx::lower {
namespace {

bool has_wide_vectors() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") != 0;
#else
  return true;
#endif
}

}  // namespace

void ChannelBlocks::meet(const ir::Node& node) {
  if (narrow_ || graph_ == nullptr || node.op_type != "Conv" || node.inputs.size() < 2) return;
  if (!indexed_) {
    for (const ir::TensorProto& tensor : graph_->initializers) {
      if (!tensor.dims.empty()) output_channels_.emplace(tensor.name, tensor.dims[0]);
    }
    indexed_ = true;
  }
  const auto found = output_channels_.find(node.inputs[1]);
  narrow_ = found != output_channels_.end() && found->second % 16 == 8;
}

int64_t ChannelBlocks::size() const { return !narrow_ && has_wide_vectors() ? 16 : 8; }

}  // namespace sardonyx::lower
