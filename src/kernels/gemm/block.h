// A block of strips of A times one panel of B. Internal to kernels/gemm and kernels/conv.
#pragma once

#include <cstdint>

#include "kernels/gemm/blocking.h"
#include "kernels/gemm/tiles.h"

namespace sardonyx::kernels {

// Where the strips of a block are.
struct StripOperand {
  const float* data = nullptr;  // of the block's first strip
  int64_t stride = 0;           // floats between rows, or between terms where k_major
  int64_t strip_distance = 0;   // floats between packed strips; 0 where rows lie as they came
  bool k_major = false;

  const float* at(const Strips& strips, int64_t first, int64_t strip, int64_t k) const {
    if (strip_distance != 0) return data + (strip - first) * strip_distance + k * stride;
    const int64_t rows = strips.begin(strip) - strips.begin(first);
    return k_major ? data + rows + k * stride : data + rows * stride + k;
  }
};

// The terms [begin, begin + size) of a sum.
struct Terms {
  int64_t begin = 0;
  int64_t size = 0;
  bool first = true;  // of the sum's chunks
  bool last = true;
};

inline Terms chunk_terms(const Chunks& chunks, int64_t index) {
  const int64_t begin = std::min(chunks.k, index * chunks.size());
  return {begin, std::min(chunks.size(), chunks.k - begin), index == 0,
          index == chunks.count() - 1};
}

struct PanelOperand {
  const float* data = nullptr;  // at the first of the terms
  int64_t stride = 0;           // floats between terms
  int vectors = 2;
  const float* next = nullptr;  // what will be wanted after it, as large; null: nothing to prefetch
};

// Floats that multiply_panel's `partial` needs for a block of that many strips.
inline int64_t partial_floats(const Chunks& chunks, int64_t strips, const TileKernels& kernels) {
  return chunks.count() > 1 ? strips * kernels.tile_rows * kernels.panel_columns : 0;
}

// Calls store(strip, sums, sums_stride) for each strip in [first, last) after the last chunk.
template <class Store>
void multiply_panel(const TileKernels& kernels, const Strips& strips, int64_t first, int64_t last,
                    const StripOperand& a, const PanelOperand& b, const Terms& terms,
                    float* partial, Store&& store) {
  alignas(64) float near_sums[max_lanes * max_tile_columns];
  const auto& table = a.k_major ? kernels.k_major : kernels.by_rows;
  const int64_t width = b.vectors * kernels.lanes;
  const bool chunked = !(terms.first && terms.last);
  TileJob job;
  job.k = terms.size;
  job.a_stride = a.stride;
  job.b = b.data;
  job.b_stride = b.stride;
  job.resume = !terms.first;
  // A panel has `lines` cache lines every two terms, to be spread over the strips.
  const int64_t lines = std::max<int64_t>(1, width / 8);
  const int64_t share = b.next == nullptr ? 0 : divide_up(lines, last - first);
  for (int64_t s = first; s < last; ++s) {
    job.prefetch_lines = share * (s - first) < lines ? static_cast<int>(share) : 0;
    if (job.prefetch_lines > 0) {
      job.prefetch = b.next + (s - first) * share * (terms.size / 2) * 16;
    }
    job.a = a.at(strips, first, s, terms.begin);
    job.sums = chunked ? partial + (s - first) * kernels.tile_rows * width : near_sums;
    table[strips.height(s)][b.vectors](job);
    if (terms.last) store(s, job.sums, width);
  }
}

// The store of a tile whose corner is C's element (row, column); its sums and size are still to say.
inline TileStore store_at(const Epilogue& epilogue, float* c, int64_t ldc, int64_t row, int64_t column) {
  TileStore store;
  store.epilogue = &epilogue;
  store.c = c + row * ldc + column;
  store.c_stride = ldc;
  if (epilogue.bias != nullptr && epilogue.bias_axis != BiasAxis::none) {
    store.bias = epilogue.bias + (epilogue.bias_axis == BiasAxis::row ? row : column);
  }
  if (epilogue.residual != nullptr) {
    store.residual = epilogue.residual + row * epilogue.residual_stride + column;
    store.residual_stride = epilogue.residual_stride;
  }
  return store;
}

}  // namespace sardonyx::kernels
