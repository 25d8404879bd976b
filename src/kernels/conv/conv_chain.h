// Convolutions that follow each other, in tiles of rows of lines: what is between them stays in a
// cache.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/conv/conv.h"

namespace sardonyx::kernels {

// A depthwise convolution, or that and the one before it, or the one behind it, or both, with
// channels last over two dimensions. Each part's input is the output of the one before.
// `before`: any but with Winograd's algorithm. `behind`: pointwise. Of the epilogues only the last
// may have a residual.
struct FusedConvChain {
  static constexpr int most = 3;
  int count = 0;
  int depthwise = 0;  // which part that is
  ConvParams parts[most];

  std::span<const ConvParams> shapes() const { return {parts, static_cast<size_t>(count)}; }
};

// Whether the convolutions are such, their sizes being those of one image after the other.
bool is_sound(const FusedConvChain& chain);

struct ChainPart {
  const void* packed = nullptr;  // as pack_conv_weights makes it
  Epilogue epilogue;
};

// Whether tiles of rows are expected to be faster for these sizes: what would be written and read
// again does not fit into the second-level cache, while a tile of rows of it does.
bool chain_pays(const FusedConvChain& chain);

// How a chain is cut into tiles of rows, which depends on its sizes and the processor.
struct ChainCut {
  int64_t step = 1;             // lines of the depthwise convolution's output at a time
  int64_t tasks_per_image = 1;  // each with its tile of rows
  int64_t block = 1;            // lines before the depthwise convolution at a time, at most
  int64_t held = 1;             // those that a thread holds
  // Whether a line's bits could depend on how many others are computed with it: blocks then begin
  // at multiples of their height and end there.
  bool whole_blocks = false;
  int64_t before_bytes = 0, behind_bytes = 0;  // scratch of the parts
};
ChainCut cut_chain(const FusedConvChain& chain);

int64_t chain_scratch_bytes(const FusedConvChain& chain, const ChainCut& cut, int threads);

// As conv_run for each part in turn. Every line of what is between the parts is the same whichever
// tile of rows computes it. `means`: those of the depthwise part, as ConvExtras has them, where its
// shape wants them; null otherwise.
void chain_run(const FusedConvChain& chain, const ChainCut& cut, const float* x,
               std::span<const ChainPart> parts, float* y, float* means, void* scratch,
               ThreadPool& pool);

}  // namespace sardonyx::kernels
