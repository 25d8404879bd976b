// What the ways to compute a convolution share. Internal to kernels/conv.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/thread_pool.h"
#include "kernels/conv/conv.h"
#include "kernels/conv/geometry.h"
#include "kernels/gemm/pack.h"
#include "kernels/gemm/tiles.h"

namespace sardonyx::kernels {

struct DepthwiseNhwcJob;

// What all runs of one call share. In the matrices of a group, rows of C are output channels and
// columns are pixels; with channels last it is the other way round.
struct Call {
  const ConvGeometry& g;
  const float* x;
  const float* weights;
  float* y;
  Epilogue epilogue;
  bool coarse = false;  // as ConvParams says
  ConvExtras extras = {};

  const float* image(int64_t n, int64_t group) const {
    return x + (n * g.group + group) * g.group_in * g.in_pixels;
  }
  // The store of `channels` output channels (of the group) from `m` on, `pixels` pixels from
  // `pixel` on.
  TileStore place(int64_t n, int64_t group, int64_t m, int64_t channels, int64_t pixel,
                  int64_t pixels) const {
    const int64_t row = (n * g.group + group) * g.group_out + m;
    TileStore store;
    store.rows = channels;
    store.columns = pixels;
    store.epilogue = &epilogue;
    store.c = y + row * g.out_pixels + pixel;
    store.c_stride = g.out_pixels;
    if (epilogue.bias != nullptr) store.bias = epilogue.bias + group * g.group_out + m;
    if (epilogue.residual != nullptr) {
      store.residual = epilogue.residual + row * g.out_pixels + pixel;
      store.residual_stride = g.out_pixels;
    }
    return store;
  }

  // With channels last: the group's first channel in the image's first pixel.
  const float* image_nhwc(int64_t n, int64_t group) const {
    return x + n * g.in_pixels * g.group * g.group_in + group * g.group_in;
  }
  // The store of `pixels` pixels, counted through the whole batch, from `pixel` on.
  TileStore place_nhwc(int64_t group, int64_t m, int64_t channels, int64_t pixel,
                       int64_t pixels) const {
    const int64_t stride = g.group * g.group_out;
    const int64_t channel = group * g.group_out + m;
    TileStore store;
    store.rows = pixels;
    store.columns = channels;
    store.epilogue = &epilogue;
    store.c = y + pixel * stride + channel;
    store.c_stride = stride;
    if (epilogue.bias != nullptr) store.bias = epilogue.bias + channel;
    if (epilogue.residual != nullptr) {
      store.residual = epilogue.residual + pixel * stride + channel;
      store.residual_stride = stride;
    }
    return store;
  }
};

// Runs run(task, worker) for every task.
template <class Run>
void for_tasks(ThreadPool& pool, int64_t tasks, int64_t grain, Run&& run) {
  pool.parallel_for(tasks, grain, [&](int64_t begin, int64_t end, int worker) {
    for (int64_t task = begin; task < end; ++task) run(task, worker);
  });
}

// Whether the depthwise kernels can finish their sums themselves: scale, bias, and clipping to
// [low, high].
bool clips_only(const Epilogue& e, float& low, float& high);

// Each way: the floats of scratch that one worker needs, and the run, whose `spaces` have that
// size. Geometries are not empty.
int64_t depthwise_worker_floats(const ConvGeometry& g);
void run_depthwise(const Call& call, ConvPath path, const PackedBlocks& spaces, ThreadPool& pool);

int64_t pixel_worker_floats(const ConvGeometry& g);
void run_pixel_vectors(const Call& call, const PackedBlocks& spaces, ThreadPool& pool);

int64_t channel_worker_floats(const ConvGeometry& g);
void run_channel_vectors(const Call& call, const PackedBlocks& spaces, ThreadPool& pool);

// Where means are wanted, the sums of each tile of rows stand behind the workers' spaces.
int64_t depthwise_nhwc_worker_floats(const ConvGeometry& g);
int64_t depthwise_sums_floats(const ConvGeometry& g);
void run_depthwise_nhwc(const Call& call, const PackedBlocks& spaces, ThreadPool& pool);
// The job's lines, whose first pixel, counted through the whole batch, is `pixel`: its places and
// what is done to its sums are filled in here. `space` has depthwise_nhwc_worker_floats.
void depthwise_lines_to(const Call& call, int64_t pixel, DepthwiseNhwcJob& job, float* space);

// The means of each image's channels from the sums of its tiles of rows, from the first to the
// last.
void means_of_bands(const ConvGeometry& g, int64_t row_tiles, const float* sums, float* means);

int64_t grouped_nhwc_worker_floats(const ConvGeometry& g);
void run_grouped_nhwc(const Call& call, const PackedBlocks& spaces, ThreadPool& pool);

// Whether it is worth it for weights of these sizes; if not, why. Its weights, as they came,
// packed.
std::string_view refuses_dots_nhwc(const ConvGeometry& g);
void pack_dots(const ConvGeometry& g, const float* weights, float* packed);
int64_t dots_nhwc_worker_floats(const ConvGeometry& g);
void run_dots_nhwc(const Call& call, const PackedBlocks& spaces, ThreadPool& pool);

// If it refuses, why.
std::string_view refuses_interleaved_nhwc(const ConvGeometry& g);
int64_t interleaved_nhwc_worker_floats(const ConvGeometry& g);
void run_interleaved_nhwc(const Call& call, const PackedBlocks& spaces, ThreadPool& pool);

// Whether the tiles of lines_nhwc read images of these sizes well; if not, why.
std::string_view refuses_lines_nhwc(const ConvGeometry& g);
int64_t lines_nhwc_worker_floats(const ConvGeometry& g);
void run_lines_nhwc(const Call& call, const PackedBlocks& spaces, ThreadPool& pool);

int64_t windows_nhwc_worker_floats(const ConvGeometry& g, int threads);
void run_windows_nhwc(const Call& call, const PackedBlocks& spaces, ThreadPool& pool);

// Takes its scratch as gemm_packed_b does, and before it room for what the factors of the input
// channels were multiplied into.
int64_t pointwise_nhwc_scratch_bytes(const ConvGeometry& g, bool factors, int threads);
void run_pointwise_nhwc(const Call& call, void* scratch, ThreadPool& pool);

// Both layouts.
int64_t winograd_worker_floats(const ConvGeometry& g);
void run_winograd(const Call& call, const PackedBlocks& spaces, ThreadPool& pool);

}  // namespace sardonyx::kernels
