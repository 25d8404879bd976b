// fp32 convolution in NCW, NCHW and NCDHW, or with channels last: NWC, NHWC and NDHWC.
//
// y[n][m][o] = epilogue(sum over c, t of x[n][c][o * stride + t * dilation - pad] * w[m][c][t]);
// x is batch x in_channels x in..., w is out_channels x in_channels/group x kernel..., y is
// batch x out_channels x out... (with nhwc: x is batch x in... x in_channels and y is
// batch x out... x out_channels); all dense, positions outside x are 0. Nothing here allocates;
// scratch and packed weights are aligned to 64 bytes. Results do not depend on the number of
// threads.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/gemm/epilogue.h"

namespace sardonyx {
class ThreadPool;
}

namespace sardonyx::kernels {

// The caller has checked: rank in [1, 3], every size >= 0, stride, dilation, group >= 1, channels
// divisible by group, and out as conv_out_size says (a smaller out computes only those positions).
struct ConvParams {
  static constexpr int max_rank = 3;
  using Dims = std::array<int64_t, max_rank>;
  int64_t batch = 1;
  int64_t in_channels = 0;
  int64_t out_channels = 0;
  int64_t group = 1;
  int rank = 2;  // spatial dimensions; only the first `rank` entries below count
  Dims in{};
  Dims kernel{};
  Dims stride{1, 1, 1};
  Dims dilation{1, 1, 1};
  Dims pad_begin{};  // may be negative: the input is cropped
  Dims pad_end{};
  Dims out{};
  // Not 0: weights are packed for Winograd's algorithm, where it applies (3x3, no strides;
  // dilation only with channels last), with tiles of so many output pixels along a side, 2 or 4:
  // fewer multiplications, an error of up to 2e-5 of the output's root mean square instead of 2e-6.
  // Set before packing, as winograd_tile says for the sizes expected, and the same for every run.
  int winograd = 0;
  // x, y and the residual have their channels innermost. Weights stay as they are; their pack does
  // not.
  bool nhwc = false;
  // The model's numbers are float16 or bfloat16, and products need be no more precise. Packs do not
  // depend on it.
  bool coarse = false;
  // Of runs with channels last that get ConvExtras: pointwise ones the factors, depthwise ones the
  // means. Packs do not depend on them.
  bool input_factors = false;
  bool means = false;
  // With channels last, of pointwise convolutions without strides and pads: x comes with its
  // channels interleaved: seen as [shuffle, in_channels / shuffle], its channels are those that the
  // weights mean, transposed. Where it is a group's number of channels they are interleaved as
  // shuffles_output says. Packs depend on whether it is 1.
  int64_t shuffle = 1;
  // With channels last, where takes_nchw_input says so: x, and it alone, has its channels first.
  // Packs do not depend on it.
  bool nchw_input = false;
  // With channels last, where can_shuffle_output says so: y's channels are interleaved, the first
  // of each group, then the second of each group, and so on; the residual's are, too. Set before
  // packing.
  bool shuffles_output = false;
};

// What a convolution with channels last does beside its sums, where ConvParams says so.
struct ConvExtras {
  // One for each input channel of each image, multiplied in: batch x in_channels.
  const float* input_factors = nullptr;
  // The means of the outputs of each channel of each image, after the epilogue: batch x
  // out_channels.
  float* means = nullptr;
};
// Whether the shape's path (which must be final) can be given factors, or asked for means.
bool takes_input_factors(const ConvParams& shape);
bool gives_means(const ConvParams& shape);
// Whether there is anything to multiply with, without which there is no path with channels last.
bool has_weights(const ConvParams& shape);
// Whether the path brings channels to where `shuffle` and `shuffles_output` say.
bool takes_shuffles(const ConvParams& shape);
// Whether its kernel can read an image with channels first (`nchw_input` itself does not count).
bool takes_nchw_input(const ConvParams& shape);
// Whether it can interleave its output channels (`shuffles_output` itself does not count).
bool can_shuffle_output(const ConvParams& shape);

// The tiles with which Winograd's algorithm is expected to be fastest for these sizes; 0 where it
// does not apply or not pay.
int winograd_tile(const ConvParams& shape);

// Output positions along one dimension; 0 where the kernel does not fit.
int64_t conv_out_size(int64_t in, int64_t kernel, int64_t stride, int64_t dilation,
                      int64_t pad_begin, int64_t pad_end);

// The ways to compute a convolution, best first where they apply.
enum class ConvPath : uint8_t {
  depthwise_rows,   // one input channel per output channel, 3x3 to 7x7: several rows in registers
  depthwise_any,    // one input channel per few output channels, any kernel
  winograd,         // 3x3 kernels, tiles of 2x2 or 4x4 output pixels, if asked for
  pixel_vectors,    // matrix multiplication, vectors along the pixels of an output channel
  channel_vectors,  // matrix multiplication, vectors along the output channels; takes any shape
  // With channels last:
  depthwise_nhwc,    // one input channel per output channel, vectors along the channels
  grouped_nhwc,      // groups of a few channels, vectors along the channels
  dots_nhwc,         // few output channels, vectors along what a window holds side by side
  winograd_nhwc,     // as winograd
  interleaved_nhwc,  // pointwise in groups, which stand side by side in vectors
  pointwise_nhwc,    // one matrix multiplication
  lines_nhwc,        // matrix multiplication that reads the lines of the image
  windows_nhwc,      // matrix multiplication of copied windows; takes any shape
};
std::string_view name_of(ConvPath path);

// Which path a shape takes, and why each better one was refused.
struct ConvChoice {
  struct Refusal {
    ConvPath path;
    std::string_view reason;
  };
  ConvPath path = ConvPath::channel_vectors;
  int refusal_count = 0;
  std::array<Refusal, 7> refusal{};

  std::span<const Refusal> refusals() const {
    return {refusal.data(), static_cast<size_t>(refusal_count)};
  }
};
ConvChoice choose_conv(const ConvParams& shape);
// Whether a window has the same output in both, which are of one convolution and channels last.
bool same_way(const ConvParams& a, const ConvParams& b);

// Bytes of the packed weights. Size and format depend on channels, group, kernel, stride, dilation,
// `winograd` and the instruction set: not on batch, in, out or pads.
int64_t conv_packed_size(const ConvParams& shape);
// `weights` may lie at any address. `factors`, if any, are multiplied in: one for each output
// channel.
void pack_conv_weights(const ConvParams& shape, const void* weights, const float* factors,
                       void* packed, ThreadPool* pool);

int64_t conv_scratch_bytes(const ConvParams& shape, int threads);

// The epilogue's bias, if any, has out_channels values; its residual, if any, is laid out as y and
// may be y.
void conv_run(const ConvParams& shape, const float* x, const void* packed, float* y,
              const Epilogue& epilogue, void* scratch, ThreadPool& pool,
              const ConvExtras& extras = {});

// The plain definition, in double precision, on one thread, from unpacked weights: what the other
// paths are tested against.
void conv_reference(const ConvParams& shape, const float* x, const float* weights, float* y,
                    const Epilogue& epilogue);

}  // namespace sardonyx::kernels
